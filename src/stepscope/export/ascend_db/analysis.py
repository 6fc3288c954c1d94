"""analysis.db: the times of communication calls, what they moved over which transport and link, and the times of steps.

Times are in ms, sizes in MB of 10^6 bytes, rates in GB/s; times of steps in us.
"""

from __future__ import annotations

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_db.database import Database
from stepscope.export.ascend_db.rank import RankDatabase
from stepscope.export.ascend_ms.communication import MEGABYTE, NS_PER_MS
from stepscope.tables.communication import POINT_TO_POINT
from stepscope.tables.steps import WHOLE_RECORDING

_STEP_TIMES = {
    "computing": "computing_ns",
    "communication_not_overlapped": "communication_not_overlapped_ns",
    "overlapped": "overlapped_ns",
    "communication": "communication_ns",
    "free": "free_ns",
    "stage": "stage_ns",
    "bubble": "bubble_ns",
    "communication_not_overlapped_and_exclude_receive": "communication_not_overlapped_exclude_receive_ns",
    "preparing": "preparing_ns",
}
"""Columns of StepTraceTime, and those of `breakdown`."""
_LINK = ["step", "group", "operation", "source", "destination"]
_OF_CALL = ["hccl_op_name", "group_name", "step", "type"]


def write_analysis(rank: RankDatabase, out: Database, calls: pl.DataFrame) -> None:
    """Write all tables; `calls` are those of `calls_of`."""
    has_steps = rank.export.has_steps
    number = pl.col("step").cast(pl.String) if has_steps else pl.lit("")
    stepped = calls.with_columns(step_key="step" + number).drop_nulls("step_key")
    rank.lose("communication calls outside all steps, in analysis.db", calls.height - stepped.height)
    _write_times(out, stepped)
    _write_bands(rank, out, stepped)
    _write_links(rank, out, calls)
    _write_steps(rank, out)


def _write_times(out: Database, calls: pl.DataFrame) -> None:
    known = {"transit_time": "transmit_ns", "wait_time": "wait_ns", "synchronization_time": "synchronization_ns"}
    idle = pl.col("duration_ns") - pl.col("transmit_ns") - pl.col("wait_ns")
    rows = calls.select(
        hccl_op_name="call",
        group_name="key",
        start_timestamp=pl.col("start_ns") / 1000,
        elapse_time=pl.col("duration_ns") / NS_PER_MS,
        **{theirs: pl.col(ours) / NS_PER_MS for theirs, ours in known.items()},
        idle_time=idle.clip(lower_bound=0) / NS_PER_MS,
        step="step_key",
        type="kind",
    )
    out.add("CommAnalyzerTime", rows)


def _write_bands(rank: RankDatabase, out: Database, calls: pl.DataFrame) -> None:
    """What is recorded of transports, one row for each size of packets."""
    call = ["name", "step", "group"]
    named = calls.unique(call, keep="first", maintain_order=True).select(
        *call, hccl_op_name="call", group_name="key", step_key="step_key", type="kind"
    )
    for batch in rank.parts(rank.lazy("transports").drop("rank")):
        rows = batch.join(named, on=call, how="inner", nulls_equal=True, maintain_order="left")
        rank.lose("transports of unknown calls", batch.height - rows.height)
        whole = [*_OF_CALL[:2], "step_key", "transport"]
        size, time = pl.sum("size_bytes").over(whole) / MEGABYTE, pl.sum("duration_ns").over(whole) / NS_PER_MS
        out.add(
            "CommAnalyzerBandwidth",
            rows.select(
                "hccl_op_name",
                "group_name",
                transport_type="transport",
                transit_size=size,
                transit_time=time,
                bandwidth=_rate(size, time),
                package_size=pl.col("packet_bytes") / MEGABYTE,
                count="packets",
                total_duration=pl.col("duration_ns") / NS_PER_MS,
                step="step_key",
                type="type",
            ),
        )


def _rate(size_mb: pl.Expr, time_ms: pl.Expr) -> pl.Expr:
    """MB a ms, which are GB/s; 0 for what took no time."""
    return pl.when(time_ms > 0).then(size_mb / time_ms).otherwise(0.0)


def _write_links(rank: RankDatabase, out: Database, calls: pl.DataFrame) -> None:
    """Recorded links by class of calls: the fastest calls, the middle one, the slowest, and the total.

    Ranks are counted within their group. Links of unknown groups or members have no place in the format.
    """
    words = dict(calls.select("operation", "word").unique().sort("operation").iter_rows())
    names = calls.unique(["name", "group"], keep="first", maintain_order=True).select("name", "group", op_name="call")
    number = "step" + pl.col("step").cast(pl.String) if rank.export.has_steps else pl.lit("step")
    rows = rank.export.rows("links").drop("rank").with_columns(step_key=number)
    kept = rows.filter(pl.col("operation").is_not_null(), pl.col("step_key").is_not_null())
    for end, placed in (("source", rank.places), ("destination", rank.places.drop("key"))):
        kept = kept.join(
            placed.rename({"member": end, "place": f"{end}_place"}),
            on=["group", end],
            how="inner",
            maintain_order="left",
        )
    rank.lose("links of unknown groups, operations or members", rows.height - kept.height)
    kept = kept.join(names, on=["name", "group"], how="left", maintain_order="left")
    rate = _rate(pl.col("size_bytes") / MEGABYTE, pl.col("duration_ns") / NS_PER_MS)
    single = kept.filter(pl.col("name").is_not_null()).with_columns(rate=rate)
    single = single.sort(*_LINK, "rate", descending=[*[False] * len(_LINK), True], nulls_last=True, maintain_order=True)
    single = single.with_columns(at=pl.int_range(pl.len()).over(_LINK), of=pl.len().cast(pl.Int64).over(_LINK))
    middle = pl.when(pl.col("of") == 5).then(1).otherwise(pl.col("of") // 2)  # of five calls each has a place
    is_at = {
        "top1": pl.col("at") == 0,
        "middle": pl.col("at") == middle,
        **{f"bottom{n}": pl.col("at") == pl.col("of") - n for n in (1, 2, 3)},
    }
    total = kept.filter(pl.col("name").is_null()).with_columns(rate=rate)
    for place, found in [*((name, single.filter(where)) for name, where in is_at.items()), ("total", total)]:
        word = pl.col("operation").replace_strict(words, default=pl.col("operation"), return_dtype=pl.String)
        out.add(
            "CommAnalyzerMatrix",
            found.select(
                hccl_op_name=word.str.to_lowercase().str.replace_all("_", "") + f"-{place}",
                group_name="key",
                src_rank=pl.col("source_place").cast(pl.String),
                dst_rank=pl.col("destination_place").cast(pl.String),
                transport_type=pl.col("transport").fill_null(""),
                transit_size=pl.col("size_bytes") / MEGABYTE,
                transit_time=pl.col("duration_ns") / NS_PER_MS,
                bandwidth="rate",
                step="step_key",
                type=pl.when(pl.col("operation").is_in(POINT_TO_POINT))
                .then(pl.lit("p2p"))
                .otherwise(pl.lit("collective")),
                op_name=pl.coalesce("op_name", "name").fill_null(""),
            ),
        )


def _write_steps(rank: RankDatabase, out: Database) -> None:
    """The times of steps, from our own breakdown; the format's `free` contains memory operations."""
    try:
        parts: pl.DataFrame = rank.export.run.analyse("breakdown")
    except Unavailable as reason:
        rank.export.leave_out("StepTraceTime", str(reason))
        return
    free = pl.col("free_ns") + pl.col("memory_not_overlapped_ns")
    step = pl.when(pl.col("window") != WHOLE_RECORDING).then(pl.col("step").cast(pl.String)).fill_null("")
    rows = parts.with_columns(free_ns=free).select(
        deviceId=pl.lit(rank.device),
        step=step,
        **{theirs: pl.col(ours) / 1000 for theirs, ours in _STEP_TIMES.items()},
    )
    out.add("StepTraceTime", rows)
