"""Types of operators whose shapes change: their mean time from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.axes import labels, unit_of, whole_ticks
from stepscope.figures.base import Data, Figure, Rows, Spec, column, one_rank
from stepscope.figures.style import MANY
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

FIRST, MOST_TYPES = 3, 10
"""Types that have a curve unless some are named, and at most."""

MOST = 400
"""Points of a curve; of more steps, several that follow one another share one, which shows the longest."""

_COLUMNS = (
    column("unit", "list", "List of operators, e.g. `AI_CORE`."),
    column("type", "type", "Operator type."),
    column("step", "{step}", "Number of the step.", "int32"),
    column("mean_ns", "mean", "Mean time of a call in the step.", "int64"),
    column("count", "calls", "Number of calls in the step.", "int64"),
    column("total_ns", "total", "Their total time.", "int64"),
    column("shapes", "number of shapes", "Number of different input shapes in the step.", "int64"),
)


def data(
    run: Run, *, rank: int | None = None, types: Sequence[str] | str | None = None, unit: str | None = None
) -> Data:
    """The mean time of types of a rank in each step.

    Args:
        types: These types, at most ten; a text is split at commas. Default: the three that take most time.
        unit: Only types of this list, e.g. `AI_CORE`.

    Raises:
        StepscopeError: If there is no such type or list, or too many are named.
    """
    _, found, notes = one_rank(run, "dynamic_shape_types", rank)
    if unit is not None:
        units = found["unit"].unique().sort().to_list()
        if unit not in units:
            raise StepscopeError(f"no shapes change in a list {unit!r}. {close_matches(unit, units)}")
        found = found.filter(pl.col("unit") == unit)
    sums = found.group_by("unit", "type").agg(pl.col("total_ns").sum())
    order = sums.sort(-pl.col("total_ns"), "unit", "type", nulls_last=True)
    if types is None:
        chosen = order.head(FIRST)
        if order.height > FIRST:
            notes.append(
                Text(
                    f"{FIRST} of {order.height} types, those with most time.",
                    f"共 {order.height} 种类型，这里是耗时最多的 {FIRST} 种。",
                )
            )
    else:
        wanted = [one.strip() for one in types.split(",")] if isinstance(types, str) else list(types)
        there = order["type"].to_list()
        for name in wanted:
            if name not in there:
                raise StepscopeError(f"no shapes of {name!r} change. {close_matches(name, there)}")
        if len(wanted) > MOST_TYPES:
            raise StepscopeError(f"choose at most {MOST_TYPES} types: {len(wanted)} were named")
        chosen = order.filter(pl.col("type").is_in(wanted)).head(MOST_TYPES)
    shown = chosen.select("unit", "type").join(found, on=["unit", "type"], how="left", maintain_order="left_right")
    shown = shown.drop_nulls("step")
    if shown.is_empty():
        raise Unavailable("the steps of operators are unknown")
    steps = shown["step"].unique().sort()
    each = -(-len(steps) // MOST)
    if each > 1:
        notes.append(
            Text(
                f"Of every {each} steps ({len(steps)} in all) the longest is shown.",
                f"共 {len(steps)} 步，每 {each} 步显示其中最长的。",
            )
        )
        placed = shown.with_columns(place=pl.int_range(pl.len()).over("unit", "type") // each).with_row_index("row")
        longest = placed.sort("unit", "type", "place", -pl.col("mean_ns"), "step")
        kept = longest.unique(["unit", "type", "place"], keep="first", maintain_order=True)
        shown = kept.sort("row").drop("row", "place")
    return Data([Rows(shown, _COLUMNS)], notes)


def draw(data: Data, language: Language) -> Spec:
    """A line for each type."""
    rows = data.main
    unit = unit_of("mean_ns", rows["mean_ns"])
    step, mean, calls, shapes = (
        ("step", "mean time", "calls", "shapes") if language == "en" else ("步", "平均耗时", "次调用", "种形状")
    )
    kinds = list(rows.select("unit", "type").unique(maintain_order=True).iter_rows())
    several = len({kind[0] for kind in kinds}) > 1
    names = labels(f"{type_} ({own})" if several else type_ for own, type_ in kinds)
    traces = []
    for number, ((list_, type_), name) in enumerate(zip(kinds, names, strict=True)):
        own = rows.filter((pl.col("unit") == list_) & (pl.col("type") == type_))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if own.height <= 80 else "lines",
                "name": name,
                "x": own["step"].to_list(),
                "y": unit.of(own["mean_ns"]),
                "customdata": [[list_, type_, *row] for row in own.select("step", "count", "shapes").iter_rows()],
                "line": {"color": MANY[number % len(MANY)], "width": 2},
                "hovertemplate": f"{step} %{{x}}: %{{y:.4~g}}{unit.after}<br>%{{customdata[3]:,}} {calls}, "
                f"%{{customdata[4]}} {shapes}<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": {
            "height": 360,
            "showlegend": True,
            "hovermode": "closest",
            "xaxis": {"title": {"text": step}, "zeroline": False, **whole_ticks(rows["step"])},
            "yaxis": {"title": {"text": f"{mean} ({unit.name})"}, "rangemode": "tozero"},
        },
    }


FIGURE = Figure(
    "shape-curves",
    Text("Operators with changing shapes", "形状变化的算子"),
    Text(
        "The mean time of a call in each {per}, by type of operator, of operators whose input shapes change from {per} "
        "to {per}.",
        "输入形状随{per:noun}变化的算子在每一{per:noun}中单次调用的平均耗时，按类型显示。",
    ),
    ("dynamic_shape_types",),
    data,
    draw,
    of_rank=True,
)
