"""Measure one command as a fresh process: wall time, processor time and peak memory, children included.

Peak memory is the larger of two figures, as each misses something:

* the sum of `Pss` (pages, shared ones divided among their users) over the process and its descendants,
  sampled from `/proc/*/smaps_rollup`: counts all workers of a pool, but a short peak can fall between two
  samples;
* the kernel's own high-water mark of the largest single process (`ru_maxrss`): exact, but of one process.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.1  # walking the pages of a process of 1 GB takes some milliseconds; this keeps that below a tenth
TAIL_BYTES = 2000


@dataclass(frozen=True)
class Cost:
    """What a command cost.

    Args:
        wall_s: From start to end.
        cpu_s: User and system time of the process and all descendants that it waited for.
        peak_bytes: Peak resident memory of the whole process tree.
        status: Exit status; negative is a signal.
        tail: End of what it printed, to explain a failure.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int
    status: int
    tail: str


def measure(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """Run `command` and say what it cost. Its output is discarded but for the tail.

    Args:
        command: Program and arguments.
        env: Variables to set in addition to those of this process.
        cwd: Directory to run in.
    """
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=_with(env),
        )
        sampler = _Sampler(process.pid)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped; Popen must not wait again
        sampler.stop()
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - TAIL_BYTES))
        tail = output.read().decode(errors="replace")
    return Cost(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=max(sampler.peak_bytes, usage.ru_maxrss * 1024),
        status=process.returncode,
        tail=tail,
    )


def _with(env: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(env or {})}


class _Sampler(threading.Thread):
    """Samples the memory of a process tree until stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak_bytes = 0
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, _tree(self.pid))))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _tree(root: int) -> list[int]:
    """The process and its descendants. One that ends meanwhile is left out."""
    found = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting.extend(map(int, children.read_text().split()))
            except OSError:
                continue
    return found


def _pss_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # ended meanwhile
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
