"""Answers to give to the rules about operators on a device, and about environment variables."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.advice.rules.environment import JUDGES
from stepscope.analysis.device.ai_cpu_operators import COLUMNS as AI_CPU
from stepscope.analysis.device.block_dims import COLUMNS as BLOCKS
from stepscope.analysis.device.dynamic_operators import COLUMNS as DYNAMIC
from stepscope.analysis.device.operator_bounds import COLUMNS as BOUNDS
from stepscope.analysis.device.operator_efficiency import COLUMNS as EFFICIENCY
from stepscope.analysis.job.environment_variables import COLUMNS as VARIABLES
from stepscope.analysis.job.throttled_operators import COLUMNS as THROTTLED
from stepscope.tables.base import Column, schema_of

MS = 10**6


def rows_of(columns: tuple[Column, ...], *rows: dict[str, Any]) -> pl.DataFrame:
    """Rows of an answer; columns that are not given are null."""
    return pl.DataFrame([{column.name: row.get(column.name) for column in columns} for row in rows], schema_of(columns))


def work(rank: int, kind: str = "Sum", **changes: Any) -> dict[str, Any]:
    """A row about an operator."""
    row = {"rank": rank, "name": f"aclnn{kind}", "type": kind, "core": "AI_VECTOR_CORE", "count": 10}
    return {**row, "total_ns": 400 * MS, "mean_ns": 40 * MS, "max_ns": 50 * MS, **changes}


def ai_cpu_operators() -> pl.DataFrame:
    """Two ranks, one with code and types, the other with more time."""
    known = work(0, exposed_ns=100 * MS, rare_types=["DOUBLE"], code="train.py(3): forward")
    return rows_of(AI_CPU, work(1, "Sampler", exposed_ns=200 * MS, rare_types=[]), known)


def block_dims() -> pl.DataFrame:
    """Four uneven operators on two ranks."""
    uneven = {"block_dim": 7, "cores": 48, "idle_ratio": 0.85, "idle_ns": 340 * MS, "uneven": True}
    return rows_of(BLOCKS, *(work(rank, kind, **uneven) for rank in (0, 1) for kind in ("Sum", "Max", "Min", "Any")))


def bounds() -> pl.DataFrame:
    """Operators on two ranks that no pipe limits."""
    free = {"unbound": True, "busiest_ratio": 0.4, "space_ns": 200 * MS}
    return rows_of(BOUNDS, *(work(rank, kind, **free) for rank in (0, 1) for kind in ("Sum", "Max")))


def efficiency() -> pl.DataFrame:
    """Operators of each kind on two ranks, with room and sizes that are not aligned."""
    room = {"bound": False, "space_ratio": 0.5, "space_ns": 200 * MS, "counted": 9, "mac_ratio": 0.4}
    odd = {"unaligned": [1000], "multiple": 256}
    units = {"cube": odd, "attention": odd, "vector": {}}
    return rows_of(
        EFFICIENCY, *(work(rank, unit, unit=unit, **room, **more) for rank in (0, 1) for unit, more in units.items())
    )


def throttled(*, stated: bool) -> pl.DataFrame:
    """Two operators at a lower clock rate in the first of two steps, on two ranks."""
    rate = {"nominal_mhz": 1800.0, "mean_mhz": 1450.0, "min_mhz": 1400.0, "decreased_ratio": 0.2, "stated": stated}
    return rows_of(THROTTLED, *(work(rank, "Matmul", step=0, lost_ns=80 * MS, **rate) for rank in (0, 1)))


def two_steps() -> pl.DataFrame:
    rows = [{"rank": rank, "step": step, "window": "host", "window_ns": 900 * MS} for rank in (0, 1) for step in (0, 1)]
    return pl.DataFrame(rows)


def dynamic_operators() -> pl.DataFrame:
    """Four operators, one of which is static."""
    dynamic = {"dynamic": 10, "static": 0, "unknown": 0, "dynamic_ns": 400 * MS, "shapes": 3}
    static = work(0, "Add", dynamic=0, static=10, unknown=0, dynamic_ns=0, shapes=0)
    return rows_of(DYNAMIC, *(work(rank, kind, **dynamic) for rank in (0, 1) for kind in ("A", "B", "C", "D")), static)


def compile_time() -> pl.DataFrame:
    return pl.DataFrame({"rank": [0, 1], "step": [0, 0], "compile_ns": [5 * MS, 6 * MS]})


UNSET = ("ACLNN_CACHE_LIMIT", "HOST_CACHE_CAPACITY", "ASCEND_ENHANCE_ENABLE", "PYTORCH_NPU_ALLOC_CONF")
VALUES = {"NCCL_DEBUG": "INFO", "TORCH_DISTRIBUTED_DEBUG": "DETAIL"}


def environments(device: str | None, framework: str | None) -> list[dict[str, Any]]:
    """Variables with the worst values, once while the host waits after each launch, and once without any evidence."""
    worst = {name: None if name in UNSET else VALUES.get(name, "1") for name in JUDGES}
    if framework == "mindspore":  # variables of PyTorch
        worst = {name: value for name, value in worst.items() if "TORCH" not in name}
    common = {"ranks": "0, 1", "count": 2, "device_kind": device, "differs": False}
    rows = [{"name": name, "value": value, **common} for name, value in worst.items()]
    several = {"device_kind": device, "count": 1, "differs": True}
    differing = [
        {"name": "OMP_NUM_THREADS", "value": value, "ranks": rank, **several}
        for rank, value in (("0", "4"), ("1", None))
    ]
    step = {
        "rank": 0,
        "step": 0,
        "window": "host",
        "window_ns": 100,
        "free_ns": 40,
        "communication_not_overlapped_ns": 30,
    }
    calls = {"rank": [0, 0], "name": ["aclrtSynchronizeStream", "launch"], "count": [9, 10], "total_ns": [5, 5]}
    hints = pl.DataFrame({"rank": [0], "kind": ["fragmentation"]})
    evidence = {"breakdown": pl.DataFrame([step]), "dynamic_operators": dynamic_operators(), "memory_hints": hints}
    needy = {
        **evidence,
        "api_totals": pl.DataFrame(calls),
        "environment_variables": rows_of(VARIABLES, *rows, *differing),
    }
    quiet = pl.DataFrame({**calls, "count": [1, 10]})
    blocking = [row for row in rows if "BLOCKING" in row["name"]]
    few = {"environment_variables": rows_of(VARIABLES, *blocking)}
    busy = {"api_totals": pl.DataFrame(calls), "breakdown": pl.DataFrame([{**step, "free_ns": 4}])}
    return [needy, {**few, "api_totals": quiet}, {**few, **busy}]
