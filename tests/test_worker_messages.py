"""Messages between worker processes and those that start them."""

from __future__ import annotations

import selectors
import sys
from pathlib import Path

import msgspec
import pytest

from stepscope.processes import WorkerProcess, connected, receive, send, starting

BIG = 1 << 20
"""Bytes of a message that no pipe holds at once."""


def answer_twice() -> None:
    """A worker that writes two answers to an order at once."""
    orders, out = connected()
    order = msgspec.msgpack.decode(orders.get())
    answer = msgspec.msgpack.encode(len(order))
    message = len(answer).to_bytes(8, "little") + answer
    out.write(message * 2)
    out.flush()
    orders.get()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    assert sys.path[0] == str(Path(__file__).parent)
    found = WorkerProcess(starting("test_worker_messages:answer_twice"), 1)
    yield found
    found.end()


def test_a_message_that_came_with_another_is_waiting_to_be_read(worker: WorkerProcess) -> None:
    send(worker.stdin, "x" * BIG)

    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        for _ in range(2):
            assert selector.select(timeout=60)
            assert msgspec.msgpack.decode(receive(worker.stdout)) == BIG


def test_a_worker_that_died_is_noticed(worker: WorkerProcess) -> None:
    worker.process.kill()

    with pytest.raises(EOFError):
        receive(worker.stdout)
