"""An entry of the catalogue: what is known of a run without opening it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from stepscope.advice import Finding
from stepscope.paths import shown
from stepscope.present import Language
from stepscope.tables.issues import Issue
from stepscope.web.catalogue.entry_words import told

State = Literal["waiting", "reading", "analysing", "ready", "failed", "gone"]
STATES: tuple[State, ...] = get_args(State)

_HASH_DIGITS = 8
_SLUG_LETTERS = 40
_NO_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Entry:
    """A run, or what is to become one.

    Args:
        id: Its name in addresses, the same after a restart.
        name: What people call it.
        path: The file or directory of the job.
        root: The served directory in which it lies.
        relative: Its path below that, in printable characters.
        state: `waiting` until its files have come to rest or others are read; `reading`; `analysing`: it can be opened,
            and what its pages show is being computed; `ready`; `failed`; `gone`: its files are no longer there.
        progress: How much is done while it is read or analysed, 0 to 1.
        formats: Formats of its recordings.
        frameworks: Frameworks that were recorded.
        devices: Kinds of devices.
        ranks: Number of ranks that are read.
        world_size: Recorded number of ranks of the job; None if unknown.
        steps: Number of steps that any rank recorded; None if none are marked, or unknown.
        start_ns: When the recording starts, ns since the epoch; None if unknown.
        changed_ns: Newest change of its files, ns since the epoch; 0 if unknown.
        input_bytes: Size of its files.
        problem: Why it failed or waits, or what could not be read; empty if nothing is wrong.
        issues: What could not be read.
        notes: Other reasons why it failed or waits: keys of `entry_words.NOTES`.
        unread: How many of its inputs could not be read.
        top: Its most important finding; None if there is none, or none is known yet.
        findings: How many findings there are by severity; empty until they are known.
        stamp: Changes whenever its data does.
    """

    id: str
    name: str
    path: Path
    root: Path
    relative: str
    state: State
    progress: float = 0.0
    formats: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    ranks: int = 0
    world_size: int | None = None
    steps: int | None = None
    start_ns: int | None = None
    changed_ns: int = 0
    input_bytes: int = 0
    problem: str = ""
    issues: tuple[Issue, ...] = ()
    notes: tuple[str, ...] = ()
    unread: int = 0
    top: Finding | None = None
    findings: Mapping[str, int] = field(default_factory=dict)
    stamp: str = ""

    def with_problem(self, issues: Sequence[Issue] = (), notes: Sequence[str] = ()) -> Entry:
        """The same with other issues and notes."""
        return replace(self, problem=told(issues, notes, "en"), issues=tuple(issues), notes=tuple(notes))

    def problem_in(self, language: Language) -> str:
        """The problem in a language."""
        return told(self.issues, self.notes, language) if self.issues or self.notes else self.problem

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: the newest first."""
        return (-(self.start_ns or self.changed_ns), self.id)


def identity(name: str, *facts: object) -> str:
    """A readable name for addresses, which a hash of facts makes unique.

    Examples:
        >>> identity("My run", "a/b")[:7]
        'my-run-'
    """
    slug = _NO_SLUG.sub("-", shown(name).lower()).strip("-")[:_SLUG_LETTERS].rstrip("-") or "run"
    return f"{slug}-{digest(*facts)[:_HASH_DIGITS]}"


def digest(*facts: object) -> str:
    """A hash of facts, the same in each process."""
    content = "\0".join(map(str, facts)).encode("utf-8", "surrogateescape")
    return hashlib.sha256(content).hexdigest()[:32]
