"""Long stops of a device during which its host does nothing that was recorded."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, pieces, union
from stepscope.analysis.methods.step_windows import numbered
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import is_on_device
from stepscope.analysis.step.idle import unbroken
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column

NO_STALLS = "no device stops for long while its host does nothing that was recorded"

UNMARKED = ("dispatch", "synchronisation", "other")
"""Causes of idle time (`idle`) that leave open what the host did."""

SEEN = 0.5
"""Share of a rank's steps with recorded calls of its host from which nothing recorded means that nothing was called,
chosen by us."""


@dataclass(frozen=True)
class Limits:
    """What counts as a stall: both limits must be reached."""

    stall_ns: int = limit(
        20_000_000, "ns without a call of the host", "chosen by us: small models run Python up to 5 ms"
    )
    stall_ratio: float = limit(0.1, "of the rank's median step", "chosen by us: less is not worth a finding")


COLUMNS = columns(
    "rank step start_ns duration_ns",
    meaning("cause", "Cause of most of the device's idle time around it.", values=UNMARKED),
    Column("gap_ns", "int64", "Idle time of the device without a break, of which this is the longest quiet part."),
    Column("function", "string", "Innermost Python function around it; null if none was recorded."),
    Column("collections", "bool", "Whether garbage collections of the rank were recorded: then this is none."),
    nulls="function",
    keep="rank step duration_ns start_ns cause function",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_STALLS)
def host_stalls(
    idle_pieces: pl.DataFrame,
    activity: pl.DataFrame,
    breakdown: pl.DataFrame,
    slices: pl.LazyFrame,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find long stops of the device in which no thread that launches work, or runs operators, has any call: one row per
    stop, in order of time.

    A call that only reaches into the stop, as a wait for the device before it, does not hide the rest. Where Python
    functions were recorded, none begins or ends in it.

    Raises:
        Unavailable: If there is none.
    """
    steps = breakdown.group_by("rank").agg(step_ns=pl.col("window_ns").median(), steps=pl.len())
    long = (pl.col("duration_ns") >= limits.stall_ns) & (
        pl.col("duration_ns") >= limits.stall_ratio * pl.col("step_ns")
    )
    unmarked = idle_pieces.filter(pl.col("cause").is_in(UNMARKED) & is_on_device(activity))
    gaps = unbroken(unmarked).join(steps.select("rank", "step_ns"), on="rank", how="left").filter(long)
    windows = numbered(gaps.sort("rank", "start_ns").with_columns(end_ns=END, gap_ns="duration_ns"))
    if windows.is_empty():
        raise Unavailable(NO_STALLS)
    calls, seen, collected = _calls(slices, windows)
    ranges = windows.select("rank", "window", "start_ns", "end_ns")
    quiet = pieces({"called": union(calls, by=["rank"])}, ranges, by=["rank"]).filter(~pl.col("called")).collect()
    stretches = (
        quiet.join(windows.select("window", "gap_ns", "step_ns"), on="window")
        .filter(long)
        .sort("window", -pl.col("duration_ns"), "start_ns")
        .unique("window", keep="first", maintain_order=True)
        .join(seen, on="rank", how="left")
        .join(steps.select("rank", "steps"), on="rank", how="left")
        .filter(pl.col("seen").fill_null(0) >= SEEN * pl.col("steps"))
    )
    if stretches.is_empty():
        raise Unavailable(NO_STALLS)
    return (
        stretches.join(_main_pieces(unmarked, stretches), on="window", how="left")
        .join(_functions(slices, stretches), on="window", how="left")
        .with_columns(collections=pl.col("rank").is_in(collected))
        .select(names(COLUMNS))
        .sort("rank", "start_ns")
    )


_CALLED = ("operator", "runtime", "queue", "gc", "compile")


def _calls(slices: pl.LazyFrame, windows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[int]]:
    """The host's calls near the stops (`rank`, `start_ns`, `end_ns`), in how many steps each rank has any (`seen`), and
    the ranks whose garbage collections were recorded.

    Threads that neither run operators nor launch work count for nothing: some wait in a call all the time.
    """
    near = slices.filter(pl.col("rank").is_in(windows["rank"].unique().implode()))
    called = near.filter(pl.col("category").is_in(_CALLED))
    is_working = (pl.col("category") == "operator") | pl.col("correlation").is_not_null()
    threads = called.filter(is_working).select("rank", "process", "thread").unique()
    collected = near.filter(pl.col("category") == "gc").select("rank").unique().collect()["rank"].sort().to_list()
    seen = called.filter(is_working & pl.col("step").is_not_null()).group_by("rank").agg(seen=pl.col("step").n_unique())
    own = called.join(threads, on=["rank", "process", "thread"], how="semi", nulls_equal=True)
    ranges = own.select("rank", "start_ns", end_ns=END)
    functions = near.filter(pl.col("category") == "python").select("rank", "start_ns", end_ns=END)
    sides = [functions.select("rank", start_ns=side, end_ns=pl.col(side) + 1) for side in ("start_ns", "end_ns")]
    parts = [_inside(batch, windows) for table in (ranges, *sides) for batch in batches(table)]
    return pl.concat(parts), seen.collect(engine="streaming"), collected


def _inside(rows: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The ranges that overlap a stop: windows are disjoint, so it is the last that begins before a range ends."""
    bounds = windows.select("rank", "end_ns", until_ns="end_ns", end_at="start_ns").sort("end_at")
    last = rows.sort("end_ns").join_asof(
        bounds.select("rank", "until_ns", "end_at"),
        left_on="end_ns",
        right_on="end_at",
        by="rank",
        check_sortedness=False,
        allow_exact_matches=False,
    )
    return last.filter(pl.col("start_ns") < pl.col("until_ns")).select("rank", "start_ns", "end_ns")


def _main_pieces(unmarked: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    """Step and cause of most of each stretch: `window`, `step`, `cause`."""
    spans = stretches.select("window", of_rank="rank", since_ns="start_ns", until_ns=END)
    parts = unmarked.with_columns(end_ns=END).join_where(
        spans,
        pl.col("rank") == pl.col("of_rank"),
        pl.col("start_ns") < pl.col("until_ns"),
        pl.col("end_ns") > pl.col("since_ns"),
    )
    shared = pl.min_horizontal("end_ns", "until_ns") - pl.max_horizontal("start_ns", "since_ns")
    order = parts.with_columns(shared_ns=shared).sort("window", -pl.col("shared_ns"), "start_ns")
    return order.unique("window", keep="first", maintain_order=True).select("window", "step", "cause")


def _functions(slices: pl.LazyFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    """The innermost Python function around each stretch: `window`, `function`."""
    spans = stretches.select("window", of_rank="rank", since_ns="start_ns", until_ns=END)
    python = slices.filter((pl.col("category") == "python") & (pl.col("depth").fill_null(0) > 1))
    parts = []
    for batch in batches(python.select("rank", "name", "start_ns", "depth", end_ns=END)):
        around = batch.join_where(
            spans,
            pl.col("rank") == pl.col("of_rank"),
            pl.col("start_ns") <= pl.col("since_ns"),
            pl.col("end_ns") >= pl.col("until_ns"),
        )
        parts.append(around.select("window", "depth", function="name"))
    order = pl.concat(parts).sort("window", -pl.col("depth"), "function")
    return order.unique("window", keep="first", maintain_order=True).drop("depth")
