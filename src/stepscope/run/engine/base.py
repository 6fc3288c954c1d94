"""The interface of an engine, which carries out tasks: each is a question about some ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stepscope.run.engine.messages import Order
from stepscope.run.parts import PartAnswer


@dataclass(frozen=True)
class Task:
    """A question about some ranks.

    Args:
        ranks: Their numbers.
        here: Computes the answer in this thread.
        order: Returns the same question as data for another process, or None if only this process can answer it.
    """

    ranks: tuple[int, ...]
    here: Callable[[], PartAnswer]
    order: Callable[[], Order | None]


class Engine(Protocol):
    """Carries out tasks."""

    def map(self, tasks: Sequence[Task], done: Callable[[Task], None]) -> list[PartAnswer]:
        """The results of tasks, in order.

        An error stops it; of several errors, the first task's is raised, so that it is always the same one. May be
        called by many threads at once, and by tasks for subtasks.

        Args:
            tasks: The tasks.
            done: Called after each task, in any thread.

        Raises:
            Cancelled: If the question in progress is cancelled before all of them have begun.
        """
