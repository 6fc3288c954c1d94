"""When each operator of a step runs on each rank, and how far the ranks of a stage are apart."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVES, KERNELS
from stepscope.tables.base import Column

_OF_CALL = r"^stream_\d+_\d+_|_\d+_\d+_\d+$"
"""What names of calls say of their stream, group and number on a rank: ranks name the same call alike without it."""

NO_OPERATORS = "neither kernels nor calls with times and steps were recorded"

SPANS = columns(
    "rank step",
    Column(
        "name", "string", "Name of the kernel or call, without stream, group and number.", nullable=False, importance=90
    ),
    meaning("kind", "Kind of device work."),
    meaning("calls", "Calls in the step."),
    meaning("start_ns", "Start of the first one, on the common clock."),
    meaning("end_ns", "End of the last one, on the common clock."),
    Column("total_ns", "int64", "Their time.", importance=75),
    nulls="",
)

_MOMENTS = (("start", "Start of the first one"), ("end", "End of the last one"))

TIMELINE = columns(
    Column("stage", "int32", "Pipeline stage, from 0; 0 without a pipeline.", nullable=False, importance=92),
    "step",
    Column("name", "string", "Name of the kernel or call.", nullable=False, importance=90),
    meaning("kind", "Kind of device work."),
    Column("ranks", "int64", "Recorded ranks of the stage that run it in this step.", nullable=False, importance=60),
    meaning("calls", "Calls in the step, on the rank with most."),
    *(
        Column(
            f"{which}_{moment}_ns",
            "int64",
            f"{what}, {words} of the ranks, since the first start of the step on any rank.",
            importance=70 if which == "mean" else 50,
        )
        for moment, what in _MOMENTS
        for which, words in (("mean", "mean"), ("first", "of the first"), ("last", "of the last"))
    ),
    Column("spread_ns", "int64", "Between the first and the last rank to start.", importance=80),
    Column("total_ns", "int64", "Its time, mean of the ranks.", importance=78),
    nulls="",
)


@analysis("rank", SPANS, together=True)
def operator_spans(
    steps: pl.LazyFrame,
    clocks: pl.DataFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    collectives: pl.LazyFrame | None = None,
    step: int | None = None,
) -> pl.DataFrame:
    """Find when each kernel and call runs in one step: one row per rank and name, in order of time.

    Args:
        step: The step. Default: the second of those that are asked about, as the first one may be start-up, or the only
            one.

    Raises:
        Unavailable: If nothing that has a step was recorded.
    """
    chosen = chosen_steps(steps, step)
    parts = [
        KERNELS.or_empty(kernels).select("rank", "step", "name", "kind", "start_ns", end_ns=END),
        COLLECTIVES.or_empty(collectives)
        .filter("on_device")
        .select("rank", "step", "name", "start_ns", kind=pl.lit("communication"), end_ns=END),
    ]
    of_step = [part.join(chosen, on=["rank", "step"], how="semi") for part in parts]
    work, calls = (
        part.group_by("rank", "step", "name", "kind").agg(
            calls=pl.len().cast(pl.Int64),
            first=pl.col("start_ns").min(),
            last=pl.col("end_ns").max(),
            total_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
        )
        for part in of_step
    )
    own, called = pl.collect_all([work, calls], engine="streaming")
    has_kernels = own.filter(kind="communication").select("rank").unique()
    found = pl.concat([own, called.join(has_kernels, on="rank", how="anti").select(own.columns)])
    if found.is_empty():
        raise Unavailable(NO_OPERATORS)
    known = pl.DataFrame(schema={"rank": pl.Int32, "offset_ns": pl.Int64}) if clocks is None else clocks
    is_call = pl.col("kind") == "communication"
    named = pl.when(is_call).then(pl.col("name").str.replace(_OF_CALL, "")).otherwise("name")
    by_name = found.with_columns(name=named).group_by("rank", "step", "name", "kind")
    found = by_name.agg(pl.col("calls", "total_ns").sum(), pl.col("first").min(), pl.col("last").max())
    shifted = found.join(known.select("rank", "offset_ns"), on="rank", how="left")
    offset = pl.col("offset_ns").fill_null(0)
    moments = shifted.with_columns(start_ns=pl.col("first") - offset, end_ns=pl.col("last") - offset)
    return moments.select(names(SPANS)).sort("rank", "start_ns", "name")


def chosen_steps(steps: pl.LazyFrame, step: int | None) -> pl.LazyFrame:
    """The step that is asked about on each rank, else its second one, or its only one, with its start and end."""
    asked = steps if step is None else steps.filter(pl.col("step") == step)
    chosen = asked.sort("step").group_by("rank").agg(pl.col("step", "start_ns", "end_ns").slice(0, 2).last())
    return chosen.select("rank", "step", "start_ns", "end_ns")


@analysis("job", TIMELINE, passes=("step",))
def stage_timeline(operator_spans: pl.DataFrame, pipeline_places: pl.DataFrame | None = None) -> pl.DataFrame:
    """Put the ranks of each stage side by side: one row per stage, step and name, in order of time."""
    spans = operator_spans
    if pipeline_places is None:
        placed = spans.with_columns(stage=pl.lit(0, pl.Int32))
    else:
        placed = spans.join(pipeline_places.select("rank", "stage"), on="rank")
    since = placed.with_columns(pl.col("start_ns", "end_ns") - pl.col("start_ns").min().over("step"))
    found = since.group_by("stage", "step", "name", "kind").agg(
        pl.col("rank").n_unique().cast(pl.Int64).alias("ranks"),
        pl.col("calls").max(),
        *(
            made.alias(f"{which}_{moment}_ns")
            for moment, _ in _MOMENTS
            for which, made in (
                ("mean", rounded(pl.col(f"{moment}_ns").mean())),
                ("first", pl.col(f"{moment}_ns").min()),
                ("last", pl.col(f"{moment}_ns").max()),
            )
        ),
        spread_ns=pl.col("start_ns").max() - pl.col("start_ns").min(),
        total_ns=rounded(pl.col("total_ns").mean()),
    )
    return found.select(names(TIMELINE)).sort("step", "stage", "first_start_ns", "name")
