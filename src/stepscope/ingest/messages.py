"""What a process that reads inputs and the one that started it send each other."""

from __future__ import annotations

import msgspec

from stepscope.tables.issues import Issue


class ReadOrder(msgspec.Struct, frozen=True):
    """One input to read into a store.

    Args:
        source: Name of the source that reads it.
        source_version: Its version, on which `key` depends.
        path: The input, as a user would call it.
        files: What is to be read of it.
        label: Tells it from others of the same path.
        input_bytes: Size of these files.
        store: Directory of the store.
        key: The key under which the rows are stored.
        workers: How many processes or threads the source may use.
        watched: Whether to report how far reading has come.
    """

    source: str
    source_version: int
    path: str
    files: list[str]
    label: str
    input_bytes: int
    store: str
    key: str
    workers: int
    watched: bool = False


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has started. It answers each order that it gets now with one of the other messages."""


class Advanced(msgspec.Struct, frozen=True, tag=True):
    """So many more bytes of the input were read; the answer is still to come."""

    count: int


class Stored(msgspec.Struct, frozen=True, tag=True):
    """The rows are in the store, under `key`."""

    key: str


class ReadRefused(msgspec.Struct, frozen=True, tag=True):
    """The input cannot be read."""

    unread: Issue


class StoreFailed(msgspec.Struct, frozen=True, tag=True):
    """The store could not take the rows; the input itself may be good."""

    problem: str


class NotLoaded(msgspec.Struct, frozen=True, tag=True):
    """No worker can take the order, e.g. because its source is defined in a notebook."""


Answer = Ready | Advanced | Stored | ReadRefused | StoreFailed | NotLoaded


def decode_order(payload: bytes) -> ReadOrder:
    """Read an order.

    Raises:
        msgspec.MsgspecError: If it is none, e.g. one of another version of this package.
    """
    return _ORDERS.decode(payload)


def decode_answer(payload: bytes) -> Answer:
    """Read an answer.

    Raises:
        msgspec.MsgspecError: If it is none.
    """
    return _ANSWERS.decode(payload)


_ORDERS = msgspec.msgpack.Decoder(ReadOrder)
_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
