"""A worker process that runs analyses for another process: requests on standard input, replies on standard output."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import msgspec
import polars as pl

from stepscope import plugins
from stepscope.analysis.registry import find_analysis
from stepscope.errors import StepscopeError
from stepscope.processes import connected, decoder, message_of, send
from stepscope.run.answer_cache import AnswerCache
from stepscope.run.encoding import decoded
from stepscope.run.engine import Threads
from stepscope.run.engine.messages import (
    MOST_RUNS,
    Answered,
    Ask,
    Failed,
    RankData,
    Reason,
    Reply,
    Request,
    RunData,
    error_of,
    frame_of,
    reason_of,
    rows_of,
)
from stepscope.run.iterations import Iterations
from stepscope.run.rank import Rank
from stepscope.run.recorded import Recorded
from stepscope.run.supplements import Supplement
from stepscope.run.supply import Supplier
from stepscope.selection import Selection
from stepscope.store.manifest import read_manifest
from stepscope.store.recording import StoredRecording

_REQUESTS: msgspec.msgpack.Decoder[Request] = decoder(Request)


def main() -> None:
    """Serve until standard input ends."""
    requests, out = connected()
    plugins.install()
    asker = Asker()
    while True:
        reply = asker.take(requests.get())
        if reply is not None:
            send(out, reply)


def serving() -> Callable[[bytes], bytes]:
    """What answers messages, for processes that are started otherwise; no reply is an empty one."""
    plugins.install()
    asker = Asker()

    def serve(payload: bytes) -> bytes:
        reply = asker.take(payload)
        return b"" if reply is None else message_of(reply)

    return serve


class Asker:
    """Carries out requests. It keeps the latest `MOST_RUNS` runs that it was sent."""

    def __init__(self) -> None:
        self._runs: dict[int, RunData] = {}
        self._suppliers: dict[int, Supplier] = {}

    def take(self, payload: bytes) -> Reply | None:
        """Answer a request; None if it needs no answer."""
        request = _REQUESTS.decode(payload)
        if isinstance(request, RunData):
            self._runs[request.id] = request
            if len(self._runs) > MOST_RUNS:
                oldest = next(iter(self._runs))
                del self._runs[oldest]
                self._suppliers.pop(oldest, None)
            return None
        try:
            return self._ask(request)
        except StepscopeError as error:
            return Failed(error.marked)
        except (*plugins.FAILURES, pl.exceptions.PanicException) as error:
            return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _ask(self, request: Ask) -> Answered:
        for module in request.modules:
            importlib.import_module(module)
        supplier = self._supplier(request.run)
        supplier.given = {
            question: error_of(answer) if isinstance(answer, Reason) else frame_of(answer)
            for question, answer in request.given.items()
        }
        answer = supplier.ask_part(find_analysis(request.question), decoded(request.options), request.ranks)
        rows = None if answer.frame is None else rows_of(answer.frame)
        return Answered(answer.ranks, rows, {rank: reason_of(reason) for rank, reason in answer.silent.items()})

    def _supplier(self, run: int) -> Supplier:
        if run not in self._suppliers:
            data = self._runs[run]
            cache = AnswerCache(data.answers_bytes // MOST_RUNS)
            self._suppliers[run] = Supplier(SentRun(data), cache, Threads(1))
        return self._suppliers[run]


class SentRun(Recorded):
    """A run of another process, rebuilt from its data."""

    def __init__(self, data: RunData) -> None:
        steps = None if data.steps is None else Selection(tuple(data.steps))
        self.ranks = [_rank(rank, steps) for rank in data.ranks]
        self.options = decoded(data.defaults)
        self._data = data

    @cached_property
    def issues(self) -> pl.DataFrame:
        return frame_of(self._data.issues)

    @cached_property
    def iterations(self) -> Iterations | None:
        if self._data.iterations is None:
            return None
        rows, count, operators = self._data.iterations
        return Iterations(frame_of(rows), count, operators)


def _rank(data: RankData, steps: Selection | None) -> Rank:
    supplement = None
    if data.supplement is not None:
        directory, tables = data.supplement
        supplement = Supplement(_recording(data.rank, directory), tables)
    return Rank(data.rank, data.origin, _recording(data.rank, data.directory), steps, supplement)


def _recording(rank: int, directory: Path) -> StoredRecording:
    manifest = read_manifest(directory)
    if manifest is None:
        raise StepscopeError(f"{directory}: the stored rows of rank {rank} are gone. Open the run again")
    return StoredRecording(directory, manifest)
