"""What an engine carries out: questions about some ranks, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from stepscope.errors import Unavailable
from stepscope.run.engine.messages import Order

Ranks = tuple[int, ...]
"""The numbers of ranks that were computed together."""


@dataclass(frozen=True)
class PartAnswer:
    """The answers of some ranks.

    Args:
        frames: The rows of each group of ranks computed together, in order.
        silent: Why the other ranks have no answer.
    """

    frames: Mapping[Ranks, pl.DataFrame]
    silent: Mapping[int, Unavailable]

    @classmethod
    def joined(cls, parts: Iterable[PartAnswer]) -> PartAnswer:
        """The answers of several parts, in order."""
        frames: dict[Ranks, pl.DataFrame] = {}
        silent: dict[int, Unavailable] = {}
        for part in parts:
            frames.update(part.frames)
            silent.update(part.silent)
        return cls(frames, silent)


@dataclass(frozen=True)
class Stacked:
    """The answers of all ranks, rank by rank.

    Args:
        frame: Their rows; None if no rank has any.
        silent: Why ranks have no answer.
        places: First row and number of rows of each group of ranks computed together.
    """

    frame: pl.DataFrame | None
    silent: Mapping[int, Unavailable]
    places: Mapping[Ranks, tuple[int, int]]

    @classmethod
    def of(cls, parts: Sequence[PartAnswer]) -> Stacked:
        """The answers of some parts, stacked in their order."""
        joined = PartAnswer.joined(parts)
        places: dict[Ranks, tuple[int, int]] = {}
        first = 0
        for ranks, frame in joined.frames.items():
            places[ranks] = (first, frame.height)
            first += frame.height
        return cls(pl.concat(joined.frames.values()) if joined.frames else None, joined.silent, places)

    def whole(self) -> pl.DataFrame:
        """The rows of all ranks.

        Raises:
            Unavailable: If no rank has an answer; with all distinct reasons.
        """
        if self.frame is not None:
            return self.frame
        causes = {str(reason): reason for reason in self.silent.values()}
        raise Unavailable(". ".join(causes), causes=list(causes.values()))

    def part(self, ranks: Ranks) -> pl.DataFrame | None:
        """The answer of these ranks if all of them have one, else None.

        Raises:
            Unavailable: If it is a single rank without an answer.
        """
        if len(ranks) == 1 and ranks[0] in self.silent:
            raise self.silent[ranks[0]].again()
        if self.frame is None or not {*ranks}.issubset(rank for together in self.places for rank in together):
            return None
        if ranks in self.places:
            return self.frame.slice(*self.places[ranks])
        return self.frame.filter(pl.col("rank").is_in(ranks))


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
