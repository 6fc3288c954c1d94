"""The windows of steps, numbered for `intervals.pieces`; and the step in which a host sample lies: as recorded, or from
the time if both share a clock."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.selection import Choice, parse_selection
from stepscope.tables import RANKS, STEPS
from stepscope.tables.steps import WHOLE_RECORDING


def step_ranges(steps: pl.LazyFrame | None, ranks: pl.LazyFrame | None) -> pl.DataFrame:
    """Step ranges of the ranks whose recording has one clock, so that host samples can be assigned to steps.

    Returns:
        `rank`, `step`, `since_ns`, `end_ns`, in order of start.
    """
    timed = RANKS.or_empty(ranks).filter(pl.col("start_ns").is_not_null()).select("rank")
    known = STEPS.or_empty(steps).filter(~is_whole_recording().fill_null(False)).join(timed, on="rank")
    return known.sort("start_ns", "end_ns", "step").select("rank", "step", "end_ns", since_ns="start_ns").collect()


def with_range(rows: pl.DataFrame, ranges: pl.DataFrame, time: str = "time_ns") -> pl.DataFrame:
    """Rows with the `step` of `step_ranges` that contains their time; null between steps."""
    found = with_latest(rows, ranges, time)
    return found.with_columns(step=pl.when(pl.col(time) <= pl.col("end_ns")).then("step")).drop("end_ns")


def with_latest(rows: pl.DataFrame, since: pl.DataFrame, time: str = "time_ns") -> pl.DataFrame:
    """Rows joined with the latest row of `since` at or before them (`since_ns`), in order of time."""
    bounds = since.rename({"since_ns": time})
    return rows.sort(time, maintain_order=True).join_asof(bounds, on=time, by="rank", check_sortedness=False)


def of_steps(rows: pl.DataFrame, ranges: pl.DataFrame, chosen: Choice, time: str = "time_ns") -> pl.DataFrame:
    """Rows with their `step`, limited to the chosen steps on ranks whose steps are known.

    Args:
        rows: `rank`, `step` (null if not recorded) and the time.
        ranges: From `step_ranges`.
        chosen: Steps, e.g. `1-3`. All rows of a rank are kept if none of their steps is known.
        time: The column with the time.
    """
    found = with_range(rows.rename({"step": "recorded_step"}), ranges, time)
    found = found.with_columns(step=pl.coalesce("recorded_step", "step")).drop("recorded_step")
    return in_steps(found, chosen, ranges["rank"].unique().to_list())


def in_steps(rows: pl.DataFrame, chosen: Choice, timed: Sequence[int] = ()) -> pl.DataFrame:
    """Rows of the chosen steps; all rows of a rank if none of their steps is known, unless its steps have times."""
    wanted = parse_selection(chosen, "steps")
    if wanted is None:
        return rows
    has_steps = pl.col("rank").is_in(timed) | pl.col("step").is_not_null().any().over("rank")
    return rows.filter(~has_steps | wanted.expression("step").fill_null(False))


def count_steps() -> pl.Expr:
    """The number of steps in which rows lie; null if no step is known."""
    return pl.when(pl.col("step").count() > 0).then(pl.col("step").drop_nulls().n_unique().cast(pl.Int64))


def without_unmarked(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without those outside of all steps (e.g. before the first mark) of ranks that have rows of steps."""
    if not rows["step"].null_count():  # nearly always; there may be millions of them
        return rows
    return rows.filter(pl.col("step").is_not_null() | (pl.col("step").count().over("rank") == 0))


def known_steps(steps: pl.LazyFrame) -> pl.LazyFrame:
    """Steps without those in which nothing was recorded although other steps have data: they are unknown, not idle."""
    return steps.filter(pl.col("recorded").fill_null(True))


def is_whole_recording() -> pl.Expr:
    """Whether a row of `steps` is a whole recording without marked steps."""
    return pl.col("window") == WHOLE_RECORDING


def step_windows(steps: pl.LazyFrame) -> pl.DataFrame:
    """The steps' windows, rank by rank in order.

    Returns:
        `window` (number), `rank`, `step`, `start_ns`, `end_ns`, `window_kind` (`steps.window`) and `preparing_ns`
        (start of the step on the host to its first device task; null without one).
    """
    preparing = pl.when(pl.col("window") == "device").then(pl.col("window_start_ns") - pl.col("start_ns"))
    return numbered(
        steps.sort("rank", "window_start_ns", "window_end_ns", "step")
        .select(
            "rank",
            "step",
            start_ns="window_start_ns",
            end_ns="window_end_ns",
            window_kind="window",
            preparing_ns=preparing,
        )
        .collect()
    )


def numbered(windows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their number as `window`, as `intervals.pieces` needs it."""
    return windows.with_columns(window=pl.int_range(pl.len(), dtype=pl.Int64))
