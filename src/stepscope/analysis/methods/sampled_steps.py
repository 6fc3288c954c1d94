"""The step in which a host sample lies: as recorded, or from the time if both share a clock."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.selection import Choice, parse_selection


def step_ranges(steps: pl.LazyFrame | None, ranks: pl.LazyFrame | None) -> pl.DataFrame:
    """Step ranges of the ranks whose recording has one clock, so that host samples can be assigned to steps.

    Returns:
        `rank`, `step`, `since_ns`, `end_ns`, in order of start.
    """
    if steps is None or ranks is None:
        none = {"rank": pl.Int32, "step": pl.Int32, "since_ns": pl.Int64, "end_ns": pl.Int64}
        return pl.DataFrame(schema=none)
    timed = ranks.filter(pl.col("start_ns").is_not_null()).select("rank")
    known = steps.filter(~is_whole_recording().fill_null(False)).join(timed, on="rank")
    return (
        known.select("rank", "step", "start_ns", "end_ns")
        .sort("start_ns", "end_ns", "step")
        .collect()
        .rename({"start_ns": "since_ns"})
    )


def with_range(rows: pl.DataFrame, ranges: pl.DataFrame, time: str = "time_ns") -> pl.DataFrame:
    """Rows with the `step` whose range contains their time; null between steps.

    Args:
        rows: `rank` and the time.
        ranges: From `step_ranges`.
        time: The column with the time.
    """
    found = with_latest(rows, ranges, time)
    return found.with_columns(step=pl.when(pl.col(time) <= pl.col("end_ns")).then("step")).drop("end_ns")


def with_latest(rows: pl.DataFrame, since: pl.DataFrame, time: str = "time_ns") -> pl.DataFrame:
    """Rows joined with the latest row of `since` at or before them (`since_ns`), in order of time."""
    ordered = rows.sort(time, maintain_order=True)
    return ordered.join_asof(since, left_on=time, right_on="since_ns", by="rank", check_sortedness=False).drop(
        "since_ns", strict=False
    )


def of_steps(rows: pl.DataFrame, ranges: pl.DataFrame, chosen: Choice, time: str = "time_ns") -> pl.DataFrame:
    """Rows with their `step`, limited to the chosen steps on ranks whose steps are known.

    Args:
        rows: `rank`, the time, and `step` if recorded.
        ranges: From `step_ranges`.
        chosen: Steps, e.g. `1-3`. All rows of a rank are kept if none of their steps is known.
        time: The column with the time.
    """
    stated = rows.rename({"step": "stated"}) if "step" in rows.columns else rows.with_columns(stated=None)
    found = with_range(stated, ranges, time).with_columns(step=pl.coalesce(pl.col("stated").cast(pl.Int32), "step"))
    found = found.drop("stated")
    wanted = parse_selection(chosen, "steps")
    if wanted is None:
        return found
    has_steps = pl.col("rank").is_in(ranges["rank"].unique().to_list()) | pl.col("step").is_not_null().any().over(
        "rank"
    )
    return found.filter(~has_steps | wanted.expression("step").fill_null(False))


def count_steps() -> pl.Expr:
    """The number of steps in which rows lie; null if no step is known."""
    return pl.when(pl.col("step").count() > 0).then(pl.col("step").drop_nulls().n_unique().cast(pl.Int64))
