"""Read one input, report how far it has come, and turn failures into issues."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from stepscope._version import __version__
from stepscope.errors import UnreadableInput
from stepscope.plugins import FAILURES
from stepscope.sources.base import Input, Sink, Source
from stepscope.sources.collected import as_collected
from stepscope.sources.discover import internal_error, unread, unreadable
from stepscope.sources.native.library import Refused
from stepscope.sources.native.parquet import write_packed
from stepscope.store import (
    Manifest,
    MemoryRecording,
    MemorySink,
    Recording,
    Store,
    StoreError,
    StoreSink,
    schema_version,
    write_compressed,
    write_manifest,
)
from stepscope.tables.issues import Issue

INTERVAL_S = 0.1
"""Time between two reports of progress; a bar is drawn no more often."""


@dataclass(frozen=True)
class ReadTask:
    """One input to read: by which source, and the key under which its rows are stored."""

    item: Input
    source: Source
    key: str
    input_bytes: int


def read_into_store(
    task: ReadTask, store: Store, workers: int, advance: Callable[[int], None] | None = None
) -> Recording | Issue:
    """Read one input into the store.

    Args:
        workers: How many processes or threads the source may use.
        advance: Called with the number of bytes read since the last call.

    Raises:
        StoreError: If the store cannot take it; the input itself may be good.
    """
    try:
        with store.drafting(task.key) as draft:
            sink = StoreSink(draft, task.source.name, workers, advance, _named(task), _write_rows)
            if problem := _read(task, sink):
                sink.raise_failure()
                return problem
            tables = sink.close()
            manifest = Manifest(
                source=task.source.name,
                source_version=task.source.version,
                schema=schema_version(),
                stepscope=__version__,
                path=str(task.item.path),
                files=[str(file) for file in task.item.files],
                input_bytes=task.input_bytes,
                tables=tables,
                facts=as_collected(task.item.path, sink.facts),
                created_ns=time.time_ns(),
                size_bytes=sum(part.size for table in tables.values() for part in table.parts),
            )
            write_manifest(draft, manifest)
            recording = store.publish(task.key, draft)
    except OSError as error:  # what the input raises is caught in _read, so this is the store's own
        raise StoreError(str(error)) from error
    if recording is None:
        raise StoreError("the entry was removed while it was written")
    return recording


def _write_rows(frame: pl.DataFrame, file: Path) -> None:
    """Write a Parquet file by the compiled code, or by Polars if that refuses the frame."""
    try:
        write_packed(frame, file)
    except Refused:
        write_compressed(frame, file)


def read_into_memory(task: ReadTask, workers: int, advance: Callable[[int], None] | None = None) -> Recording | Issue:
    """Read one input and keep its rows in memory."""
    sink = MemorySink(task.source.name, workers, advance, _named(task))
    try:
        if problem := _read(task, sink):
            return problem
        facts = as_collected(task.item.path, sink.facts)
        return MemoryRecording(task.source.name, task.item.path, task.item.files, facts, sink.close())
    finally:
        sink.discard()


def throttled(report: Callable[[int], None]) -> Callable[[int], None]:
    """A function that adds up its arguments and reports the sum now and then, but not the rest at the end."""
    held, last = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal held, last
        held += count
        now = time.monotonic()
        if now - last >= INTERVAL_S:
            report(held)
            held, last = 0, now

    return advance


def _named(task: ReadTask) -> Path:
    """The path in issues about a whole input: its only file, otherwise the input."""
    files = task.item.files
    return files[0] if len(files) == 1 else task.item.path


def printable(text: str) -> str:
    """`text` with escapes for what UTF-8 has no place for: names of files may hold any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _read(task: ReadTask, sink: Sink) -> Issue | None:
    """Let the source read; None on success, otherwise the issue, in printable characters."""
    path = task.item.path
    try:
        task.source.read(task.item, sink)
        return None
    except StoreError:
        raise
    except UnreadableInput as error:
        problem = unread(error)
    except MemoryError:
        remedy = "Set STEPSCOPE_WORKERS=1 to read one input at a time, or use a machine with more memory"
        problem = Issue("error", str(path), "needs more memory than is available", remedy)
    except OSError as error:
        problem = unreadable(Path(error.filename) if isinstance(error.filename, str) else path, error)
    except (*FAILURES, pl.exceptions.PanicException) as error:
        problem = internal_error(path, error, task.source.name)
    names = ("file", "problem", "remedy", "trace")
    texts: dict[str, Any] = {name: printable(text) for name in names if (text := getattr(problem, name)) is not None}
    return replace(problem, **texts)
