"""What answers depend on: the ranks of a run, their tables, limits, and what is missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.run.iterations import Iterations
from stepscope.run.rank import Rank, known_table, stacked
from stepscope.selection import named_numbers
from stepscope.tables import ISSUES


class Recorded(ABC):
    """The part of a run on which answers depend."""

    ranks: list[Rank]
    """Its ranks, in order."""
    options: Mapping[str, Mapping[str, Any]]
    """Options that replace the defaults, by analysis or rule; see `Run.with_options`."""

    @property
    @abstractmethod
    def issues(self) -> pl.DataFrame:
        """What the import skipped or guessed."""

    @property
    @abstractmethod
    def iterations(self) -> Iterations | None:
        """Steps of ranks that mark none, if they are certain; see `run/iterations.py`."""

    def with_all_steps(self) -> Recorded:
        """The same ranks with all their steps."""
        every = copy(self)
        every.ranks = [rank.whole for rank in self.ranks]
        return every

    def has(self, name: str) -> bool:
        """Whether any rank has rows of a table."""
        return any(rank.has(name) for rank in self.ranks)

    def table(self, name: str) -> pl.LazyFrame:
        """A table of all ranks that have it, with all its columns.

        Raises:
            Unavailable: If no rank has it; the text says why.
        """
        if known_table(name) == ISSUES.name:
            return self.issues.lazy()
        having = [rank for rank in self.ranks if rank.has(name)]
        if not having:
            raise self.lacks(name)
        return stacked(having, name)

    def lacks(self, name: str, question: str = "") -> Unavailable:
        """Which ranks lack a table and why, as the error of an analysis that needs it."""
        lacking = [rank for rank in self.ranks if not rank.has(name)]
        numbers = sorted(rank.rank for rank in lacking)
        is_everywhere = len(lacking) == len(self.ranks)
        who = "no rank has" if is_everywhere else f"{named_numbers('rank', numbers)} lack{'s' * (len(numbers) == 1)}"
        formats = ", ".join(sorted({str(rank.facts["format"] or rank.recording.source) for rank in lacking}))
        why = ". ".join(_reported(self.issues, name, numbers))
        need = f"{question} needs `{name}`: " if question else ""
        reason = f"{need}{who} `{name}` (read as {formats})" + (f". {why}" if why else "")
        ranks = () if is_everywhere else numbers
        return Unavailable(reason, question=question, table=name, ranks=ranks, why=why)


def _reported(issues: pl.DataFrame, name: str, ranks: Sequence[int]) -> Iterable[str]:
    """The issues that the import reported about a table of some ranks, each with its remedy."""
    reported = issues.filter(pl.col("place") == name, pl.col("rank").is_in(ranks))
    for problem, remedy in reported.select("problem", "remedy").unique(maintain_order=True).iter_rows():
        yield f"{problem}. {remedy}"
