"""What a process that reads inputs and the one that started it send each other."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stepscope.processes import decoder
from stepscope.sources.base import Input
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
        watched: Whether to report how far reading has come.
    """

    item: Input
    source_version: int
    input_bytes: int
    store: Path
    key: str
    workers: int
    watched: bool = False


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
