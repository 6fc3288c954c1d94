"""The issues of a run as people see them: errors first, the same issue of several files once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import polars as pl

from stepscope.run import Run
from stepscope.tables.issues import OTHER_RUNS, Severity

ORDER = get_args(Severity)


@dataclass(frozen=True)
class IssueGroup:
    """One issue, and the files that have it."""

    severity: str
    problem: str
    remedy: str
    files: Sequence[str]

    @property
    def where(self) -> str:
        """The file, or one of them and how many more there are."""
        first, more = self.files[0], len(self.files) - 1
        return f"{Path(first).name} and {more} more" if more else first


def issue_groups(run: Run) -> list[IssueGroup]:
    """The issues of a run, without its unread inputs and the other runs beside it, which are reported by themselves."""
    unread = {(each.file, each.problem) for each in run.unread}
    places = run.issues.select("file", "problem", "place").iter_rows()
    kept = [
        (file, problem) not in unread and not (run.others and place == OTHER_RUNS) for file, problem, place in places
    ]
    order = {severity: number for number, severity in enumerate(ORDER)}
    grouped = (
        run.issues.filter(kept)
        .group_by("severity", "problem", "remedy", maintain_order=True)
        .agg(pl.col("file").unique(maintain_order=True))
        .sort(pl.col("severity").replace_strict(order, default=len(ORDER)), maintain_order=True)
    )
    return [IssueGroup(*row) for row in grouped.iter_rows()]
