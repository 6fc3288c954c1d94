"""What an engine is: something that carries out tasks, each of them a question to some ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stepscope.run.engine.messages import Order
from stepscope.run.parts import PartAnswer


@dataclass(frozen=True)
class Task:
    """A question to some ranks.

    Args:
        ranks: Their numbers.
        here: Asks it in this thread.
        order: Gives the same question as data, for another process; None if only this process can ask it.
    """

    ranks: tuple[int, ...]
    here: Callable[[], PartAnswer]
    order: Callable[[], Order | None]


class Engine(Protocol):
    """Carries out tasks."""

    def map(self, tasks: Sequence[Task], done: Callable[[Task], None]) -> list[PartAnswer]:
        """The results of tasks, in their order.

        An error ends it: of several the one of the first task, so that it is the same in each run. Called by many
        threads at once, and by tasks for tasks of their own.

        Args:
            tasks: What to do.
            done: Called after each task, in any thread.

        Raises:
            Cancelled: If the question in progress is cancelled before all of them have begun.
        """
