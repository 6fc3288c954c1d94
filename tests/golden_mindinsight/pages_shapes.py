"""Dynamic shapes: executions of operators and kernels by step, and means of their types."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from asked import Asked
from differing import Figure
from said import Rows, rows

from stepscope.errors import StepscopeError
from stepscope.run import Run


def dynamic_shapes(run: Run, asked: Asked) -> Any:
    """The executions in the words of an Ascend device, or of a GPU.

    A server that is asked for one GPU table of a directory without any fails; we have nothing to say there either.
    """
    executions = rows(run, "shape_executions")
    if asked.status != 200:
        raise StepscopeError("no such table")
    units = {row["unit"] for row in executions}
    if units <= {"AI_CORE"}:
        return _by_type(executions, rows(run, "dynamic_shape_types"))
    geometry = run.table("operator_steps").collect().to_dicts()
    return _by_step([row for row in geometry if row["unit"] == "GPU"], [r for r in geometry if r["unit"] == "CUDA"])


def _by_type(executions: Rows, types: Rows) -> dict[str, Any]:
    said: dict[str, Any] = defaultdict(list)
    for operator in dict.fromkeys((row["type"], row["name"]) for row in executions):
        own = [row for row in executions if (row["type"], row["name"]) == operator]
        times = [row["duration_ns"] / 1e6 for row in own]
        shapes = [row["input_shapes"] for row in own]
        told = {"op_exe_time": times, "op_shape": shapes, "op_exe_occurrences": len(own)}
        said[operator[0]].append({operator[1]: told})
    means: dict[str, list[float]] = defaultdict(list)
    for row in sorted(types, key=lambda row: row["step"]):
        means[row["type"]].append(Figure(row["total_ns"] / row["count"] / 1e6, 4))
    return {**said, "op_type": dict(means)}


def _by_step(operators: Rows, kernels: Rows) -> dict[str, Any]:
    return {
        "operator": _listed(operators, _operator),
        "operator_type": _summed(operators, "type", []),
        "kernel": _listed(kernels, _kernel),
        "kernel_type": _summed(kernels, "name", ["full_name"]),
    }


def _listed(found: Rows, told: Any) -> dict[str, Any]:
    steps: dict[str, list[Any]] = defaultdict(list)
    for row in found:
        steps[str(row["step"])].append(told(row))
    return dict(steps)


def _summed(found: Rows, by: str, more: list[str]) -> dict[str, Any]:
    """Step to kind to total, count and mean in us, and what else is told of the kind."""
    steps: dict[str, dict[str, list[Any]]] = defaultdict(dict)
    for row in found:
        kinds = steps[str(row["step"])]
        total, count, *_ = kinds.get(row[by], (0.0, 0))
        total, count = total + row["duration_ns"] / 1e3, count + 1
        kinds[row[by]] = [total, count, total / count, *(row[name] for name in more)]
    return dict(steps)


def _operator(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": row["step"],
        "op_side": "gpu",
        "op_type": row["type"],
        "op_name": row["name"],
        "dur": row["duration_ns"] / 1e3,
        "shape_info": json.loads(row["input_shapes"] or "[]"),
    }


def _kernel(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": row["step"],
        "op_type": row["type"],
        "op_name": row["name"],
        "op_full_name": row["full_name"],
        "dur": row["duration_ns"] / 1e3,
        "block_dim": row["block"],
        "grid_dim": row["grid"],
    }


PAGES = {
    "dynamic-shape-detail": dynamic_shapes,
    "ops/gpu_op_type_info": dynamic_shapes,
    "ops/gpu_cuda_type_info": dynamic_shapes,
}
