"""What could not be read and what is doubtful, for every surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.pages.words import sentence
from stepscope.paths import shown
from stepscope.tables.issues import OTHER_RUNS

if TYPE_CHECKING:
    from stepscope.pages.answering import Subject
    from stepscope.present import Language
    from stepscope.run import Run

SEVERITIES = ("error", "warning", "note")
"""In the order in which issues are listed."""


@dataclass(frozen=True)
class Trouble:
    """Something that could not be read, or is doubtful.

    Args:
        files: The files that have it.
        is_error: Whether data is lost.
    """

    severity: str
    files: Sequence[str]
    problem: str
    remedy: str
    is_error: bool = False


@dataclass(frozen=True)
class Unread:
    """All that a run reports about its reading."""

    unread: Sequence[Trouble]
    issues: Sequence[Trouble]
    warnings: Sequence[str]
    others: Sequence[str]

    @property
    def lost(self) -> dict[str, int | None]:
        """How many files were not read, and how many have lost data, beside these or alone; None for none."""
        unread = sum(one.is_error for one in self.unread)
        damaged = len({file for one in self.issues if one.is_error for file in one.files})
        known = {"damaged": damaged, "damaged_too": 0} if not unread else {"damaged": 0, "damaged_too": damaged}
        return {name: count or None for name, count in {"unread": unread, **known}.items()}


SEVERITIES_ZH = {"error": "错误", "warning": "警告", "note": "提示"}


def unread_of(run: Run, language: Language = "en") -> Unread:
    """What a run reports: inputs that were not read, errors first, and issues, the same one of several files once."""

    def trouble(severity: str, files: Sequence[str], problem: str, remedy: str) -> Trouble:
        named = SEVERITIES_ZH.get(severity, severity) if language == "zh" else severity
        shown = [below(file, run.path) for file in files]
        said = sentence(problem, language), sentence(remedy, language)
        return Trouble(named, shown, *said, is_error=severity == SEVERITIES[0])

    unread = sorted(run.unread, key=lambda one: one.severity != "error")
    return Unread(
        [trouble(one.severity, [one.file], one.problem, one.remedy) for one in unread],
        [trouble(group["severity"], group["file"], group["problem"], group["remedy"]) for group in issue_groups(run)],
        [sentence(warning, language) for warning in run.warnings],
        [shown(other.path) for other in run.others],
    )


def below(file: str, folder: Path) -> str:
    """A path from the input on, if it is there."""
    path = Path(file)
    return shown(path.relative_to(folder)) if path != folder and path.is_relative_to(folder) else shown(file)


def issue_groups(run: Subject) -> list[dict[str, Any]]:
    """Issues with all files that have them, without unread inputs and other runs, which are reported by themselves."""
    unread = {(each.file, each.problem) for each in run.unread}
    places = run.issues.select("file", "problem", "place").iter_rows()
    kept = [
        (file, problem) not in unread and not (run.others and place == OTHER_RUNS) for file, problem, place in places
    ]
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    grouped = run.issues.filter(kept).group_by("severity", "problem", "remedy", maintain_order=True)
    files = grouped.agg(pl.col("file").unique(maintain_order=True))
    return files.sort(pl.col("severity").replace_strict(order), maintain_order=True).to_dicts()
