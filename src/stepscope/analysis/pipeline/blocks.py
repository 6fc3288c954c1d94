"""Forward and backward of each micro-batch on each rank of a pipeline."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.pipeline_places import BACKWARD, FORWARD, marked_passes
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import KERNELS, STEPS
from stepscope.tables.base import Column, schema_of

OPERATIONS, MARKS, ALTERNATING, ALL_FORWARD = "operations", "marks", "1F1B", "all forward first"

NO_BLOCKS = (
    "neither operations with their micro-batch nor marks of forward and backward were recorded, and sends and receives "
    "fit no known schedule"
)

COLUMNS = columns(
    "rank",
    Column("stage", "int32", "Pipeline stage, from 0.", nullable=False, importance=90),
    "step",
    Column("direction", "string", "Which pass.", nullable=False, values=(FORWARD, BACKWARD), importance=85),
    Column("micro_batch", "int32", "Micro-batch, from 0; in order of time where it is not recorded.", importance=88),
    Column("model_chunk", "int32", "Virtual stage of the rank, from 0, if recorded."),
    Column("start_ns", "int64", "Start on the common clock; null if it is unknown.", moment=True),
    Column("end_ns", "int64", "End on the common clock; null if it is unknown.", moment=True),
    Column(
        "known_by",
        "string",
        "`operations`: recorded; `marks`: ranges of forward and backward (`phase_ranges`), if there are as many as "
        "micro-batches. A guess: `1F1B` or `all forward first`: the schedule whose order all sends and receives of the "
        "step fit, while they do not fit the other one; a pass starts when it has its input and ends when it sends.",
        values=(OPERATIONS, MARKS, ALTERNATING, ALL_FORWARD),
        importance=70,
    ),
    nulls="micro_batch model_chunk start_ns end_ns",
)

_PASS = ["rank", "step", "direction", "micro_batch"]


@analysis("job", COLUMNS, whole_job=True)
def pipeline_blocks(
    pipeline_places: pl.DataFrame,
    pipeline_schedule: pl.DataFrame,
    pipeline_transfers: pl.DataFrame | None = None,
    phase_ranges: pl.DataFrame | None = None,
    clocks: pl.DataFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Find forward and backward of each micro-batch: one row per rank, step and pass, in order of time.

    Raises:
        Unavailable: If nothing shows them.
    """
    count, chunks = pipeline_schedule.select("micro_batches", "model_chunks").row(0)
    found = _operations(kernels, clocks)
    if found.is_empty() and count is not None and phase_ranges is not None:
        found = _marks(phase_ranges, STEPS.or_empty(steps), clocks, count)
    if found.is_empty() and count is not None and chunks == 1 and pipeline_transfers is not None:
        found = _scheduled(pipeline_transfers, pipeline_places, count)
    if found.is_empty():
        raise Unavailable(NO_BLOCKS)
    placed = found.join(pipeline_places.select("rank", "stage"), on="rank")
    order = pl.coalesce("start_ns", "end_ns")
    return placed.sort("rank", "step", order, "micro_batch", "direction", nulls_last=True).select(names(COLUMNS))


def _shifted(rows: pl.DataFrame, clocks: pl.DataFrame | None) -> pl.DataFrame:
    """Rows on the common clock."""
    if clocks is None:
        return rows
    moved = rows.join(clocks.select("rank", "offset_ns"), on="rank", how="left")
    return moved.with_columns(pl.col("start_ns", "end_ns") - pl.col("offset_ns").fill_null(0)).drop("offset_ns")


def _of(rows: pl.DataFrame, known_by: str) -> pl.DataFrame:
    """Rows with all columns but the stage."""
    schema = {name: dtype for name, dtype in schema_of(COLUMNS).items() if name != "stage"}
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if name not in rows.columns]
    told = rows.with_columns(*missing).with_columns(known_by=pl.lit(known_by))
    return told.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def _operations(kernels: pl.LazyFrame | None, clocks: pl.DataFrame | None) -> pl.DataFrame:
    computing = KERNELS.or_empty(kernels).filter(
        (pl.col("kind") == "compute") & pl.col("micro_batch").is_not_null() & pl.col("step").is_not_null()
    )
    named = computing.with_columns(direction=pl.col("name").str.extract(f"^({FORWARD}|{BACKWARD})"))
    passes = named.filter(pl.col("direction").is_not_null()).group_by(*_PASS, "model_chunk")
    rows = passes.agg(pl.col("start_ns").min(), end_ns=END.max()).collect(engine="streaming")
    return _of(_shifted(rows, clocks), OPERATIONS)


def _marks(phases: pl.DataFrame, steps: pl.LazyFrame, clocks: pl.DataFrame | None, count: int) -> pl.DataFrame:
    """Marked ranges, if a step has as many of both directions as micro-batches on all ranks that have any."""
    numbered = marked_passes(phases, steps).with_columns(
        micro_batch=pl.int_range(pl.len(), dtype=pl.Int32).over("rank", "step", "direction", order_by="start_ns"),
        passes=pl.len().over("rank", "step", "direction"),
        ways=pl.col("direction").n_unique().over("rank", "step"),
    )
    fits = (pl.col("passes") == count) & (pl.col("ways") == 2)
    if not numbered.select(fits.all()).item():
        return _of(numbered.clear(), MARKS)
    return _of(_shifted(numbered, clocks), MARKS)


def _scheduled(transfers: pl.DataFrame, places: pl.DataFrame, count: int) -> pl.DataFrame:
    """Passes as a schedule orders them, where sends and receives fit one schedule and not the other."""
    rows = _passes(transfers, places, count)
    stage = pl.col("stage")
    ahead = pl.min_horizontal(pl.col("stages") - 1 - stage, pl.lit(count))
    number, is_forward = pl.col("micro_batch"), pl.col("direction") == FORWARD
    alternating = (
        pl.when(is_forward)
        .then(pl.when(number < ahead).then(number).otherwise(2 * number - ahead))
        .otherwise(pl.when(number < count - ahead).then(ahead + 2 * number + 1).otherwise(count + number))
    )
    forward_first = pl.when(is_forward).then(number).otherwise(count + number)
    turns = {ALTERNATING: alternating, ALL_FORWARD: forward_first}
    fitting = [name for name, turn in turns.items() if _fits(rows.with_columns(turn=turn))]
    if not fitting or (len(fitting) > 1 and count > 1):  # of one micro-batch, both are the same
        return _of(rows.clear(), ALTERNATING)
    ordered = rows.with_columns(turn=turns[fitting[0]]).sort("rank", "step", "turn")
    before = pl.col("done").shift(1).over("rank", "step")
    is_first = pl.int_range(pl.len()).over("rank", "step") == 0
    # After a pass whose end is unknown, its input only says when a pass can begin at the earliest.
    after = pl.when(before.is_not_null() | is_first).then(pl.max_horizontal("ready", before))
    start = pl.when(pl.col("ready").is_null()).then(before).otherwise(after)
    return _of(ordered.with_columns(start_ns=start, end_ns="done"), fitting[0])


def _passes(transfers: pl.DataFrame, places: pl.DataFrame, count: int) -> pl.DataFrame:
    """Each pass of the recorded ranks: when its input is there (`ready`), and when its result is sent (`done`)."""
    known = transfers.filter(pl.col("direction").is_not_null() & pl.col("step").is_not_null())
    turn = pl.int_range(pl.len(), dtype=pl.Int32)
    inputs = known.filter(pl.col("receive_end_ns").is_not_null()).select(
        "step", "direction", rank="rank_b", ready="receive_end_ns", at="receive_start_ns"
    )
    results = known.filter(pl.col("send_start_ns").is_not_null()).select(
        "step", "direction", rank="rank_a", done="send_start_ns", at="send_start_ns"
    )
    among = ["rank", "step", "direction"]
    inputs, results = (
        rows.with_columns(micro_batch=turn.over(among, order_by="at")).drop("at") for rows in (inputs, results)
    )
    ranks = places.filter("recorded").select("rank", "stage", "stages")
    grid = (
        ranks.join(known.select("step").unique(), how="cross")
        .join(pl.DataFrame({"direction": [FORWARD, BACKWARD]}), how="cross")
        .join(pl.DataFrame({"micro_batch": range(count)}, schema={"micro_batch": pl.Int32}), how="cross")
    )
    return grid.join(inputs, on=_PASS, how="left").join(results, on=_PASS, how="left")


def _fits(rows: pl.DataFrame) -> bool:
    """Whether passes in the order `turn` can follow one another: none is sent before its input and that of all passes
    before it are there, or before these are sent."""
    ordered = rows.sort("rank", "step", "turn").with_columns(
        there=pl.col("ready").cum_max().forward_fill().over("rank", "step"),
        sent=pl.col("done").cum_max().forward_fill().over("rank", "step"),
    )
    late = (pl.col("there") > pl.col("done")) | (pl.col("sent") > pl.col("done"))
    has_all = (
        pl.when(pl.col("direction") == FORWARD)
        .then(pl.col("stage") > 0)
        .otherwise(pl.col("stage") < pl.col("stages") - 1)
    )
    lacks = has_all & pl.col("ready").is_null()
    return not ordered.select((late.fill_null(value=False) | lacks).any()).item()
