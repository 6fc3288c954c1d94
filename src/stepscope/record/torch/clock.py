"""The offset of this rank's clock to rank 0's, measured in the background.

Communication uses the rendezvous store, never collectives, on a separate thread and (for TCP) a separate connection.
One rank of each other host measures; the other ranks of its host share the result.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from stepscope.record.process_facts import boot_id, own_thread
from stepscope.record.torch.identity import joined

log = logging.getLogger("stepscope")

PATIENCE_S = 60.0
"""How long to wait for other ranks; hosts may start some time apart."""
CONNECT_S = 5.0
ROUNDS = 24
"""Round trips per host; the shortest one counts."""
_IDLE_S = 0.05
_BUSY_S = 0.0001
_LEAVING_S = 2 * CONNECT_S


class ClockOffset:
    """This rank's clock and rank 0's. Methods may be called from any thread.

    Args:
        now_ns: The clock.
        host: Equal on all processes that share a clock.
    """

    def __init__(self, now_ns: Callable[[], int] = time.time_ns, host: str | None = None) -> None:
        self._now_ns = now_ns
        self._host = host or boot_id() or socket.gethostname()
        self.result: dict[str, Any] | None = None
        """`clock` of `recording.json`; None while nothing is known."""
        self.news = False
        """Whether the result is new; reset by the caller."""
        self._leaving = threading.Event()
        self._thread: threading.Thread | None = None

    def attach(self) -> None:
        """Begin to measure, if there is a process group."""
        distributed = joined()
        if self._thread is not None or distributed is None:
            return
        rank, size = distributed.get_rank(), distributed.get_world_size()
        if rank == 0:
            self._measured(0, 0, "rank 0")
        if size > 1:
            store = distributed.distributed_c10d._get_default_store()
            self._leaving = threading.Event()
            self._thread = own_thread(self._run, "stepscope-clock", store, rank, size, self._leaving)
            self._thread.start()
            atexit.register(self.stop)

    def stop(self) -> None:
        """End the thread. One that is still in the framework when the interpreter ends would abort the process."""
        self.left()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LEAVING_S)
        atexit.unregister(self.stop)

    def left(self) -> None:
        """The process group was destroyed."""
        self._leaving.set()
        self._thread = None if self._thread is None or not self._thread.is_alive() else self._thread

    def forget(self) -> None:
        """In a forked child: the thread does not exist here."""
        self._thread = None
        self._leaving = threading.Event()

    def _measured(self, offset_ns: int, error_ns: int, method: str) -> None:
        self.result = {"offset_ns": offset_ns, "error_ns": error_ns, "method": method}
        self.news = True

    def _run(self, store: Any, rank: int, size: int, leaving: threading.Event) -> None:
        try:
            common = _Store(store, rank, leaving)
            if rank == 0:
                self._answer(common, size)
            else:
                self._ask(common)
        except Exception as error:  # the store may vanish at any time, with rank 0
            if not leaving.is_set() and self.result is None:
                log.info("Profiler: the clock could not be compared with rank 0's: %s", error)
        finally:
            self._thread = None if self._thread is threading.current_thread() else self._thread

    def _ask(self, store: _Store) -> None:
        """Determine this rank's offset."""
        if store.wait("host") == self._host:
            self._measured(0, 0, "same host")
        elif store.add(f"leader/{self._host}") == 1:
            offset_ns, error_ns = self._measure(store)
            store.set(f"offset/{self._host}", json.dumps([offset_ns, error_ns]))
            self._measured(offset_ns, error_ns, "store round trip")
        else:
            offset_ns, error_ns = json.loads(store.wait(f"offset/{self._host}"))
            self._measured(offset_ns, error_ns, "store round trip of this host")
        store.add("done")

    def _measure(self, store: _Store) -> tuple[int, int]:
        """Offset and its error: the shortest of some round trips, as NTP does."""
        store.set(f"ask/{store.add('asked') - 1}", self._host)
        trips = []
        for i in range(ROUNDS):
            sent = self._now_ns()
            store.set(f"ping/{self._host}/{i}", "")
            received, answered = map(int, store.wait(f"pong/{self._host}/{i}", busy=i > 0).split())
            back = self._now_ns()
            trips.append(((back - sent) - (answered - received), ((received - sent) + (answered - back)) // 2))
        trip, offset_ns = min(trips)
        return offset_ns, max(trip, 0) // 2

    def _answer(self, store: _Store, size: int) -> None:
        """Rank 0: answer every host, until all ranks know."""
        store.set("host", self._host)
        number = 0
        while store.goes_on() and store.add("done", 0) < size - 1:
            if not store.has(f"ask/{number}"):
                time.sleep(_IDLE_S)
                continue
            host = store.wait(f"ask/{number}")
            number += 1
            for i in range(ROUNDS):
                store.wait(f"ping/{host}/{i}", busy=True)
                received = self._now_ns()
                store.set(f"pong/{host}/{i}", f"{received} {self._now_ns()}")


class _Store:
    """The process group's store, without blocking calls, so that other users of it are not delayed. Ranks meet in it
    that have measured equally often there: in each process group, and each time that a recorder is put into a running
    job. `leaving` ends the measurement."""

    def __init__(self, store: Any, rank: int, leaving: threading.Event) -> None:
        from torch.distributed import PrefixStore

        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        own = own_connection(store)
        times = PrefixStore(f"stepscope/clocks/{restart}", own).add(str(rank), 1)
        self._store = PrefixStore(f"stepscope/clock/{restart}/{times}", own)
        self._leaving = leaving
        self._end = time.monotonic() + PATIENCE_S
        self.set: Callable[[str, str], None] = self._store.set

    def goes_on(self) -> bool:
        """Whether there is time left."""
        return not self._leaving.is_set() and time.monotonic() < self._end

    def add(self, key: str, amount: int = 1) -> int:
        """Increase a counter and return it."""
        return int(self._store.add(key, amount))

    def has(self, key: str) -> bool:
        """Whether a key is set."""
        return bool(self._store.check([key]))

    def wait(self, key: str, *, busy: bool = False) -> str:
        """Wait for a key and return its value.

        Raises:
            TimeoutError: If it is not set in time.
        """
        while not self.has(key):
            if not self.goes_on():
                raise TimeoutError("no answer from rank 0")
            time.sleep(_BUSY_S if busy else _IDLE_S)
        return bytes(self._store.get(key)).decode()


def own_connection(store: Any) -> Any:
    """A new connection to the same store for TCP; otherwise the store below all prefixes."""
    from torch import distributed

    while isinstance(store, distributed.PrefixStore):
        store = store.underlying_store
    if not isinstance(store, distributed.TCPStore):
        return store
    patience = timedelta(seconds=CONNECT_S)
    return distributed.TCPStore(store.host, store.port, None, False, patience, wait_for_workers=False)
