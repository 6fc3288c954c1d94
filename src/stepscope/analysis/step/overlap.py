"""How much of the communication of each kind of parallelism computing hides, by step; and the times of each rank's
steps."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.parallelism import OTHER, PARALLELISMS, only_parallelism
from stepscope.analysis.methods.statistics import rounded, sum_known
from stepscope.analysis.methods.step_windows import known_steps, step_windows
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import SPLIT, split_lengths
from stepscope.tables.base import Column
from stepscope.tables.communication import POINT_TO_POINT

_PARALLELISM = Column(
    "parallelism",
    "string",
    "What the groups are for; sends and receives outside of such groups count as `pipeline`.",
    values=PARALLELISMS,
    importance=90,
)
_EXPOSED = Column("exposed_ratio", "float64", "Share of it that no computing hides.", importance=85)

BY_RANK = columns(
    "rank step step_ns",
    _PARALLELISM,
    meaning("calls", "Number of calls."),
    meaning("communication_ns", "Time in which any of them runs."),
    meaning("share_ratio", "Share of the step."),
    meaning("communication_not_overlapped_ns", "Part of it in which the rank does not compute."),
    _EXPOSED,
    nulls="exposed_ratio",
)
ALL = columns(
    "step",
    _PARALLELISM,
    Column("ranks", "int32", "Number of ranks with such calls.", importance=38),
    meaning("communication_ns", "Time in which calls of the kind run, mean of these ranks."),
    meaning("share_ratio", "Share of the step, mean of these ranks."),
    meaning("communication_not_overlapped_ns", "Part in which the rank does not compute, mean of these ranks."),
    _EXPOSED,
    Column("max_rank", "int32", "Rank with most of it exposed; of several, the lowest.", importance=37),
    Column("max_ns", "int64", "How much that is.", title="most exposed", importance=36),
    nulls="exposed_ratio",
)
TIMES = columns(
    "rank step step_ns computing_ns communication_not_overlapped_ns overlapped_ns communication_ns",
    meaning("wait_ns", "Waiting for other ranks, the sum of its calls; null if unknown of all."),
    meaning("transmit_ns", "Transmission, the sum of its calls; null if unknown of all."),
    "memory_ns memory_not_overlapped_ns free_ns",
    nulls="wait_ns transmit_ns",
)


MEANS = columns(
    "rank",
    meaning("steps", "Number of steps in the mean."),
    *(column for column in TIMES if column.name not in ("rank", "step")),
    Column("max_step", "int32", "Step with most communication exposed; of several, the first.", importance=37),
    Column("max_ns", "int64", "How much that is.", title="most exposed", importance=36),
    nulls="wait_ns transmit_ns",
)


@analysis("rank", BY_RANK, together=True)
def rank_overlap(
    collectives: pl.LazyFrame,
    activity: pl.DataFrame,
    steps: pl.LazyFrame,
    process_groups: pl.DataFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Measure in each step how much of the communication of each parallelism computing hides: one row each, in order.

    Calls that run at the same time count once. What runs outside of all steps does not count. Where a job is divided in
    one dimension only, so are calls whose group is not recorded.
    """
    device = activity.filter("on_device")["rank"].unique().to_list()
    counts = pl.col("on_device") | ~pl.col("rank").is_in(device)
    calls = collectives.filter(counts).select(
        "rank", "group", "operation", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    kinds = pl.DataFrame(schema={"group": pl.String, "parallelism": pl.String})
    if process_groups is not None:
        kinds = process_groups.select("group", "parallelism").filter(pl.col("parallelism") != OTHER)
    listed = [] if process_groups is None else process_groups["group"].unique().sort().to_list()
    unlisted = pl.col("group").is_null() | ~pl.col("group").is_in(listed)
    otherwise = (
        pl.when(pl.col("operation").is_in(POINT_TO_POINT))
        .then(pl.lit("pipeline"))
        .when(unlisted)
        .then(pl.lit(only_parallelism(parallel_layout)))
        .otherwise(pl.lit(OTHER))
    )
    named = (
        calls.join(kinds.lazy(), on="group", how="left").with_columns(pl.coalesce("parallelism", otherwise)).collect()
    )
    windows = step_windows(known_steps(steps))
    there = [kind for kind in PARALLELISMS if kind in {*named["parallelism"].unique()}]
    ranges = {kind: named.filter(pl.col("parallelism") == kind).lazy() for kind in there}
    cut = split_lengths(activity, windows.lazy(), SPLIT, **{f"of {kind}": rows for kind, rows in ranges.items()})
    length = pl.col("duration_ns")
    sums = [
        cut.filter(f"of {kind}")
        .group_by("rank", "window")
        .agg(
            communication_ns=length.sum(),
            communication_not_overlapped_ns=length.filter(~pl.col("computing")).sum(),
        )
        .with_columns(parallelism=pl.lit(kind))
        for kind in there
    ]
    starts = named.sort("start_ns").join_asof(
        windows.select("rank", "window", "start_ns", until_ns="end_ns").sort("start_ns"),
        on="start_ns",
        by="rank",
        check_sortedness=False,
    )
    inside = starts.filter(pl.col("start_ns") < pl.col("until_ns"))
    keys = ["rank", "window", "parallelism"]
    counted = inside.group_by(keys).agg(calls=pl.len().cast(pl.Int64))
    empty = pl.DataFrame(
        schema={
            "rank": windows.schema["rank"],
            "window": pl.Int64,
            "communication_ns": pl.Int64,
            "communication_not_overlapped_ns": pl.Int64,
            "parallelism": pl.String,
        }
    )
    step_ns, communication = pl.col("step_ns"), pl.col("communication_ns")
    return (
        pl.concat([empty, *sums])
        .join(counted, on=keys, how="left")
        .join(windows.select("window", "step", step_ns=pl.col("end_ns") - pl.col("start_ns")), on="window")
        .with_columns(
            pl.col("calls").fill_null(0),
            share_ratio=communication / step_ns,
            exposed_ratio=pl.when(communication > 0).then(pl.col("communication_not_overlapped_ns") / communication),
        )
        .select(names(BY_RANK))
        .sort("rank", "step", -communication, "parallelism")
    )


@analysis("job", ALL)
def overlap(rank_overlap: pl.DataFrame) -> pl.DataFrame:
    """Average `rank_overlap` over the ranks: one row per step and parallelism, in order of step and exposed time."""
    exposed = pl.col("communication_not_overlapped_ns")
    total = pl.col("communication_ns")
    most = exposed.arg_max()
    return (
        rank_overlap.sort("rank")
        .group_by("step", "parallelism", maintain_order=True)
        .agg(
            ranks=pl.col("rank").n_unique().cast(pl.Int32),
            communication_ns=rounded(total.mean()),
            share_ratio=pl.col("share_ratio").mean(),
            communication_not_overlapped_ns=rounded(exposed.mean()),
            exposed_ratio=pl.when(total.sum() > 0).then(exposed.sum() / total.sum()),
            max_rank=pl.col("rank").get(most),
            max_ns=exposed.max(),
        )
        .select(names(ALL))
        .sort("step", -exposed, "parallelism", nulls_last=True)
    )


@analysis("job", TIMES)
def step_times(breakdown: pl.DataFrame, arrival: pl.DataFrame | None = None) -> pl.DataFrame:
    """List what each step of each rank spends its time on, and how long its calls wait and transmit: in order.

    `computing + communication_not_overlapped + memory_not_overlapped + free = step`, exactly. Waiting and transmission
    are sums over calls, which may run at the same time.
    """
    schema = {"rank": pl.Int32, "step": pl.Int32, "wait_ns": pl.Int64, "transmit_ns": pl.Int64}
    sums = pl.DataFrame(schema=schema)
    if arrival is not None:
        sums = arrival.group_by("rank", "step").agg(sum_known("wait_ns"), sum_known("transmit_ns"))
    return (
        breakdown.rename({"window_ns": "step_ns"})
        .join(sums, on=["rank", "step"], how="left", maintain_order="left")
        .select(names(TIMES))
        .sort("rank", "step")
    )


@analysis("job", MEANS)
def mean_times(step_times: pl.DataFrame, left_out_steps: pl.DataFrame | None = None) -> pl.DataFrame:
    """Average `step_times` over the steps of each rank: one row per rank, most exposed communication first.

    First steps that do not count are left out (`left_out_steps`).
    """
    rows = step_times
    if left_out_steps is not None:
        rows = rows.join(left_out_steps, on=["rank", "step"], how="anti", maintain_order="left")
    exposed = pl.col("communication_not_overlapped_ns")
    times = [name for name in names(TIMES) if name not in ("rank", "step")]
    return (
        rows.group_by("rank", maintain_order=True)
        .agg(
            steps=pl.len().cast(pl.Int64),
            **{name: rounded(pl.col(name).mean()) for name in times},
            max_step=pl.col("step").get(exposed.arg_max()),
            max_ns=exposed.max(),
        )
        .sort(-exposed, "rank")
        .select(names(MEANS))
    )
