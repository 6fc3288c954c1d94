"""How evenly calls that split their payload (all-to-all) spread it over ranks."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.split_calls import NUMBER, listed, split_calls
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import GROUPS
from stepscope.tables.base import Column

NO_SPLITS = "no call with recorded splits: PyTorch records them for all-to-all with sizes of its own for each rank"

BATCH_PAIRS = 1_000_000
"""Pairs of ranks that are looked at together, some tens of MB: a call of n ranks has n x n."""

COLUMNS = columns(
    "group group_name",
    Column("sequence", "int64", "Position of the call in its group, from 0.", importance=40),
    "step operation",
    Column("ranks", "int32", "Ranks whose splits are recorded.", importance=55),
    Column("elements", "int64", "Elements that these send.", importance=58),
    Column("sent_factor", "float64", "Most elements that a rank sends, over the mean of all.", importance=60),
    Column("most_sent_rank", "int32", "Rank that sends most.", title="sends most", importance=56),
    Column("received_factor", "float64", "Most elements that a rank receives, over the mean of all.", importance=62),
    Column("most_received_rank", "int32", "Rank that receives most.", title="receives most", importance=61),
    Column("least_received_rank", "int32", "Rank that receives least.", title="receives least", importance=45),
    Column("pair_factor", "float64", "Most elements that go from one rank to another, over the mean of all pairs."),
    Column("pair_rank", "int32", "Of these two the rank that sends.", title="from"),
    Column(
        "pair_receiver", "int32", "The one that receives; its place in the group if members are unknown.", title="to"
    ),
    nulls="group group_name step sent_factor received_factor pair_factor pair_rank pair_receiver most_sent_rank "
    "most_received_rank least_received_rank",
    keep="group_name received_factor most_received_rank operation sent_factor",
)

PAIRS = columns(
    "group group_name",
    meaning("rank", "Rank that sends."),
    Column("receiver", "int32", "Rank that receives; its place in the group if members are unknown.", nullable=False),
    meaning("calls", "Calls: those that as many ranks of the group as possible recorded."),
    Column("elements", "int64", "Elements that it sends to this one in these calls.", importance=70),
    Column("share_ratio", "float64", "Share of what is known to be sent in the group.", importance=69),
    nulls="group group_name",
)


@analysis("job", PAIRS, whole_job=True)
def split_pairs(collective_splits: pl.LazyFrame, arrival: pl.DataFrame, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """Sum up what each rank sends to each other one in calls that split their payload: one row per group and pair.

    Of each group only the calls that as many ranks as possible recorded count: ranks with more steps send no more.

    Raises:
        Unavailable: If no splits are recorded.
    """
    pair = ["group", "rank", "receiver"]
    parts = [
        sent.group_by(pair).agg(calls=pl.len().cast(pl.Int64), elements=pl.col("elements").sum())
        for sent in _sent(collective_splits, arrival, groups, shared=True)
    ]
    sums = pl.concat(parts).group_by(pair).agg(pl.col("calls", "elements").sum())
    whole = pl.col("elements").sum().over("group")
    return (
        sums.with_columns(share_ratio=pl.when(whole > 0).then(pl.col("elements") / whole).otherwise(0.0))
        .join(group_names(groups), on="group", how="left")
        .sort(pair, nulls_last=True)
        .select(names(PAIRS))
    )


@analysis("job", COLUMNS, whole_job=True)
def uneven_splits(collective_splits: pl.LazyFrame, arrival: pl.DataFrame, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """Compare what ranks send and receive in each call that splits its payload: one row per call, the least even first.

    What a rank receives is what the others state to send to it. Ranks of a call that split their payload evenly do not
    state how much that is, so calls are compared only if the splits of all their ranks are recorded.

    Raises:
        Unavailable: If no splits are recorded.
    """
    found = pl.concat([_of_calls(sent) for sent in _sent(collective_splits, arrival, groups)])
    least_even = -pl.max_horizontal("received_factor", "sent_factor").fill_null(0)
    return (
        found.join(group_names(groups), on="group", how="left")
        .sort(least_even, "group", "sequence", "call", nulls_last=True)
        .select(names(COLUMNS))
    )


def _sent(
    splits: pl.LazyFrame, arrival: pl.DataFrame, groups: pl.LazyFrame | None, *, shared: bool = False
) -> Iterator[pl.DataFrame]:
    """What each rank sends to each one of its group in each call, some whole calls at a time: `call` (number), `group`,
    `sequence`, `step`, `operation`, `size` (ranks of the call), `rank`, `receiver`, `elements`; if `shared`,
    only the calls of each group that as many of its ranks as possible recorded."""
    length = pl.col("input_splits").str.count_matches(NUMBER).cast(pl.Int64)
    known = split_calls(arrival, splits).with_columns(length=length).filter(pl.col("length") > 1)
    # calls that were not matched are calls of one rank
    alone = pl.when(pl.col("members") < 2).then("rank")
    call = [*CALL, "alone"]
    rows = known.select(
        *("group", "sequence", "step", "operation", "rank", "length", "input_splits"),
        size=pl.max_horizontal("length", "group_size", "members"),
        alone=alone,
    )
    calls = rows.collect().sort(*call, "rank", nulls_last=True)
    if calls.is_empty():
        raise Unavailable(NO_SPLITS)
    calls = calls.with_columns(call=pl.struct(call).rle_id())
    if shared:
        calls = calls.with_columns(here=pl.len().over("call"))
        calls = calls.filter(pl.col("here") == pl.col("here").max().over("group")).drop("here")
    calls = calls.with_columns(pairs=pl.col("length").cum_sum())  # of all calls up to here
    calls = calls.with_columns(batch=pl.col("pairs").max().over("call") // BATCH_PAIRS)
    members = GROUPS.or_empty(groups).select("group", "members").drop_nulls().collect().unique("group", keep="first")
    places = (
        members.with_columns(place=pl.int_ranges(0, pl.col("members").list.len()))
        .explode("members", "place")
        .rename({"members": "receiver"})
    )
    for batch in calls.partition_by("batch", maintain_order=True):
        each = batch.drop("alone", "batch", "pairs").with_columns(
            elements=listed("input_splits"), place=pl.int_ranges(0, pl.col("length"))
        )
        joined = (
            each.drop("input_splits", "length")
            .explode("elements", "place")
            .join(places, on=["group", "place"], how="left", maintain_order="left")
        )
        yield joined.with_columns(pl.coalesce("receiver", "place").cast(pl.Int32)).drop("place")


def _of_calls(sent: pl.DataFrame) -> pl.DataFrame:
    """One row for each call, without names of groups."""
    sent = sent.sort("call", "rank", "receiver")
    most = pl.col("elements").arg_max()
    of_call = sent.group_by("call").agg(
        pl.col("group", "sequence", "operation", "size").first(),
        pl.col("step").min(),
        ranks=pl.col("rank").n_unique().cast(pl.Int32),
        elements=pl.col("elements").sum(),
        pair_factor=_factor("elements"),
        pair_rank=pl.col("rank").get(most),
        pair_receiver=pl.col("receiver").get(most),
    )
    by_sender = _most(sent, "rank", "sent")
    by_receiver = _most(sent, "receiver", "received", least=True)
    compared = [*by_sender.columns[1:], *by_receiver.columns[1:], "pair_factor", "pair_rank", "pair_receiver"]
    is_whole = pl.col("ranks") == pl.col("size")
    rows = of_call.join(by_sender, on="call").join(by_receiver, on="call")
    return rows.with_columns(pl.when(is_whole).then(pl.col(compared)))


def _factor(column: str) -> pl.Expr:
    mean = pl.col(column).mean()
    return pl.when(mean > 0).then(pl.col(column).max() / mean)


def _most(sent: pl.DataFrame, side: str, what: str, *, least: bool = False) -> pl.DataFrame:
    """The rank with most elements on one side of each call, over the mean."""
    sums = sent.group_by("call", side).agg(pl.col("elements").sum()).sort(-pl.col("elements"), side)
    last = {f"least_{what}_rank": pl.col(side).last()} if least else {}
    return sums.group_by("call", maintain_order=True).agg(
        **{f"{what}_factor": _factor("elements"), f"most_{what}_rank": pl.col(side).first()}, **last
    )
