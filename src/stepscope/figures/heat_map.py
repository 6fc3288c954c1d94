"""In which steps which ranks take longer for their own work than comparable ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.figures.axes import short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.on_cpu import OUTSIDE, kinds_as_called
from stepscope.figures.sharing import cells as shared_cells
from stepscope.figures.sharing import sharing_note
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

COLOURED = 0.25
"""Excess over typical time from which on a cell has the strongest colour, at least."""

_COLUMNS = (
    column("ranks", "ranks", "Rank, or ranks that share a row."),
    column("steps", "{step}", "Step, or steps that share a column."),
    column("clear_ns", "excess", "Own work above that of comparable ranks, beyond noise.", "int64"),
    column("clear_ratio", "excess %", "The same over what is typical.", "float64"),
    column(
        "kind",
        "mostly",
        "Kind of work at which it loses most.",
        values=(
            "computing",
            "memory",
            "communication",
            "dispatch",
            OUTSIDE,
            "data_loading",
            "compile",
            "checkpoint",
            "garbage_collection",
            "waiting",
            "extra",
        ),
    ),
)


def data(run: Run) -> Data:
    """The cells of `heat_map`, the slowest first; of those that share one, the slowest."""
    found = kinds_as_called(run, run.analyse("heat_map").filter(pl.col("clear_ratio").is_not_null()))
    rows, columns = shared_cells(found["rank"], found["step"])
    placed = found.with_columns(row=rows.place("rank"), column=columns.place("step"))
    slowest = placed.sort(-pl.col("clear_ratio"), "rank", "step").unique(
        ["row", "column"], keep="first", maintain_order=True
    )
    shown = slowest.with_columns(
        ranks=rows.name("row"),
        steps=columns.name("column"),
        kind=pl.when(pl.col("clear_ns") > 0).then("kind"),
    )
    notes = sharing_note(rows, columns, Text("the slowest", "最慢的"))
    return Data([Rows(shown, _COLUMNS)], notes, {"rows": rows.names, "columns": columns.names})


def draw(data: Data, language: Language) -> Spec:
    """Rows of cells, the lowest rank at the top."""
    rows, names, steps = data.main, data.facts["rows"], data.facts["columns"]
    unit = unit_of("clear_ns", rows["clear_ns"])
    ratios: list[list[float | None]] = [[None] * len(steps) for _ in names]
    excess: list[list[Any]] = [[None] * len(steps) for _ in names]
    cells = rows.select("row", "column", "rank", "step", "clear_ratio", "clear_ns")
    for row, place, rank, of_step, ratio, clear in cells.iter_rows():
        ratios[row][place] = ratio * 100
        excess[row][place] = [rank, of_step, *short([clear / unit.factor], 3)]
    step = "step" if language == "en" else "步"
    above = "above typical" if language == "en" else "超出典型值"
    widest = max((value for value in rows["clear_ratio"]), default=0.0)
    return {
        "data": [
            {
                "type": "heatmap",
                "x": steps,
                "y": names,
                "z": [short(row, 3) for row in ratios],
                "customdata": excess,
                "zmin": 0,
                "zmax": short([max(widest, COLOURED) * 100], 3)[0],
                "hoverongaps": False,
                "xgap": 1 if len(steps) <= 80 else 0,
                "ygap": 1 if len(names) <= 80 else 0,
                "colorbar": {"title": {"text": f"{above} (%)"}},
                "hovertemplate": f"rank %{{y}}, {step} %{{x}}<br>{above}: %{{customdata[2]:.3~g}}{unit.after}"
                " (%{z:.3~g} %)<extra></extra>",
            }
        ],
        "layout": {
            "showlegend": False,
            "margin": {"t": 16},
            "height": 110 + max(min(24 * len(names), 620), 130),
            "xaxis": {"title": {"text": step}, "showgrid": False, "type": "category"},
            "yaxis": {"title": {"text": "rank"}, "autorange": "reversed", "showgrid": False, "type": "category"},
        },
    }


FIGURE = Figure(
    "heat-map",
    Text("Own work above that of comparable ranks", "自身工作超出同类 rank 的时间"),
    Text(
        "A row is a rank, a column a step; colour shows how much longer the rank took for its own work than comparable "
        "ranks. Waiting for other ranks and what is within noise do not count.",
        "每行是一个 rank，每列是一步；颜色表示该 rank 自身的工作比同类 rank 多用多少时间。"
        "等待其他 rank 和噪声范围内的差异不计。",
    ),
    ("heat_map",),
    data,
    draw,
)
