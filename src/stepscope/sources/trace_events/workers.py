"""Decoding chunks in child processes, so that one large trace uses several cores.

The children are plain subprocesses with pipes: unlike `multiprocessing` they never run the user's main module
again, and they end by themselves when this process goes away.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from stepscope.sources.trace_events.base import Batch, Layout, Problem
from stepscope.sources.trace_events.chunks import Chunk
from stepscope.sources.trace_events.decode import Decoded

_START = "import sys; sys.path[:] = sys.argv[1:]; from stepscope.sources.trace_events.worker import main; main()"
_WORTHWHILE_CHUNKS = 6
"""Chunks decoded in this process before children are started: starting one takes as long as a few chunks."""


@dataclass(frozen=True)
class Answer:
    """What a child says about one chunk; its frames are in files."""

    frames: dict[str, Path]
    skipped: dict[tuple[str, str], int]
    problems: dict[str, Problem]
    ended: bool
    rest: bytes


class Workers:
    """Child processes that decode chunks; a context manager that ends them.

    Args:
        layout: What to decode into.
        count: How many children; below 2 there are none.
        scratch: Gives the directory for their frames; without one there are no children.
    """

    def __init__(self, layout: Layout, count: int, scratch: Callable[[], Path] | None) -> None:
        self._layout = layout
        self._count = count
        self._make_scratch = scratch
        self._free: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._children: list[subprocess.Popen[bytes]] = []
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was still to be written has no reader
                        pipe.close()

    def map(self, chunks: Iterator[Chunk]) -> Iterator[tuple[Chunk, Decoded | None]]:
        """Each chunk in order, with what it decodes to; None where the caller is to decode it itself."""
        waiting: deque[tuple[Chunk, Future[Decoded | None]]] = deque()
        for number, chunk in enumerate(chunks):
            if number == _WORTHWHILE_CHUNKS:
                self._start()
            if self._threads is None:
                yield chunk, None
                continue
            waiting.append((chunk, self._threads.submit(self._decode, chunk)))
            if len(waiting) > self._count + 1:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()

    def _start(self) -> None:
        if self._count < 2 or self._make_scratch is None:
            return
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        try:
            hello = pickle.dumps((self._layout, self._make_scratch()))
            for _ in range(self._count):
                child = subprocess.Popen(
                    [sys.executable, "-c", _START, *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                )
                self._children.append(child)
                assert child.stdin is not None
                child.stdin.write(hello)
                self._free.put(child)
        except OSError:  # no room or no process to be had: work in this process
            return
        self._threads = ThreadPoolExecutor(self._count)

    def _decode(self, chunk: Chunk) -> Decoded | None:
        """Runs in a thread: let a free child decode `chunk`; None if the child fails."""
        child = self._free.get()
        try:
            answer = _ask(child, chunk)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            child.kill()
            return None
        finally:
            self._free.put(child)
        return _decoded(answer)


def _ask(child: subprocess.Popen[bytes], chunk: Chunk) -> Answer:
    assert child.stdin is not None
    assert child.stdout is not None
    pickle.dump(chunk, child.stdin, protocol=pickle.HIGHEST_PROTOCOL)
    child.stdin.flush()
    answer: Any = pickle.load(child.stdout)
    if not isinstance(answer, Answer):
        raise ValueError("the child could not decode the chunk")
    return answer


def _decoded(answer: Answer) -> Decoded | None:
    import polars as pl  # noqa: PLC0415 - the module is small without it

    try:
        frames = {name: pl.read_ipc(path) for name, path in answer.frames.items()}
    except (OSError, pl.exceptions.PolarsError):
        return None
    return Decoded(Batch(frames, answer.skipped, answer.problems), answer.ended, answer.rest)
