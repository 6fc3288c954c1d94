"""A classic profile as MindSpore 2.0 writes it of PyNative on a CPU: a layer of 2 x 2 whose first operators get new
numbers after the first step, so that the timeline's bars all begin where the recording does."""

from __future__ import annotations

import json
from pathlib import Path

MS = 1_000_000
STEPS = 20
FIRST_NS, EACH_NS = 94 * MS, 2 * MS
"""Length of the first step, and of the others."""
BASE_NS = 700_000 * MS

_FORWARD, _BACKWARD, _UPDATE = "Default/MatMul", "Bprop/gradMatMul/MatMul-op8", "Default/ApplyMomentum-op22"


def ends_ns() -> list[int]:
    """When each step ends."""
    return [BASE_NS + FIRST_NS + step * EACH_NS for step in range(STEPS)]


def write(directory: Path) -> Path:
    """Write the profile; of each step the forward and backward product of two 2 x 2 matrices and an update."""
    folder = directory / "profiler"
    folder.mkdir(parents=True)
    runs: dict[str, list[tuple[int, int]]] = {}
    for step, end_ns in enumerate(ends_ns()):
        start_ns = end_ns - (EACH_NS if step else FIRST_NS)
        forward = f"{_FORWARD}-op{23 if step else 0}"
        runs.setdefault(forward, []).append((start_ns + (MS // 4 if step else 0), MS // 10))
        runs.setdefault(_BACKWARD, []).append((end_ns - MS, MS // 10))
        runs.setdefault(_UPDATE, []).append((end_ns - MS // 10, MS // 10))
    times = "".join(
        f"{name};HostCpuOps;{' '.join(f'{start},{length / MS:g},0' for start, length in calls)} \n"
        for name, calls in runs.items()
    )
    (folder / "cpu_op_execute_timestamp_0.txt").write_text(times)
    in_order = sorted((start, name.rpartition("/")[2]) for name, calls in runs.items() for start, _ in calls)
    launches = "".join(f"{name.partition('-')[0]};{name};7;input_1:[2, 2];input_2:[2, 2];\n" for _, name in in_order)
    (folder / "cpu_framework_0.txt").write_text(launches)
    bars = [
        {"name": str(n), "ph": "X", "pid": 0, "tid": 100000, "ts": BASE_NS / 1e3, "dur": (end_ns - BASE_NS) / 1e3}
        for n, end_ns in enumerate(ends_ns(), start=1)
    ]
    (folder / "cpu_timeline_display_0.json").write_text(json.dumps(bars))
    return folder
