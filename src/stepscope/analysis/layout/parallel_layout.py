"""Where each rank is in the job: host, device, network interface, and its place in each parallel dimension."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.call_patterns import LIMITS, Limits
from stepscope.analysis.methods.layout_conflicts import GIVEN, MARKS, NAMES, PATTERN, SIZES
from stepscope.analysis.methods.layout_transfers import transfer_conflicts
from stepscope.analysis.methods.memberships import ranks_text
from stepscope.analysis.methods.parallel_layout import RANK_TABLE, RECORDED, Layout, parallel_groups
from stepscope.analysis.methods.parallel_sizes import DIMENSIONS
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column, schema_of

BY = (GIVEN, NAMES, SIZES, MARKS, PATTERN)

WORDS = {name: kind.removesuffix(" group") for name, kind in DIMENSIONS.items()}
"""Short name of each dimension, and what it is."""


def _of_dimension(name: str) -> tuple[Column, ...]:
    word = WORDS[name]
    return (
        Column(name, "int32", f"Its position in its {word} group, from 0; null if unknown."),
        Column(f"{name}_size", "int32", f"Ranks in that group: 1 if there is no {word} division; null if unknown."),
        Column(f"{name}_ranks", "string", "The ranks of that group, e.g. `0-3`; null if unknown."),
        Column(f"{name}_by", "string", "What shows that, as in `parallel_dimensions`; null if unknown.", values=BY),
    )


LAYOUT = columns(
    "rank",
    Column("host", "string", "Host of the rank; null if not recorded."),
    Column("device", "int32", "Number of its device on the host; null if not recorded."),
    Column(
        "nic", "string", "Address of the device's network interface; null if no table of ranks has it.", title="NIC"
    ),
    Column("place_by", "string", "What shows host and device; null if nothing does.", values=(RECORDED, RANK_TABLE)),
    *(column for name in DIMENSIONS for column in _of_dimension(name)),
)


@analysis("job", LAYOUT, whole_job=True)
def parallel_layout(
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    slices: pl.LazyFrame | None = None,
    layout: str | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Where each rank is: host, device, and its position in each dimension of the parallel layout.

    Args:
        layout: The parallel sizes that the user gives, e.g. `tp=2,pp=4,dp=8`, in the usual order of ranks (tensor,
            context, expert, data, pipeline) or another, e.g. `tp=2,pp=2,order=tp-pp-dp`. Recorded groups that
            contradict it count, and `layout_conflicts` has them.

    Returns:
        One row per recorded rank, in order.

    Raises:
        StepscopeError: If `layout` is not understood, or does not fit the number of ranks.
    """
    known = ranks.collect()
    named = None if groups is None else groups.collect()
    found = parallel_groups(
        known, named, given=layout, collectives=collectives, steps=steps, slices=slices, limits=limits
    )
    has_place = pl.any_horizontal(pl.col("host", "device").is_not_null())
    by = pl.when(pl.col("rank_origin") == RANK_TABLE).then(pl.lit(RANK_TABLE)).otherwise(pl.lit(RECORDED))
    places = known.select("rank", "host", "device", "nic", place_by=pl.when(has_place).then(by))
    for name in DIMENSIONS:
        places = places.join(_rows(found, name), on="rank", how="left")
    return places.unique("rank", keep="first").sort("rank")


def _rows(layout: Layout, name: str) -> pl.DataFrame:
    """The place of each rank in a dimension."""
    schema = schema_of(LAYOUT)
    rows = [
        (rank, place, len(members), text, layout.by[name])
        for members in layout.groups.get(name, [])
        for text in [ranks_text(members)]
        for place, rank in enumerate(members)
    ]
    names = ["rank", name, f"{name}_size", f"{name}_ranks", f"{name}_by"]
    return pl.DataFrame(rows, schema={column: schema[column] for column in names}, orient="row")


OF_DIMENSIONS = columns(
    Column("dimension", "string", "The dimension.", values=tuple(DIMENSIONS)),
    Column("kind", "string", "What it divides: kind of parallelism.", values=tuple(WORDS.values())),
    Column("size", "int32", "Ranks in each of its groups; null if unknown."),
    Column("groups", "int64", "Groups with recorded ranks."),
    Column("first_group", "string", "The ranks of the first group, e.g. `0-3`; null if unknown."),
    Column(
        "by",
        "string",
        "What shows it: the user (`given`), names of groups, recorded sizes, `marks` of the framework's data "
        "parallelism, or how its groups communicate.",
        values=BY,
        title="known from",
    ),
    nulls="size first_group by",
)


@analysis("job", OF_DIMENSIONS, whole_job=True, passes=("layout",))
def parallel_dimensions(parallel_layout: pl.DataFrame, layout: str | None = None) -> pl.DataFrame:  # noqa: ARG001
    """How a job is divided: the size of each parallel dimension, and what shows it.

    Args:
        layout: As for `parallel_layout`.

    Returns:
        One row per dimension, also for those of which nothing is known.
    """
    rows = []
    for name, word in WORDS.items():
        known = parallel_layout.filter(pl.col(name).is_not_null()).sort("rank")
        facts = known.select(f"{name}_size", f"{name}_ranks", f"{name}_by").head(1).rows() or [(None, None, None)]
        size, first, by = facts[0]
        rows.append((name, word, size, known[f"{name}_ranks"].n_unique(), first, by))
    return pl.DataFrame(rows, schema=schema_of(OF_DIMENSIONS), orient="row")


CONFLICTS = columns(
    Column(
        "kind",
        "string",
        "What contradicts: recorded groups have another `size` or other `members` than stated, groups of one name "
        "are `uneven` (they overlap or differ in size) or of two dimensions and `shared` (they have several ranks in "
        "common), sizes need another number of ranks (`world`), some `ranks` recorded other sizes than most, a group "
        "lies across (`crossed`) what is given, a given size takes the place of a recorded one (`replaced`), the "
        "given layout does not fit the recorded groups and none of it is used (`unused`), or ranks send to each other "
        "otherwise than along the given pipelines (`transfers`).",
        values=("size", "members", "uneven", "shared", "world", "ranks", "crossed", "replaced", "unused", "transfers"),
    ),
    Column("dimension", "string", "The dimension; null if it is about all.", values=tuple(DIMENSIONS)),
    Column("by", "string", "What is contradicted.", values=BY),
    Column("stated", "int32", "Size, or number of ranks, that is stated; null if it is not about sizes."),
    Column("found", "int32", "The one that was found, or that transfers suggest."),
    Column("members", "string", "Ranks that show it, e.g. `0, 4`; null if it is about all.", title="ranks"),
    nulls="dimension stated found members",
)


@analysis("job", CONFLICTS, whole_job=True)
def layout_conflicts(
    ranks: pl.LazyFrame, groups: pl.LazyFrame | None, collectives: pl.LazyFrame | None = None, layout: str | None = None
) -> pl.DataFrame:
    """What contradicts the parallel layout: recorded groups and sizes, and what the user gives.

    Args:
        layout: As for `parallel_layout`.

    Returns:
        One row per contradiction. What is contradicted is not used, but a given layout is if a recorded group lies
        across it, as that may have another purpose, or only transfers contradict it.
    """
    known = ranks.collect()
    listed = None if groups is None else groups.collect()
    found = parallel_groups(known, listed, given=layout)
    if collectives is not None and found.by.get("pp") == GIVEN:
        world = known["world_size"].max()
        count = world if isinstance(world, int) else known["rank"].n_unique()
        found.conflicts += transfer_conflicts(collectives, listed, found.groups, count)
    rows = [
        (one.kind, one.dimension, one.by, one.stated, one.found, ranks_text(one.ranks) or None)
        for one in found.conflicts
    ]
    return pl.DataFrame(rows, schema=schema_of(CONFLICTS), orient="row")
