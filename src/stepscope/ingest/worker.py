"""The process that reads inputs for another one: tasks come by standard input, outcomes go by standard output.

Such a process is started as a command of its own, not by `multiprocessing`: that would run the user's script
a second time in each worker, and fail where the script does not guard against it.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from typing import BinaryIO

from stepscope.ingest.read import Task, read_into_store
from stepscope.store import Store, StoreError

_READY = "ready"


class LoadError(Exception):
    """A task cannot be handed to a worker, e.g. because its source is defined in a notebook."""


def main() -> None:
    """Serve until standard input ends; that also happens when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends us
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a reader prints must not mix with outcomes
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, messages), daemon=True).start()
    outcome: object = _READY
    while True:
        pickle.dump(outcome, out)
        out.flush()
        outcome = _work(messages.get())


def _receive(stream: BinaryIO, messages: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            messages.put(pickle.load(stream))
        except EOFError:
            os._exit(0)


def _work(message: bytes) -> object:
    try:
        task, store, workers = _unpack(message)
        return read_into_store(task, store, workers)
    except (StoreError, LoadError) as error:
        return error


def _unpack(message: bytes) -> tuple[Task, Store, int]:
    try:
        task: tuple[Task, Store, int] = pickle.loads(message)
    except Exception as error:
        raise LoadError(str(error)) from None
    return task
