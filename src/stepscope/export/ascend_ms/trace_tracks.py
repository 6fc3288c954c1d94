"""Tracks of trace_view.json: which numbers its processes and threads have, and how its ranges are written."""

from __future__ import annotations

from itertools import count
from typing import Any

import polars as pl

from stepscope.export.rank_export import RankExport
from stepscope.tables.slices import MARKS, MODULE_MARKS
from stepscope.timeline.writing.events import arguments, complete, names

HOST, RUNTIME, COLLECTION = "Python", "CANN", "Python GC"
DEVICE, COMMUNICATION, OVERLAP, COUNTERS = "Ascend Hardware", "Communication", "Overlap Analysis", "Counters"
CLOCK = "AI Core Freq"
"""Names of processes that readers look for; their labels name the device."""
_ORDER = {
    **{HOST: 0, COLLECTION: 1, RUNTIME: 2, DEVICE: 8, CLOCK: 9, COMMUNICATION: 10, OVERLAP: 11},
    **{MARKS: 3, MODULE_MARKS: 4, "HBM": 12, "DDR": 13, "LLC": 14, COUNTERS: 15},
}
_ON_HOST = (HOST, RUNTIME, COLLECTION, MARKS, MODULE_MARKS)
_FIRST_NAMED_THREAD = 1 << 22
"""Threads that are no number get numbers from here on; those of Linux end below."""

Track = tuple[int, int]
"""Process and thread."""


class Tracks:
    """Gives out process and thread numbers.

    Args:
        export: For the real process, and the device.
    """

    def __init__(self, export: RankExport) -> None:
        facts = export.facts
        self.pid = int(facts.get("process") or 0)
        self.device = int(facts.get("device") or 0)
        kind = str(facts.get("device_kind") or "cpu").upper()
        self._label = "CPU" if kind == "CPU" else f"{'NPU' if kind == 'NPU' else 'GPU'} {self.device}"
        self._threads: dict[tuple[str, str], int] = {}
        self._taken: dict[str, set[int]] = {}
        """Numbers of threads by process."""
        self._names: list[str] = []
        self._seen: set[str] = set()

    def process(self, name: str) -> int:
        """The number of a process of the format: the real one for the host, else one that ends in the device."""
        pid = self.pid if name == HOST else (self.pid << 10) | (_ORDER[name] << 5) | (self.device & 31)
        if name not in self._seen:
            self._seen.add(name)
            label = "CPU" if name in _ON_HOST else self._label
            self._names += names("process", (pid, 0), name=name, labels=label, sort_index=_ORDER[name])
        return pid

    def thread(self, process: str, thread: str, title: str | None = None) -> Track:
        """Process and thread number of a track, by its name."""
        pid, key = self.process(process), (process, thread)
        if key not in self._threads:
            taken = self._taken.setdefault(process, set())
            others = len(taken)
            given = int(thread) if thread.isdecimal() and len(thread) < 16 else _FIRST_NAMED_THREAD + others
            tid = next(number for number in count(given) if number not in taken)
            taken.add(tid)
            self._threads[key] = tid
            self._names += names("thread", (pid, tid), name=title or f"Thread {thread}", sort_index=others)
        return pid, self._threads[key]

    def host(self, thread: str | None, process: str = HOST) -> Track:
        """The track of a thread of the host; the main thread if it is not recorded."""
        return self.thread(process, thread or str(self.pid))

    def stream(self, stream: int | None) -> Track:
        """The track of a stream of the device."""
        return self.thread(DEVICE, str(stream or 0), f"Stream {stream or 0}")

    def new_names(self) -> list[str]:
        """The events that name what was given out since the last call."""
        new, self._names = self._names, []
        return new


def span(
    name: str,
    track: Track,
    start_ns: int,
    duration_ns: int,
    args: dict[str, Any] | None = None,
    category: str | None = None,
) -> str:
    """An event with a length. Its times are text, as the format has them."""
    told = arguments((args or {}).items())
    return complete(name, track, start_ns, duration_ns, category=category, args=told, as_text=True)


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in order of start, the longer first if starts are equal."""
    return rows.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
