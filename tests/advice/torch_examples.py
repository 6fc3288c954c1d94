"""Answers for the rules about PyTorch on GPUs, so that each uses all of its words."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.device.tensor_cores import COLUMNS as CORES
from stepscope.analysis.device.tensor_cores import REASONS
from stepscope.analysis.host.host_syncs import CLIPPING, EXPLICIT, LOGGING, SCALING, SIZE, TO_DEVICE, TO_HOST, VALUE
from stepscope.tables.base import schema_of, with_schema

TIMES = {"rank": [0, 1], "step": [1, 1], "window": ["device"] * 2, "window_ns": [1000] * 2, "computing_ns": [900] * 2}


def tensor_cores() -> list[dict[str, Any]]:
    """Kernels of two ranks for each reason, with and without operators, shapes and savings."""
    rows = {"rank": [0, 1], "unit": ["plain"] * 2, "name": ["volta_sgemm_128x32_nn", "void f<float>(int)"]}
    more = {"operator": ["aten::mm", None], "shapes": ["[[3, 5], [5, 7]]", None], "code": ["train.py(3): train", None]}
    sums = {"count": [4, 4], "total_ns": [300, 200], "share_ratio": [0.3, 0.2], "generation": [70, 70]}
    given = []
    for reason in REASONS:
        cores = pl.DataFrame({**rows, **more, **sums, "reason": [reason] * 2})
        saved = pl.DataFrame({"reason": [reason], "saving_ns": [50], "saving_high_ns": [90], "error_ratio": [0.0]})
        cores = with_schema(cores, schema_of(CORES))
        given += [
            {"tensor_cores": cores, "tensor_core_savings": savings, "breakdown": pl.DataFrame(TIMES)}
            for savings in (saved, None)
        ]
    return given


def host_syncs() -> list[dict[str, Any]]:
    """Waits for each reason, with and without places; of one rank and of two."""
    rows = {"rank": [0, 0], "per_step": [2.0, 1.0], "count": [2, 1], "wait_ns": [90, 80], "longest_ns": [50, 80]}
    more = {"operator": ["aten::to", None], "range": ["## wait ##", None], "code": [None, "train.py(3): train"]}
    times = {"cost_ns": [90, 80], "start_ns": [5, 6], "duration_ns": [7, 8]}
    cases = [(purpose, VALUE) for purpose in (CLIPPING, SCALING, LOGGING)]
    cases += [(None, how) for how in (VALUE, SIZE, TO_HOST, TO_DEVICE, EXPLICIT)]
    given = []
    for purpose, how in cases:
        syncs = pl.DataFrame({**rows, **more, **times, "purpose": [purpose] * 2, "how": [how] * 2})
        given.append({"host_syncs": syncs, "breakdown": pl.DataFrame(TIMES).head(1)})
    return given


def compiled_regions() -> list[dict[str, Any]]:
    """Many functions on two ranks, and passes without any."""
    rows = [(rank, number, 1, 9, 1.0, 50) for rank in (0, 1) for number in (*range(4 + rank), None)]
    names = ["rank", "function", "versions", "count", "per_step", "total_ns"]
    return [{"compiled_regions": pl.DataFrame(rows, schema=names, orient="row")}]


def recompilations(framework: str | None) -> list[dict[str, Any]]:
    """Compiling in one step and in three, by what differs between versions; only PyTorch records that."""
    if framework != "pytorch":
        return []
    given = []
    for steps, varied in ((1, "sizes"), (1, None), (3, "sizes"), (3, "types"), (3, "neither"), (3, None)):
        rows = {"rank": [0] * steps, "step": [*range(1, steps + 1)]}
        times = {"compile_ns": [500] * steps, "times": [1] * steps, "recorded_steps": [9] * steps}
        sides = dict.fromkeys(("before", "after"), ["[32, 64]" if varied in ("sizes", "types") else None] * steps)
        known = {"version": [1] * steps, "ran": [True] * steps, "varied": [varied] * steps}
        searches = pl.DataFrame({"rank": [0], "last_missed": [varied == "types"]})
        given.append(
            {
                "compile_time": pl.DataFrame({**rows, **times, "recorded_ns": [2000] * steps}),
                "recompilations": pl.DataFrame({**rows, **known, **sides}, schema_overrides=_TEXTS),
                "compiled_searches": searches,
            }
        )
    return given


_TEXTS = dict.fromkeys(("varied", "before", "after"), pl.String)


def compiled_searches() -> list[dict[str, Any]]:
    """Functions that run as written on two ranks, and many versions of one."""
    rows = {"rank": [0, 1], "searches": [9, 9], "missed_steps": [3, 3], "last_missed": [True, True]}
    return [
        {"compiled_searches": pl.DataFrame({**rows, "missed": [missed] * 2, "highest_version": [7, 6]})}
        for missed in (0, 8)
    ]


def compiled_and_recorded(lost: pl.DataFrame, steps: pl.DataFrame) -> dict[str, Any]:
    """Late launches of compiled code, while many operators are recorded."""
    slices = pl.DataFrame({"rank": [0] * 99, "step": [0] * 99, "category": ["operator"] * 99})
    regions = pl.DataFrame({"rank": [0], "function": [0], "total_ns": [10**12]})
    common = {"lost_time": lost, "breakdown": steps, "loader": None, "idle_functions": None}
    return {**common, "compiled_regions": regions, "slices": slices.lazy()}


def copied(steps: pl.DataFrame) -> list[dict[str, Any]]:
    """Copies of each kind, and none that is known."""
    kinds = [("host to device", "pageable"), ("host to device", "pinned"), ("device to device", None), ("fill", None)]
    rows = [
        {"rank": [0], "direction": [direction], "host_memory": [memory], "total_ns": [9], "size_bytes": [9]}
        for direction, memory in kinds
    ]
    return [{"breakdown": steps}, *({"breakdown": steps, "copies": pl.DataFrame(one)} for one in rows)]


def clock_limits() -> list[dict[str, Any]]:
    """Each reason for lower clocks, on two ranks, with and without clocks."""
    rows = {"rank": [0, 1], "samples": [9, 9], "limited": [8, 9], "share_ratio": [0.9, 1.0], "mean_mhz": [1200.0] * 2}
    return [
        {"clock_limits": pl.DataFrame({**rows, "reason": [reason] * 2, "free_mhz": [free] * 2})}
        for reason in ("heat", "host power", "power limit")
        for free in (1900.0, None)
    ]


def processor_waits() -> list[dict[str, Any]]:
    """Waits in each step and in one, of one rank of three and of all, with and without samples of the host."""
    host = {"rank": [0, 0], "scope": ["host", "process"], "processors": [8, 8], "mean_idle_ratio": [0.1, None]}
    summary = pl.DataFrame({**host, "mean_busy_processors": [7.0, 1.5]})
    given = []
    for delays in ([90, 90, 90], [0, 0, 270]):
        for count in (1, 3):
            rows = [
                {"rank": rank, "step": step, "window_ns": 300, "run_delay_ns": delay if rank in (0, 1) else 0}
                for rank in range(count)
                for step, delay in enumerate(delays)
            ]
            times = pl.DataFrame({"rank": [0, 1], "step": [0, 0], "window": ["host"] * 2, "free_ns": [200, 200]})
            given.append({"processor_waits": pl.DataFrame(rows), "breakdown": times, "cpu_summary": summary})
    return [*given, {**given[0], "cpu_summary": None}]


def few_blocks() -> list[dict[str, Any]]:
    """Small kernels on two ranks."""
    rows = {"rank": [0, 1], "name": ["add", "mul"], "few_ns": [9, 9], "share_ratio": [0.9, 0.8]}
    return [{"few_blocks": pl.DataFrame({**rows, "idle_ratio": [0.7, 0.6]})}]


def torch_examples() -> dict[str, list[dict[str, Any]]]:
    """By rule."""
    return {
        "tensor-cores": tensor_cores(),
        "host-synchronisation": host_syncs(),
        "graph-breaks": compiled_regions(),
        "recompile-limit": compiled_searches(),
        "processor-wait": processor_waits(),
        "clock-throttling": clock_limits(),
        "low-occupancy": few_blocks(),
    }
