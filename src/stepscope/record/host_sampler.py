"""Samples of the machine, this process and the processes of the input pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.recording_format.rows import HOST, row_lines

_LOAD = Path("/proc/loadavg")


class HostSampler:
    """Reads one row for each of them at every call.

    Args:
        workers: Returns the living processes of the input pipeline, with names.

    Raises:
        ImportError: If psutil is not installed.
    """

    file = HOST

    def __init__(self, workers: Callable[[], dict[int, str]]) -> None:
        import psutil  # noqa: PLC0415 - imported only in processes that record

        self._psutil = psutil
        self._workers = workers
        self._self = psutil.Process()
        self._known: dict[int, Any] = {}

    def read(self, time_ns: int) -> str:
        """One sample, as lines of `file`."""
        rows = [self._host(), self._process(self._self, "process", "")]
        for pid, name in self._workers().items():
            try:
                process = self._known.setdefault(pid, self._psutil.Process(pid))
                rows.append(self._process(process, "worker", name))
            except self._psutil.Error:  # it has ended
                self._known.pop(pid, None)
        others = list(HOST.columns)[1:]
        return row_lines([time_ns, *map(row.get, others)] for row in rows)

    def _host(self) -> dict[str, Any]:
        times = self._psutil.cpu_times()
        memory = self._psutil.virtual_memory()
        return {
            "scope": "host",
            "user_ns": _ns(times.user + getattr(times, "nice", 0)),
            "system_ns": _ns(times.system + getattr(times, "irq", 0) + getattr(times, "softirq", 0)),
            "idle_ns": _ns(times.idle),
            "io_wait_ns": _ns(getattr(times, "iowait", 0)),
            "available_bytes": memory.available,
            "total_bytes": memory.total,
            "context_switches": self._psutil.cpu_stats().ctx_switches,
            "runnable": _runnable(),
            "processors": os.cpu_count(),
        }

    def _process(self, process: Any, scope: str, name: str) -> dict[str, Any]:
        row: dict[str, Any] = {"scope": scope, "pid": process.pid, "name": name}
        with process.oneshot():
            times = process.cpu_times()
            row |= {
                "user_ns": _ns(times.user),
                "system_ns": _ns(times.system),
                "io_wait_ns": _ns(getattr(times, "iowait", 0)),
                "rss_bytes": process.memory_info().rss,
                "threads": process.num_threads(),
                "context_switches": sum(process.num_ctx_switches()),
            }
            try:
                traffic = process.io_counters()
                row |= {"read_bytes": traffic.read_bytes, "written_bytes": traffic.write_bytes}
            except (self._psutil.AccessDenied, AttributeError, OSError):  # not allowed everywhere
                pass
        return row


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _runnable() -> int | None:
    """Number of runnable threads."""
    try:
        return int(_LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, IndexError, ValueError):
        return None
