"""The processes and threads of a timeline: their numbers, and the events that name them."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.export.formatting import us_text
from stepscope.export.rank_export import RankExport

Event = dict[str, Any]

HOST, RUNTIME, COLLECTION = "Python", "CANN", "Python GC"
DEVICE, COMMUNICATION, OVERLAP, COUNTERS = "Ascend Hardware", "Communication", "Overlap Analysis", "Counters"
"""Names of processes that readers look for; their labels name the device."""
_ORDER = {HOST: 0, COLLECTION: 1, RUNTIME: 2, DEVICE: 8, COUNTERS: 9, COMMUNICATION: 10, OVERLAP: 11}
_ON_HOST = (HOST, RUNTIME, COLLECTION)
_FIRST_NAMED_THREAD = 1 << 22
"""Threads that are no number get numbers from here on; those of Linux end below."""


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
        self._names: list[Event] = []
        self._seen: set[str] = set()

    def process(self, name: str) -> int:
        """The number of a process of the format: the real one for the host, else one that ends in the device."""
        pid = self.pid if name == HOST else (self.pid << 10) | (_ORDER[name] << 5) | (self.device & 31)
        if name not in self._seen:
            self._seen.add(name)
            label = "CPU" if name in _ON_HOST else self._label
            details = {"name": name}, {"labels": label}, {"sort_index": _ORDER[name]}
            for event, args in zip(("process_name", "process_labels", "process_sort_index"), details, strict=True):
                self._names.append({"ph": "M", "name": event, "pid": pid, "tid": 0, "args": args})
        return pid

    def thread(self, process: str, thread: str, title: str | None = None) -> tuple[int, int]:
        """Process and thread number of a track, by its name."""
        pid, key = self.process(process), (process, thread)
        if key not in self._threads:
            others = sum(of == process for of, _ in self._threads)
            tid = int(thread) if thread.isdecimal() and len(thread) < 16 else _FIRST_NAMED_THREAD + others
            self._threads[key] = tid
            named = {"name": title or f"Thread {thread}"}
            self._names.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": named})
            order = {"sort_index": others}
            self._names.append({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": order})
        return pid, self._threads[key]

    def new_names(self) -> list[Event]:
        """The events that name what was given out since the last call."""
        names, self._names = self._names, []
        return names


def complete(name: str, track: tuple[int, int], start_ns: int, duration_ns: int, **more: Any) -> Event:
    """An event with a length. Its times are text, as the format has them, so that no digit is lost."""
    pid, tid = track
    times = {"ts": us_text(start_ns), "dur": us_text(duration_ns)}
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, **times, **more}


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in order of start, the longer first if starts are equal."""
    return rows.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
