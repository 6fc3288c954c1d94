"""Ranks that compute faster than all others: nobody knows then whether the others are slow."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.late_ranks import compared_excess
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.methods.references import LIMITS as REFERENCES
from stepscope.analysis.methods.references import MEDIAN_ERROR
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import Prepared, analysis
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """When ranks are faster than all others."""

    least_ranks: int = limit(5, "ranks that are compared", "of fewer, the fast one is the typical one (`excess`)")
    gap_ratio: float = limit(0.04, "of the time of the others", "as groups of ranks in `excess`")
    spread_ratio: float = limit(1.0, "of the spread of the others", "chosen by us: else ranks differ anyway")
    pieces_ratio: float = limit(0.02, "of the kernels of the others, counted", "chosen by us: the same work")
    equal_ratio: float = limit(
        0.7, "of the difference, in calls of equal shapes", "chosen by us: else it has less work"
    )


COLUMNS = columns(
    Column("rank", "int32", "The lowest of the fast ranks.", importance=66),
    Column("ranks", "string", "All fast ranks.", importance=61),
    Column("others", "int32", "Number of the ranks that it is compared with."),
    Column("own_ns", "int64", "How long it computes in the median step.", importance=58),
    Column("others_ns", "int64", "How long the median of the others computes in the median step.", importance=57),
    Column(
        "if_alike_ns",
        "int64",
        "What the mean step would be shorter if all computed as fast, by replay. It is unknown whether they can.",
        importance=56,
    ),
    Column("if_alike_ratio", "float64", "`if_alike_ns` over the mean step."),
    meaning("steps", "Number of compared steps."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def fast_ranks(
    excess: pl.DataFrame,
    own_times: pl.DataFrame,
    slow_ranks: pl.DataFrame,
    work_graph: Prepared[JobGraph],
    arrival: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame,
    rank_kernels: pl.DataFrame | None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find ranks that compute clearly faster than all others of their program, fewer than would be taken for typical:
    one row per program that has such ranks, greatest difference first.

    Either the others are slow alike, or the fast ranks are special; the recording does not show which. So nobody is
    accused. If the fast ranks run fewer kernels, or of other shapes, they have less to do, and are left out.
    """
    own = compared_excess(excess, arrival, ranks, steps).filter(kind="computing")
    own = own.join(
        own_times.select("rank", "step", "kind", "pieces"), on=["rank", "step", "kind"], maintain_order="left"
    )
    if (slow_ranks["kind"] == "computing").any():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    found = [
        row
        for _, rows in own.sort("program").group_by("program", maintain_order=True)
        if (row := _fast(rows, rank_kernels, limits)) is not None
    ]
    if not found:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = work_graph()
    lengths, replayed = graph.recorded_step_times(), sum(graph.step_times())
    rows = []
    for row in found:
        saved = replayed - sum(graph.step_times(_as_fast(graph, own, row)))
        fast = row["fast"]
        rows.append(
            {
                **{name: row[name] for name in ("others", "own_ns", "others_ns", "steps")},
                "rank": min(fast),
                "ranks": rank_list(fast),
                "if_alike_ns": max(0, round(saved / len(lengths))) if len(lengths) else 0,
                "if_alike_ratio": max(0.0, saved / replayed) if replayed else 0.0,
                "error_ratio": replayed / sum(lengths) - 1 if sum(lengths) else 0.0,
            }
        )
    answer = pl.DataFrame(rows, schema=schema_of(COLUMNS))
    return answer.select(names(COLUMNS)).sort("if_alike_ns", "rank", descending=[True, False])


def _fast(rows: pl.DataFrame, kernels: pl.DataFrame | None, limits: Limits) -> dict[str, Any] | None:
    """The fast ranks of a program, and how fast they are; None if there are none."""
    middle = rows.group_by("rank").agg(
        pl.col("own_ns").median(), pl.col("pieces").median(), steps=pl.len(), sigma=pl.col("sigma_ns").first()
    )
    ordered = middle.sort("own_ns", "rank")
    times, sigma, steps = ordered["own_ns"].to_list(), ordered["sigma"][0], ordered["steps"][0]
    count = len(times)
    if count < limits.least_ranks or sigma is None or steps < 2:
        return None
    noise = REFERENCES.gap_score * MEDIAN_ERROR * sigma / steps**0.5
    for fast in range(1, ceil(count * REFERENCES.enough_ratio)):
        gap, spread = times[fast] - times[fast - 1], times[-1] - times[fast]
        if gap <= max(noise, limits.gap_ratio * times[fast], limits.spread_ratio * spread):
            continue
        who, others = sorted(ordered["rank"].head(fast)), ordered.tail(count - fast)
        pieces = others["pieces"].median()
        same = ordered.head(fast).select(
            ((pl.col("pieces") - pieces).abs() <= limits.pieces_ratio * pl.lit(pieces)).all()
        )
        if not same.item() or not _equal(kernels, who, limits):
            return None
        own_ns, others_ns = ordered["own_ns"].head(fast).median(), others["own_ns"].median()
        known = {"fast": who, "others": count - fast, "steps": steps, "ranks": sorted(others["rank"])}
        return {**known, "own_ns": round(own_ns), "others_ns": round(others_ns)}  # type: ignore[arg-type]
    return None


def _equal(kernels: pl.DataFrame | None, ranks: list[int], limits: Limits) -> bool:
    """Whether the kernels of these ranks take less time for equal shapes, as far as kernels were recorded."""
    if kernels is None:
        return True
    sums = (
        kernels.filter(kind="compute")
        .filter(pl.col("rank").is_in(ranks))
        .select(pl.col("excess_ns", "slower_ns").sum())
    )
    excess, slower = sums.row(0)
    return bool(slower <= limits.equal_ratio * excess < 0)


def _as_fast(graph: JobGraph, own: pl.DataFrame, row: dict[str, Any]) -> pl.Series:
    """Durations if the other ranks computed as fast as the fast ones in each step."""
    fast = own.filter(pl.col("rank").is_in(row["fast"])).group_by("step").agg(fast=pl.col("own_ns").mean())
    others = own.filter(pl.col("rank").is_in(row["ranks"])).join(fast, on="step")
    factor = (pl.col("fast") / pl.col("own_ns").clip(lower_bound=1)).clip(upper_bound=1.0)
    cells = others.select("rank", "step", "kind", factor=factor)
    nodes = graph.nodes.select("rank", "step", "kind", length=graph.simulation.duration_ns)
    changed = nodes.join(cells, on=["rank", "step", "kind"], how="left", maintain_order="left")
    length = (pl.col("length") * pl.col("factor").fill_null(1.0)).round().cast(pl.Int64)
    return changed.select(length=length)["length"]
