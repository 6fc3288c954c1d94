"""The process that reads inputs for another one: requests on standard input, replies on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec

from stepscope.ingest.messages import (
    Advanced,
    Answer,
    NotLoaded,
    ReadOrder,
    ReadRefused,
    Ready,
    Stored,
    StoreFailed,
    decode_order,
)
from stepscope.ingest.meter import throttled
from stepscope.ingest.read import ReadTask, printable, read_into_store
from stepscope.processes import connected, send
from stepscope.sources.base import Input, Source
from stepscope.sources.registry import all_sources
from stepscope.store import Store, StoreError
from stepscope.tables.issues import Issue


def main() -> None:
    """Serve until standard input ends."""
    orders, out = connected()
    answer: Answer = Ready()
    while True:
        send(out, answer)
        answer = _work(orders.get(), out)


def _work(payload: bytes, out: BinaryIO) -> Answer:
    try:
        order = decode_order(payload)
    except msgspec.MsgspecError:
        return NotLoaded()
    source = _source(order)
    if source is None:
        return NotLoaded()
    item = Input(order.source, Path(order.path), tuple(map(Path, order.files)), order.label)
    task = ReadTask(item, source, order.key, order.input_bytes)
    try:
        advance = throttled(lambda count: send(out, Advanced(count))) if order.watched else None
        outcome = read_into_store(task, Store(Path(order.store)), order.workers, advance)
    except (StoreError, OSError) as error:
        return StoreFailed(printable(str(error)))
    return ReadRefused(outcome) if isinstance(outcome, Issue) else Stored(order.key)


def _source(order: ReadOrder) -> Source | None:
    """The source that is to read; None if this process knows none like it."""
    for source in all_sources():
        if (source.name, source.version) == (order.source, order.source_version):
            return source
    return None
