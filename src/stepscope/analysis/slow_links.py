"""Which links move data more slowly than others of their kind."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.statistics import log_score
from stepscope.limits import limit

LINK = ["rank_a", "rank_b", "transport"]


@dataclass(frozen=True)
class Limits:
    """When a link is called slow."""

    bandwidth_ratio: float = limit(0.8, "of the median link's bandwidth", "healthy links of a kind agree within 10 %")
    score: float = limit(3.5, "robust deviations of log(bandwidth)", "Iglewicz and Hoaglin, 1993")
    floor: float = limit(0.05, "of log(bandwidth)", "smaller spread is noise")
    links: int = limit(3, "links of a transport", "fewer give no median to compare with")


LIMITS = Limits()


@analysis("job")
def slow_links(links: pl.LazyFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare each link's bandwidth with that of the other links of its transport.

    Both directions of a pair of ranks are one link; the slower direction counts. Bandwidth is bytes over time,
    summed over all calls of all steps. Links inside a rank (`LOCAL`) are left out.

    Returns:
        One row a slow link, dearest first: `rank_a`, `rank_b`, `transport`, `bandwidth_bytes_per_s`,
        `typical_bytes_per_s` (median link), `bandwidth_ratio` (of both), `cost_ns` (time that its transfers take
        beyond a typical link's, per step: an upper bound of what the calls that use it lose), `size_bytes` per
        step, `score`.
    """
    rate = pl.col("size_bytes") / (pl.col("duration_ns") / 1e9)
    totals = links.filter(
        (pl.col("source") != pl.col("destination"))
        & (pl.col("transport").fill_null("") != "LOCAL")
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
            rate=rate,
        )
    )
    slower = pl.col("rate").arg_min()
    pairs = (
        directed.group_by(LINK)
        .agg(pl.col(c).get(slower) for c in ("rate", "size_bytes", "duration_ns", "steps"))
        .with_columns(
            typical=pl.col("rate").median().over("transport"),
            links=pl.len().over("transport"),
        )
        .collect()
    )
    excess = pl.col("duration_ns") - pl.col("size_bytes") / pl.col("typical") * 1e9
    return (
        pairs.with_columns(
            score=-log_score("rate", "transport", limits.floor), bandwidth_ratio=pl.col("rate") / pl.col("typical")
        )
        .filter(
            (pl.col("links") >= limits.links)
            & (pl.col("score") >= limits.score)
            & (pl.col("bandwidth_ratio") < limits.bandwidth_ratio)
        )
        .select(
            *LINK,
            pl.col("rate").alias("bandwidth_bytes_per_s"),
            pl.col("typical").alias("typical_bytes_per_s"),
            "bandwidth_ratio",
            (excess / pl.col("steps")).round().cast(pl.Int64).alias("cost_ns"),
            (pl.col("size_bytes") / pl.col("steps")).round().cast(pl.Int64).alias("size_bytes"),
            "score",
        )
        .sort("cost_ns", *LINK, descending=[True, False, False, False])
    )
