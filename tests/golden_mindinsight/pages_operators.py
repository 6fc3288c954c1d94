"""Operators and their floating point operations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from asked import Asked
from differing import Figure
from requested import chosen
from said import figure, rows, us

from stepscope.errors import StepscopeError
from stepscope.run import Run

Cell = Callable[[dict[str, Any]], Any]
"""A cell of the table from our row."""

AI_CORE_TYPES: dict[str, Cell] = {
    "kernel_type": lambda row: row["type"],
    "total_time": lambda row: us(row["total_ns"]),
    "execution_frequency": lambda row: row["count"],
    "total_percent": lambda row: figure(row["share_ratio"] * 100),
    "avg_time": lambda row: us(row["total_ns"] / row["count"]),
}
AI_CORE: dict[str, Cell] = {
    "op_name": lambda row: row["framework_name"] or row["full_name"],
    "kernel_name": lambda row: row["name"],
    "kernel_type": lambda row: row["type"],
    "avg_execution_time": lambda row: us(row["total_ns"] / row["count"]),
    "execution_frequency": lambda row: row["count"],
    "MFLOPs(10^6 cube)": lambda row: _flops(row["cube_flops"], 1e6),
    "GFLOPS(10^9 cube)": lambda row: _flops(row["cube_flops_per_s"], 1e9),
    "MFLOPs(10^6 vector)": lambda row: _flops(row["vector_flops"], 1e6),
    "GFLOPS(10^9 vector)": lambda row: _flops(row["vector_flops_per_s"], 1e9),
    "op_info": lambda row: json.loads(row["inputs"] or "{}"),
}
AI_CPU_TYPES: dict[str, Cell] = {
    "kernel_type": lambda row: row["type"],
    "total_time": lambda row: us(row["total_ns"]),
    "execution_frequency": lambda row: row["count"],
    "percent": lambda row: Figure(row["share_ratio"] * 100, 2),
}
AI_CPU: dict[str, Cell] = {
    "kernel_name": lambda row: row["name"],
    "kernel_type": lambda row: row["type"],
    "avg_execution_time": lambda row: us(row["total_ns"] / row["count"]),
    "dispatch_time": lambda row: us(row["wait_ns"] / row["count"]),
    "execution_frequency": lambda row: row["count"],
}
CPU_TYPES: dict[str, Cell] = {
    "op_type": lambda row: row["type"],
    "type_occurrences": lambda row: row["count"],
    "execution_frequency": lambda row: row["operators"],
    "total_compute_time": lambda row: us(row["total_ns"]),
    "avg_time": lambda row: us(row["total_ns"] / row["count"]),
    "total_time_proportion": lambda row: figure(row["share_ratio"] * 100),
}
CPU: dict[str, Cell] = {
    "op_side": lambda row: row["core"],
    "op_type": lambda row: row["type"],
    "op_name": lambda row: row["name"],
    "full_op_name": lambda row: row["full_name"],
    "op_occurrences": lambda row: row["count"],
    "op_total_time": lambda row: us(row["total_ns"]),
    "op_avg_time": lambda row: us(row["total_ns"] / row["count"]),
    "total_time_proportion": lambda row: figure(row["share_ratio"]),
    "subgraph": lambda row: row["subgraph"],
}
GPU_TYPES: dict[str, Cell] = {
    "op_type": lambda row: row["type"],
    "total_time": lambda row: us(row["total_ns"]),
    "execution_frequency": lambda row: row["count"],
    "total_percent": lambda row: figure(row["share_ratio"] * 100),
    "avg_time": lambda row: us(row["total_ns"] / row["count"]),
}
GPU: dict[str, Cell] = {
    "op_side": lambda row: row["core"],
    "op_type": lambda row: row["type"],
    "op_name": lambda row: row["name"],
    "op_full_name": lambda row: row["full_name"],
    "op_occurrences": lambda row: row["count"],
    "op_total_time": lambda row: us(row["total_ns"]),
    "op_avg_time": lambda row: us(row["total_ns"] / row["count"]),
    "proportion": lambda row: figure(row["share_ratio"]),
    "cuda_activity_cost_time": lambda row: us(row["activity_ns"]),
    "cuda_activity_call_count": lambda row: row["activities"],
}
CUDA: dict[str, Cell] = {
    "name": lambda row: row["name"],
    "type": lambda row: row["type"],
    "op_full_name": lambda row: row["full_name"],
    "stream_id": lambda row: str(row["stream"]),
    "block_dim": lambda row: row["block"],
    "grid_dim": lambda row: row["grid"],
    "occurrences": lambda row: row["count"],
    "total_duration": lambda row: us(row["total_ns"]),
    "avg_duration": lambda row: us(row["total_ns"] / row["count"]),
    "max_duration": lambda row: us(row["max_ns"]),
    "min_duration": lambda row: us(row["min_ns"]),
}

PAGE_OF_LISTS: dict[str, tuple[str, tuple[str, ...], dict[str, Cell]]] = {
    "aicore_type": ("operator_types", ("AI_CORE",), AI_CORE_TYPES),
    "aicore_detail": ("operator_instances", ("AI_CORE",), AI_CORE),
    "aicpu_type": ("operator_types", ("AI_CPU",), AI_CPU_TYPES),
    "aicpu_detail": ("operator_instances", ("AI_CPU",), AI_CPU),
    "cpu_op_type": ("operator_types", ("HOST_CPU", "CPU"), CPU_TYPES),
    "cpu_op_info": ("operator_instances", ("HOST_CPU", "CPU"), CPU),
    "gpu_op_type": ("operator_types", ("GPU",), GPU_TYPES),
    "gpu_op_info": ("operator_instances", ("GPU",), GPU),
    "gpu_cuda_activity": ("operator_instances", ("CUDA",), CUDA),
    "pynative_type": ("operator_types", ("PYNATIVE",), {}),
    "pynative_detail": ("operator_instances", ("PYNATIVE",), {}),
}
"""List asked for to our question, its units and the columns."""


def operators(run: Run, asked: Asked) -> Any:
    """One list of operators."""
    question, units, cells = PAGE_OF_LISTS[asked.kind.removeprefix("ops/")]
    found = [row for row in rows(run, question) if row["unit"] in units]
    if not found:
        raise StepscopeError(f"no list of {units}")
    return chosen(asked, list(cells), [[cell(row) for cell in cells.values()] for row in found])


def _flops(value: float | None, unit: float) -> Any:
    return "-" if value is None else figure(value / unit)


PAGES = {f"ops/{name}": operators for name in PAGE_OF_LISTS}
