"""Answers for the rules about PyTorch on GPUs, so that each uses all of its words."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.device.tensor_cores import COLUMNS as CORES
from stepscope.analysis.device.tensor_cores import REASONS
from stepscope.tables.base import schema_of, with_schema

TIMES = {"rank": [0, 1], "step": [1, 1], "window": ["device"] * 2, "window_ns": [1000] * 2, "computing_ns": [900] * 2}


def tensor_cores() -> list[dict[str, Any]]:
    """Kernels of two ranks for each reason, with and without operators, shapes and savings."""
    rows = {"rank": [0, 1], "unit": ["plain"] * 2, "name": ["volta_sgemm_128x32_nn", "void f<float>(int)"]}
    more = {"operator": ["aten::mm", None], "shapes": ["[[3, 5], [5, 7]]", None], "code": ["train.py(3): step", None]}
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


def torch_examples() -> dict[str, list[dict[str, Any]]]:
    """By rule."""
    return {"tensor-cores": tensor_cores()}
