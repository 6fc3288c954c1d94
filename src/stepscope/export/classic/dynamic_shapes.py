"""`dynamic_shape_info`: times and shapes of operators step by step, if shapes differ between steps.

Readers take a job that has this file for one of dynamic shape and hide other pages, so it takes more than the analysis
`shape_executions` lists: an operator's shapes in a step (all its calls together) differ from those in another step in
which it ran as often. The first recorded step does not count, as optimizers and caches are set up in it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import ms, us
from stepscope.export.rank_export import RankExport


def write_dynamic_shapes(export: RankExport) -> None:
    """Write it if any operator's shapes change."""
    name = f"dynamic_shape_info_{export.rank}.json"
    steps = export.numbered_steps.sort("step")["step"].to_list()
    if len(steps) < 3 or not export.run.has("operators"):
        export.leave_out(name, "it takes the shapes of at least three steps to know whether they change")
        return
    calls = named_operators(export).filter(pl.col("step").is_in(steps) & pl.col("input_shapes").is_not_null())
    if not _changes(calls.filter(pl.col("step") != steps[0])):
        export.leave_out(name, "no operator's shapes differ between steps")
        return
    rows = calls.select("step", "op_type", "op_name", "full_name", "duration_ns", "input_shapes", "start_ns")
    found = rows.sort("start_ns", maintain_order=True).collect()
    export.write_json(name, _on_gpu(export, found) if export.on_gpu else _on_host(found))


def _changes(calls: pl.LazyFrame) -> bool:
    """Whether an operator that runs equally often in two steps has other shapes in one than in the other."""
    shapes = (
        calls.group_by("full_name", "step")
        .agg(pl.col("input_shapes").unique().sort().str.join("|").alias("shapes"), pl.len().alias("count"))
        .group_by("full_name", "count")
        .agg(pl.col("shapes").n_unique().alias("kinds"))
    )
    return bool(shapes.select((pl.col("kinds") > 1).any()).collect().item())


def _on_host(calls: pl.DataFrame) -> dict[str, Any]:
    """Mean time (ms) and shapes of each operator, step by step, by type; and of each type."""
    by_step = calls.group_by("op_type", "full_name", "step", maintain_order=True).agg(
        mean=pl.col("duration_ns").mean(), shapes=pl.col("input_shapes").unique(maintain_order=True).str.join("; ")
    )
    by_name = by_step.sort("step", maintain_order=True).group_by("op_type", "full_name", maintain_order=True)
    found: dict[str, Any] = {}
    for kind, full, means, shapes in by_name.agg("mean", "shapes").iter_rows():
        one = {"op_exe_time": list(map(ms, means)), "op_shape": shapes, "op_exe_occurrences": len(means)}
        found.setdefault(kind, []).append({full: one})
    types = calls.group_by("op_type", "step").agg(mean=pl.col("duration_ns").mean()).sort("op_type", "step")
    by_type = types.group_by("op_type", maintain_order=True).agg("mean")
    return {**found, "op_type": {kind: list(map(ms, means)) for kind, means in by_type.iter_rows()}}


def _on_gpu(export: RankExport, calls: pl.DataFrame) -> dict[str, Any]:
    """Operators and kernels of each step, one by one; steps count from 1, times are in us."""
    numbers = {step: number for number, step in enumerate(export.step_numbers, 1)}
    owned = owned_kernels(export).filter(pl.col("step").is_in(list(numbers)))
    kernels = owned.sort("start_ns", maintain_order=True).collect()
    operator: dict[str, list[dict[str, Any]]] = {}
    for row in calls.iter_rows(named=True):
        operator_of = {"op_side": "gpu", "op_type": row["op_type"], "op_name": row["op_name"]}
        shape = {"dur": us(row["duration_ns"]), "shape_info": row["input_shapes"]}
        step = numbers[row["step"]]
        operator.setdefault(str(step), []).append({"step": step, **operator_of, **shape})
    kernel: dict[str, list[dict[str, Any]]] = {}
    for row in kernels.iter_rows(named=True):
        launch = {"op_type": "cuLaunchKernel", "op_name": row["name"], "op_full_name": row["full_name"]}
        dims = {"block_dim": row["block"] or "", "grid_dim": row["grid"] or ""}
        step = numbers[row["step"]]
        kernel.setdefault(str(step), []).append({"step": step, **launch, "dur": us(row["duration_ns"]), **dims})
    return {"operator": operator, "kernel": kernel}
