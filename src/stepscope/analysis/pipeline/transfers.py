"""Sends and receives between pipeline stages, paired across ranks."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.communication.arrival import CLOCK_NOISE_NS
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.pipeline_places import BACKWARD, FORWARD, direction
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import GROUPS
from stepscope.tables.base import Column

POSITION, ORDER, PLACE = "position", "order", "place"

NOT_RECORDED = "other rank not recorded"
NO_OTHER, UNKNOWN_OTHER = "no other side", "other side unknown"
SAME_SIDE, SIZES, EARLY = "both do the same", "sizes differ", "received before it was sent"
PROBLEMS = (NOT_RECORDED, NO_OTHER, UNKNOWN_OTHER, SAME_SIDE, SIZES, EARLY)

COLUMNS = columns(
    "step",
    Column("rank_a", "int32", "Rank that sends; null if it is unknown.", title="from rank", importance=90),
    Column("stage_a", "int32", "Its pipeline stage.", title="from stage", importance=80),
    Column("rank_b", "int32", "Rank that receives; null if it is unknown.", title="to rank", importance=89),
    Column("stage_b", "int32", "Its pipeline stage.", title="to stage", importance=79),
    Column(
        "direction",
        "string",
        "Activations to a later stage (`forward`) or gradients to an earlier one (`backward`); null if unknown.",
        values=(FORWARD, BACKWARD),
        importance=75,
    ),
    Column("micro_batch", "int32", "Micro-batch, from 0, as recorded.", importance=60),
    Column("model_chunk", "int32", "Virtual stage of the sender, from 0, as recorded."),
    Column("number", "int32", "Position among what the one sends to the other in the step, from 0.", importance=65),
    Column("group", "string", "Key of the process group."),
    Column("name", "string", "Name of the send, or of the receive if that is alone."),
    Column("size_bytes", "int64", "What is sent.", title="size", importance=55),
    Column("received_bytes", "int64", "What is received, as the receiver states it."),
    Column("send_start_ns", "int64", "When the sender entered the call, on the common clock.", moment=True),
    Column("send_end_ns", "int64", "When it left it.", moment=True),
    Column("receive_start_ns", "int64", "When the receiver entered the call, on the common clock.", moment=True),
    Column("receive_end_ns", "int64", "When it left it.", moment=True),
    Column("sender_wait_ns", "int64", "Waiting of the sender for the receiver.", importance=50),
    Column("receiver_wait_ns", "int64", "Waiting of the receiver for the sender.", importance=70),
    Column("transmit_ns", "int64", "From when both had entered to when the receiver has it.", importance=58),
    Column(
        "paired_by",
        "string",
        "`position`: both have the same position in the group; `order`: the n-th from one to the other is the n-th "
        "that this one receives; `place`: the same, where the other side is not recorded, of two stages, as the ranks "
        "at one place in both: a guess that numbers and times of all calls of the step bear out. Null without a pair.",
        values=(POSITION, ORDER, PLACE),
        importance=45,
    ),
    Column("problem", "string", "Why it has no pair, or what does not fit in it.", values=PROBLEMS, importance=85),
    nulls="step rank_a stage_a rank_b stage_b direction micro_batch model_chunk group size_bytes received_bytes "
    "send_start_ns send_end_ns receive_start_ns receive_end_ns sender_wait_ns receiver_wait_ns transmit_ns paired_by "
    "problem",
)

NO_TRANSFERS = "no sends or receives between pipeline stages were recorded"

_OF_CALL = ["step", "micro_batch", "model_chunk", "name", "size_bytes", "start_ns", "end_ns", "wait_ns", "position"]


@analysis("job", COLUMNS, whole_job=True)
def pipeline_transfers(
    arrival: pl.DataFrame,
    collectives: pl.LazyFrame,
    pipeline_places: pl.DataFrame,
    groups: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Pair sends and receives across ranks: one row per pair, or per call without one, in order of time.

    Calls are matched as in `arrival`. Those within a stage are left out.

    Raises:
        Unavailable: If there are none.
    """
    told = collectives.filter(pl.col("operation").is_in(["send", "recv"])).select(
        "rank", "collective", "peer", "micro_batch", "model_chunk", position="sequence"
    )
    calls = arrival.filter("point_to_point").join(told.collect(), on=["rank", "collective"])
    if calls.is_empty():
        raise Unavailable(NO_TRANSFERS)
    sends, receives = (calls.filter(pl.col("operation") == word) for word in ("send", "recv"))
    key = list(CALL)
    matched = pl.col("members") == 2
    sides = sends.filter(matched).select(*key, "rank", *_OF_CALL).rename({"rank": "rank_a"})
    others = receives.filter(matched).select(*key, "rank", *_OF_CALL).rename({"rank": "rank_b"})
    pairs = sides.join(others, on=key, suffix="_b").with_columns(paired=pl.lit(value=True))
    paired = pairs.select(key)
    lone = calls.join(paired, on=key, how="anti").join(_others(groups), on=["group", "rank"], how="left")
    other = pl.coalesce("only", pl.when(pl.col("is_listed")).then("peer"))
    lone = lone.with_columns(other=pl.when(other != pl.col("rank")).then(other).cast(pl.Int32))
    unsent = lone.filter(pl.col("operation") == "recv").select(
        *key, "members", rank_a="other", rank_b="rank", receive="collective", **{f"{name}_b": name for name in _OF_CALL}
    )
    unreceived = lone.filter(pl.col("operation") == "send").select(
        *key, "members", *_OF_CALL, rank_a="rank", rank_b="other", send="collective"
    )
    guessed = _by_place(unreceived, unsent, pipeline_places)
    unreceived = unreceived.join(guessed, on=["rank_a", "send"], how="anti")
    unsent = unsent.join(guessed, on=["rank_b", "receive"], how="anti")
    rows = pl.concat([pairs, guessed, unsent, unreceived], how="diagonal_relaxed")
    return _described(rows, pipeline_places, arrival["rank"].unique())


def _by_place(sends: pl.DataFrame, receives: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Pairs of lone calls in a job of two stages of equal size: each rank can only exchange with the one at its place
    in the other stage. Those of a step count if both have as many and all overlap in time, in their order."""
    at = places.sort("stage", "rank").with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over("stage"))
    sizes = at.group_by("stage").len()["len"]
    if len(sizes) != 2 or sizes.n_unique() != 1:
        return sends.clear().with_columns(receive=pl.lit(None, pl.Int64), rank_b=pl.lit(None, pl.Int32))
    other = at.join(at, on="place", suffix="_b").filter(pl.col("rank") != pl.col("rank_b"))
    known = other.select(rank_a="rank", rank_b="rank_b")
    turn = pl.int_range(pl.len(), dtype=pl.Int64)
    sent = sends.filter(pl.col("rank_b").is_null() & pl.col("step").is_not_null()).drop("rank_b")
    sent = sent.sort("start_ns", "send").with_columns(turn=turn.over("rank_a", "step"))
    received = receives.filter(pl.col("rank_a").is_null() & pl.col("step_b").is_not_null()).drop("rank_a")
    received = received.sort("start_ns_b", "receive").with_columns(turn=turn.over("rank_b", "step_b"))
    both = sent.join(known, on="rank_a").join(
        received.drop("group", "sequence", "members"),
        left_on=["rank_b", "step", "turn"],
        right_on=["rank_b", "step_b", "turn"],
        how="full",
        coalesce=True,
    )
    fits = (pl.col("end_ns_b") + CLOCK_NOISE_NS >= pl.col("start_ns")) & (
        pl.col("end_ns") + CLOCK_NOISE_NS >= pl.col("start_ns_b")
    )
    first = pl.coalesce("rank_a", pl.col("rank_b").replace_strict(dict(known.select("rank_b", "rank_a").rows())))
    whole = both.with_columns(first=first).with_columns(all_fit=fits.fill_null(value=False).all().over("first", "step"))
    waits = [
        pl.min_horizontal((pl.col(later) - pl.col(own)).clip(lower_bound=0), pl.col(end) - pl.col(own)).alias(name)
        for own, end, later, name in (
            ("start_ns", "end_ns", "start_ns_b", "wait_ns"),
            ("start_ns_b", "end_ns_b", "start_ns", "wait_ns_b"),
        )
    ]
    return whole.filter("all_fit").with_columns(*waits, paired=pl.lit(value=True), by_place=True).drop("first", "turn")


def _others(groups: pl.LazyFrame | None) -> pl.DataFrame:
    """What is known of the other side of calls in a group: `only`, the one other member if there is one, and
    `is_listed`, whether stated peers are members of the group themselves and not places in it."""
    known = GROUPS.or_empty(groups).select("group", "rank", "members").drop_nulls("members").collect()
    rest = pl.col("members").list.set_difference(pl.concat_list("rank"))
    return known.unique(["group", "rank"], keep="first", maintain_order=True).select(
        "group",
        "rank",
        only=pl.when(rest.list.len() == 1).then(rest.list.first()),
        is_listed=pl.col("members").list.min() >= pl.col("members").list.len(),
    )


def _described(rows: pl.DataFrame, places: pl.DataFrame, recorded: pl.Series) -> pl.DataFrame:
    """Pairs and lone calls with stages, direction and what is wrong with them."""
    at = places.select("rank", "stage")
    for end in ("a", "b"):
        of_end = at.rename({"rank": f"rank_{end}", "stage": f"stage_{end}"})
        rows = rows.join(of_end, on=f"rank_{end}", how="left", maintain_order="left")
    between = (pl.col("stage_a") != pl.col("stage_b")).fill_null(value=True)
    rows = rows.filter(between)
    if rows.is_empty():
        raise Unavailable(NO_TRANSFERS)
    is_pair = pl.col("paired").fill_null(value=False)
    guessed = pl.col("by_place").fill_null(value=False) if "by_place" in rows.columns else pl.lit(value=False)
    far = pl.when(pl.col("start_ns").is_null()).then("rank_a").otherwise("rank_b")
    lone = (
        pl.when(pl.col("members") > 1)
        .then(pl.lit(SAME_SIDE))
        .when(far.is_null())
        .then(pl.lit(UNKNOWN_OTHER))
        .when(~far.is_in(recorded.implode()))
        .then(pl.lit(NOT_RECORDED))
        .otherwise(pl.lit(NO_OTHER))
    )
    problem = (
        pl.when(~is_pair)
        .then(lone)
        .when(pl.col("size_bytes") != pl.col("size_bytes_b"))
        .then(pl.lit(SIZES))
        .when(pl.col("end_ns_b") + CLOCK_NOISE_NS < pl.col("start_ns"))
        .then(pl.lit(EARLY))
    )
    both = pl.max_horizontal("start_ns", "start_ns_b")
    began = pl.min_horizontal("start_ns", "start_ns_b")
    told = rows.with_columns(
        name=pl.coalesce("name", "name_b"),
        step=pl.coalesce("step", "step_b"),
        micro_batch=pl.coalesce("micro_batch", "micro_batch_b"),
        model_chunk=pl.coalesce("model_chunk", "model_chunk_b"),
        began=began,
    ).with_columns(
        direction=direction(),
        problem=problem,
        transmit_ns=pl.when(is_pair).then((pl.col("end_ns_b") - both).clip(lower_bound=0)),
        paired_by=pl.when(is_pair & guessed)
        .then(pl.lit(PLACE))
        .when(is_pair & (pl.col("position") == pl.col("position_b")))
        .then(pl.lit(POSITION))
        .when(is_pair)
        .then(pl.lit(ORDER)),
        received_bytes="size_bytes_b",
        send_start_ns="start_ns",
        send_end_ns="end_ns",
        receive_start_ns="start_ns_b",
        receive_end_ns="end_ns_b",
        sender_wait_ns="wait_ns",
        receiver_wait_ns="wait_ns_b",
    )
    ordered = told.sort("began", "rank_a", "rank_b", "group", "sequence", nulls_last=True)
    number = pl.int_range(pl.len(), dtype=pl.Int32).over("step", "rank_a", "rank_b", "direction")
    return ordered.with_columns(number=number).select(names(COLUMNS))
