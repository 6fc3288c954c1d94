"""The process that reads inputs for another one, and what they send each other.

Orders come on standard input, answers go to standard output.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from stepscope.ingest.polars_thread import in_polars_thread
from stepscope.ingest.read import ReadTask, printable, read_into_store, throttled
from stepscope.processes import connected, decoder, message_of, send
from stepscope.sources.base import Input
from stepscope.sources.registry import all_sources, starts_threads
from stepscope.store import Recording, Store, StoreError
from stepscope.tables.issues import Issue


class ReadOrder(msgspec.Struct, frozen=True):
    """One input to read into a store.

    Args:
        item: The input.
        source_version: Version of the source that reads it, on which `key` depends.
        input_bytes: Size of its files.
        store: Directory of the store.
        key: The key under which the rows are stored.
        workers: How many processes or threads the source may use.
    """

    item: Input
    source_version: int
    input_bytes: int
    store: Path
    key: str
    workers: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has started. It answers each order that it gets now with one of the other messages."""


class Advanced(msgspec.Struct, frozen=True, tag=True):
    """So many more bytes of the input were read; the answer is still to come."""

    count: int


class Stored(msgspec.Struct, frozen=True, tag=True):
    """The rows are in the store, under the key of the order."""


class ReadRefused(msgspec.Struct, frozen=True, tag=True):
    """The input cannot be read."""

    unread: Issue


class StoreFailed(msgspec.Struct, frozen=True, tag=True):
    """The store could not take the rows; the input itself may be good."""

    problem: str


class NotLoaded(msgspec.Struct, frozen=True, tag=True):
    """No worker can take the order, e.g. because its source is defined in a notebook."""


Answer = Ready | Advanced | Stored | ReadRefused | StoreFailed | NotLoaded

ORDERS: msgspec.msgpack.Decoder[ReadOrder] = decoder(ReadOrder)
ANSWERS: msgspec.msgpack.Decoder[Answer] = decoder(Answer)


def main() -> None:
    """Serve until standard input ends."""
    orders, out = connected()
    answer: Answer = Ready()
    while True:
        send(out, answer)
        answer = _work(orders.get(), lambda count: send(out, Advanced(count)))


def serving() -> Callable[[bytes], bytes]:
    """What answers orders, for processes that are started otherwise; they report no progress."""
    return lambda payload: message_of(_work(payload, lambda _: None))


def _work(payload: bytes, report: Callable[[int], None]) -> Answer:
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
        advance = throttled(report)

        def read() -> Recording | Issue:
            return read_into_store(task, Store(order.store), order.workers, advance)

        # most readers of ours start no threads when told to use one
        outcome = in_polars_thread(read) if order.workers == 1 and not starts_threads(source) else read()
    except (StoreError, OSError) as error:
        return StoreFailed(printable(str(error)))
    return ReadRefused(outcome) if isinstance(outcome, Issue) else Stored()
