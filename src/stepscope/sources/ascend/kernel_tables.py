"""`kernels`, `kernel_counters` and the totals of kernels and API calls."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.pmu import COUNTERS
from stepscope.sources.ascend.recording import COMPUTE, Recording, first_of_each, in_order, no_rows, shaped
from stepscope.sources.ascend.steps import step_at
from stepscope.tables import KERNEL_COUNTERS, KERNELS, OPERATOR_TOTALS

LAUNCH_LAYERS = ("Node@", "HCCL@", "Runtime@", "Model@", "AscendCL@")
"""Layers of the host's API, best first, whose call is taken as the launch of device work."""
API_LEVELS = {
    "AscendCL": "acl",
    "Model": "model",
    "Node": "node",
    "HCCL": "communication",
    "Communication": "communication",
    "Runtime": "runtime",
}
"""Word before the `@` in the name of an API call to its level in `operator_totals`."""


def kernels(recording: Recording, ranges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All device work in order of start, with its launch and step: rows of `kernels` and `kernel_counters`."""
    counted = [column for column, _ in COUNTERS.values() if column in recording.compute.columns]
    counted = list(dict.fromkeys(counted))
    communication = recording.communication.with_columns(
        kind=pl.lit("communication"), core=pl.lit("COMMUNICATION"), size_bytes=pl.lit(None, pl.Int64)
    )
    memory = recording.tasks.filter(pl.col("category") == "memory").with_columns(kind=pl.lit("memory"), type="name")
    compute = shaped(recording.compute, {**COMPUTE, **dict.fromkeys(counted, pl.Float64())})
    rows = pl.concat(
        [compute.with_columns(kind=pl.lit("compute")), shaped(communication, COMPUTE), shaped(memory, COMPUTE)],
        how="diagonal",
    ).drop("launch_start_ns", "launch_end_ns")
    rows = _launched(in_order(rows, "start_ns", "stream", "name", "duration_ns"), recording.host)
    rows = _with_step(rows, recording.operator_starts, ranges).with_row_index("kernel")
    counters = no_rows(KERNEL_COUNTERS)
    if counted:
        measured = rows.filter(pl.any_horizontal(pl.col(counted).is_not_null()))
        counters = KERNEL_COUNTERS.conform(measured.select("kernel", *counted))
    return KERNELS.conform(rows.drop(counted)), counters


def _launched(rows: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    """Add the host call with the same connection id; of several the best layer, then the first."""
    named = host.select("category", "correlation", "name", "start_ns", "duration_ns")
    calls = named.filter((pl.col("category") == "runtime") & pl.col("correlation").is_not_null()).select(
        "correlation",
        layer=pl.coalesce(
            *(pl.when(pl.col("name").str.starts_with(word)).then(at) for at, word in enumerate(LAUNCH_LAYERS)),
            pl.lit(len(LAUNCH_LAYERS)),
        ),
        launch_start_ns="start_ns",
        launch_end_ns=pl.col("start_ns") + pl.col("duration_ns"),
    )
    ordered = calls.sort("launch_start_ns", maintain_order=True).sort("layer", maintain_order=True)
    best = first_of_each(ordered.drop("layer"), "correlation")
    return rows.join(best, on="correlation", how="left", maintain_order="left")


def _with_step(rows: pl.DataFrame, operator_starts: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Fill in steps that are not stated: by the operator, else the launch, else the start on the device."""
    if ranges.is_empty() and rows["step"].null_count() < rows.height:
        return rows  # the source states steps, and only the host's part of them is missing
    known = rows.join(
        first_of_each(operator_starts, "correlation"), on="correlation", how="left", maintain_order="left"
    )
    began = known.select(pl.coalesce("operator_start_ns", "launch_start_ns", "start_ns")).to_series()
    inferred = step_at(began, ranges, inside=False)
    return rows.with_columns(step=pl.coalesce(pl.col("step"), inferred))


def totals(kernel_rows: pl.DataFrame, host: pl.DataFrame, stated: pl.DataFrame) -> pl.DataFrame:
    """Rows of `operator_totals`: summed from events, and as stated for levels that have no events."""
    figures = {
        "count": pl.len(),
        "total_ns": pl.sum("duration_ns"),
        "min_ns": pl.min("duration_ns"),
        "max_ns": pl.max("duration_ns"),
    }
    compute = kernel_rows.filter((pl.col("kind") == "compute") & pl.col("type").is_not_null())
    of_kernels = compute.group_by(name="type", core="core").agg(**figures).with_columns(level=pl.lit("kernel"))
    calls = host.select("category", "duration_ns", "name").filter(pl.col("category") == "runtime")
    # Names repeat themselves, so they are taken apart once each.
    by_name = calls.drop_nulls().group_by("name").agg(**figures).with_columns(parts=pl.col("name").str.splitn("@", 2))
    of_calls = (
        by_name.with_columns(
            level=pl.col("parts").struct.field("field_0").replace_strict(API_LEVELS, default=None),
            name=pl.col("parts").struct.field("field_1"),
        )
        .drop_nulls(["level", "name"])
        .group_by("level", "name")
        .agg(pl.sum("count", "total_ns"), pl.min("min_ns"), pl.max("max_ns"))
    )
    summed = pl.concat([_conform(of_kernels), _conform(of_calls)])
    rest = stated.filter(~pl.col("level").is_in(summed["level"].unique().implode()))
    return pl.concat([summed, rest]).sort("level", "total_ns", "name", "core", descending=[False, True, False, False])


def _conform(frame: pl.DataFrame) -> pl.DataFrame:
    return OPERATOR_TOTALS.conform(frame)
