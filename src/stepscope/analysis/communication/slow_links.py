"""Which links, or network interfaces or hosts with all their links, move data more slowly than others of their kind."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.gains import GAINS, gains
from stepscope.analysis.communication.link_costs import link_costs
from stepscope.analysis.communication.suspected_links import UNITS
from stepscope.analysis.methods.link_cuts import ENDS
from stepscope.analysis.methods.step_windows import count_steps
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column, schema_of

COLUMNS = columns(
    Column(
        "unit",
        "string",
        "What is slow: the `link` between two ranks, the `nic` (all links of a rank), the `host` (those of all its "
        "ranks), all links between two `hosts`, or several `links` that form no such unit.",
        values=UNITS,
    ),
    Column("rank_a", "int32", "One end of the link, or the rank of the interface; null for hosts and several links."),
    Column("rank_b", "int32", "The other end of the link; null if there are several."),
    Column("ranks", "string", "Ranks of the links, interface or host, e.g. `0, 1`."),
    Column("host", "string", "The host, or both; null for links and interfaces."),
    Column("transport", "string", "Kind of link, e.g. `HCCS`, `RDMA`."),
    Column("links", "int64", "Number of links that this explains.", importance=37),
    "bandwidth_bytes_per_s",
    Column(
        "typical_bytes_per_s",
        "float64",
        "Bandwidth of typical links for the same data; of two links, that of the other.",
        title="typical",
        importance=52,
    ),
    Column("bandwidth_ratio", "float64", "Bandwidth over the typical one.", title="of typical"),
    meaning("cost_ns", "Extra time of its transfers in a step compared with typical links: an upper bound."),
    Column(
        "exposed_ns",
        "int64",
        "Its share of what the job would save per step if slow links and ranks were typical, by replay; null if "
        "unknown.",
        importance=51,
    ),
    Column("saving_low_ns", "int64", "What it may be at least, as in `suspect_costs`.", importance=21),
    Column("saving_high_ns", "int64", "What it may be at most, as in `suspect_costs`.", importance=22),
    Column("alone_ns", "int64", "What mending this alone would save.", importance=20),
    Column(
        "pattern",
        "string",
        "When it is slow: `steady`, `since`, `until`, `periodic`, `sometimes`, `once`.",
        importance=40,
    ),
    meaning("steps", "Number of its steps."),
    Column("slow_steps", "list[int32]", "Those in which it is slow.", importance=12),
    Column("period", "int64", "Steps between recurrences; null if irregular.", importance=13),
    meaning("size_bytes", "Bytes moved in a slow step."),
    meaning("score", "How far it stands out, in robust standard deviations; null if there are only two links."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it.", importance=11),
    nulls="rank_a rank_b host transport exposed_ns saving_low_ns saving_high_ns alone_ns period score error_ratio",
)


SCHEMA = schema_of(COLUMNS)


@analysis("job", COLUMNS, whole_job=True)
def slow_links(
    links: pl.LazyFrame, suspected_links: pl.DataFrame, suspect_costs: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Name the links, interfaces and hosts that are slow (`suspected_links`), and what they cost.

    The links of a group work side by side, so a slow one costs what its group's slowest link would be faster without
    it; several causes in a group share that. What the job gains from it is found by replay, together with slow ranks
    (`suspect_costs`).

    Returns:
        One row per slow link, interface or host, most expensive first.
    """
    if suspected_links.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    costs = link_costs(links, suspected_links)
    known = gains(suspect_costs, "links")
    rows = suspected_links.join(costs, on="suspect", how="left").join(known, on="suspect", how="left")
    rows = rows.with_columns(number=pl.coalesce("number", pl.col("suspect")))
    size, length = pl.col("size_bytes").sum(), pl.col("duration_ns").sum()
    one = pl.col("suspect").n_unique() == 1
    steps = count_steps().fill_null(1)
    found = rows.group_by("number", maintain_order=True).agg(
        pl.when(one).then(pl.col("unit").first()).otherwise(pl.lit("links")).alias("unit"),
        pl.when(one).then(pl.col("host").first()).alias("host"),
        pl.col("ranks").unique().sort(),
        pl.col("transport").unique().sort().str.join(", "),
        pl.col("score").max(),
        links=pl.struct(ENDS).n_unique().cast(pl.Int64),
        bandwidth_ratio=(pl.col("duration_ns") * pl.col("ratio")).sum() / length,
        bandwidth_bytes_per_s=size / length * 1e9,
        size_bytes=(size / steps).round().cast(pl.Int64),
        cost_ns=pl.struct("suspect", "cost_ns").unique().struct.field("cost_ns").sum(),
        **{name: pl.col(name).first() for name in (*GAINS, "pattern", "period", "steps")},
        slow_steps=pl.col("step").drop_nulls().unique().sort(),
    )
    ends = [pl.col("ranks").list.get(place, null_on_oob=True) for place in (0, 1)]
    is_link, is_end = pl.col("unit") == "link", pl.col("unit").is_in(["link", "nic"])
    numbers = pl.col("ranks").list.join(", ").str.split(", ").list.eval(pl.element().cast(pl.Int32))
    return (
        found.with_columns(ranks=numbers.list.unique().list.sort())
        .with_columns(rank_a=pl.when(is_end).then(ends[0]), rank_b=pl.when(is_link).then(ends[1]))
        .with_columns(
            ranks=pl.col("ranks").list.eval(pl.element().cast(pl.String)).list.join(", "),
            typical_bytes_per_s=pl.col("bandwidth_bytes_per_s") / pl.col("bandwidth_ratio"),
        )
        .select(names(COLUMNS))
        .sort(-pl.col("cost_ns"), "unit", "rank_a", "rank_b", "transport", "ranks", nulls_last=True)
    )
