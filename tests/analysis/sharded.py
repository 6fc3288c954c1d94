"""A rank of a job that PyTorch's FSDP shards: modules gathered in the forward and the backward pass."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.tables import COLLECTIVES, COUNTERS, KERNELS, MEMORY_CURVE, RANKS, SLICES, STEPS

MS, MIB, GB = 1_000_000, 2**20, 10**9
SENT = 4 * MS


def rank_of(
    *,
    steps: int = 3,
    modules: int = 3,
    size: int = 64 * MIB,
    computing: int = 10 * MS,
    ahead: bool = False,
    covered: bool = False,
    used: int | None = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, pl.DataFrame]:
    """Each module is gathered for 4 ms, in marks of its pass, and then computes: forward, then backward.

    Args:
        steps: How many.
        modules: Of the model.
        size: Bytes of all parameters of a module.
        computing: How long a module computes.
        ahead: Whether all gathers are prefetched, by their marks.
        covered: Whether computing goes on meanwhile.
        used: Memory in use at the peak, of 80 GB; None if not recorded.
        names: Other names of marks, by those of `fully_shard`.
    """
    marks: list[tuple[str, int, int]] = []
    kernels: list[dict[str, object]] = []
    calls: list[dict[str, object]] = []
    bounds = []
    now = 0
    for step in range(steps):
        begun = now
        order = [("forward", at) for at in range(modules)] + [("backward", at) for at in reversed(range(modules))]
        for phase, at in order:
            around, inner = f"FSDP::pre_{phase}", f"FSDP::all_gather (layers.{at})"
            if names is not None:
                around, inner = names[around], names["FSDP::all_gather"]
            else:
                around = f"FSDP::{phase}_prefetch for layers.{at}" if ahead else f"{around} (layers.{at})"
            marks += [(around, now, MS), (inner, now + 1000, MS // 2)]
            sent = {"start_ns": now + 2 * MS, "duration_ns": SENT, "step": step}
            kernels.append({**sent, "kind": "communication", "name": "nccl", "launch_start_ns": now + 2000})
            calls.append({**sent, "sequence": len(calls), "size_bytes": size // 2})
            work = now + (0 if covered else 2 * MS + SENT)
            length = 2 * MS + SENT + computing if covered else computing
            kernels.append({"start_ns": work, "duration_ns": length, "step": step, "kind": "compute", "name": "mm"})
            now = work + length
        bounds.append((step, begun, now))
    of = pl.DataFrame(bounds, schema=["step", "start_ns", "end_ns"], orient="row")
    call = {"group": "g", "operation": "all_gather", "name": "nccl", "size_of": "part", "group_size": 2}
    tables = {
        "slices": SLICES.frame(
            slice=range(len(marks)), category=["mark"] * len(marks), name=[name for name, _, _ in marks],
            start_ns=[at for _, at, _ in marks], duration_ns=[length for _, _, length in marks],
        ),
        "kernels": KERNELS.conform(pl.DataFrame(kernels).with_row_index("kernel")),
        "collectives": COLLECTIVES.conform(
            pl.DataFrame([{**call, "on_device": True, **one} for one in calls]).with_row_index("collective")
        ),
        "steps": STEPS.conform(
            of.with_columns(window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("device"))
        ),
        "ranks": RANKS.frame(framework=["pytorch"], device_kind=["cuda"], backend=["nccl"]),
    }  # fmt: skip
    return tables if used is None else {**tables, **memory_of(used)}


def memory_of(used: int) -> dict[str, pl.DataFrame]:
    """The memory of a device of 80 GB."""
    return {
        "memory_curve": MEMORY_CURVE.frame(
            device=[0], time_ns=[MS], allocated_bytes=[used], reserved_bytes=[used], component=["PyTorch"]
        ),
        "counters": COUNTERS.frame(time_ns=[0], device=[0], name=["memory_total_bytes"], value=[80.0 * GB]),
    }
