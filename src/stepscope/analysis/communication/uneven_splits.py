"""How evenly calls that split their payload (all-to-all) spread it over ranks."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import GROUPS
from stepscope.tables.base import Column

NO_SPLITS = "no call with recorded splits: PyTorch records them for all-to-all with sizes of its own for each rank"

_CALL = ["group", "sequence"]

COLUMNS = columns(
    "group group_name",
    Column("sequence", "int64", "Position of the call in its group, from 0.", importance=40),
    "step operation",
    Column("ranks", "int32", "Ranks whose splits are recorded.", importance=55),
    Column("elements", "int64", "Elements that all of them send.", importance=58),
    Column("sent_factor", "float64", "Most elements that a rank sends, over the mean of all.", importance=60),
    Column("most_sent_rank", "int32", "Rank that sends most.", title="sends most", importance=56),
    Column("received_factor", "float64", "Most elements that a rank receives, over the mean of all.", importance=62),
    Column("most_received_rank", "int32", "Rank that receives most.", title="receives most", importance=61),
    Column("least_received_rank", "int32", "Rank that receives least.", title="receives least", importance=45),
    Column("pair_factor", "float64", "Most elements that go from one rank to another, over the mean of all pairs."),
    Column("pair", "string", "These two ranks, e.g. `0 -> 3`; the second one by its place if members are unknown."),
    nulls="group group_name step sent_factor received_factor pair_factor pair most_sent_rank most_received_rank "
    "least_received_rank",
    keep="group_name received_factor most_received_rank operation sent_factor",
)

PAIRS = columns(
    "group group_name",
    meaning("rank", "Rank that sends."),
    Column("receiver", "int32", "Rank that receives; its place in the group if members are unknown.", nullable=False),
    meaning("calls", "Calls."),
    Column("elements", "int64", "Elements that it sends to this one in all calls.", importance=70),
    Column("share_ratio", "float64", "Share of what the ranks of the group send.", importance=69),
    nulls="group group_name",
)


@analysis("job", PAIRS, whole_job=True)
def split_pairs(
    collective_splits: pl.LazyFrame, collectives: pl.LazyFrame, groups: pl.LazyFrame | None
) -> pl.DataFrame:
    """Sum up what each rank sends to each other one in calls that split their payload: one row per group and pair.

    Raises:
        Unavailable: If no splits are recorded.
    """
    sent = _sent(collective_splits, collectives, groups)
    sums = sent.group_by("group", "rank", "receiver").agg(
        calls=pl.len().cast(pl.Int64), elements=pl.col("elements").sum()
    )
    whole = pl.col("elements").sum().over("group")
    return (
        sums.with_columns(share_ratio=pl.when(whole > 0).then(pl.col("elements") / whole).otherwise(0.0))
        .join(group_names(groups), on="group", how="left")
        .sort("group", "rank", "receiver", nulls_last=True)
        .select(names(PAIRS))
    )


@analysis("job", COLUMNS, whole_job=True)
def uneven_splits(
    collective_splits: pl.LazyFrame, collectives: pl.LazyFrame, groups: pl.LazyFrame | None
) -> pl.DataFrame:
    """Compare what ranks send and receive in each call that splits its payload: one row per call, the least even first.

    What a rank receives is what the others state to send to it, as far as they are recorded.

    Raises:
        Unavailable: If no splits are recorded.
    """
    sent = _sent(collective_splits, collectives, groups)
    by_sender = _most(sent, "rank", "sent")
    by_receiver = _most(sent, "receiver", "received", least=True)
    largest = sent.sort(-pl.col("elements"), "rank", "receiver")
    pair = pl.concat_str(pl.col("rank").cast(pl.String), pl.lit(" -> "), pl.col("receiver").cast(pl.String))
    pairs = largest.group_by(_CALL, maintain_order=True).agg(
        pl.col("step", "operation").first(),
        ranks=pl.col("rank").n_unique().cast(pl.Int32),
        pair=pair.first(),
        pair_factor=_factor("elements"),
        elements=pl.col("elements").sum(),
    )
    found = pairs.join(by_sender, on=_CALL, nulls_equal=True).join(by_receiver, on=_CALL, nulls_equal=True)
    return (
        found.join(group_names(groups), on="group", how="left")
        .sort(-pl.max_horizontal("received_factor", "sent_factor").fill_null(0), "group", "sequence", nulls_last=True)
        .select(names(COLUMNS))
    )


def _sent(splits: pl.LazyFrame, collectives: pl.LazyFrame, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """What each rank sends to each one of its group in each call: `rank`, `receiver`, `elements` and the call."""
    call = ["rank", "collective"]
    calls = collectives.select(*call, *_CALL, "step", "operation")
    text = pl.col("input_splits")
    listed = text.str.extract_all(r"\d+").cast(pl.List(pl.Int64))
    rows = (
        splits.filter(text.is_not_null()).join(calls, on=call).select(*call, *_CALL, "step", "operation", splits=listed)
    )
    known = rows.filter(pl.col("splits").list.len() > 1).collect()
    if known.is_empty():
        raise Unavailable(NO_SPLITS)
    each = known.with_columns(place=pl.int_ranges(0, pl.col("splits").list.len())).explode("splits", "place")
    members = GROUPS.or_empty(groups).select("group", "members").drop_nulls().collect().unique("group", keep="first")
    joined = each.join(members, on="group", how="left")
    receiver = pl.coalesce(pl.col("members").list.get(pl.col("place"), null_on_oob=True), "place")
    return joined.with_columns(receiver=receiver.cast(pl.Int32)).rename({"splits": "elements"}).drop("members", "place")


def _factor(column: str) -> pl.Expr:
    mean = pl.col(column).mean()
    return pl.when(mean > 0).then(pl.col(column).max() / mean)


def _most(sent: pl.DataFrame, side: str, what: str, *, least: bool = False) -> pl.DataFrame:
    """The rank with most elements on one side of each call, over the mean."""
    sums = sent.group_by(*_CALL, side).agg(pl.col("elements").sum()).sort(-pl.col("elements"), side)
    last = {f"least_{what}_rank": pl.col(side).last()} if least else {}
    return sums.group_by(_CALL, maintain_order=True).agg(
        **{f"{what}_factor": _factor("elements"), f"most_{what}_rank": pl.col(side).first()}, **last
    )
