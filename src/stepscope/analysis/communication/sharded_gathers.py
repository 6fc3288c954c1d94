"""Gathering the sharded parameters of PyTorch's FSDP: of which module, in which pass, ahead or when they are needed."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.intervals import starting_in
from stepscope.analysis.methods.names import named, names_of
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

FORWARD, BACKWARD = "forward", "backward"

_PHASES = {
    FORWARD: r"^FSDP::(pre_forward|forward_prefetch)\b|^FullyShardedDataParallel\._pre_forward(_prefetch)?$",
    BACKWARD: r"^FSDP::(pre_backward|backward_prefetch)\b"
    r"|^FullyShardedDataParallel\._(pre_backward_hook|pre_backward_prefetch|post_backward_prefetch)$",
}
"""What PyTorch marks around the launch of a gather, by name, of `fully_shard` and of `FullyShardedDataParallel`."""

_AHEAD = r"_prefetch( for .*)?$"
"""Marks of gathers for a later module."""

_MODULE = r"^FSDP::all_gather \((.*)\)$"

COLUMNS = columns(
    "rank",
    Column("module", "string", "Module whose parameters are gathered; null if not recorded (all modules together)."),
    Column("phase", "string", "Pass in which they are needed.", values=(FORWARD, BACKWARD)),
    Column("calls", "int64", "All-gathers in steps."),
    Column("ahead", "int64", "Of these, launched for a later module (prefetched).", title="prefetched"),
    Column("gathered_bytes", "int64", "Mean size of what all ranks together give; null if not recorded."),
    Column("sent_ns", "int64", "Transmission, covered by computing or not; unknown calls count nothing."),
    Column("transmit_ns", "int64", "Transmission that no computing covers; unknown calls count nothing."),
    Column("unsplit_ns", "int64", "Time that no computing covers of calls whose waiting is unknown."),
    Column(
        "late_ns",
        "int64",
        "`transmit_ns` of calls that are neither prefetched nor the first of their pass in a step.",
        title="exposed, not prefetched",
    ),
    nulls="module gathered_bytes",
    keep="module phase calls ahead transmit_ns late_ns",
)


@analysis("rank", COLUMNS, together=True, nothing="no all-gather is launched inside of marks of FSDP")
def sharded_gathers(
    slices: pl.LazyFrame, kernels: pl.LazyFrame, collectives: pl.LazyFrame, exposed_calls: pl.DataFrame
) -> pl.DataFrame:
    """Sum the all-gathers of FSDP by module and pass: those that the host launches inside of what PyTorch marks.

    All-gathers launched elsewhere, e.g. of tensor parallelism, are not counted, nor are calls of the host.

    Returns:
        One row per rank, module and pass that has any.
    """
    asked = {FORWARD: _PHASES[FORWARD], BACKWARD: _PHASES[BACKWARD], "gathers": r"^FSDP::all_gather( \(|$)"}
    found = named(slices, names_of(slices), **{kind: pl.col("name").str.contains(text) for kind, text in asked.items()})
    marks = (
        slices.filter(pl.col("device").is_null() & pl.col("stream").is_null() & pl.any_horizontal(*found.values()))
        .select(
            "rank",
            "name",
            "start_ns",
            *(condition.alias(kind) for kind, condition in found.items()),
            end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        )
        .collect(engine="streaming")
        .sort("rank", "start_ns", "end_ns", "name", descending=[False, False, True, False])
    )
    launches = (
        kernels.filter((pl.col("kind") == "communication") & pl.col("launch_start_ns").is_not_null())
        .select("rank", "start_ns", at="launch_start_ns")
        .unique(["rank", "start_ns"], keep="first", maintain_order=True)
        .collect()
    )
    parts = pl.col("size_bytes") * pl.when(pl.col("size_of") == "part").then("group_size").otherwise(1)
    sizes = collectives.filter(pl.col("operation") == "all_gather").select("rank", "collective", gathered=parts)
    calls = (
        exposed_calls.filter((pl.col("operation") == "all_gather") & pl.col("step").is_not_null())
        .join(launches, on=["rank", "start_ns"])
        .join(sizes.collect(), on=["rank", "collective"], how="left")
    )
    phases = marks.filter(pl.col(FORWARD) | pl.col(BACKWARD)).with_columns(
        phase=pl.when(FORWARD).then(pl.lit(FORWARD)).otherwise(pl.lit(BACKWARD)),
        is_ahead=pl.col("name").str.contains(_AHEAD),
    )
    modules = marks.filter("gathers").with_columns(module=pl.col("name").str.extract(_MODULE))
    placed = starting_in(calls, phases, "phase", "is_ahead", at="at").drop("until_ns")
    known = starting_in(placed.select("rank", "collective", "at"), modules, "module", at="at")
    first = pl.col("at") == pl.col("at").min().over("rank", "step", "phase")
    return (
        placed.join(known.select("rank", "collective", "module"), on=["rank", "collective"], how="left")
        .with_columns(late=pl.when(pl.col("is_ahead") | first).then(0).otherwise("transmit_ns"))
        .group_by("rank", "module", "phase")
        .agg(
            calls=pl.len().cast(pl.Int64),
            ahead=pl.col("is_ahead").sum().cast(pl.Int64),
            gathered_bytes=pl.col("gathered").mean().round().cast(pl.Int64),
            sent_ns=pl.col("sent_ns").sum(),
            transmit_ns=pl.col("transmit_ns").sum(),
            unsplit_ns=pl.col("unsplit_ns").sum(),
            late_ns=pl.col("late").sum(),
        )
        .select(names(COLUMNS))
        .sort("rank", pl.col("phase") == BACKWARD, "module")
    )
