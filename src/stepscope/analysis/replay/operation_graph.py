"""What operations of a training step wait for on their own rank, where micro-batches are known.

The rules are those with which a replay without delays between operations gives the step times that "Understanding
Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025) publishes of its trace AR, to the last digit:

* Computing, and calls other than transfers between stages, follow one another as recorded. Calls that overlap computing
  (sharded parameters that are gathered ahead, gradients that are reduced behind) form a lane of their own instead.
* Transfers of a kind (forward, backward; sent, received) follow one another.
* Computing of a micro-batch waits until its input is received; it is sent after it is computed.
* A micro-batch is received after the one before it in the same direction is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.job_graph import MICRO_BATCH, OPERATION
from stepscope.limits import limit

COMPUTING, CALL, COLLECTION = "computing", "communication", "garbage_collection"

FORWARD, BACKWARD = "forward", "backward"
"""Directions, with which names begin."""

WHY = (OPERATION, MICRO_BATCH, "order")
"""Reasons: the operation before it in its lane; data of its micro-batch; the micro-batch before it, or computing that
an overlapping call serves."""

OPERATIONS = {
    "rank": pl.Int32,
    "work": pl.Int64,
    "step": pl.Int32,
    "kind": pl.String,
    "name": pl.String,
    "operation": pl.String,
    "micro_batch": pl.Int32,
    "model_chunk": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}
"""What is needed of operations: `kind` is one of the three above, `operation` that of a call, `name` begins with the
direction of what belongs to a micro-batch."""

EDGES = {"rank": pl.Int32, "work": pl.Int64, "before": pl.Int64, "why": pl.String}

_STEP = ["rank", "step"]
_TRANSFERS = ["send", "recv"]
_MICRO_BATCH = [*_STEP, "way", "micro_batch", "model_chunk"]


@dataclass(frozen=True)
class Limits:
    """When a kind of call overlaps computing."""

    overlapped_ratio: float = limit(
        0.1, "of a call's duration", "above what rounding of 32-bit times makes of neighbours"
    )
    rounding_ns: int = limit(10_000, "ns", "32-bit seconds since the start of a step of minutes are rounded to this")
    calls_ratio: float = limit(0.5, "of the calls of a kind", "chosen by us: most of them")


def operation_edges(operations: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """What each operation waits for on its own rank, in its own step.

    Args:
        operations: `OPERATIONS`; without a step they have no edges.
        limits: Limits.

    Returns:
        `rank`, `work`, `before`, `why`, each pair once.
    """
    rows = (
        operations.filter(pl.col("step").is_not_null())
        .sort("rank", "step", "start_ns", "end_ns", "work")
        .with_columns(way=pl.col("name").str.extract(f"^({FORWARD}|{BACKWARD})"), chunk=pl.col("model_chunk"))
        .with_columns(pl.col("model_chunk").fill_null(0))
    )
    is_transfer = (
        pl.col("operation").is_in(_TRANSFERS) & pl.col("way").is_not_null() & pl.col("micro_batch").is_not_null()
    )
    beside = _overlapping(rows.filter(~is_transfer.fill_null(value=False)), limits)
    is_beside = (pl.col("kind") == CALL) & pl.col("name").is_in(beside)
    lane = pl.when(is_transfer | is_beside).then("name").otherwise(pl.lit(""))
    rows = rows.with_columns(lane=lane.fill_null(""), is_transfer=is_transfer.fill_null(value=False))
    found = [_lanes(rows), *_micro_batches(rows)]
    if beside:
        found.extend(_beside(rows.filter(~pl.col("is_transfer")), limits))
    edges = pl.concat(found).filter(pl.col("before").is_not_null() & (pl.col("before") != pl.col("work")))
    return edges.unique(["rank", "work", "before"], keep="first", maintain_order=True).sort("rank", "work", "before")


def work_edges(
    work: pl.DataFrame, kernels: pl.LazyFrame, collectives: pl.LazyFrame, limits: Limits = Limits()
) -> pl.DataFrame:
    """What pieces of `work` wait for on ranks whose micro-batches are known; those of other ranks have no edges.

    Args:
        work: `rank`, `work`, `step`, `kind`, `name`, `start_ns`, `end_ns`, `kernel`, `collective`.
        kernels: The table.
        collectives: The table.
        limits: Limits.
    """
    served = ["micro_batch", "model_chunk"]
    known = kernels.filter(pl.col("micro_batch").is_not_null()).select("rank").unique().collect()
    if known.is_empty():
        return pl.DataFrame(schema=EDGES)
    computed = kernels.select("rank", "kernel", *served).collect()
    called = collectives.select("rank", "collective", "operation", *served).collect()
    rows = work.join(known, on="rank", how="semi").filter(pl.col("kind").is_in([COMPUTING, CALL, COLLECTION]))
    joined = rows.join(computed, on=["rank", "kernel"], how="left").join(
        called, on=["rank", "collective"], how="left", suffix="_called"
    )
    # A kernel may stand for both ends of an exchange, so what a call serves is taken from the call.
    is_call = pl.col("collective").is_not_null()
    of_call = [pl.when(is_call).then(f"{name}_called").otherwise(name).alias(name) for name in served]
    found = joined.with_columns(of_call)
    operations = found.select(pl.col(name).cast(dtype) for name, dtype in OPERATIONS.items())
    return operation_edges(operations, limits)


def _edges(rows: pl.DataFrame, why: str) -> pl.DataFrame:
    return rows.select("rank", "work", "before", why=pl.lit(why))


def _lanes(rows: pl.DataFrame) -> pl.DataFrame:
    return _edges(rows.with_columns(before=pl.col("work").shift(1).over(*_STEP, "lane")), OPERATION)


def _micro_batches(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Receive before computing, computing before sending; and what is received waits for the micro-batch before it."""
    computing = rows.filter(
        pl.col("kind") == COMPUTING, pl.col("way").is_not_null(), pl.col("micro_batch").is_not_null()
    )
    transfers = rows.filter("is_transfer").select(*_MICRO_BATCH, "operation", transfer="work")
    served = computing.select(*_MICRO_BATCH, "work", "start_ns").join(transfers, on=_MICRO_BATCH)
    sent, received = (
        served.filter(pl.col("operation") == way).sort("rank", "step", "start_ns", "work") for way in _TRANSFERS
    )
    follows = received.with_columns(before=pl.col("work").shift(1).over(*_STEP, "way"))
    return [
        _edges(received.rename({"transfer": "before"}), MICRO_BATCH),
        _edges(sent.rename({"work": "before", "transfer": "work"}), MICRO_BATCH),
        _edges(follows.drop("work").rename({"transfer": "work"}), "order"),
    ]


def _overlapping(rows: pl.DataFrame, limits: Limits) -> list[str]:
    """Names of calls that run beside computing."""
    is_call = pl.col("kind") == CALL
    computed = pl.when(pl.col("kind") == COMPUTING)
    ended = computed.then("end_ns").cum_max().forward_fill().over(_STEP)
    begins = computed.then("start_ns").reverse().cum_min().forward_fill().reverse().over(_STEP)
    length = pl.col("end_ns") - pl.col("start_ns")
    beside = pl.max_horizontal(ended - pl.col("start_ns"), pl.col("end_ns") - begins, 0).fill_null(0)
    often = (
        rows.with_columns(beside=pl.min_horizontal(beside, length) > limits.overlapped_ratio * length)
        .filter(is_call)
        .group_by("name")
        .agg(pl.col("beside").mean())
        .filter(pl.col("beside") > limits.calls_ratio)
    )
    found: list[str] = often["name"].sort().to_list()
    return found


def _beside(rows: pl.DataFrame, limits: Limits) -> list[pl.DataFrame]:
    """What overlapping calls wait for and serve: they follow computing that had ended when they began. Computing of a
    chunk waits until its parameters are gathered; what follows all passes waits for all other calls."""
    late = pl.lit(limits.rounding_ns, pl.Int64)
    calls = rows.filter(pl.col("lane") != "").select(
        *_STEP, "work", "operation", "chunk", began_ns=pl.col("start_ns") + late, done_ns=pl.col("end_ns") - late
    )
    own = rows.filter(pl.col("lane") == "")
    ended = own.select(*_STEP, "end_ns", before="work").sort("end_ns", "before")
    waits = calls.sort("began_ns", "work").join_asof(
        ended, left_on="began_ns", right_on="end_ns", by=_STEP, check_sortedness=False
    )
    starts = own.select(*_STEP, "start_ns", "way", next="work", next_chunk="model_chunk").sort("start_ns", "next")
    is_gather = pl.col("operation") == "all_gather"
    served = [
        (calls.filter(is_gather & pl.col("chunk").is_null()), pl.col("way") == FORWARD, _STEP),
        (calls.filter(is_gather & pl.col("chunk").is_not_null()), pl.col("way") == FORWARD, [*_STEP, "chunk"]),
        (calls.filter(~is_gather), pl.col("way").is_null(), _STEP),
    ]
    found = [_edges(waits, "order")]
    for some, is_served, by in served:
        users = starts.filter(is_served).rename({"next_chunk": "chunk"} if "chunk" in by else {})
        joined = some.sort("done_ns", "work").join_asof(
            users, left_on="done_ns", right_on="start_ns", by=by, strategy="forward", check_sortedness=False
        )
        found.append(_edges(joined.select("rank", before="work", work="next").drop_nulls(), "order"))
    return found
