"""The process that reads inputs for another one: requests on standard input, replies on standard output."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from stepscope.ingest.messages import ORDERS, Advanced, Answer, NotLoaded, ReadRefused, Ready, Stored, StoreFailed
from stepscope.ingest.read import ReadTask, printable, read_into_store, throttled
from stepscope.processes import connected, send
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
        order = ORDERS.decode(payload)
    except msgspec.MsgspecError:
        return NotLoaded()
    wanted = (order.item.source, order.source_version)
    source = next((source for source in all_sources() if (source.name, source.version) == wanted), None)
    if source is None:
        return NotLoaded()
    task = ReadTask(order.item, source, order.key, order.input_bytes)
    try:
        advance = throttled(lambda count: send(out, Advanced(count))) if order.watched else None
        outcome = read_into_store(task, Store(order.store), order.workers, advance)
    except (StoreError, OSError) as error:
        return StoreFailed(printable(str(error)))
    return ReadRefused(outcome) if isinstance(outcome, Issue) else Stored()
