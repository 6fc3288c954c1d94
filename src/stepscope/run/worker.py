"""A worker process that runs analyses for another process: requests on standard input, replies on standard output."""

from __future__ import annotations

import importlib
import traceback
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from stepscope import plugins
from stepscope.analysis.registry import find_analysis
from stepscope.errors import StepscopeError, Unavailable
from stepscope.processes import connected, send
from stepscope.run.answer_cache import AnswerCache
from stepscope.run.engine import Threads
from stepscope.run.engine.data import decoded
from stepscope.run.engine.messages import (
    MOST_RUNS,
    Answered,
    Ask,
    Failed,
    Given,
    Opened,
    RankData,
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
from stepscope.run.recorded import lacks, table_of
from stepscope.run.supply import Supplier
from stepscope.selection import Selection
from stepscope.store.manifest import read_manifest
from stepscope.store.recording import StoredRecording

_REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)


def main() -> None:
    """Serve until standard input ends."""
    requests, out = connected()
    plugins.install()
    asker = Asker()
    while True:
        reply = asker.take(requests.get())
        if reply is not None:
            send(out, reply)


class Asker:
    """Carries out requests. It keeps the latest `MOST_RUNS` runs that it was sent."""

    def __init__(self) -> None:
        self._runs: dict[int, RunData] = {}
        self._suppliers: dict[int, Supplier] = {}

    def take(self, payload: bytes) -> Reply | None:
        """Answer a request; None if it needs no answer."""
        request = _REQUESTS.decode(payload)
        if isinstance(request, Opened):
            self._runs[request.run.id] = request.run
            if len(self._runs) > MOST_RUNS:
                oldest = next(iter(self._runs))
                del self._runs[oldest]
                self._suppliers.pop(oldest, None)
            return None
        try:
            return self._ask(request)
        except StepscopeError as error:
            return Failed(str(error))
        except (Exception, pl.exceptions.PanicException) as error:
            return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _ask(self, request: Ask) -> Answered:
        importlib.import_module(request.module)
        supplier = self._supplier(request.run)
        supplier.given = {given.question: _answer_of(given) for given in request.given}
        ranks = [rank for rank in supplier.run.ranks if rank.rank in request.ranks]
        answer = supplier.ask_part(find_analysis(request.question), decoded(request.options), ranks)
        frames = [(numbers, rows_of(frame)) for numbers, frame in answer.frames.items()]
        return Answered(frames, {rank: reason_of(reason) for rank, reason in answer.silent.items()})

    def _supplier(self, run: int) -> Supplier:
        if run not in self._suppliers:
            data = self._runs[run]
            cache = AnswerCache(data.answers_bytes // MOST_RUNS)
            self._suppliers[run] = Supplier(SentRun(data), cache, Threads(1))
        return self._suppliers[run]


class SentRun:
    """A run of another process, rebuilt from its data."""

    def __init__(self, data: RunData) -> None:
        self.name = data.name
        self.path = Path(data.path)
        steps = None if data.steps is None else Selection(tuple(data.steps))
        self.ranks = [_rank(rank, steps) for rank in data.ranks]
        self.options: dict[str, dict[str, Any]] = decoded(data.defaults)
        self._data = data

    @cached_property
    def issues(self) -> pl.DataFrame:
        """What the import skipped or guessed."""
        return frame_of(self._data.issues)

    @cached_property
    def iterations(self) -> Iterations | None:
        """Its iterations, if it marks no steps."""
        if self._data.iterations is None:
            return None
        rows, count, operators = self._data.iterations
        return Iterations(frame_of(rows), count, operators)

    def table(self, name: str) -> pl.LazyFrame:
        """A table of all ranks that have it."""
        return table_of(self, name)

    def lacks(self, name: str, question: str = "") -> Unavailable:
        """Why a table is missing."""
        return lacks(self, name, question)


def _rank(data: RankData, steps: Selection | None) -> Rank:
    directory = Path(data.directory)
    manifest = read_manifest(directory)
    if manifest is None:
        raise StepscopeError(f"{directory}: the stored rows of rank {data.rank} are gone. Open the run again")
    return Rank(data.rank, data.origin, StoredRecording(directory, manifest), steps)


def _answer_of(given: Given) -> pl.DataFrame | Unavailable:
    if given.reason is not None:
        return error_of(given.reason)
    return pl.DataFrame() if given.rows is None else frame_of(given.rows)
