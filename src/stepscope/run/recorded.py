"""What answers depend on: the ranks of a run, their tables, limits, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from stepscope.errors import Unavailable
from stepscope.run.iterations import Iterations
from stepscope.run.rank import Rank, stacked
from stepscope.selection import describe_numbers
from stepscope.tables import ISSUES


class Recorded(Protocol):
    """The part of a run on which answers depend."""

    @property
    def name(self) -> str:
        """A short name for people."""

    @property
    def path(self) -> Path:
        """The directory or file that holds it."""

    @property
    def ranks(self) -> Sequence[Rank]:
        """Its ranks."""

    @property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """Options that replace the defaults, by name of analysis or rule."""

    @property
    def issues(self) -> pl.DataFrame:
        """What the import skipped or guessed."""

    @property
    def iterations(self) -> Iterations | None:
        """Its iterations, if it marks no steps and they are certain."""

    def table(self, name: str) -> pl.LazyFrame:
        """A table of all ranks that have it."""

    def lacks(self, name: str, question: str = "") -> Unavailable:
        """Why a table is missing, for an analysis that needs it."""


def table_of(run: Recorded, name: str) -> pl.LazyFrame:
    """A table of all ranks that have it, with all its columns.

    Raises:
        Unavailable: If no rank has it, with the reason.
    """
    if name == ISSUES.name:
        return run.issues.lazy()
    having = [rank for rank in run.ranks if rank.has(name)]
    if not having:
        raise run.lacks(name)
    return stacked(having, name)


def lacks(run: Recorded, name: str, question: str = "") -> Unavailable:
    """Which ranks lack a table and why.

    Args:
        run: The run.
        name: The table.
        question: The analysis that needs it.
    """
    lacking = [rank for rank in run.ranks if not rank.has(name)]
    numbers = sorted(rank.rank for rank in lacking)
    is_everywhere = len(lacking) == len(run.ranks)
    who = "no rank has" if is_everywhere else f"rank {describe_numbers(numbers)} lacks"
    formats = ", ".join(sorted({str(rank.facts["format"] or rank.recording.source) for rank in lacking}))
    why = ". ".join(_reported(run.issues, name, numbers))
    need = f"{question} needs `{name}`: " if question else ""
    reason = f"{need}{who} `{name}` (read as {formats})" + (f". {why}" if why else "")
    ranks = () if is_everywhere else numbers
    return Unavailable(reason, question=question, table=name, ranks=ranks, why=why)


def _reported(issues: pl.DataFrame, name: str, ranks: Sequence[int]) -> Iterable[str]:
    """The issues that the import reported about a table of some ranks, each with its remedy."""
    reported = issues.filter(pl.col("place") == name, pl.col("rank").is_in(ranks))
    for problem, remedy in reported.select("problem", "remedy").unique(maintain_order=True).iter_rows():
        yield f"{problem}. {remedy}"
