"""Calls between ranks, a track a group, and what they are made of on the device, a track a plane."""

from __future__ import annotations

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import Family, Part, drawn_here
from stepscope.timeline.tracks.flows import launch_flow

ARGUMENTS = (
    "operation", "group", "group_name", "ranks", "group_size", "sequence", "size_bytes", "element_type", "peer",
    "wait_ns", "transmit_ns", "synchronization_ns", "algorithm", "retried", "relayed", "micro_batch", "model_chunk",
    "step", "correlation", "stream",
)  # fmt: skip
MOST_GROUPS = 32
"""Groups of a rank that have a track each though only their names are known, chosen by us."""
MOST_MEMBERS = 64
"""Ranks of a group that a range names; of larger groups, their number is all that fits."""


def _communication(part: Part) -> pl.LazyFrame | None:
    """Calls, as the source marks them where it has ranges of them beside the streams, else rows of `collectives`."""
    if not part.has("collectives") and not part.has("slices"):
        return None
    calls = drawn_here(part, "collectives").join(
        group_names(part), on=["rank", "group"], how="left", maintain_order="left"
    )
    place = ["rank", "start_ns", "duration_ns"]
    marked = drawn_here(part, "slices").filter(pl.col("stream").is_null() & (pl.col("category") == "communication"))
    marked = marked.select(*place, "category", marked_name="name")
    alone = calls.join(marked, on=place, how="anti", maintain_order="left").select(
        *place, pl.lit("collective").alias("category"), pl.col("name"), *ARGUMENTS, table=pl.lit("collectives")
    )
    known = calls.select(*place, "name", *ARGUMENTS).unique(place, keep="first", maintain_order=True)
    drawn = marked.join(known, on=place, how="left", maintain_order="left")
    drawn = drawn.with_columns(name="marked_name", table=pl.lit("slices")).drop("marked_name")
    titles = part.once(_titles)
    key = ["rank", "group", "stream"]
    rows = pl.concat([drawn, alone], how="diagonal").sort("start_ns", maintain_order=True)
    rows = rows.join(titles.lazy(), on=key, how="left", nulls_equal=True, maintain_order="left")
    return rows.with_columns(
        track=pl.col("track").fill_null("No group recorded"),
        order=pl.col("order").fill_null(0),
        flow_in_launch=launch_flow(pl.col("category") == "communication"),
    )


def group_names(part: Part) -> pl.LazyFrame:
    """What is known of groups: `rank`, `group`, `group_name`, `members` (how many), `ranks`."""
    named = part.table("groups").unique(["rank", "group"], keep="first", maintain_order=True)
    return named.select(
        "rank",
        "group",
        group_name="name",
        members=pl.col("members").list.len().cast(pl.Int32),
        ranks=pl.when(pl.col("members").list.len() <= MOST_MEMBERS).then(
            pl.col("members").cast(pl.List(pl.String)).list.join(",")
        ),
    )


def group_title(name: str = "name", group: str = "group") -> pl.Expr:
    """What the track of a group is called, by the columns with its name and its key."""
    is_same = (pl.col(name) == pl.col(group)).fill_null(True)
    return (
        pl.when(pl.col(group).is_null())
        .then(pl.lit("No group recorded"))
        .when(is_same)
        .then(filled_in("Group {}", group))
        .otherwise(filled_in("Group {} ({})", name, group))
    )


def _titles(part: Part) -> pl.DataFrame:
    """What each group of a rank is called: `rank`, `group`, `stream`, `track`, `order`.

    Some sources have a group for each operator instead of process groups. Where there are many of them, of which
    nothing else is known, calls are shown by stream.
    """
    used = part.table("collectives").group_by("rank", "group", "stream").len().collect()
    names = part.table("groups").select("rank", "group", "name").collect().unique(["rank", "group"], keep="first")
    known = used.join(names.with_columns(known=True), on=["rank", "group"], how="left", nulls_equal=True)
    known = known.sort("rank", "group", "stream", nulls_last=True)
    many = pl.col("group").n_unique().over("rank") > MOST_GROUPS
    stream = pl.coalesce(filled_in("Calls on stream {}", "stream"), pl.lit("Calls"))
    title = (
        pl.when(many & pl.col("known").is_null() & pl.col("group").is_not_null()).then(stream).otherwise(group_title())
    )
    return known.select(
        "rank", "group", "stream", track=title, order=pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    )


def _planes(part: Part) -> pl.LazyFrame | None:
    """Tasks of calls on the device, as far as no stream shows them."""
    if not part.has("communication_tasks"):
        return None
    whole = part.within((None, None), ())
    shown = (
        whole.table("slices")
        .filter(pl.col("stream").is_not_null() & (pl.col("category") == "communication_task"))
        .select("rank")
        .unique()
        .collect()["rank"]
    )
    tasks = _in_steps(part, part.table("communication_tasks")).with_columns(
        category=pl.when(pl.col("rank").is_in(shown.implode()))
        .then(pl.lit("plane_task"))
        .otherwise(pl.lit("communication_task"))
    )
    plane = pl.coalesce(filled_in("Plane {}", "plane"), filled_in("Stream {}", "stream"), pl.lit("No plane recorded"))
    return tasks.select(
        "rank", "start_ns", "duration_ns", "name", "category", "call", "source", "destination", "transport", "link",
        "size_bytes", "element_type", "stream", track=plane, order=pl.col("plane").fill_null(-1).cast(pl.Int64),
    )  # fmt: skip


def _in_steps(part: Part, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of a table that does not say their steps: those that start in a step that is shown, if others are not."""
    if not any(rank.steps is not None for rank in part.run.ranks):
        return rows
    begin, end = (("start_ns", "window_start_ns"), ("end_ns", "window_end_ns"))
    steps = part.table("steps").select("rank", at=pl.min_horizontal(begin), until=pl.max_horizontal(end))
    placed = rows.sort("start_ns", maintain_order=True).join_asof(
        steps.sort("at"), left_on="start_ns", right_on="at", by="rank", check_sortedness=False
    )
    return placed.filter(pl.col("start_ns") < pl.col("until"))


FAMILY = Family(
    "communication",
    "Communication",
    "Calls between ranks by process group, with operation, bytes, members, wait and transmission.",
    "detail",
    _communication,
    tables=("collectives", "slices"),
    paged=("collectives", "slices"),
    priority=2,
)
PLANES = Family(
    "planes",
    "Communication planes",
    "What calls are made of on the device: transfers, reductions and waits, by plane, with link and bytes.",
    "detail",
    _planes,
    tables=("communication_tasks",),
    paged=("communication_tasks",),
    priority=4,
)
