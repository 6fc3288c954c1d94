"""What each rank did with its own time on the way to each collective."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.activity import SPLIT, is_on_device, split_lengths
from stepscope.tables.base import Column

WORK = ("computing", "data_loading", "compile", "checkpoint", "garbage_collection", "dispatch", "memory")
"""What a rank spends its own time on: computing, waiting for the next batch, compiling, checkpoints, Python's garbage
collection, waiting for the host to launch work, memory operations."""

KINDS = (*WORK, "transmit", "unsplit")
"""All kinds of own time: `WORK`, transmission, and communication whose waiting part is unknown. Time known to be spent
waiting for other ranks is not own time."""

DOING = {
    "computing": "computing",
    "wait": "wait",
    "unsplit": "unsplit",
    "transmit": "communication",
    "memory": "memory",
    "compile": "compile",
    "garbage_collection": "gc",
    "data_loading": "data",
    "checkpoint": "checkpoint",
}
"""What a rank does, by the first of these layers of `split`; else it waits for dispatch."""

STEP_GROUP = "step"
"""Group of segments that end with a step because no collective was matched across ranks."""

COLUMNS = columns(
    "rank step",
    meaning("group", "Group of the call that ends it; `step` if it ends with a step."),
    Column("sequence", "int64", "Position of that call in its group."),
    meaning("operation", "Operation of that call."),
    "start_ns",
    Column("own_ns", "int64", "Length minus `wait_ns`."),
    meaning("wait_ns", "Waiting for other ranks without computing."),
    "computing_ns",
    meaning("data_loading_ns", "Time spent waiting for the next batch."),
    "compile_ns checkpoint_ns",
    Column("garbage_collection_ns", "int64", "Time of Python's garbage collection."),
    Column("dispatch_ns", "int64", "Idle time because the host launched work too late."),
    meaning("memory_ns", "Time spent copying or filling memory."),
    "transmit_ns",
    Column("unsplit_ns", "int64", "Communication whose waiting part is unknown."),
)


@analysis("rank", COLUMNS, together=True)
def segments(
    arrival: pl.DataFrame | None,
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
) -> pl.DataFrame:
    """Cut each rank's time at its arrivals in collectives and split each segment by what the rank did.

    A segment runs from one arrival (or the start of the first step) to the next. Point-to-point calls do not cut.
    Without matched collectives, the steps' windows are the segments. Of kernels of communication that are no calls of
    their own, such as those of expert-parallel libraries, it is unknown how long they wait.

    Returns:
        One row per segment, in order of time. `own_ns` is the sum of the `<kind>_ns` of `KINDS`.
    """
    calls = own_calls(arrival, ranks_of(steps))
    windows = _windows(calls.filter(pl.col("members") > 1), steps)
    waits = calls.lazy().filter(pl.col("wait_ns") > 0)
    unsplit = calls.lazy().filter(pl.col("wait_ns").is_null())
    cut = split_lengths(
        activity,
        windows.lazy().select("rank", "window", "start_ns", "end_ns"),
        (*SPLIT, "checkpoint"),
        wait=waits.select("rank", "start_ns", end_ns=pl.col("start_ns") + pl.col("wait_ns")),
        unsplit=unsplit.select("rank", "start_ns", "end_ns"),
        called=calls.lazy().select("rank", "start_ns", "end_ns"),
    )
    alone = (pl.col("doing") == "transmit") & ~pl.col("called") & is_on_device(activity)
    sums = (
        cut.with_columns(doing=first_label(DOING, otherwise="dispatch"))
        .with_columns(doing=pl.when(alone).then(pl.lit("unsplit")).otherwise("doing"))
        .group_by("window")
        .agg(
            pl.col("duration_ns").filter(pl.col("doing") == kind).sum().alias(f"{kind}_ns") for kind in (*KINDS, "wait")
        )
    )
    own = pl.sum_horizontal(f"{kind}_ns" for kind in KINDS)
    unknown = steps.filter(~pl.col("recorded")).select("rank", "step").collect()
    return (
        windows.join(unknown, on=["rank", "step"], how="anti", maintain_order="left")
        .join(sums, on="window", how="left")
        .with_columns(pl.col([f"{kind}_ns" for kind in (*KINDS, "wait")]).fill_null(0))
        .with_columns(own_ns=own)
        .select(names(COLUMNS))
        .sort("rank", "start_ns", "group", "sequence", nulls_last=True)
    )


def own_calls(arrival: pl.DataFrame | None, ranks: list[int]) -> pl.DataFrame:
    """The ranks' calls, each on its rank's own clock, in order."""
    if arrival is None:
        times = dict.fromkeys(("start_ns", "end_ns", "wait_ns"), pl.Int64)
        return pl.DataFrame(schema={"rank": pl.Int32, **times, "members": pl.Int32, "point_to_point": pl.Boolean})
    own = arrival.filter(pl.col("rank").is_in(ranks))
    return own.with_columns(pl.col("start_ns", "end_ns") + pl.col("offset_ns")).sort(
        *("rank", "start_ns", "end_ns", "group", "sequence"), nulls_last=True
    )


def _windows(calls: pl.DataFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Segments between arrivals; the steps' windows for ranks without any."""
    stated = steps.sort("rank", "window_start_ns", "step").collect()
    cuts = calls.filter(~pl.col("point_to_point"))
    by_step = stated.join(cuts, on="rank", how="anti", maintain_order="left").select(
        "rank",
        "step",
        group=pl.lit(STEP_GROUP),
        sequence=pl.col("step").cast(pl.Int64),
        operation=pl.lit(STEP_GROUP),
        start_ns=pl.col("window_start_ns"),
        end_ns=pl.col("window_end_ns"),
    )
    if cuts.is_empty():
        return by_step.with_row_index("window")
    firsts = stated.group_by("rank").agg(first_ns=pl.min_horizontal("start_ns", "window_start_ns").min())
    by_call = (
        cuts.join(firsts, on="rank", how="left", maintain_order="left")
        .select(
            "rank",
            pl.col("step").fill_null(0),
            "group",
            "sequence",
            "operation",
            start_ns=pl.coalesce(pl.col("start_ns").shift(1).over("rank"), "first_ns"),
            end_ns=pl.col("start_ns"),
        )
        .filter(pl.col("end_ns") >= pl.col("start_ns"))
    )
    return pl.concat([by_call, by_step], how="vertical_relaxed").with_row_index("window")
