"""The difference between two sides, item by item, as means of a step, and whether it is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.statistics import rounded
from stepscope.compare.noise import LIMITS, VERDICTS, Limits, adjusted, are_apart, probability_of_steps
from stepscope.compare.registry import Sides
from stepscope.tables.base import Column

MEASURED = columns(
    Column("base_ns", "int64", "Time of the base in a step, mean of its steps and ranks.", title="base"),
    Column("new_ns", "int64", "The same of the new side.", title="new"),
    Column("difference_ns", "int64", "`new_ns` less `base_ns`.", title="difference"),
    Column("change_factor", "float64", "`new_ns` over `base_ns`; null if the base has none.", title="change"),
    Column("of_step_ratio", "float64", "`difference_ns` over the base's step.", title="of {step}"),
    Column(
        "share_ratio",
        "float64",
        "Share of the difference between the steps; null if these hardly differ.",
        title="of diff.",
        importance=38,
    ),
    Column("base_calls", "float64", "Calls of the base in a step.", title="base calls", importance=37),
    Column("new_calls", "float64", "Calls of the new side in a step.", title="new calls", importance=36),
    Column(
        "probability_ratio",
        "float64",
        "How probable so large a difference is without any, adjusted for the number of rows; null if not tested.",
        title="p",
        importance=35,
    ),
    Column("verdict", "string", "Whether the difference is more than noise.", values=VERDICTS),
    nulls="change_factor of_step_ratio share_ratio base_calls new_calls probability_ratio",
)
"""Columns of every comparison of times."""

KEPT = "difference_ns change_factor verdict new_ns base_ns of_step_ratio"
"""Those that a narrow display keeps longest."""


_PLACE = "place of the step"
"""A column that no row has."""

_Row = tuple[list[float] | None, list[float] | None, float, float]
"""Values by step and mean of both sides."""


@dataclass(frozen=True)
class Side:
    """The steps of one side that count.

    Args:
        rows: `rank`, `step` and times of each.
        steps: How many.
        step_ns: Mean length.
    """

    rows: pl.DataFrame
    steps: int
    step_ns: float

    @classmethod
    def of(cls, side_steps: pl.DataFrame) -> Side:
        """The steps that are not left out."""
        rows = side_steps.filter(pl.col("left_out").is_null())
        ranks = rows.group_by("step").agg(ranks=pl.len(), step_ns=pl.col("step_ns").mean())
        length = ranks["step_ns"].mean()
        rows = rows.join(ranks.select("step", "ranks"), on="step")
        return cls(rows, ranks.height, float(length) if isinstance(length, (int, float)) else 0.0)

    def values(self, rows: pl.DataFrame, keys: Sequence[str], value: str, calls: str | None) -> pl.DataFrame:
        """For each item its value in each step that has it, the mean of the ranks (`values`), which of the steps these
        are (`places`), their mean and its calls."""
        of_ranks = rows.join(self.rows.select("rank", "step", "ranks"), on=["rank", "step"])
        count = pl.col(calls).sum() if calls else pl.lit(None, pl.Int64)
        by_step = of_ranks.group_by(*keys, "step").agg(
            value=pl.col(value).sum() / pl.col("ranks").first(), calls=count / pl.col("ranks").first()
        )
        numbers = self.rows.select("step").unique().sort("step").with_row_index(_PLACE)
        return (
            by_step.join(numbers, on="step")
            .sort(_PLACE)
            .group_by(keys)
            .agg(
                values=pl.col("value"),
                places=pl.col(_PLACE),
                mean=pl.col("value").sum() / max(self.steps, 1),
                calls=pl.col("calls").sum() / max(self.steps, 1) if calls else pl.lit(None, pl.Float64),
            )
        )


def differences(
    rows: Sides,
    steps: Sides,
    keys: Sequence[str],
    *,
    value: str = "total_ns",
    calls: str | None = "count",
    limits: Limits = LIMITS,
    are_parts: bool = False,
    small: float | None = None,
) -> pl.DataFrame:
    """Compare each item of both sides: the keys and the columns of `MEASURED`, largest difference first.

    Args:
        rows: Times by `rank`, `step` and keys. What a step lacks is zero there.
        steps: The steps of both sides, as `side_steps`.
        keys: What tells items apart, the same on both sides.
        value: Column of their times.
        calls: Column of numbers of calls, if there is one.
        are_parts: Whether items are parts of the step, which are zero where they are missing, and never added or
            removed.
        small: What is below it on both sides is not tested; a small part of the step by default.
    """
    base, new = Side.of(steps.base), Side.of(steps.new)
    both = base.values(rows.base, keys, value, calls).join(
        new.values(rows.new, keys, value, calls), on=list(keys), how="full", coalesce=True, nulls_equal=True
    )
    both = both.with_columns(pl.col("mean", "mean_right").fill_null(0.0))
    if calls:
        both = both.with_columns(pl.col("calls", "calls_right").fill_null(0.0))
    both = both.sort(keys, nulls_last=True)
    if are_parts:
        both = both.with_columns(pl.col("values", "values_right", "places", "places_right").fill_null([]))
    if small is None:
        small = limits.small_ratio * max(base.step_ns, new.step_ns)
    probabilities, verdicts = judged_values(both, (base.steps, new.steps), small, limits)
    total = new.step_ns - base.step_ns
    known = base.step_ns > 0
    differ = known and abs(total) > limits.same_ratio * max(base.step_ns, new.step_ns)
    change = pl.col("new_ns") - pl.col("base_ns")
    exact = pl.col("mean_right") - pl.col("mean")
    return (
        both.with_columns(
            base_ns=rounded(pl.col("mean")),
            new_ns=rounded(pl.col("mean_right")),
            probability_ratio=pl.Series(probabilities, dtype=pl.Float64),
            verdict=pl.Series(verdicts, dtype=pl.String),
        )
        .with_columns(
            difference_ns=change,
            change_factor=pl.when(pl.col("mean") > 0).then(pl.col("mean_right") / pl.col("mean")),
            of_step_ratio=exact / base.step_ns if known else pl.lit(None, pl.Float64),
            share_ratio=exact / total if differ else pl.lit(None, pl.Float64),
            base_calls=pl.col("calls"),
            new_calls=pl.col("calls_right"),
        )
        .select(*keys, *(column.name for column in MEASURED))
        .sort(-pl.col("difference_ns").abs(), *keys, nulls_last=True)
    )


def judged_values(
    both: pl.DataFrame, steps: tuple[int, int], small: float, limits: Limits
) -> tuple[list[float | None], list[str]]:
    """The adjusted probability and the verdict of each row.

    Args:
        both: `values`, `places` (which steps have them; the others have zero) and `mean` of the base; with `_right`
            those of the new side.
        steps: How many each side has.
        small: What is below it on both sides is not tested.
        limits: What counts as a difference.
    """
    tested: list[float | None] = []
    verdicts: list[str] = []
    samples: list[tuple[list[float], list[float]]] = []
    columns = ("values", "values_right", "mean", "mean_right", "places", "places_right")
    for *row, base_places, new_places in both.select(columns).iter_rows():
        of_base = _by_step(row[0], base_places, steps[0])
        of_new = _by_step(row[1], new_places, steps[1])
        samples.append((of_base, of_new))
        verdict = _untested((row[0], row[1], row[2], row[3]), steps, small, limits)
        if not verdict and min(steps) < limits.steps:
            verdict = "too few" if are_apart(of_base, of_new) else "noise"
        verdicts.append(verdict)
        tested.append(None if verdict else probability_of_steps(of_base, of_new))
    found = adjusted(tested)
    for place, (p, (of_base, of_new)) in enumerate(zip(found, samples, strict=True)):
        if p is not None:
            verdicts[place] = _verdict(p, of_base, of_new, limits)
    return found, verdicts


def _by_step(values: Sequence[float] | None, places: Sequence[int] | None, steps: int) -> list[float]:
    """The value of each step, zero where there is none."""
    found = [0.0] * steps
    for place, value in zip(places or (), values or (), strict=True):
        found[place] = value
    return found


def _untested(row: _Row, counts: tuple[int, int], small: float, limits: Limits) -> str:
    """Why a row needs no test, as its verdict; empty if it needs one."""
    of_base, of_new, mean, new_mean = row
    if of_base is None and len(of_new or []) == counts[1]:
        return "added"
    if of_new is None and len(of_base or []) == counts[0]:
        return "removed"
    if abs(new_mean - mean) <= limits.same_ratio * max(mean, new_mean):
        return "same"
    if max(mean, new_mean) < small:
        return "small"
    return ""


def _verdict(p: float, base: Sequence[float], new: Sequence[float], limits: Limits) -> str:
    if p <= limits.level:
        grown, typical = sum(new) / len(new) - sum(base) / len(base), median(new) - median(base)
        if grown * typical < 0:  # single steps that stand out decide the means
            return "noise"
        return "more" if grown > 0 else "less"
    return "too few" if are_apart(base, new) else "noise"
