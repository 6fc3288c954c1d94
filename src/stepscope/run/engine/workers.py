"""Tasks in workers of any kind, which share only the store with this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from stepscope.errors import StepscopeError
from stepscope.processes import decoder
from stepscope.run.engine.base import PartAnswer, Task
from stepscope.run.engine.messages import Failed, Order, Reply, error_of, frame_of
from stepscope.run.engine.threads import Threads
from stepscope.selection import named_numbers

_REPLIES: msgspec.msgpack.Decoder[Reply] = decoder(Reply)

_Self = TypeVar("_Self", bound="Workers")


class WorkerLost(Exception):
    """A worker ended before it answered; the text says how."""


class Worker(ABC):
    """One worker, started when needed."""

    @abstractmethod
    def reply(self, order: Order) -> bytes:
        """What it replies to an order, to be decoded as `Reply`.

        Raises:
            WorkerLost: If it ends before that. The next order starts it again.
        """

    @abstractmethod
    def close(self) -> None:
        """End it after its current task."""

    def ask(self, order: Order) -> PartAnswer:
        """Its answer to an order; raises `StepscopeError` if the question fails, or the worker dies twice over it.

        What else it had answered stays known; a worker that dies, e.g. with its machine, costs its ranks once more.
        """
        try:
            answer = self._answer(order)
        except WorkerLost:
            try:
                answer = self._answer(order)
            except WorkerLost as error:
                who = named_numbers("rank", order.ask.ranks)
                raise StepscopeError(
                    f"{order.ask.question}: the process that computed it {error}, twice, for {who}. If memory ran out, "
                    "use fewer processes"
                ) from error
        return answer

    def _answer(self, order: Order) -> PartAnswer:
        try:
            reply = _REPLIES.decode(self.reply(order))
        except msgspec.MsgspecError as error:
            self.close()
            raise WorkerLost("sent something else") from error
        if isinstance(reply, Failed):
            raise _Failure(reply.problem, reply.trace) if reply.trace else StepscopeError(reply.problem)
        frame = None if reply.rows is None else frame_of(reply.rows)
        return PartAnswer(reply.ranks, frame, {rank: error_of(reason) for rank, reason in reply.silent.items()})


class Workers(ABC):
    """An engine whose tasks run in workers."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def workers(self) -> tuple[Threads, Sequence[Worker]]:
        """The workers, and as many threads to wait for them."""

    def close(self) -> None:
        """End the workers; another question starts new ones."""
        for worker in self.workers()[1]:
            worker.close()

    def map(self, tasks: Sequence[Task], done: Callable[[Task], None]) -> list[PartAnswer]:
        """See `Engine`."""
        threads, workers = self.workers()

        def carry_out(numbered: tuple[int, Task]) -> PartAnswer:
            number, task = numbered
            order = task.order()
            # the same ranks go to the same worker, which has their earlier answers
            result = task.here() if order is None else workers[number % len(workers)].ask(order)
            done(task)
            return result

        return threads.each(carry_out, list(enumerate(tasks)))


class _Failure(Exception):
    """A bug in an analysis in another process, with its traceback there."""

    def __init__(self, problem: str, trace: str) -> None:
        super().__init__(f"{problem}\n\nIn the process that computed it:\n{trace}")
