"""What an engine carries out: questions about some ranks, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from stepscope.errors import Unavailable
from stepscope.run.engine.messages import Order

Ranks = tuple[int, ...]
"""The numbers of ranks that were computed together."""


MOST_MOVED_BYTES = 200_000_000
"""Rows of so many bytes are copied to be in one piece, which takes as much memory once more."""


@dataclass(frozen=True)
class PartAnswer:
    """The answers of some ranks.

    Args:
        ranks: Those that have an answer, which may have no rows.
        frame: Their rows, rank by rank; None if there are no such ranks.
        silent: Why the others have no answer, by number.
    """

    ranks: Ranks
    frame: pl.DataFrame | None
    silent: Mapping[int, Unavailable]

    @classmethod
    def joined(cls, parts: Sequence[PartAnswer]) -> PartAnswer:
        """The answers of several parts, in the order of their ranks."""
        frames = [part.frame for part in parts if part.frame is not None]
        silent = {rank: reason for part in parts for rank, reason in part.silent.items()}
        ranks = tuple(sorted(rank for part in parts for rank in part.ranks))
        return cls(ranks, by_rank(frames) if frames else None, dict(sorted(silent.items())))

    def whole(self) -> pl.DataFrame:
        """The rows of all ranks.

        Raises:
            Unavailable: If no rank has an answer; with all distinct reasons.
        """
        if self.frame is not None:
            return self.frame
        causes = {str(reason): reason for reason in self.silent.values()}
        raise Unavailable(". ".join(causes), causes=list(causes.values()))

    def of(self, ranks: Ranks) -> pl.DataFrame:
        """The rows of some of these ranks.

        Raises:
            Unavailable: If ranks have no answer, of those that have none for the same reason as the first of them.
        """
        reasons = [(rank, self.silent[rank]) for rank in ranks if rank in self.silent]
        if reasons:
            first = reasons[0][1]
            alike = [rank for rank, reason in reasons if str(reason) == str(first)]
            raise first.again(alike)
        return self._rows(ranks)

    def narrowed(self, ranks: Ranks) -> PartAnswer:
        """The answers of some of these ranks."""
        answered = tuple(rank for rank in ranks if rank not in self.silent)
        silent = {rank: self.silent[rank] for rank in ranks if rank in self.silent}
        return PartAnswer(answered, self._rows(answered) if answered else None, silent)

    def _rows(self, ranks: Ranks) -> pl.DataFrame:
        rows = self.whole()
        if {*ranks} == {*self.ranks}:
            return rows
        return rows.filter(pl.col("rank") == ranks[0] if len(ranks) == 1 else pl.col("rank").is_in(ranks))


def by_rank(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of several groups of ranks rank by rank, so that their order does not depend on the groups; in one piece
    of memory, which what is computed of them can share, unless they are too many to be moved."""
    rows = pl.concat(frames, rechunk=sum(frame.estimated_size() for frame in frames) <= MOST_MOVED_BYTES)
    return rows if rows["rank"].is_sorted() else rows.sort("rank", maintain_order=True)


@dataclass(frozen=True)
class Task:
    """A question about some ranks.

    Args:
        here: Computes the answer in this thread.
        order: Returns the same question as data for another process, or None if only this process can answer it.
    """

    ranks: Ranks
    here: Callable[[], PartAnswer]
    order: Callable[[], Order | None]


class Engine(Protocol):
    """Carries out tasks."""

    def map(self, tasks: Sequence[Task], done: Callable[[Task], None]) -> list[PartAnswer]:
        """The results of tasks, in order; `done` is called after each task, in any thread.

        An error stops it; of several errors, the first task's is raised, so that it is always the same one. May be
        called by many threads at once, and by tasks for subtasks.

        Raises:
            Cancelled: If the question in progress is cancelled before all of them have begun.
        """
