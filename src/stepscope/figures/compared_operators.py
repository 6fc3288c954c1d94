"""Which kernels, operators, calls or modules make the difference between two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.compare.noise import VERDICTS
from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.axes import labels, named_ticks, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.compared import UNSURE, sides, signed, times
from stepscope.figures.style import GREEN, GREY, VERMILION
from stepscope.figures.words import word
from stepscope.pages.short_names import readable
from stepscope.present import Language, cell
from stepscope.text_columns import filled_in
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.compare import Pair

MOST = 20
"""Bars; of more, those that differ most."""

OF: dict[str, tuple[str, pl.Expr]] = {
    "kernels": ("kernel_differences", pl.col("name")),
    "operators": ("operator_differences", pl.col("path")),
    "modules": ("module_differences", pl.col("module")),
    "communication": (
        "communication_differences",
        pl.concat_str("operation", "group", separator=" ", ignore_nulls=True),
    ),
    "apis": ("api_differences", pl.col("name")),
}
"""What bars may be: the comparison, and the name of its rows."""

_COLUMNS = (
    column("name", "name", "Kernel, operator, module or call."),
    column("base_ns", "base", "Its mean time in a step on the base side.", "int64"),
    column("new_ns", "new", "On the new side.", "int64"),
    column("difference_ns", "difference", "New less base.", "int64"),
    column("change_factor", "factor", "New over base.", "float64"),
    column("verdict", "verdict", "Whether that is more than noise.", values=VERDICTS),
)


def data(pair: Pair, *, of: str = "", by: str | None = None) -> Data:
    """What differs most.

    Args:
        of: `kernels`, `operators`, `modules`, `communication` or `apis`. Default: the first with an answer.
        by: Kernels by this, as on the page: type, name, shape, class or operator.

    Raises:
        StepscopeError: If there is no such kind.
    """
    if of and of not in OF:
        raise StepscopeError(f"there is no {of!r} to compare. {close_matches(of, [*OF])}")
    found, reason = None, None
    for kind in [of] if of else [*OF]:
        question, named = OF[kind]
        try:
            found = pair.analyse(question, **({"by": by} if by and kind == "kernels" else {}))
        except Unavailable as why:
            reason = reason or why
            continue
        if found.height:
            break
    if found is None:
        assert reason is not None
        raise reason
    rows = found.with_columns(name=named).filter(pl.col("difference_ns") != 0)
    if found.height and rows.is_empty():
        raise Unavailable(f"nothing differs: all {kind} take the same time on both sides")
    if rows["operation"].count() if "operation" in rows.columns else False:
        sized = filled_in("{} {}", "name", pl.col("size_bytes").map_elements(_size, return_dtype=pl.String))
        rows = rows.with_columns(name=pl.coalesce(sized, "name"))
    most = rows.sort(-pl.col("difference_ns").abs(), "name", nulls_last=True).head(MOST)
    notes = []
    if rows.height > MOST:
        notes.append(
            Text(
                f"{MOST} of {rows.height}: those that differ most.",
                f"共 {rows.height} 项，显示差异最大的 {MOST} 项。",
            )
        )
    return Data([Rows(most, _COLUMNS)], notes, {"sides": sides(pair), "of": kind})


def _size(size: int) -> str:
    return cell("size_bytes", size)


def _time(ns: int | None) -> str:
    return "-" if ns is None else cell("_ns", ns)


def draw(data: Data, language: Language) -> Spec:
    """A bar to the right for what takes longer, to the left for what takes less; `customdata` is its name and words."""
    rows = data.main
    unit = unit_of("_ns", rows["difference_ns"])
    shown = readable(rows.select("name"))["name"] if language == "en" else rows["name"]
    names = labels(shown)
    traces: list[dict[str, Any]] = []
    sorts = (
        ("longer", VERMILION, (pl.col("difference_ns") > 0) & ~pl.col("verdict").is_in(UNSURE)),
        ("shorter", GREEN, (pl.col("difference_ns") <= 0) & ~pl.col("verdict").is_in(UNSURE)),
        ("unsure", GREY, pl.col("verdict").is_in(UNSURE)),
    )
    placed = rows.with_row_index("at")
    for name, colour, which in sorts:
        own = placed.filter(which)
        if own.is_empty():
            continue
        words = [signed(value) for value in own["difference_ns"]]
        both = zip(own["name"], own["base_ns"], own["new_ns"], own["change_factor"], own["verdict"], words, strict=True)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": word(name, language),
                "x": unit.of(own["difference_ns"]),
                "y": own["at"].to_list(),
                "width": 0.75,  # Plotly would make bars of few rows as wide as the gaps between them
                "text": words,
                "textposition": "outside",
                "cliponaxis": False,
                "customdata": [
                    [
                        what,
                        f"{_time(base)} → {_time(new)}",
                        times(factor),
                        word(verdict, language, "verdict"),
                    ]
                    for what, base, new, factor, verdict, _ in both
                ],
                "marker": {"color": colour},
                "hovertemplate": "%{y}<br>%{customdata[1]} %{customdata[2]}<br>%{customdata[3]}<extra></extra>",
            }
        )
    furthest = max((abs(value) for value in rows["difference_ns"]), default=0) / unit.factor * 1.25 or 1
    low = -furthest if (rows["difference_ns"] < 0).any() else 0
    high = furthest if (rows["difference_ns"] > 0).any() else 0
    axis = "new less base" if language == "en" else "新减基准"
    return {
        "data": traces,
        "layout": {
            "barmode": "overlay",
            "bargap": 0.25,
            "height": 120 + 26 * rows.height,
            "showlegend": True,
            "xaxis": {"title": {"text": f"{axis} ({unit.name})"}, "range": short([low, high], 4), "zeroline": True},
            "yaxis": {**named_ticks(names), "autorange": "reversed", "showgrid": False},
        },
    }


FIGURE = Figure(
    "compared-operators",
    Text("What makes the difference", "差异来自何处"),
    Text(
        "Mean time in one {per} that the new side takes longer (right) or less (left), those that differ most first. "
        "What is not beyond noise is grey.",
        "新的一侧一{per:noun}中多用（右）或少用（左）的平均时间，差异最大的在前。未超出噪声的为灰色。",
    ),
    (
        "kernel_differences",
        "operator_differences",
        "module_differences",
        "communication_differences",
        "api_differences",
    ),
    data,
    draw,
    of_pair=True,
    for_pages=True,
)
