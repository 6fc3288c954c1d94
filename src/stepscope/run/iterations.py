"""Steps for ranks that mark none: certain iterations (analysis `iterations`) number their tables.

Only analyses see these numbers; `Rank.table`, `Run.table` and SQL return what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.run.rank import Rank, stacked
from stepscope.tables import STEPS, TABLES
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

UNTIMED = ("links", "transports", "communication_totals", "step_totals", "operator_steps")
"""Tables by step whose rows have no time: a rank with such rows keeps its numbers."""

BY_STEP = ("slices", "operators", "kernels", "collectives")
"""Tables whose rows get the number of the iteration in which they began or were launched."""


_LAUNCHED_BEFORE = pl.col("launch_start_ns").is_null() & pl.col("launch_start_ns").is_not_null().any().over("rank")
"""Kernels without a launch on ranks whose launches were recorded."""


@dataclass(frozen=True)
class Iterations:
    """Iterations of a run whose ranks mark no steps.

    Args:
        steps: Rows of `steps`, numbered from 1 on each rank.
        count: Number of iterations of a rank.
        operators: Top-level operators in an iteration.
    """

    steps: pl.DataFrame
    count: int
    operators: int


def marks_no_steps(ranks: Sequence[Rank]) -> bool:
    """Whether every rank with steps has the whole recording as its only step."""
    having = [rank for rank in ranks if rank.has(STEPS.name)]
    if not having or any(rank.rows[STEPS.name] != 1 for rank in having):
        return False
    return bool(stacked(having, STEPS.name).select((pl.col("window") == WHOLE_RECORDING).all()).collect().item())


def may_have_iterations(ranks: Sequence[Rank]) -> bool:
    """Whether iterations can number the tables: no rank marks several steps or has rows by step without a time."""
    return all(rank.rows.get(STEPS.name) == 1 and not any(map(rank.has, UNTIMED)) for rank in ranks)


def iterations_of(ranks: Sequence[Rank], found: pl.DataFrame) -> Iterations | None:
    """What the analysis `iterations` found, as steps; None if a rank has no iterations, or not as many as others."""
    by_rank = found.group_by("rank").len()
    if by_rank.height < len(ranks) or by_rank["len"].n_unique() > 1:
        return None
    rows = found.with_columns(window=pl.lit(REPETITION), window_start_ns="start_ns", window_end_ns="end_ns")
    on_device = [rank for rank in ranks if rank.has("kernels")]
    if on_device:
        rows = _on_device(rows, stacked(on_device, "kernels"))
    steps = STEPS.frame(**{name: rows[name] for name in rows.columns if name in STEPS.schema})
    return Iterations(steps, int(by_rank["len"][0]), round(float(found["operators"].median() or 0)))  # type: ignore[arg-type]


def _on_device(steps: pl.DataFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
    """The iterations with windows like those of marked steps, from the first device task of each to that of the
    next. What was launched before the recording began is of none, unless no launches were recorded."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    launched = numbered(kernels, "kernels", steps).filter(pl.col("step").is_not_null() & ~_LAUNCHED_BEFORE)
    work = launched.group_by("rank", "step")
    spans = work.agg(first_ns=pl.col("start_ns").min(), last_ns=end.max()).collect()
    last = pl.col("last_ns").max().over("rank")
    first = pl.col("first_ns").fill_null(strategy="backward").fill_null(pl.col("last_ns").max()).cum_max().over("rank")
    laid = steps.join(spans, on=["rank", "step"], how="left", maintain_order="left").with_columns(
        window_start_ns=pl.coalesce(first, "window_start_ns"), last_ns=last
    )
    ends = pl.col("window_start_ns").shift(-1).over("rank").fill_null(pl.max_horizontal("last_ns", "window_start_ns"))
    return laid.with_columns(window_end_ns=pl.when(pl.col("last_ns").is_null()).then("window_end_ns").otherwise(ends))


def numbered(rows: pl.LazyFrame, name: str, steps: pl.DataFrame) -> pl.LazyFrame:
    """A table with the iteration of each row as its step, in the same order."""
    if name == STEPS.name:
        return steps.lazy()
    if name not in BY_STEP:
        return rows
    began = pl.coalesce("launch_start_ns", "start_ns") if name == "kernels" else pl.col("start_ns")
    of_device = {"collectives": pl.col("on_device"), "kernels": _LAUNCHED_BEFORE}
    on_device = of_device.get(name, pl.lit(value=False))
    bounds = steps.lazy().select("rank", number="step", at_ns="start_ns", over_ns="end_ns")
    devices = steps.lazy().select("rank", number="step", at_ns="window_start_ns", over_ns="window_end_ns")
    timed = rows.with_row_index("place").with_columns(at_ns=began, on_device_=on_device)
    parts = [
        timed.filter(pl.col("on_device_") == is_device)
        .sort("rank", "at_ns")
        .join_asof(limits.sort("rank", "at_ns"), on="at_ns", by="rank", check_sortedness=False)
        for is_device, limits in ((False, bounds), (True, devices))
    ]
    step = pl.when(pl.col("at_ns") <= pl.col("over_ns")).then("number").cast(pl.Int32)
    schema = list(TABLES[name].schema)
    return pl.concat(parts).sort("place").with_columns(step=step).select(schema)


def by_iterations(rows: pl.LazyFrame, ranks: Sequence[Rank], name: str, steps: pl.DataFrame) -> pl.LazyFrame:
    """A table of some ranks, with all its rows, by iterations."""
    return numbered(rows, name, steps.filter(pl.col("rank").is_in([rank.rank for rank in ranks])))
