"""When each rank enters each collective: calls matched across ranks, arrival order, lateness, wait and transmit."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.call_positions import CALL, positions
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.transfers import as_pairs, in_groups
from stepscope.analysis.registry import analysis
from stepscope.tables import GROUPS, RANKS
from stepscope.tables.base import Column
from stepscope.tables.communication import POINT_TO_POINT

MUTUAL = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Operations in which every member depends on every other."""

CLOCK_NOISE_NS = 1_000_000
"""How far the aligned clocks of different hosts may still differ: ten times what NTP achieves in one room."""

COLUMNS = columns(
    "rank step group",
    Column("sequence", "int64", "Position of the call in its group, from 0."),
    "operation",
    meaning("name", "Name of the call."),
    meaning("size_bytes", "This rank's payload; null if not recorded."),
    Column("collective", "int64", "Number of the row in `collectives`."),
    "on_device",
    Column("point_to_point", "bool", "True for sends and receives between two ranks."),
    meaning("start_ns", "When this rank entered the call, on the common clock."),
    meaning("end_ns", "When this rank left it, on the common clock."),
    meaning("offset_ns", "Add it to these times to get the rank's own clock."),
    Column("members", "int32", "Number of ranks of the group seen in the call."),
    Column("group_size", "int32", "Number of ranks of the group, recorded or not; null if unknown."),
    Column("arrival", "int32", "Order of entering, from 0; null if the call was seen on one rank only."),
    Column("lateness_ns", "int64", "How long after the median rank it entered; negative if before."),
    Column("is_last", "bool", "True if it entered last; null if the call was seen on one rank only."),
    meaning("wait_ns", "Waiting for the last rank to enter; null if unknown."),
    meaning("transmit_ns", "Duration less `wait_ns`; null if unknown."),
    nulls="step group size_bytes group_size arrival lateness_ns is_last wait_ns transmit_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def arrival(
    collectives: pl.LazyFrame,
    clocks: pl.DataFrame,
    steps: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Match each collective across ranks and order its members by when they entered it.

    Calls are matched by group and position in the group (see `call_positions`), sends and receives that name the other
    side by sender and receiver; times are put on one clock first (see `clocks`). A call is not matched if its members
    disagree on the operation, do not overlap in time or (all-reduce) differ in size; nor are sends and receives
    unless one of each has the same position: else it is unknown which belong together. Within a call, a rank waits from
    its own arrival to the last one; the rest is transmission. If some members were not seen, any of them may be the
    last, so waiting is unknown unless the source states it.

    Returns:
        One row per rank and call, call by call in order of arrival.
    """
    calls = (
        positions(collectives, steps)
        .join(clocks.lazy().select("rank", "offset_ns"), on="rank", how="left")
        .with_columns(offset_ns=pl.col("offset_ns").fill_null(0))
        .with_columns(start_ns=pl.col("start_ns") - pl.col("offset_ns"))
        .with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .sort("rank", "collective")  # members that enter together are ordered by rank
        .collect()
    )
    listed = GROUPS.or_empty(groups).collect()
    sizes = listed.lazy().group_by("group").agg(listed=pl.col("members").list.len().max())
    calls = as_pairs(calls, listed)
    calls = calls.with_columns(sequence=_aligned_sequences(calls)).join(
        sizes.collect(), on="group", how="left", maintain_order="left"
    )
    point_to_point = pl.col("operation").is_in(POINT_TO_POINT)
    kind = pl.when(point_to_point).then(pl.lit("p2p")).otherwise(pl.col("operation"))
    same_operation = kind.n_unique().over(CALL) == 1
    one_each = pl.col("rank").n_unique().over(CALL) == pl.len().over(CALL)
    sends = (pl.col("operation") == "send").sum().over(CALL)
    receives = (pl.col("operation") == "recv").sum().over(CALL)
    one_way = (sends + receives == 0) | ((sends == 1) & (receives == 1))
    several = pl.len().over(CALL) > 1
    # Nobody leaves a mutual call before the last member has entered it, and an all-reduce needs equal sizes.
    together = ~pl.col("operation").is_in(MUTUAL) | (
        pl.col("start_ns").max().over(CALL) <= pl.col("end_ns").min().over(CALL) + CLOCK_NOISE_NS
    )
    # An unknown size on one rank is no contradiction; nor is what a rank moved, which stands in for a payload that its
    # recording does not state, e.g. of a trace that was cut off.
    typed = pl.col("element_type").is_not_null()
    payload = pl.when(typed | ~typed.any().over(CALL)).then("size_bytes")
    different = payload.drop_nulls().n_unique().over(CALL)
    same_size = (pl.col("operation") != "all_reduce") | (different <= 1)
    fits = several & same_operation & one_each & one_way & together & same_size
    calls = calls.with_columns(fits=fits, several=several)
    # If most calls of a group do not fit, equal positions are not the same calls, and the rest fits by chance.
    lined_up = pl.col("fits").sum().over("group") >= pl.col("several").sum().over("group") / 2
    matched = pl.col("fits") & lined_up
    start = pl.col("start_ns")
    last = start.max().over(CALL)
    # Medians are floats, which cannot hold ns since the epoch, so take medians of differences only.
    after_first = start - start.min().over(CALL)
    stated_size = pl.max_horizontal(pl.col("group_size").max().over(CALL), "listed")
    size = pl.when(point_to_point).then(2).otherwise(pl.coalesce(stated_size, _unlisted_size(ranks))).cast(pl.Int32)
    members = pl.when(matched).then(pl.len().over(CALL)).otherwise(1).cast(pl.Int32)
    complete = matched & (members >= size.fill_null(0))
    wait = pl.when(complete).then(pl.min_horizontal(last - start, "duration_ns")).otherwise(pl.col("wait_ns"))
    stated = pl.when(complete).then(None).otherwise(pl.col("transmit_ns"))
    return (
        calls.with_columns(
            matched=matched,
            point_to_point=point_to_point,
            members=members,
            group_size=size,
            arrival=pl.when(matched).then(start.rank("ordinal").over(CALL) - 1).cast(pl.Int32),
            lateness_ns=pl.when(matched).then(rounded(after_first - after_first.median().over(CALL))),
            is_last=pl.when(matched).then((start == last) & (start > start.min().over(CALL))),
            wait_ns=wait,
        )
        .with_columns(transmit_ns=pl.coalesce(stated, pl.col("duration_ns") - pl.col("wait_ns")))
        .pipe(in_groups)
        .select(names(COLUMNS))
        .sort("group", "sequence", "start_ns", "rank", nulls_last=True)
    )


def _unlisted_size(ranks: pl.LazyFrame | None) -> pl.Expr:
    """The size of a group that no recording states: if ranks of the job are missing, it may have all of them."""
    figures = RANKS.or_empty(ranks).select(pl.col("world_size").max(), pl.col("rank").n_unique())
    size, recorded = figures.collect().row(0)
    return pl.lit(None if size is None or size <= recorded else size)


def _aligned_sequences(calls: pl.DataFrame) -> pl.Series:
    """Positions in the group, shifted if a rank's recording begins some calls later than the others.

    Recordings of one job may start a call apart. If the ranks of a group recorded different numbers of calls, positions
    are counted from the first or the last call, whichever brings the ends of equally numbered calls closer together.
    """
    per_rank = calls.group_by("group", "rank").agg(n=pl.col("sequence").max() + 1)
    uneven = per_rank.group_by("group").agg(uneven=pl.col("n").n_unique() > 1, most=pl.col("n").max())
    table = (
        calls.select("rank", "group", "sequence", "end_ns")
        .join(per_rank, on=["group", "rank"], how="left", nulls_equal=True, maintain_order="left")
        .join(uneven, on="group", how="left", nulls_equal=True, maintain_order="left")
        .with_columns(from_end=pl.col("sequence") + pl.col("most") - pl.col("n"))
    )
    if not table["uneven"].any():
        return calls["sequence"]

    def scatter(position: str) -> pl.Expr:
        end = pl.col("end_ns")
        return (end.max() - end.min()).over("group", position).median().over("group")

    later = pl.col("uneven") & (scatter("from_end") < scatter("sequence"))
    return table.select(sequence=pl.when(later).then("from_end").otherwise("sequence"))["sequence"]
