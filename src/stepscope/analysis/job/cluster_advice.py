"""What MindSpore Insight's cluster advice says of a job, by its formulas: ranks, links and stages far off the mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.job.rank_steps import STATED
from stepscope.analysis.methods.batches import batches_by_rank
from stepscope.analysis.methods.parallel_layout import object_of
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import LINKS, RANKS
from stepscope.tables.base import Column, schema_of

_SOURCE = "MindSpore Insight"


@dataclass(frozen=True)
class Limits:
    """From where on a rank, a link, a stage or a job is advised about."""

    interval_ratio: float = limit(0.2, "above the mean of the ranks", _SOURCE)
    rate_ratio: float = limit(0.2, "below the mean of the ranks", _SOURCE)
    link_ratio: float = limit(0.2, "below the mean of the links of its transport", _SOURCE)
    communication_ratio: float = limit(0.1, "of computing and exposed communication", _SOURCE)
    between_ratio: float = limit(0.1, "of computing and exposed communication", _SOURCE)
    within_ratio: float = limit(0.1, "of computing and exposed communication of the stage", _SOURCE)
    stage_flops_ratio: float = limit(0.2, "above the mean of the stages", _SOURCE)


INTERVAL, RATE, LINK = "step_interval", "flops_per_second", "cluster_link"
DATA, MODEL = "data_parallel_communication_rate", "model_parallel_communication_rate"
SHARE = "communication_rate"
"""The same of a job of which nobody knows how it is parallel; MindSpore Insight calls it data parallel."""

BETWEEN, WITHIN = "pipeline_parallel_between_stage", "pipeline_parallel_within_stage"
STAGE_FLOPS = "pipeline_parallel_flops"
KINDS = (INTERVAL, RATE, LINK, DATA, MODEL, SHARE, BETWEEN, WITHIN, STAGE_FLOPS)
"""The keys of MindSpore Insight's answer, and `communication_rate`."""

_MODEL_MODES = ("model_parallel", "semi_auto_parallel", "auto_parallel", "hybrid_parallel")

COLUMNS = columns(
    Column(
        "advice",
        "string",
        "What it is about, by its key in MindSpore Insight; `communication_rate` where it is unknown "
        "how the job is parallel.",
        values=KINDS,
    ),
    meaning("rank", "Rank; null if it is about a link, a stage or the job."),
    Column("stage", "int32", "Pipeline stage, from 0; likewise null."),
    Column("source", "int32", "Rank that sends over the link; likewise null."),
    Column("destination", "int32", "Rank that receives over the link; likewise null."),
    Column("transport", "string", "Kind of link; likewise null."),
    Column("off_ratio", "float64", "How far it is off the mean; of communication, its share.", title="off"),
    Column("limit_ratio", "float64", "From where on it is advised about.", title="limit"),
    meaning("interval_ns", "Mean interval of the rank."),
    meaning("flops_per_s", "Rate of the rank."),
    meaning("bandwidth_bytes_per_s", "Bandwidth of the link: bytes over time."),
    Column("step_flops", "float64", "Mean FLOPs of the stage's ranks.", title="FLOPs"),
    Column("mean_of", "int32", "Number of ranks, links or stages in the mean.", title="mean of"),
    Column(
        "summed_ratio",
        "float64",
        "`off_ratio` of the link as MindSpore Insight has it, which takes the sum of its calls' bandwidths for its "
        "bandwidth; null if calls were not recorded.",
        title="sum of rates",
    ),
    keep="advice rank stage source destination transport off_ratio limit_ratio",
    nulls="rank stage source destination transport interval_ns flops_per_s bandwidth_bytes_per_s step_flops mean_of "
    "summed_ratio",
)


@analysis("job", COLUMNS, whole_job=True)
def cluster_advice(
    rank_means: pl.DataFrame | None = None,
    rank_flops: pl.DataFrame | None = None,
    link_totals: pl.DataFrame | None = None,
    links: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Apply the formulas of MindSpore Insight's cluster advice: one row for each rank, link and stage beyond a limit.

    All that are beyond it are listed, the farthest first, while MindSpore Insight names one. What a rank lacks hides
    nothing about the others. These are facts about means: what something costs the job, a replay tells (`slow_ranks`,
    `slow_links`).
    """
    means = _best_means(rank_means)
    parts = [
        *_intervals(means, limits),
        *_rates(rank_flops, limits),
        *_links(link_totals, links, limits),
        *_shares(means, _parallel_by(ranks, parallel_layout), limits),
        *_stage_flops(rank_flops, limits),
    ]
    rows = pl.DataFrame([{**dict.fromkeys(schema_of(COLUMNS)), **row} for row in parts], schema=schema_of(COLUMNS))
    order = pl.col("advice").replace_strict({kind: place for place, kind in enumerate(KINDS)}, return_dtype=pl.Int32)
    return rows.sort(order, -pl.col("off_ratio"), "rank", "stage", "source", "destination", "transport")


def _best_means(rank_means: pl.DataFrame | None) -> pl.DataFrame | None:
    """One row per rank: of means that the source states of more steps, if it does so for all ranks."""
    if rank_means is None:
        return None
    stated = rank_means.filter(pl.col("split") == STATED)
    of_steps = rank_means.filter(pl.col("split") != STATED)
    return stated if stated["rank"].n_unique() == of_steps["rank"].n_unique() else of_steps


def _intervals(means: pl.DataFrame | None, limits: Limits) -> Iterator[dict[str, Any]]:
    """Ranks whose steps begin late."""
    if means is None:
        return
    known = means.drop_nulls("interval_ns").select("rank", "interval_ns", mean=pl.col("interval_ns").mean())
    for rank, interval, mean in known.iter_rows():
        if mean > 0 and known.height > 1 and interval / mean - 1 > limits.interval_ratio:
            yield {
                **{"advice": INTERVAL, "rank": rank, "interval_ns": interval, "off_ratio": interval / mean - 1},
                **{"limit_ratio": limits.interval_ratio, "mean_of": known.height},
            }


def _rates(flops: pl.DataFrame | None, limits: Limits) -> Iterator[dict[str, Any]]:
    """Ranks that compute slowly."""
    if flops is None:
        return
    known = flops.drop_nulls("flops_per_s").select("rank", "flops_per_s", mean=pl.col("flops_per_s").mean())
    for rank, rate, mean in known.iter_rows():
        if mean > 0 and (mean - rate) / mean > limits.rate_ratio:
            yield {
                **{"advice": RATE, "rank": rank, "flops_per_s": rate, "off_ratio": (mean - rate) / mean},
                **{"limit_ratio": limits.rate_ratio, "mean_of": known.height},
            }


_LINK = ["source", "destination", "transport"]


def _links(totals: pl.DataFrame | None, links: pl.LazyFrame | None, limits: Limits) -> Iterator[dict[str, Any]]:
    """Links that are slow for their transport."""
    if totals is None:
        return
    known = totals.drop_nulls("of_mean_ratio").with_columns(mean_of=pl.len().over("transport").cast(pl.Int32))
    slow = known.filter(1 - pl.col("of_mean_ratio") > limits.link_ratio)
    summed = _summed(links) if slow.height else {}
    for row in slow.iter_rows(named=True):
        link = {name: row[name] for name in _LINK}
        yield {
            **{"advice": LINK, **link, "bandwidth_bytes_per_s": row["bandwidth_bytes_per_s"]},
            **{"off_ratio": 1 - row["of_mean_ratio"], "limit_ratio": limits.link_ratio, "mean_of": row["mean_of"]},
            "summed_ratio": summed.get(tuple(link.values())),
        }


def _summed(links: pl.LazyFrame | None) -> dict[tuple[Any, ...], float]:
    """How far each link is below the mean of its transport if its bandwidth is the sum of those of its calls."""
    apart = (pl.col("source") != pl.col("destination")) & (pl.col("duration_ns") > 0)
    calls = LINKS.or_empty(links).drop_nulls("name").filter(apart)
    calls = calls.select("rank", "step", *_LINK, rate=pl.col("size_bytes") / pl.col("duration_ns") * 1e9)
    rates = pl.concat(map(_mean_rates, batches_by_rank(calls)))
    off = rates.with_columns(off=1 - pl.col("rate") / pl.col("rate").mean().over("transport"))
    return {
        (source, destination, kind): off for source, destination, kind, off in off.select(*_LINK, "off").iter_rows()
    }


def _mean_rates(calls: pl.DataFrame) -> pl.DataFrame:
    """The mean over steps of the sums of calls' bandwidths, of each link as some ranks report it."""
    steps = calls.group_by("rank", "step", *_LINK).agg(pl.col("rate").sum()).sort("rank", "step", *_LINK)
    return steps.group_by("rank", *_LINK, maintain_order=True).agg(pl.col("rate").mean())


_WORK, _ALONE = "computing_and_free_ns", "communication_not_overlapped_ns"
_RECEIVE, _COLLECTIVE = "receiving_ns", "communication_not_overlapped_exclude_receive_ns"


def _shares(means: pl.DataFrame | None, kind: str, limits: Limits) -> Iterator[dict[str, Any]]:
    """Shares of communication that no computing hides, by how the job is parallel."""
    known = None if means is None else means.drop_nulls([_WORK, _ALONE])
    if known is None or known.is_empty():
        return
    if known[_RECEIVE].null_count() == known.height:
        share = _share(known, _ALONE)
        if share > limits.communication_ratio:
            yield _share_row(kind, share, limits.communication_ratio, known.height)
        return
    share = _share(known, _RECEIVE)
    if share > limits.between_ratio:
        yield _share_row(BETWEEN, share, limits.between_ratio, known.height)
    for (stage,), rows in known.drop_nulls("stage").partition_by("stage", as_dict=True, maintain_order=True).items():
        share = _share(rows, _COLLECTIVE)
        if share > limits.within_ratio:
            yield {**_share_row(WITHIN, share, limits.within_ratio, rows.height), "stage": stage}


def _share(rows: pl.DataFrame, part: str) -> float:
    """Share of a part in computing and exposed communication, of all ranks together."""
    whole = rows.select((pl.col(_WORK) + pl.col(_ALONE)).sum()).item()
    return float(rows[part].sum() / whole) if whole else 0.0


def _share_row(kind: str, share: float, limit_ratio: float, count: int) -> dict[str, Any]:
    return {"advice": kind, "off_ratio": share, "limit_ratio": limit_ratio, "mean_of": count}


def _parallel_by(ranks: pl.LazyFrame | None, layout: pl.DataFrame | None) -> str:
    """How the job is parallel: by the recorded mode, which MindSpore states, else by its layout.

    A job of MindSpore that states no mode, or another one, is data parallel to MindSpore Insight.
    """
    facts = RANKS.or_empty(ranks).select("parallelism", "framework").collect()
    modes = {object_of(text).get("parallel_mode") for text in facts["parallelism"].drop_nulls().unique().sort()}
    if any(mode in _MODEL_MODES for mode in modes):
        return MODEL
    if modes - {None} or set(facts["framework"].drop_nulls()) == {"mindspore"}:
        return DATA
    if layout is None:
        return SHARE
    sizes = {name: layout[f"{name}_size"].max() for name in ("tp", "cp", "ep", "dp")}
    if any(isinstance(size, int) and size > 1 for name, size in sizes.items() if name != "dp"):
        return MODEL
    return (
        DATA if isinstance(sizes["dp"], int) and sizes["dp"] > 1 and None not in (sizes["tp"], sizes["cp"]) else SHARE
    )


def _stage_flops(flops: pl.DataFrame | None, limits: Limits) -> Iterator[dict[str, Any]]:
    """Stages with more work than others."""
    known = None if flops is None else flops.drop_nulls(["stage", "step_flops"])
    if known is None or known["stage"].n_unique() < 2:
        return
    stages = known.sort("stage", "rank").group_by("stage", maintain_order=True).agg(pl.col("step_flops").mean())
    mean = stages.select(pl.col("step_flops").mean()).item()
    for stage, own in stages.iter_rows():
        if mean > 0 and own / mean - 1 > limits.stage_flops_ratio:
            yield {
                **{"advice": STAGE_FLOPS, "stage": stage, "step_flops": own, "off_ratio": own / mean - 1},
                **{"limit_ratio": limits.stage_flops_ratio, "mean_of": stages.height},
            }
