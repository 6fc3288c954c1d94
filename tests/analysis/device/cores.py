"""Ranks whose work runs on the cores of a device, with the counters of their pipes."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.tables import COUNTERS, KERNEL_COUNTERS, KERNELS, RANKS, STEPS

US = 1000


def tables_of_cores(
    works: list[dict[str, Any]],
    steps: int = 1,
    clock: list[tuple[int, float]] | None = None,
    **about: Any,
) -> dict[str, pl.DataFrame]:
    """The tables of a rank that does some work in each of its steps, one after the other.

    Args:
        works: Columns of `kernels` and `kernel_counters` of each piece; `duration_ns` is needed, and `gap_ns` is the
            idle time before it.
        steps: Number of steps.
        clock: Samples of the clock of the AI cores, time and MHz.
        about: Columns of `ranks`.
    """
    kernels: list[dict[str, Any]] = []
    counted: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    now = 0
    for step in range(steps):
        start = now
        for work in works:
            now += work.get("gap_ns", 0)
            row = {"kernel": len(kernels), "start_ns": now, "kind": "compute", "name": "op", "step": step, "stream": 0}
            kernels.append({**row, **{name: value for name, value in work.items() if name in KERNELS.schema}})
            ratios = {name: value for name, value in work.items() if name in KERNEL_COUNTERS.schema}
            counted.append({"kernel": row["kernel"], **ratios})
            now += work["duration_ns"]
        window = {"window_start_ns": start, "window_end_ns": now, "window": "device"}
        windows.append({"step": step, "start_ns": start, "end_ns": now, **window})
    found = {
        "kernels": KERNELS.frame(**_columns(kernels)),
        "kernel_counters": KERNEL_COUNTERS.frame(**_columns(counted)),
        "steps": STEPS.frame(**_columns(windows)),
        "ranks": RANKS.frame(**{name: [value] for name, value in {**_DEVICE, "end_ns": now, **about}.items()}),
    }
    if clock is not None:
        times, values = [time for time, _ in clock], [value for _, value in clock]
        names = ["ai_core_frequency_mhz"] * len(clock)
        found["counters"] = COUNTERS.frame(time_ns=times, name=names, value=values, device=[0] * len(clock))
    return found


_DEVICE = {
    **{"device_kind": "npu", "framework": "pytorch", "device": 0, "start_ns": 0},
    **{"ai_cores": 24, "vector_cores": 48, "nominal_clock_mhz": 1800.0},
}


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in keys}


def vector(kind: str, us: int, **more: Any) -> dict[str, Any]:
    """An operator on the vector cores."""
    return {"name": f"aclnn{kind}", "type": kind, "core": "AI_VECTOR_CORE", "duration_ns": us * US, **more}


def cube(us: int, shapes: str = "4096,4096;4096,4096", **more: Any) -> dict[str, Any]:
    """A matrix product on the cube cores."""
    types = {"input_types": "DT_BF16;DT_BF16", "output_shapes": "4096,4096", "input_shapes": shapes}
    row = {"name": "aclnnMatmul", "type": "MatMulV3", "core": "AI_CORE", "block_dim": 24, "state": "static"}
    return {**row, "duration_ns": us * US, **types, **more}


def on_ai_cpu(us: int, **more: Any) -> dict[str, Any]:
    """An operator on the AI CPU."""
    row = {"name": "aclnnGridSampler", "type": "GridSampler2D", "core": "AI_CPU", "input_types": "DOUBLE;FLOAT"}
    return {**row, "duration_ns": us * US, **more}
