"""One clock for all ranks and tables of a timeline: what to subtract from their times, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import polars as pl

from stepscope import present
from stepscope.analysis.input.input_queues import DATA_QUEUE
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.selection import named_numbers
from stepscope.tables import TABLES

FAR = 10
"""Times that are further from the others than this many times the length of the recording are of another clock..."""
FAR_NS = 3_600_000_000_000
"""... if they are also further than this. Both chosen by us: no part of a recording begins an hour before the rest."""

UNSURE_NS = 100_000
"""From this on, what remains between the ends of calls is said: smaller offsets count as synchronised (`clocks`)."""

MAIN = ("steps", "slices", "kernels", "collectives", "operators")
"""Tables in whose times a recording lies: the first that a rank has."""
_TIMES = ("start_ns", "time_ns", "created_ns")
_TIMED = {
    name: next(column for column in _TIMES if column in table.schema)
    for name, table in TABLES.items()
    if set(_TIMES) & set(table.schema) and name != "ranks"
}
"""Tables with times, and the column that has them."""

_FURTHER = {"steps": ("window_start_ns",)}

DEVICE_QUEUE = f"{DATA_QUEUE} in input_pipeline"
"""The samples of the queue on the device, which go by its clock; the rest of the table goes by that of the host."""
_PARTS = {"input_pipeline": pl.when(pl.col("operator") == DATA_QUEUE).then(pl.lit(DEVICE_QUEUE))}
"""Which rows of a table may have another clock than the rest of it, and how they are named; null for the rest."""


@dataclass
class Clocks:
    """What to subtract from times.

    Args:
        by_rank: Of all times of a rank; ranks that are not in it keep theirs.
        by_table: Of the times of a table of a rank, in addition; or of `DEVICE_QUEUE`.
        notes: What was corrected, and what could not be.
    """

    by_rank: dict[int, int] = field(default_factory=dict)
    by_table: dict[tuple[int, str], int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    first_ns: int = 0
    """When the first of all times is, on the common clock."""

    def of(self, rank: int, tables: tuple[str, ...]) -> int:
        """What to subtract from the times of a rank that come from some tables."""
        own = next((self.by_table[rank, name] for name in tables if (rank, name) in self.by_table), 0)
        return self.by_rank.get(rank, 0) + own

    def frame(self, ranks: list[int], tables: tuple[str, ...]) -> pl.DataFrame:
        """`rank` and `shift_ns`: what to subtract from the times that come from some tables."""
        shifts = [self.of(rank, tables) for rank in ranks]
        return pl.DataFrame({"rank": ranks, "shift_ns": shifts}, schema={"rank": pl.Int32, "shift_ns": pl.Int64})


def clocks_of(run: Run, *, align: bool, tables: Collection[str] = ()) -> Clocks:
    """The corrections of a run: clocks of ranks by the ends of their calls (`clocks`), and tables or ranks whose times
    are those of another clock, which are moved to where the rest begins, since nothing tells when they ran.

    Args:
        run: The run.
        align: Whether to correct the clocks of ranks.
        tables: The tables whose times are shown; empty for all that have times.
    """
    found = Clocks()
    spans = _spans(run, tables)
    if spans.is_empty():
        return found
    if align and len(run.whole.ranks) > 1:  # also one rank alone: the critical path is on the clock of the job
        _align(run, found)
    _move_tables(spans, found)
    _move_ranks(spans, found)
    found.first_ns = min(
        first - found.of(rank, (table,)) for table, rank, first in spans.select("table", "rank", "first_ns").iter_rows()
    )
    return found


def _align(run: Run, found: Clocks) -> None:
    try:
        clocks = run.analyse("clocks")
    except Unavailable as reason:
        if len(run.ranks) > 1:
            found.notes.append(f"The clocks of ranks are not corrected: {reason}")
        return
    shown = [each.rank for each in run.ranks]
    clocks = clocks.filter(pl.col("rank").is_in(shown))
    off = clocks.filter(pl.col("offset_ns") != 0)
    found.by_rank.update(off.select("rank", "offset_ns").iter_rows())
    if off.height:
        most = off.sort(pl.col("offset_ns").abs(), "rank", descending=[True, False]).row(0, named=True)
        found.notes.append(
            f"The clocks of {named_numbers('rank', off['rank'])} are corrected by the ends of their calls, by up to "
            f"{present.duration(abs(most['offset_ns']))} (rank {most['rank']})."
        )
    if len(shown) == 1:
        return
    unsure = clocks.filter(pl.col("spread_ns") > UNSURE_NS).sort(-pl.col("spread_ns"), "rank")
    if unsure.height:
        rank, spread = unsure.select("rank", "spread_ns").row(0)
        found.notes.append(
            f"Ends of the same call still lie apart, typically by {present.duration(spread)} (rank {rank}): "
            "clocks drift, calls do not end together, or some were not recorded."
        )
    without = clocks.filter((pl.col("calls") == 0) & (pl.col("offset_ns") == 0))["rank"].to_list()
    if without and len(without) < len(shown):
        found.notes.append(
            f"The clocks of {named_numbers('rank', without)} are not corrected: they share no calls with other ranks."
        )


def _spans(run: Run, tables: Collection[str]) -> pl.DataFrame:
    """When each table of each rank begins and ends: `table`, `rank`, `first_ns`, `last_ns`."""
    frames = [
        run.table(name)
        .group_by("rank", table=pl.coalesce(_PARTS.get(name, pl.lit(None)), pl.lit(name)))
        .agg(first_ns=pl.min_horizontal(column, *_FURTHER.get(name, ())).min(), last_ns=pl.col(column).max())
        .select("table", "rank", "first_ns", "last_ns")
        for name, column in _TIMED.items()
        if run.has(name) and (not tables or name in tables)
    ]
    return pl.concat(pl.collect_all(frames)).drop_nulls() if frames else pl.DataFrame()


def _main(spans: pl.DataFrame) -> pl.DataFrame:
    """The span of each rank: that of the first of `MAIN` that it has, else of what begins first."""
    order = pl.col("table").replace_strict({name: place for place, name in enumerate(MAIN)}, default=len(MAIN))
    return spans.sort("rank", order, "first_ns").unique("rank", keep="first", maintain_order=True)


def _is_far(first: pl.Expr, last: pl.Expr, main_first: pl.Expr, main_last: pl.Expr) -> pl.Expr:
    away = pl.max_horizontal(first - main_last, main_first - last)
    return (away > FAR_NS) & (away > FAR * (main_last - main_first))


def _move_tables(spans: pl.DataFrame, found: Clocks) -> None:
    main = _main(spans).select("rank", main_first="first_ns", main_last="last_ns")
    far = (
        spans.join(main, on="rank")
        .filter(_is_far(pl.col("first_ns"), pl.col("last_ns"), pl.col("main_first"), pl.col("main_last")))
        .with_columns(shift=pl.col("first_ns") - pl.col("main_first"))
    )
    for rank, table, shift in far.select("rank", "table", "shift").iter_rows():
        found.by_table[rank, table] = shift
    by_ranks: dict[tuple[int, ...], list[str]] = {}
    for name, rows in far.sort("table", "rank").group_by("table", maintain_order=True):
        by_ranks.setdefault(tuple(rows["rank"]), []).append(str(name[0]))
    for ranks, names in by_ranks.items():
        found.notes.append(
            f"The times of {present.listed(names)} ({named_numbers('rank', ranks)}) are of another clock than the "
            "rest: they are drawn from the start of the recording on, and nothing says when they really ran."
        )


def _move_ranks(spans: pl.DataFrame, found: Clocks) -> None:
    """Ranks that are far from all others."""
    main = _main(spans).with_columns(
        shift=pl.Series([found.by_rank.get(rank, 0) for rank in _main(spans)["rank"]], dtype=pl.Int64)
    )
    main = main.with_columns(pl.col("first_ns", "last_ns") - pl.col("shift")).sort("first_ns", "rank")
    if main.height < 2:
        return
    length = pl.col("last_ns") - pl.col("first_ns")
    # What overlaps, or nearly so, is of one clock; the clock of most ranks is that of the timeline.
    reach = pl.col("last_ns").cum_max().shift(1)
    apart = (pl.col("first_ns") - reach > FAR_NS) & (pl.col("first_ns") - reach > FAR * length.max())
    main = main.with_columns(clock=apart.fill_null(False).cum_sum())
    if main["clock"].n_unique() < 2:
        return
    groups = main.group_by("clock").agg("rank", count=pl.len(), first_ns=pl.col("first_ns").min())
    of_most, *others = groups.sort("count", "clock", descending=[True, False]).iter_rows(named=True)
    for each in others:
        for rank in each["rank"]:
            found.by_rank[rank] = found.by_rank.get(rank, 0) + each["first_ns"] - of_most["first_ns"]
        found.notes.append(
            f"The clock of {named_numbers('rank', sorted(each['rank']))} is another one than that of the other ranks: "
            "what it shows is drawn from the start of the job on, and nothing says when it really ran."
        )
