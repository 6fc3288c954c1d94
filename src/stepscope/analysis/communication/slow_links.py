"""Which links move data more slowly than other links of their kind."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import log_score, rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

LINK = ["rank_a", "rank_b", "transport"]


@dataclass(frozen=True)
class Limits:
    """When a link counts as slow."""

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


@analysis(
    "job",
    columns(
        Column("rank_a", "int32", "One end."),
        Column("rank_b", "int32", "The other end."),
        Column("transport", "string", "Kind of link, e.g. `HCCS`, `RDMA`."),
        "bandwidth_bytes_per_s",
        Column(
            "typical_bytes_per_s",
            "float64",
            "Bandwidth of the median link; of two links, that of the other.",
            title="typical",
            importance=52,
        ),
        Column("bandwidth_ratio", "float64", "Bandwidth over the typical one.", title="of typical"),
        meaning("cost_ns", "Extra time of its transfers in a step compared with a typical link: an upper bound."),
        meaning("size_bytes", "Bytes moved in a step."),
        meaning("score", "How far it stands out, in robust standard deviations; null if there are only two links."),
        nulls="transport score",
    ),
    whole_job=True,
)
def slow_links(links: pl.LazyFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Compare each link's bandwidth with other links of the same transport.

    Both directions of a pair of ranks are one link; the slower direction counts. Bandwidth is bytes over time,
    summed over all calls of all steps. Links inside a rank (`LOCAL`) and links of unknown transport are left out. Of
    only two links of a transport, one is slow if it is far slower than the other and moves a comparable amount of data.

    Returns:
        One row per slow link, most expensive first.
    """
    totals = links.filter(
        (pl.col("source") != pl.col("destination"))
        & (pl.col("transport") != "LOCAL")
        & (pl.col("duration_ns") > 0)
        & (pl.col("size_bytes") > 0)
        & pl.col("name").is_null()
    )
    directed = (
        totals.group_by("source", "destination", "transport")
        .agg(pl.col("size_bytes").sum(), pl.col("duration_ns").sum(), steps=pl.col("step").n_unique())
        .with_columns(
            rank_a=pl.min_horizontal("source", "destination"),
            rank_b=pl.max_horizontal("source", "destination"),
            rate=pl.col("size_bytes") / (pl.col("duration_ns") / 1e9),
        )
    )
    # Of two links, the other's value is the sum minus one's own.
    rates, bytes_ = (pl.col(c).sum().over("transport") - pl.col(c) for c in ("rate", "size_bytes"))
    pairs = (
        directed.sort(*LINK, "rate", "source")
        .group_by(LINK, maintain_order=True)
        .agg(pl.col("rate", "size_bytes", "duration_ns", "steps").first())
        .with_columns(links=pl.len().over("transport"))
        .with_columns(
            typical=pl.when(pl.col("links") == 2).then(rates).otherwise(pl.col("rate").median().over("transport")),
            is_as_busy=pl.col("size_bytes") >= limits.pair_size_ratio * bytes_,
        )
        .collect()
    )
    excess = pl.col("duration_ns") - pl.col("size_bytes") / pl.col("typical") * 1e9
    is_pair = (pl.col("links") == 2) & (limits.links > 2)
    of_many = (pl.col("links") >= limits.links) & (pl.col("score") >= limits.score)
    of_two = is_pair & pl.col("is_as_busy") & (pl.col("bandwidth_ratio") < limits.pair_ratio)
    scores = pl.when(~is_pair).then(-log_score("rate", "transport", limits.floor))
    return (
        pairs.with_columns(score=scores, bandwidth_ratio=pl.col("rate") / pl.col("typical"))
        .filter((of_many & (pl.col("bandwidth_ratio") < limits.bandwidth_ratio)) | of_two)
        .select(
            *LINK,
            bandwidth_bytes_per_s="rate",
            typical_bytes_per_s="typical",
            bandwidth_ratio="bandwidth_ratio",
            cost_ns=rounded(excess / pl.col("steps")),
            size_bytes=rounded(pl.col("size_bytes") / pl.col("steps")),
            score="score",
        )
        .sort(-pl.col("cost_ns"), *LINK)
    )
