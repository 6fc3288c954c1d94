"""How long each rank waits for other pipeline stages in each step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.intervals import WINDOW, lengths
from stepscope.analysis.methods.step_windows import known_steps, step_windows
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVES, GROUPS, STEP_TOTALS, STEPS
from stepscope.tables.base import Column, schema_of
from stepscope.tables.communication import POINT_TO_POINT

PAIRS, RECEIVES, RECORDED = "pairs", "receives", "recorded"

_WAITS = (
    Column("transfer_wait_ns", "int64", "Of that, in sends and receives.", importance=30),
    Column("collective_wait_ns", "int64", "Of that, in collectives with other stages.", importance=29),
)
_RECEIVING = Column(
    "receiving_ns",
    "int64",
    "Time in receives from other stages, with transmission, in which it does not compute.",
    importance=28,
)

WAIT_COLUMNS = columns(
    "rank step window_ns computing_ns",
    Column("stage_wait_ns", "int64", "Waiting for ranks of other stages while it does not compute."),
    *_WAITS,
    _RECEIVING,
    Column("unmatched", "int64", "Sends and receives of which it is unknown how long they wait."),
    nulls="",
)

COLUMNS = columns(
    "rank",
    Column("stage", "int32", "Pipeline stage, from 0.", nullable=False, importance=85),
    "step",
    meaning("window_ns", "Length of the step's window; null if it is unknown."),
    meaning("computing_ns", "Time spent computing; null if it is unknown."),
    Column(
        "work_ns",
        "int64",
        "The same; of step tables that do not tell it from idle time, all but exposed communication.",
    ),
    Column("bubble_ns", "int64", "Waiting for other stages; null if it is unknown.", importance=80),
    Column("bubble_ratio", "float64", "The same over the step.", importance=75),
    Column(
        "bubble_by",
        "string",
        "`pairs`: waiting for a rank of another stage that enters a call later, without computing; `receives`: time "
        "in receives, with transmission, without computing, as some have no pair; `recorded`: as the source states it.",
        values=(PAIRS, RECEIVES, RECORDED),
    ),
    *_WAITS,
    _RECEIVING,
    Column(
        "recorded_bubble_ns",
        "int64",
        "As the source states it: on Ascend devices, all time in receives.",
        importance=31,
    ),
    Column("unmatched", "int64", "Sends and receives of which it is unknown how long they wait."),
    nulls="window_ns computing_ns work_ns bubble_ns bubble_ratio bubble_by transfer_wait_ns collective_wait_ns "
    "receiving_ns recorded_bubble_ns unmatched",
)

_RANGE = ["rank", "start_ns", "end_ns"]


@analysis("rank", WAIT_COLUMNS, together=True)
def pipeline_waits(
    arrival: pl.DataFrame,
    pipeline_places: pl.DataFrame,
    activity: pl.DataFrame,
    steps: pl.LazyFrame,
    groups: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up the time in which a rank waits for ranks of other stages: one row per rank and step.

    In a call, ranks wait for the last one to enter. That counts if it is of another stage, and for sends and receives
    between stages also where only the source states it. Overlaps count once, computing meanwhile is no waiting.
    """
    own = ranks_of(steps)
    calls = _calls(arrival, pipeline_places, own, _within(groups, pipeline_places))
    transfers = pl.col("point_to_point") & pl.col("crosses")
    start = pl.col("start_ns") + pl.col("offset_ns")
    length = pl.col("end_ns") - pl.col("start_ns")
    ranges = calls.with_columns(start_ns=start, length=length)
    waiting = ranges.filter("waits").with_columns(end_ns=pl.col("start_ns") + pl.min_horizontal("wait_ns", "length"))
    received = ranges.filter(transfers & (pl.col("operation") != "send"))
    layers = {
        "computing": activity.filter(pl.col("what") == "computing").select(_RANGE),
        "transfer": waiting.filter(transfers).select(_RANGE),
        "collective": waiting.filter(~transfers).select(_RANGE),
        "receiving": received.with_columns(end_ns=pl.col("start_ns") + pl.col("length")).select(_RANGE),
    }
    windows = step_windows(known_steps(steps))
    idle = ~pl.col("computing")
    waits = pl.col("transfer") | pl.col("collective")
    split = lengths(layers, windows.select(WINDOW, "rank", "start_ns", "end_ns"), by=["rank"])
    took = pl.col("duration_ns")
    sums = split.group_by(WINDOW).agg(
        computing_ns=took.filter("computing").sum(),
        stage_wait_ns=took.filter(idle & waits).sum(),
        transfer_wait_ns=took.filter(idle & pl.col("transfer")).sum(),
        collective_wait_ns=took.filter(idle & pl.col("collective") & ~pl.col("transfer")).sum(),
        receiving_ns=took.filter(idle & pl.col("receiving")).sum(),
    )
    unmatched = ranges.filter(transfers & pl.col("wait_ns").is_null()).group_by("rank", "step").agg(unmatched=pl.len())
    sizes = [name for name in names(WAIT_COLUMNS) if name not in ("rank", "step", "window_ns")]
    return (
        windows.with_columns(window_ns=pl.col("end_ns") - pl.col("start_ns"))
        .join(sums, on=WINDOW, how="left")
        .join(unmatched.with_columns(pl.col("unmatched").cast(pl.Int64)), on=["rank", "step"], how="left")
        .with_columns(pl.col(sizes).fill_null(0))
        .select(names(WAIT_COLUMNS))
        .sort("rank", "step")
    )


def _within(groups: pl.LazyFrame | None, places: pl.DataFrame) -> list[str]:
    """Groups whose members are all of one stage."""
    listed = GROUPS.or_empty(groups).select("group", rank="members").drop_nulls("rank").collect().explode("rank")
    staged = listed.join(places.select("rank", "stage"), on="rank", how="left")
    stages = staged.group_by("group").agg(pl.col("stage").n_unique(), known=pl.col("stage").is_not_null().all())
    found: list[str] = stages.filter((pl.col("stage") == 1) & pl.col("known"))["group"].sort().to_list()
    return found


def _calls(arrival: pl.DataFrame, places: pl.DataFrame, own: list[int], within: list[str]) -> pl.DataFrame:
    """The calls of some ranks: `crosses` (a member is of another stage), `waits` (for a rank of another stage)."""
    stage_of = places.select("rank", "stage")
    staged = arrival.join(stage_of, on="rank", how="left", maintain_order="left")
    matched = staged.filter(pl.col("members") > 1)
    of_call = matched.group_by(CALL).agg(
        several=pl.col("stage").drop_nulls().n_unique() > 1,
        last=pl.col("stage").sort_by("start_ns", "rank").last(),
    )
    mine = staged.filter(pl.col("rank").is_in(own)).join(of_call, on=list(CALL), how="left", nulls_equal=True)
    lone = pl.col("point_to_point") & (pl.col("members") == 1)  # with whom is unknown, or was not recorded
    lone &= ~pl.col("group").is_in(within).fill_null(value=False)
    crosses = pl.when(lone).then(pl.lit(value=True)).otherwise(pl.col("several").fill_null(value=False))
    waited = pl.col("wait_ns").fill_null(0) > 0
    for_other = pl.when(lone).then(pl.lit(value=True)).otherwise(pl.col("last") != pl.col("stage"))
    return mine.with_columns(crosses=crosses, waits=waited & for_other.fill_null(value=False))


@analysis("job", COLUMNS, whole_job=True)
def pipeline_bubbles(
    pipeline_places: pl.DataFrame,
    pipeline_waits: pl.DataFrame | None = None,
    step_totals: pl.LazyFrame | None = None,
    collectives: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Say how long each rank waits for other stages in each step: one row per rank and step, in order.

    It is the waiting of matched calls; if some sends and receives of the rank and step have no pair, the time in
    receives; and where no calls were recorded, what the source states.

    Raises:
        Unavailable: If none of them is known.
    """
    stated = STEP_TOTALS.or_empty(step_totals).select(
        *("rank", "step", "computing_ns", "computing_and_free_ns"),
        *("communication_not_overlapped_ns", "stage_ns", "bubble_ns"),
    )
    stated_rows = stated.filter(pl.col("step").is_not_null()).collect()
    stated_rows = stated_rows.unique(["rank", "step"], keep="first", maintain_order=True).rename(
        {"computing_ns": "stated_computing_ns", "bubble_ns": "recorded_bubble_ns"}
    )
    waited = pl.DataFrame(schema=schema_of(WAIT_COLUMNS)) if pipeline_waits is None else pipeline_waits
    windows = step_windows(known_steps(STEPS.or_empty(steps))).select(
        "rank", "step", stated_window_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    both = waited.join(stated_rows, on=["rank", "step"], how="full", coalesce=True)
    rows = both.join(windows, on=["rank", "step"], how="left").join(pipeline_places, on="rank")
    transferred = (
        COLLECTIVES.or_empty(collectives)
        .filter(pl.col("operation").is_in(POINT_TO_POINT))
        .select("rank")
        .unique()
        .with_columns(transfers=pl.lit(value=True))
        .collect()
    )
    rows = rows.join(transferred, on="rank", how="left").with_columns(pl.col("transfers").fill_null(value=False))
    if rows.is_empty() or not (transferred.height or stated_rows["recorded_bubble_ns"].count()):
        raise Unavailable("neither sends and receives nor the waiting for other stages were recorded")
    by_pairs = pl.col("transfers") & (pl.col("unmatched") == 0)
    bubble = (
        pl.when(by_pairs)
        .then("stage_wait_ns")
        .when(pl.col("transfers") & pl.col("receiving_ns").is_not_null())
        .then("receiving_ns")
        .otherwise("recorded_bubble_ns")
    )
    by = (
        pl.when(by_pairs)
        .then(pl.lit(PAIRS))
        .when(pl.col("transfers") & pl.col("receiving_ns").is_not_null())
        .then(pl.lit(RECEIVES))
        .when(pl.col("recorded_bubble_ns").is_not_null())
        .then(pl.lit(RECORDED))
    )
    length = pl.coalesce("window_ns", pl.col("stage_ns") + pl.col("recorded_bubble_ns"), "stated_window_ns")
    found = rows.with_columns(
        window_ns=length,
        bubble_ns=bubble,
        bubble_by=by,
        computing_ns=pl.coalesce("computing_ns", "stated_computing_ns"),
    ).with_columns(
        work_ns=pl.coalesce("computing_ns", "computing_and_free_ns"),
        bubble_ratio=pl.when(pl.col("window_ns") > 0).then(pl.col("bubble_ns") / pl.col("window_ns")),
    )
    return found.select(names(COLUMNS)).sort("rank", "step")
