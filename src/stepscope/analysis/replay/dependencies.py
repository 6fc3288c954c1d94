"""What each piece of a rank's work waits for: order on streams and threads, launches, synchronisation, stream waits."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.job_graph import (
    CALL,
    LANE,
    LAUNCH,
    MICRO_BATCH,
    OPERATION,
    ORDER,
    STREAM_WAIT,
    SYNCHRONISATION,
    TIME,
)
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.operation_graph import work_edges
from stepscope.analysis.replay.work import CALLS, HOST
from stepscope.limits import limit
from stepscope.tables import COLLECTIVES, KERNELS, SLICES
from stepscope.tables.base import Column
from stepscope.text_columns import filled_in

WHY = (LANE, LAUNCH, SYNCHRONISATION, STREAM_WAIT, ORDER, TIME, OPERATION, MICRO_BATCH, CALL)
"""Reasons: the piece before it on its stream or thread; the host piece that launched it; what of its device the host
waited for; a recorded wait of a stream; the order of launches (a call waits for computing that was launched before it,
computing for a call that it never overlaps); it began when this one ended and nothing else explains its start; where
only operations are recorded, the operation before it in its lane, and data of its micro-batch; on a CPU, the call that
the host waited for."""


@dataclass(frozen=True)
class Limits:
    """When a dependency follows from times."""

    least_ns: int = limit(20_000, "ns of gap", "launching and starting a kernel takes up to this, measured")
    blocking_ratio: float = limit(
        0.9, "of the calls of a kind", "chosen by us: computing waits for calls that it rarely overlaps"
    )


COLUMNS = columns(
    "rank",
    Column("work", "int64", "Number of the piece in `work`."),
    Column("before", "int64", "Number of the piece of the same rank that must have ended."),
    Column("why", "string", "Why.", values=WHY),
    nulls="",
)


@analysis("rank", COLUMNS, together=True)
def dependencies(
    work: pl.DataFrame,
    collectives: pl.LazyFrame | None,
    synchronizations: pl.LazyFrame | None,
    slices: pl.LazyFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """List what each piece of `work` waits for in its own rank: one row per pair and reason.

    Only what the times allow is listed: a piece that ended later than the other began was not waited for. What a call
    waits for on other ranks follows from `arrival`. Where micro-batches are recorded, these and the order of operations
    decide instead (see `operation_graph`).
    """
    by_operations = work_edges(work, KERNELS.or_empty(kernels), COLLECTIVES.or_empty(collectives))
    rows = _numbered(work.filter(~pl.col("rank").is_in(by_operations["rank"].unique().implode())))
    device = rows.filter(pl.col("lane") != HOST)
    launched = device.filter(pl.col("launch_ns").is_not_null())
    known = _agreeing(
        pl.concat(
            [
                _lanes(rows),
                _launches(rows, device),
                _waits(rows, device),
                _host_starts(rows, limits),
                _recorded(launched, synchronizations, slices),
                _orders(device, COLLECTIVES.or_empty(collectives), limits),
            ]
        ),
        rows,
    )
    found = _once(pl.concat([known, _by_time(rows, device, known, limits)]), rows.height)
    edges = pl.DataFrame(
        [
            rows["rank"].gather(found["row"]),
            rows["work"].gather(found["row"]),
            rows["work"].gather(found["before"]).alias("before"),
            pl.Series("why", WHY).gather(found["why"]),
        ]
    ).select(names(COLUMNS))
    return edges if by_operations.is_empty() else pl.concat([edges, by_operations]).sort("rank", "work", "before")


def _numbered(work: pl.DataFrame) -> pl.DataFrame:
    """The pieces in order of rank and number, with `row`: dependencies are pairs of rows until they are answered, since
    joining millions of them by rank and number takes far longer than looking up rows."""
    columns_ = ("rank", "work", "lane", "kind", "waited", "launch_ns", "collective", "start_ns")
    rows = in_order(work.select(*columns_, end_ns=pl.max_horizontal("end_ns", "start_ns")), "rank", "work")
    return rows.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))


def _edges(rows: pl.DataFrame, why: str) -> pl.DataFrame:
    found = rows.filter(pl.col("before").is_not_null() & (pl.col("before") != pl.col("row")))
    return found.select("row", "before", why=pl.lit(WHY.index(why), pl.UInt32))


def _once(edges: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Each pair with the first of its reasons, in order."""
    ordered = edges.with_columns(pair=pl.col("row") * rows + pl.col("before")).sort("pair", maintain_order=True)
    return ordered.filter(pl.col("pair").ne_missing(pl.col("pair").shift(1)))


def _lanes(rows: pl.DataFrame) -> pl.DataFrame:
    return _edges(rows.with_columns(before=pl.col("row").shift(1).over("rank", "lane")), LANE)


def _launches(rows: pl.DataFrame, device: pl.DataFrame) -> pl.DataFrame:
    """Device work waits for the host piece that launched it, or, if its launch was not recorded, for how far the host
    had come when it began; calls of a CPU for what `_host_starts` says."""
    host = _ends(rows.filter(pl.col("lane") == HOST))
    asked = device.filter(pl.col("lane") != CALLS).select(
        "rank", "row", at_ns=pl.col("launch_ns").fill_null(pl.col("start_ns"))
    )
    found = asked.sort("at_ns").join_asof(
        host, left_on="at_ns", right_on="before_end_ns", by="rank", check_sortedness=False
    )
    return _edges(found, LAUNCH)


def _waits(rows: pl.DataFrame, device: pl.DataFrame) -> pl.DataFrame:
    """Hosts that waited did so for the last device work that ended before they went on; on a CPU, for the call."""
    waits = rows.filter("waited").select("rank", "row", "start_ns").sort("start_ns", "row")
    found = waits.join_asof(
        _ends(device), left_on="start_ns", right_on="before_end_ns", by="rank", check_sortedness=False
    )
    awaited = found.filter(pl.col("before_end_ns") == pl.col("start_ns"))
    is_call = awaited["before"].is_in(rows.filter(pl.col("lane") == CALLS)["row"].implode())
    return pl.concat([_edges(awaited.filter(~is_call), SYNCHRONISATION), _edges(awaited.filter(is_call), CALL)])


def _host_starts(rows: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """On a CPU, a call begins when the host has come so far, unless the one before it ended just then."""
    calls = rows.filter((pl.col("lane") == CALLS) & (pl.col("kind") == "communication"))
    if calls.is_empty():
        return _edges(calls.with_columns(before="row"), LAUNCH)
    since = pl.col("start_ns") - pl.col("end_ns").shift(1).over("rank")
    free = calls.filter(~since.is_between(0, limits.least_ns).fill_null(value=False)).sort("start_ns")
    host = _ends(rows.filter(pl.col("lane") == HOST))
    found = free.join_asof(host, left_on="start_ns", right_on="before_end_ns", by="rank", check_sortedness=False)
    return _edges(found, LAUNCH)


def _recorded(
    launched: pl.DataFrame, synchronizations: pl.LazyFrame | None, slices: pl.LazyFrame | None
) -> pl.DataFrame:
    """Recorded waits of a stream for an event: what is launched after the wait waits for what was launched before the
    event was recorded in its stream."""
    if synchronizations is None or slices is None or launched.is_empty():
        return _edges(launched.clear().with_columns(before="row"), STREAM_WAIT)
    waits = synchronizations.filter(pl.col("waited_correlation").is_not_null() & pl.col("correlation").is_not_null())
    asked = waits.select("rank", "stream", "waited_stream", "correlation", "waited_correlation").unique().collect()
    used = pl.concat([asked.select("rank", "correlation"), asked.select("rank", correlation="waited_correlation")])
    calls = (
        SLICES.or_empty(slices)
        .filter(pl.col("category") == "runtime")
        .select("rank", "correlation", at="start_ns")
        .join(used.unique().lazy(), on=["rank", "correlation"], how="semi")
        .group_by("rank", "correlation")
        .agg(pl.col("at").min())
        .collect()
    )
    timed = (
        asked.join(calls, on=["rank", "correlation"])
        .join(calls.rename({"correlation": "waited_correlation", "at": "event_ns"}), on=["rank", "waited_correlation"])
        .with_columns(lane=_lane("stream"), waited_lane=_lane("waited_stream"))
    )
    by_launch = launched.select("rank", "lane", "row", "launch_ns").sort("launch_ns", maintain_order=True)
    firsts = timed.sort("at").join_asof(
        by_launch, left_on="at", right_on="launch_ns", by=["rank", "lane"], strategy="forward", check_sortedness=False
    )
    lasts = by_launch.select("rank", waited_lane="lane", before="row", event_ns="launch_ns")
    found = firsts.sort("event_ns").join_asof(lasts, on="event_ns", by=["rank", "waited_lane"], check_sortedness=False)
    return _edges(found.filter(pl.col("row").is_not_null()), STREAM_WAIT)


def _lane(column: str) -> pl.Expr:
    """The lane of a stream, as `work` names it."""
    return filled_in("stream {}", pl.col(column).cast(pl.String))


def _orders(device: pl.DataFrame, collectives: pl.LazyFrame, limits: Limits) -> pl.DataFrame:
    """Calls wait for computing that was launched before them; computing waits for calls of a kind that it does not
    overlap although it was launched later."""
    order = pl.col("launch_ns").fill_null(pl.col("start_ns"))
    placed = (
        device.filter(pl.col("lane") != CALLS)
        .select("rank", "row", "kind", "collective", "start_ns", "end_ns", order_ns=order)
        .sort("order_ns", maintain_order=True)
    )
    computing = placed.filter(pl.col("kind") == "computing")
    calls = placed.filter(pl.col("kind") == "communication")
    before = computing.select("rank", "order_ns", before="row")
    after = computing.select("rank", "order_ns", next="row", next_ns="start_ns")
    found = calls.join_asof(before, on="order_ns", by="rank", strategy="backward", check_sortedness=False).join_asof(
        after, on="order_ns", by="rank", strategy="forward", allow_exact_matches=False, check_sortedness=False
    )
    kinds = collectives.select("rank", "collective", "group", "operation").collect()
    waiting = found.join(kinds, on=["rank", "collective"], how="left", maintain_order="left").with_columns(
        apart=pl.col("next_ns") >= pl.col("end_ns")
    )
    blocking = pl.col("apart").mean().over("rank", "group", "operation") >= limits.blocking_ratio
    held = waiting.filter(blocking & pl.col("next").is_not_null())
    return pl.concat([_edges(found, ORDER), _edges(held.select(before="row", row="next"), ORDER)])


def _agreeing(edges: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The edges that the times allow."""
    return edges.filter(rows["end_ns"].gather(edges["before"]) <= rows["start_ns"].gather(edges["row"]))


def _by_time(rows: pl.DataFrame, device: pl.DataFrame, known: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Device work whose start nothing known explains waits for the work of another lane that ended just before it."""
    ended = pl.DataFrame([known["row"], rows["end_ns"].gather(known["before"]).alias("ready_ns")])
    is_soon = rows["start_ns"].gather(ended["row"]) - ended["ready_ns"] <= limits.least_ns
    explained = pl.repeat(value=False, n=rows.height, dtype=pl.Boolean, eager=True)
    explained = explained.scatter(ended["row"].filter(is_soon), values=True)
    ready = ended.filter(~explained.gather(ended["row"])).group_by("row").agg(pl.col("ready_ns").max())
    on_device = device.filter(pl.col("lane") != CALLS).select("rank", "row", "start_ns", "end_ns")
    late = on_device.join(ready, on="row", maintain_order="left")
    found = late.sort("start_ns").join_asof(
        _ends(on_device), left_on="start_ns", right_on="before_end_ns", by="rank", check_sortedness=False
    )
    # It ended nearer to the start than to the end of what is known.
    explains = pl.col("before_end_ns") - pl.col("ready_ns") >= pl.col("start_ns") - pl.col("before_end_ns")
    return _edges(found.filter(explains), TIME)


def _ends(rows: pl.DataFrame) -> pl.DataFrame:
    """Ends of pieces in order of time, for joining what follows them."""
    return rows.select("rank", before="row", before_end_ns="end_ns").sort("before_end_ns", maintain_order=True)
