"""Pages without a server: what they are built with, over runs that a test makes up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from stepscope.web.catalogue import Entry
from stepscope.web.errors import UnknownRun
from stepscope.web.ui.context import Context, Web
from stepscope.web.ui.state import State

HOSTILE = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>\x1b[31m\u202e"
"""A name that would run code, end an attribute, or turn the text around."""


@dataclass
class Listed:
    """A catalogue that has just what a test gives it."""

    runs: Sequence[Entry] = ()
    roots: Sequence[Path] = (Path("/data/runs"),)
    revision: int = 0
    asked: list[str] = field(default_factory=list)

    def entries(self) -> list[Entry]:
        """All runs."""
        return list(self.runs)

    def entry(self, identity: str) -> Entry:
        """The run of an id."""
        for entry in self.runs:
            if entry.id == identity:
                return entry
        raise UnknownRun(f"there is no run {identity!r}")


def entry(name: str, state: Any = "ready", **facts: Any) -> Entry:
    """A run of the list."""
    root = Path("/data/runs")
    known: dict[str, Any] = {"id": facts.pop("id", name), "relative": name, "ranks": 2, "input_bytes": 1000, **facts}
    return Entry(name=name, path=root / name, root=root, state=state, **known)


def context_of(url: str, runs: Sequence[Entry] = (), *, language: Any = "en", asking: Any = None) -> Context:
    """The context of a page."""
    web = Web(cast(Any, Listed(runs)), cast(Any, asking), cast(Any, None))
    return Context(web, State.of(url), language)
