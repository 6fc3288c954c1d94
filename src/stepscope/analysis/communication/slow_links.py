"""Which links, or network interfaces or hosts with all their links, move data more slowly than others of their kind."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.link_costs import link_costs
from stepscope.analysis.communication.link_rates import LINK, pairs_of
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import RANKS
from stepscope.tables.base import Column, schema_of

UNITS = ("link", "nic", "host")
"""What may be slow: the link between two ranks, all links of a rank, or all of a host, over one transport."""


@dataclass(frozen=True)
class Limits:
    """When a link, an interface or a host counts as slow."""

    bandwidth_ratio: float = limit(0.8, "of the median link's bandwidth", "healthy links of a kind agree within 10 %")
    score: float = limit(3.5, "robust deviations of log(bandwidth)", "Iglewicz and Hoaglin, 1993")
    floor: float = limit(0.05, "of log(bandwidth)", "smaller spread is noise")
    links: int = limit(3, "links of a transport", "fewer give no median to compare with")
    pair_ratio: float = limit(
        0.5, "of the only other link's bandwidth", "one other link shows no spread, so only a large difference counts"
    )
    pair_size_ratio: float = limit(
        0.5, "of the bytes moved by the only other link", "small transfers are slow because of latency"
    )
    end_ratio: float = limit(
        0.93, "of the bandwidth of other ranks' good links", "the best of several links varies less than one link"
    )
    end_floor: float = limit(0.02, "of log(bandwidth) of a rank's good links", "smaller spread is noise")
    end_quantile: float = limit(0.75, "of a rank's links", "most links of a rank are slow if its interface is")


COLUMNS = columns(
    Column(
        "unit",
        "string",
        "What is slow: the `link` between two ranks, the `nic` (all links of a rank), or the `host` (those of all its "
        "ranks).",
        values=UNITS,
    ),
    Column("rank_a", "int32", "One end of the link, or the rank of the interface; null for a host."),
    Column("rank_b", "int32", "The other end of the link; null if there are several."),
    Column("ranks", "string", "Ranks of the link, interface or host, e.g. `0, 1`."),
    Column("host", "string", "The host; null for links and interfaces."),
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
        "Part of `cost_ns` by which computing would go on sooner; null if unknown.",
        importance=51,
    ),
    meaning("size_bytes", "Bytes moved in a step."),
    meaning("score", "How far it stands out, in robust standard deviations; null if there are only two links."),
    nulls="rank_a rank_b host transport exposed_ns score",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_links(
    links: pl.LazyFrame,
    ranks: pl.LazyFrame | None = None,
    exposed_calls: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Compare each link's bandwidth with other links of the same transport, and name the smallest end that explains.

    Both directions of a pair of ranks are one link; the slower direction counts. Bandwidth is bytes over time, summed
    over all calls of all steps, and compared within operations and sizes. Links inside a rank (`LOCAL`) and links of
    unknown transport are left out. A link is as fast as the slower of its ends: an end is slow if even its good links
    are slower than those of other ends. If that holds for all ranks of a host, the host is named, otherwise the rank,
    otherwise the link alone. Of only two links of a transport, one is slow if it is far slower than the other and moves
    a comparable amount of data.

    The links of a group work side by side, so a slow one costs what its group's slowest link would be faster without
    it; several causes in a group share that. `exposed_ns` is what of it computing awaits, as `exposed_calls` tells it,
    on the rank that gains least.

    Returns:
        One row per slow link, interface or host, most expensive first.
    """
    rows = links.filter(
        (pl.col("source") != pl.col("destination"))
        & (pl.col("transport") != "LOCAL")
        & (pl.col("duration_ns") > 0)
        & (pl.col("size_bytes") > 0)
        & pl.col("name").is_null()
    ).collect()
    pairs = pairs_of(rows, limits.links)
    hosts = RANKS.or_empty(ranks).select("rank", "host").drop_nulls().unique("rank").sort("rank").collect()
    ends = _slow_ends(pairs, hosts, limits)
    slow = pl.concat([_explained(pairs, ends, limits), _alone(pairs, ends, limits)])
    if slow.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    costs = link_costs(rows, slow, exposed_calls)
    found = slow.group_by("unit", "rank_a", "rank_b", "ranks", "host", "transport").agg(
        pl.col("score").first(),
        pl.len().cast(pl.Int64).alias("links"),
        ratio=pl.col("expected_ns").sum() / pl.col("duration_ns").sum(),
        rate=pl.col("size_bytes").sum() / pl.col("duration_ns").sum() * 1e9,
        size_bytes=(pl.col("size_bytes") / pl.col("steps")).sum().round().cast(pl.Int64),
    )
    return (
        found.join(costs, on=["unit", "ranks", "transport"], how="left", nulls_equal=True)
        .with_columns(
            bandwidth_bytes_per_s="rate",
            typical_bytes_per_s=pl.col("rate") / pl.col("ratio"),
            bandwidth_ratio="ratio",
        )
        .select(names(COLUMNS))
        .sort(-pl.col("cost_ns"), "unit", "rank_a", "rank_b", "transport", "ranks", nulls_last=True)
    )


def _slow_ends(pairs: pl.DataFrame, hosts: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Interfaces and hosts that are slow: `transport`, `rank`, `unit`, `host` (of a unit host), `score`."""
    both = [
        pairs.select("transport", rank=one, other=other, speed="speed")
        for one, other in (("rank_a", "rank_b"), ("rank_b", "rank_a"))
    ]
    of_ends = pl.concat(both).join(hosts, on="rank", how="left", maintain_order="left")
    # Even the good links of a slow interface are slow; those of others are not, though they have one with it.
    ends = of_ends.group_by("transport", "rank", "host").agg(
        good=pl.col("speed").quantile(limits.end_quantile, "higher"), links=pl.len()
    )
    typical = pl.col("good").quantile(0.5, "higher").over("transport")
    off = -(pl.col("good") / typical).log()
    spread = pl.max_horizontal(off.abs().quantile(0.5, "lower").over("transport") * MAD_TO_SIGMA, limits.end_floor)
    ends = ends.with_columns(score=off / spread).with_columns(
        is_slow=(pl.col("good") < limits.end_ratio * typical) & (pl.col("score") >= limits.score)
    )
    # A host has several ranks, and its fault more than one link.
    of_host = pl.col("is_slow").all().over("transport", "host") & pl.col("host").is_not_null()
    several = (pl.len().over("transport", "host") > 1) & (pl.col("links").sum().over("transport", "host") > 2)
    ends = ends.with_columns(is_host=of_host & several)
    sound = ends.filter(~pl.col("is_slow")).select("transport", other="rank")
    to_sound = of_ends.join(sound, on=["transport", "other"]).group_by("transport", "rank").agg(sound=pl.len())
    return (
        ends.join(to_sound, on=["transport", "rank"], how="left")
        .filter(pl.col("is_host") | (pl.col("is_slow") & (pl.col("sound") > 1)))
        .select(
            *("transport", "rank", "score"),
            unit=pl.when("is_host").then(pl.lit("host")).otherwise(pl.lit("nic")),
            host=pl.when("is_host").then("host"),
        )
        .sort("transport", "rank")
    )


def _explained(pairs: pl.DataFrame, ends: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The slow links that slow ends explain, each with its end; a link between two slow ends is of both."""
    members = ends.with_columns(
        ranks=pl.col("rank").cast(pl.String).str.join(", ").over("transport", "unit", "host", order_by="rank"),
        score=pl.col("score").median().over("transport", "unit", "host"),
    ).with_columns(ranks=pl.when(pl.col("unit") == "host").then("ranks").otherwise(pl.col("rank").cast(pl.String)))
    found = [
        pairs.join(members, left_on=["transport", end], right_on=["transport", "rank"], how="inner").with_columns(
            end=pl.col(end)
        )
        for end in ("rank_a", "rank_b")
    ]
    unit = ["unit", "ranks", "transport"]
    return (
        pl.concat(found)
        .sort(*unit, *LINK, "end")
        .unique([*unit, "first", "second"], keep="first", maintain_order=True)
        .filter(pl.col("speed") < limits.end_ratio)
        .with_columns(
            rank_a=pl.when(pl.col("unit") == "nic").then("end"), rank_b=pl.lit(None, pl.Int32), expected_ns="typical_ns"
        )
        .select(_SLOW)
    )


_SLOW = [
    *("unit", "rank_a", "rank_b", "ranks", "host", "transport", "first", "second"),
    *("score", "speed", "size_bytes", "duration_ns", "expected_ns", "steps"),
]
"""Columns of slow links: what explains them, the link, and its figures."""


def _alone(pairs: pl.DataFrame, ends: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Links that are slower than their ends explain."""
    speeds = (
        pl.concat([pairs.select("transport", rank=end, speed="speed") for end in ("rank_a", "rank_b")])
        .join(ends, on=["transport", "rank"])
        .group_by("transport", "rank")
        .agg(end_speed=pl.col("speed").quantile(limits.end_quantile, "higher"))
    )
    known = pairs
    for end in ("rank_a", "rank_b"):
        of_end = speeds.rename({"rank": end, "end_speed": f"speed_{end}"})
        known = known.join(of_end, on=["transport", end], how="left", maintain_order="left")
    allowed = pl.min_horizontal("speed_rank_a", "speed_rank_b").fill_null(1.0)
    residual = known.with_columns(rest=pl.col("speed") / pl.min_horizontal(allowed, 1.0))
    log = pl.col("rest").log() - pl.col("rest").log().median().over("transport")
    spread = pl.max_horizontal(log.abs().median().over("transport") * MAD_TO_SIGMA, limits.floor)
    is_pair = (pl.col("links") == 2) & (limits.links > 2)
    low = (pl.col("score") >= limits.score) & (log < pl.lit(limits.bandwidth_ratio).log())
    of_many = (pl.col("links") >= limits.links) & low
    of_two = is_pair & (pl.col("busy_ratio") >= limits.pair_size_ratio) & (pl.col("speed") < limits.pair_ratio)
    return (
        residual.with_columns(score=pl.when(~is_pair).then(-log / spread))
        .filter(of_many | of_two)
        .with_columns(
            unit=pl.lit("link"),
            ranks=pl.format("{}, {}", "rank_a", "rank_b"),
            host=pl.lit(None, pl.String),
            expected_ns="typical_ns",
        )
        .select(_SLOW)
    )
