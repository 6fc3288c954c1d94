"""Answers to give to the rules about operators on a device, and about environment variables."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.advice.rules.environment import JUDGES
from stepscope.analysis.device.ai_cpu_operators import COLUMNS as AI_CPU
from stepscope.analysis.device.block_dims import COLUMNS as BLOCKS
from stepscope.analysis.device.dynamic_operators import COLUMNS as DYNAMIC
from stepscope.analysis.job.environment_variables import COLUMNS as VARIABLES
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
    uneven = {"block_dim": 7, "cores": 48, "idle_ratio": 0.85, "idle_ns": 340 * MS}
    return rows_of(BLOCKS, *(work(rank, kind, **uneven) for rank in (0, 1) for kind in ("Sum", "Max", "Min", "Any")))


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
    return [needy, {"api_totals": quiet, "environment_variables": rows_of(VARIABLES, *blocking)}]
