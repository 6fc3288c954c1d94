"""The server's end of a process that reads or analyses: started when there is work, ended when there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from stepscope.ingest.inputs import worker_count
from stepscope.processes import WorkerProcess, receive, send, starting
from stepscope.run.encoding import decoded
from stepscope.sources.base import Input
from stepscope.web.catalogue.orders import (
    ANSWERS,
    Analysed,
    Order,
    Progressed,
    Read,
    ReadOrder,
    Ready,
    RunOrder,
    Summarised,
)
from stepscope.web.catalogue.summary import Summary

_START = starting("stepscope.web.catalogue.worker:main")


class HelperDied(Exception):
    """The process died over its order; the text says how."""


class Helper:
    """A process for one kind of work, used by one thread; any thread may end it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._is_closed = False

    def read(self, inputs: Sequence[Input], store: Path, progress: Callable[[float], None]) -> Read:
        """Read inputs into a store.

        Args:
            progress: Called with how much is done, 0 to 1.

        Raises:
            HelperDied: If the process dies, possibly over one of the inputs.
        """
        for answer in self._answers(ReadOrder(store, list(inputs))):
            if isinstance(answer, Progressed):
                progress(answer.ratio)
            elif isinstance(answer, Read):
                return answer
        raise HelperDied("an unknown answer")

    def analyse(
        self, order: RunOrder, summarised: Callable[[Summary], None], progress: Callable[[float], None]
    ) -> Analysed:
        """Analyse a run.

        Args:
            summarised: Called with its summary.
            progress: Called with how much is done, 0 to 1.

        Raises:
            HelperDied: If the process dies.
        """
        for answer in self._answers(order):
            if isinstance(answer, Progressed):
                progress(answer.ratio)
            elif isinstance(answer, Summarised):
                summarised(decoded(answer.content))
            elif isinstance(answer, Analysed):
                return answer
        raise HelperDied("an unknown answer")

    def rest(self) -> None:
        """End the process until there is more to do."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def close(self) -> None:
        """End the process for good; whoever waits for it gets `HelperDied`."""
        with self._lock:
            self._is_closed, process = True, self._process
        if process is not None:
            process.process.kill()

    def _answers(self, order: Order) -> Any:
        process = self._started()
        try:
            send(process.stdin, order)
            while True:
                answer = ANSWERS.decode(receive(process.stdout))
                if not isinstance(answer, Ready):
                    yield answer
        except (EOFError, OSError, msgspec.MsgspecError):
            process.process.kill()
            how = process.death()
            self.rest()
            raise HelperDied(how) from None

    def _started(self) -> WorkerProcess:
        with self._lock:
            if self._is_closed:
                raise HelperDied("closed")
            if self._process is None:
                try:
                    self._process = WorkerProcess(_START, worker_count())
                except OSError as error:
                    raise HelperDied(str(error)) from error
            return self._process

    def __del__(self) -> None:
        with suppress(Exception):
            self.rest()
