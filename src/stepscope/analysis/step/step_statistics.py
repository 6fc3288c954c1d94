"""Typical times of a step and its phases, and the steps that are outliers."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, first_label, rounded
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis, without_rows
from stepscope.analysis.step.step_trace import PHASES, POINTS, SECTIONS
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When a step is an outlier: both limits must be exceeded."""

    score: float = limit(3.5, "robust deviations above the median", "modified z-scores, Iglewicz and Hoaglin, 1993")
    excess_ratio: float = limit(
        0.05,
        "of the median step, beyond the phase's median",
        "if steps are nearly equal, small deviations mean nothing",
    )


@analysis(
    "rank",
    columns(
        "rank graph",
        meaning("phase", "`step`, or a part of it (a column of `step_trace` without `_ns`)."),
        Column("split", "string", "Split to which the phase belongs: `points` or `phases`; null for the step itself."),
        meaning("steps", "Number of steps with a known value of the phase."),
        "mean_ns mean_without_first_ns min_ns median_ns p95_ns max_ns",
        meaning("share_ratio", "Share of the steps' time; the shares of one `split` sum to 1."),
        Column(
            "share_without_first_ratio",
            "float64",
            "`share_ratio` without the first step; null if there is only one.",
        ),
        Column("limit_ns", "int64", "Limit for outliers; null if operators were recorded in some steps only."),
        Column("outlier_steps", "list[int32]", "Numbers of the steps that are outliers."),
        keep="phase mean_ns share_ratio median_ns max_ns outlier_steps mean_without_first_ns",
    ),
    together=True,
    passes=POINTS,
)
def step_statistics(step_trace: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Summarise the phases of `step_trace` over the steps: one row per graph and phase that is known in any step.

    Raises:
        Unavailable: If no steps are known.
    """
    every, step_trace = step_trace["rank"].unique().sort(), step_trace.filter(~is_whole_recording())
    if (unmarked := without_rows(every, step_trace)) or step_trace.is_empty():
        raise Unavailable("the recording marks no steps", of=unmarked)
    phases = ["step_ns", *SECTIONS, *PHASES]
    order = {phase.removesuffix("_ns"): place for place, phase in enumerate(phases)}
    keys = ["rank", "graph"]
    is_first = pl.col("start_ns") == pl.col("start_ns").min().over(keys)
    index = [*keys, "step", "by_phases", "whole_ns", "first"]
    steps = step_trace.with_columns(whole_ns="step_ns", first=is_first)
    rows = steps.unpivot(phases, index=index, variable_name="phase", value_name="ns").drop_nulls("ns")
    # only the shares of one split add up to 1
    split = first_label({"points": pl.col("phase").is_in(SECTIONS), "phases": pl.col("phase").is_in(PHASES)})
    rows = rows.with_columns(pl.col("phase").str.strip_suffix("_ns"), split=split)
    return _summed(rows, [*keys, "phase", "split"], limits).sort(
        "rank", "graph", pl.col("phase").replace_strict(order, return_dtype=pl.Int32)
    )


def _summed(rows: pl.DataFrame, keys: list[str], limits: Limits) -> pl.DataFrame:
    ns, later = pl.col("ns"), ~pl.col("first")
    alike = [*keys, "by_phases"]  # recording operators takes time
    median = ns.median().over(alike)
    spread = (ns - median).abs().median().over(alike) * MAD_TO_SIGMA
    limit = median + pl.max_horizontal(
        limits.score * spread, limits.excess_ratio * pl.col("whole_ns").median().over(alike)
    )
    return (
        rows.with_columns(limit=limit)
        .group_by(keys)
        .agg(
            steps=pl.len().cast(pl.Int64),
            mean_ns=rounded(ns.mean()),
            mean_without_first_ns=rounded(ns.filter(later).mean()),
            min_ns=ns.min(),
            median_ns=rounded(ns.median()),
            p95_ns=rounded(ns.quantile(0.95, "higher")),
            max_ns=ns.max(),
            share_ratio=_share(pl.lit(True)),
            share_without_first_ratio=_share(later),
            limit_ns=pl.when(pl.col("by_phases").n_unique() == 1).then(rounded(pl.col("limit").first())),
            outlier_steps=pl.col("step").filter(ns > pl.col("limit")).sort(),
        )
    )


def _share(chosen: pl.Expr) -> pl.Expr:
    """Share of the phase in the time of the chosen steps; null if there are none."""
    total = pl.col("whole_ns").filter(chosen).sum()
    return pl.when(total > 0).then(pl.col("ns").filter(chosen).sum() / total)
