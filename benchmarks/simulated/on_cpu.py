"""Data-parallel jobs on CPUs: operators on the host, and calls on a thread of the communication library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import polars as pl

from simulated.layouts import DATA, LAYER, LOADER, Shape
from simulated.operations import Operation
from simulated.simulate import Done, Times
from simulated.truth import STEP_NUMBER
from stepscope.tables import COLLECTIVES, GROUPS, OPERATORS, RANKS, SLICES, STEPS

THREAD, LIBRARY_THREAD = "100", "130"
Rows = list[dict[str, Any]]


def cpu_programs(shape: Shape) -> dict[int, list[list[Operation]]]:
    """Forward, backward whose gradients are summed as they come, and the optimizer when all are summed."""
    return {rank: _program(shape, Random(f"{shape.seed} {rank}")) for rank in range(shape.ranks)}


def _program(shape: Shape, chance: Random) -> list[list[Operation]]:
    def operator(name: str, length: float) -> Operation:
        ns = round(shape.kernel_ns * length * max(0.3, 1 + shape.kernel_noise * chance.gauss(0, 1)))
        gap = round(shape.gap_ns * max(0.3, 1 + shape.host_noise * chance.gauss(0, 1)))
        return Operation("host", name, ns, gap_ns=gap, kind="operator")

    steps = []
    for _ in range(shape.steps):
        out = [Operation("host", LOADER, shape.loader_ns, kind="annotation")]
        for _ in range(shape.layers):
            out += [operator(name, length) for name, _, length in LAYER]
        for layer in reversed(range(shape.layers)):
            out += [operator(f"{name}_backward", 2 * length) for name, _, length in LAYER]
            if layer % shape.bucket_layers == 0:
                size = shape.layer_bytes * shape.bucket_layers
                out.append(Operation("call", "gloo:all_reduce", gap_ns=2000, stream=DATA, group="dp0.0",
                                     operation="all_reduce", size_bytes=size))  # fmt: skip
        out.append(Operation("synchronise", "wait"))
        out.append(operator("aten::_fused_adamw_", 2.0))
        steps.append(out)
    return steps


def cpu_tables(times: Times, shape: Shape, groups: Mapping[str, Sequence[int]], rank: int) -> dict[str, pl.DataFrame]:
    """The tables that a reader makes of such a recording, on the clock of the simulation."""
    slices: Rows = []
    operators: Rows = []
    calls: Rows = []
    for number, (start, end) in enumerate(times.steps[rank], start=STEP_NUMBER):
        slices.append(_slice(slices, f"ProfilerStep#{number}", "annotation", start, end, number, depth=0))
    for done in times.done[rank]:
        step, operation = done.step + STEP_NUMBER, done.operation
        if operation.what == "host" and operation.kind:
            row = _slice(slices, operation.name, operation.kind, done.start_ns, done.end_ns, step, depth=1)
            slices.append({**row, "parent": done.step})
            if operation.kind == "operator":
                operators.append({name: row[name] for name in _OF_OPERATORS})
        elif operation.what == "call":
            row = _slice(
                slices, operation.name, "annotation", done.start_ns, done.end_ns, step, LIBRARY_THREAD, depth=0
            )
            slices.append(row)
            calls.append(_call(row, done, len(calls), len(groups[operation.group])))
    spans = pl.DataFrame(times.steps[rank], schema=["start_ns", "end_ns"], orient="row").with_columns(
        pl.int_range(STEP_NUMBER, STEP_NUMBER + pl.len()).cast(pl.Int32).alias("step"),
        window_start_ns="start_ns",
        window_end_ns="end_ns",
        window=pl.lit("host"),
    )
    facts = {"host": [f"host{rank // shape.ranks_per_host}"], "device_kind": ["cpu"], "framework": ["pytorch"],
             "backend": ["gloo"], "world_size": [shape.ranks], "format": ["kineto"]}  # fmt: skip
    return {
        "slices": SLICES.conform(pl.DataFrame(slices, infer_schema_length=None)),
        "operators": OPERATORS.conform(pl.DataFrame(operators)),
        "collectives": COLLECTIVES.conform(pl.DataFrame(calls)),
        "steps": STEPS.conform(spans),
        "groups": GROUPS.conform(pl.DataFrame({"group": list(groups), "members": [list(m) for m in groups.values()]})),
        "ranks": RANKS.conform(pl.DataFrame(facts)),
    }


_OF_OPERATORS = ("slice", "start_ns", "duration_ns", "self_ns", "name", "thread", "step")


def _slice(
    slices: Rows, name: str, category: str, start: int, end: int, step: int, thread: str = THREAD, *, depth: int
) -> dict[str, Any]:
    return {"slice": len(slices), "start_ns": start, "duration_ns": end - start, "self_ns": end - start, "step": step,
            "category": category, "name": name, "process": "100", "thread": thread, "depth": depth}  # fmt: skip


def _call(row: dict[str, Any], done: Done, number: int, members: int) -> dict[str, Any]:
    operation = done.operation
    return {"collective": number, "sequence": number, "group": operation.group, "operation": operation.operation,
            "name": row["name"], "size_bytes": operation.size_bytes, "group_size": members, "on_device": False,
            "start_ns": row["start_ns"], "duration_ns": row["duration_ns"], "step": row["step"]}  # fmt: skip
