"""What communication costs each rank, in all and by operator, and how much of it is waiting."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.counted_steps import LEFT_OUT, counted, steps_left_out
from stepscope.analysis.methods.places import PLACE, of_stages, placed
from stepscope.analysis.methods.statistics import rounded, sum_known
from stepscope.analysis.methods.step_windows import without_unmarked
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.selection import Choice
from stepscope.tables import COMMUNICATION_TOTALS
from stepscope.tables.base import Column

_STEP = meaning("step", "Number of the step; null for the mean of the steps, and where no step is known.")
_STEPS = meaning("steps", "Number of steps in the mean; 1 for a step, and where no step is known.")
_TIMES = (
    Column("total_ns", "int64", "Time in its calls: waiting, transmission and what is not split."),
    meaning("wait_ns", "Waiting for other ranks; null if unknown of all calls."),
    meaning("transmit_ns", "The rest: what MindSpore calls the communication cost; null as `wait_ns`."),
    Column("unsplit_ns", "int64", "Calls of which it is unknown how long they wait.", title="not split"),
    Column("wait_ratio", "float64", "`wait_ns` over `wait_ns + transmit_ns`.", title="waiting"),
)
_BY = Column(
    "parts_by", "string", "`stated` by the source, or from the calls' `timeline`.", values=("stated", "timeline")
)
SUMS = ("total_ns", "wait_ns", "transmit_ns", "unsplit_ns")
_NULLS = "step wait_ns transmit_ns wait_ratio"

COLUMNS = columns(
    "rank",
    *PLACE,
    _STEP,
    _STEPS,
    Column("calls", "float64", "Number of calls in a step; null if only totals were recorded."),
    *_TIMES,
    Column(
        "overlap_ns",
        "int64",
        "Part of `total_ns` that counts more than once, as an earlier call of the rank runs meanwhile; null if stated.",
        title="overlap",
        importance=20,
    ),
    _BY,
    LEFT_OUT,
    nulls=f"{_NULLS} host device stage calls overlap_ns left_out",
    keep="rank step total_ns wait_ns transmit_ns wait_ratio calls stage",
)

CALLS = columns(
    "rank",
    _STEP,
    _STEPS,
    meaning("name", "Name of the operator; null for all calls of a group, operation and size."),
    "group group_name",
    meaning("operation", "Operation, e.g. `all_reduce`; null if not recorded."),
    "size_bytes",
    Column("calls", "float64", "Number of calls in a step; null if only totals were recorded."),
    *_TIMES,
    _BY,
    nulls=f"{_NULLS} name group group_name operation size_bytes calls",
    keep="rank name operation total_ns wait_ns transmit_ns wait_ratio step group_name size_bytes calls",
)


@analysis("job", COLUMNS, whole_job=True)
def rank_communication(
    arrival: pl.DataFrame | None = None,
    communication_totals: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
    left_out_steps: pl.DataFrame | None = None,
    steps: pl.LazyFrame | None = None,
    by_step: bool = False,
    with_first: bool = False,
    chosen: Choice = None,
    stage: Choice = None,
) -> pl.DataFrame:
    """Sum up what communication costs each rank in a step: one row per rank, its mean step, or per rank and step.

    What the source states of a rank's steps goes before its calls; where both differ, `differing_sources` says which to
    believe. First steps that do not count (`left_out_steps`), and what was recorded of a step behind the last known
    one, are left out of the mean.

    Args:
        by_step: A row for each step.
        with_first: Count all steps in the mean, as MindSpore Insight does.
        chosen: Only these steps, e.g. `1-3`, the first as well.
        stage: Only ranks of these pipeline stages, e.g. `0` or `1-2`.

    Raises:
        Unavailable: If no communication was recorded.
    """
    totals = COMMUNICATION_TOTALS.or_empty(communication_totals).collect()
    named = totals.drop_nulls("name").group_by("rank", "step").agg(pl.len().cast(pl.Int64).alias("calls"))
    stated = (
        of_totals(totals.filter(pl.col("name").is_null()))
        .join(named, on=["rank", "step"], how="left", nulls_equal=True)
        .with_columns(parts_by=pl.lit("stated"))
    )
    parts = [stated.with_columns(overlap_ns=pl.lit(None, pl.Int64))]
    if arrival is not None:
        own = arrival.join(stated.select("rank").unique(), on="rank", how="anti", maintain_order="left")
        of = of_calls(own, ["rank", "step"]).with_columns(parts_by=pl.lit("timeline"))
        parts.append(of.join(_overlaps(own), on=["rank", "step"], how="left", nulls_equal=True))
    every = without_unmarked(pl.concat(parts, how="diagonal_relaxed"))
    keys = ["rank", "parts_by"]
    is_mean = chosen is None and not (with_first or by_step)
    kept = counted(every, keys, left_out_steps, steps, chosen) if is_mean or chosen is not None else every
    gone = steps_left_out(every, kept if is_mean else every)
    rows = _averaged(kept, keys, by_step=by_step).join(gone, on="rank", how="left")
    found = of_stages(placed(rows, ranks, groups, parallel_layout), stage)
    return found.select(names(COLUMNS)).sort("rank", "step", nulls_last=True)


@analysis("job", CALLS, whole_job=True)
def rank_calls(
    arrival: pl.DataFrame | None = None,
    communication_totals: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    left_out_steps: pl.DataFrame | None = None,
    steps: pl.LazyFrame | None = None,
    by_step: bool = False,
    with_first: bool = False,
    chosen: Choice = None,
) -> pl.DataFrame:
    """Sum up what each communication operator costs a rank in a step, longest first.

    One row per rank and operator where the source names operators alike in every step, else per rank, group, operation
    and size. Means count the same steps as those of `rank_communication`, but what was recorded in no such step keeps
    those that it has.

    Args:
        by_step: A row for each step.
        with_first: Count all steps in the mean, as MindSpore Insight does.
        chosen: Only these steps, e.g. `1-3`, the first as well.

    Raises:
        Unavailable: If no communication was recorded.
    """
    totals = COMMUNICATION_TOTALS.or_empty(communication_totals).drop_nulls("name").collect()
    stated = of_totals(totals).with_columns(calls=pl.lit(1, pl.Int64))
    keys = ["rank", "name", "group", "operation", "size_bytes", "parts_by"]
    parts = [stated.with_columns(operation=pl.lit(None, pl.String), parts_by=pl.lit("stated"))]
    if arrival is not None:
        own = arrival.join(stated.select("rank").unique(), on="rank", how="anti", maintain_order="left")
        of = of_calls(own, ["rank", "step", "group", "operation", "size_bytes"])
        parts.append(of.with_columns(parts_by=pl.lit("timeline")))
    every = without_unmarked(pl.concat([_EMPTY_CALLS, *parts], how="diagonal_relaxed"))
    if chosen is not None or not (with_first or by_step):
        every = counted(every, keys, left_out_steps, steps, chosen)
    rows = _averaged(every, keys, by_step=by_step)
    return (
        rows.join(group_names(groups), on="group", how="left")
        .select(names(CALLS))
        .sort(
            *("total_ns", "rank", "step", "name", "operation", "size_bytes", "group"),
            descending=[True, *(False for _ in range(6))],
            nulls_last=True,
        )
    )


_EMPTY_CALLS = pl.DataFrame(
    schema={"name": pl.String, "group": pl.String, "operation": pl.String, "size_bytes": pl.Int64}
)


def of_totals(rows: pl.DataFrame) -> pl.DataFrame:
    """Stated totals; where waiting is not stated, what there is may contain it."""
    split = pl.col("wait_ns").is_not_null()
    return rows.select(
        "rank",
        "step",
        "name",
        "wait_ns",
        total_ns=pl.col("duration_ns") + pl.col("wait_ns").fill_null(0),
        transmit_ns=pl.when(split).then("duration_ns"),
        unsplit_ns=pl.when(split).then(0).otherwise("duration_ns"),
    )


def of_calls(calls: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sums over the calls of a timeline."""
    length = pl.col("end_ns") - pl.col("start_ns")
    known = pl.col("wait_ns").is_not_null() & pl.col("transmit_ns").is_not_null()
    return (
        calls.with_columns(
            total_ns=length,
            wait_ns=pl.when(known).then("wait_ns"),
            transmit_ns=pl.when(known).then("transmit_ns"),
            unsplit_ns=pl.when(known).then(0).otherwise(length),
        )
        .group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("calls"), *(sum_known(name) for name in SUMS))
    )


def _overlaps(calls: pl.DataFrame) -> pl.DataFrame:
    """How long calls of a rank run beside one that began before them: `rank`, `step`, `overlap_ns`."""
    before = pl.col("end_ns").cum_max().shift(1).over("rank")
    beside = pl.min_horizontal("end_ns", before) - pl.col("start_ns")
    ordered = calls.select("rank", "step", "start_ns", "end_ns").sort("rank", "start_ns", "end_ns")
    marked = ordered.with_columns(
        overlap_ns=pl.when(before.is_not_null()).then(beside.clip(lower_bound=0)).otherwise(0)
    )
    return marked.group_by("rank", "step").agg(pl.col("overlap_ns").sum())


def _averaged(rows: pl.DataFrame, keys: list[str], *, by_step: bool) -> pl.DataFrame:
    """Rows of steps, or their mean; an operator's is of the steps that have it.

    All sums are divided by the same number of steps, so that the parts of a mean add up.

    Raises:
        Unavailable: If there are none.
    """
    if rows.is_empty():
        raise Unavailable("no communication was recorded")
    sums = [name for name in (*SUMS, "overlap_ns") if name in rows.columns]
    if by_step:
        mean = rows.with_columns(pl.col("calls").cast(pl.Float64), steps=pl.lit(1, pl.Int64))
    else:
        mean = rows.group_by(keys).agg(
            pl.lit(None, pl.Int32).alias("step"),
            pl.len().cast(pl.Int64).alias("steps"),
            pl.col("calls").mean(),
            *(rounded(sum_known(name) / pl.len()) for name in sums),
        )
    known = pl.col("wait_ns") + pl.col("transmit_ns")
    return mean.with_columns(wait_ratio=pl.when(known > 0).then(pl.col("wait_ns") / known))
