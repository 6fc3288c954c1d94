"""In which steps which ranks take longer for their own work than comparable ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice.messages import Text
from stepscope.figures.axes import short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.on_cpu import OUTSIDE, kinds_as_called
from stepscope.present import Language
from stepscope.selection import describe_numbers

if TYPE_CHECKING:
    from stepscope.run import Run

MOST_RANKS, MOST_STEPS, MOST_CELLS = 160, 160, 9000
"""Rows, columns and cells of the map; of more ranks or steps, several that follow one another share a cell."""

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
    cells = kinds_as_called(run, run.analyse("heat_map").filter(pl.col("clear_ratio").is_not_null()))
    ranks, steps = (cells[name].unique().sort().to_list() for name in ("rank", "step"))
    by_rank = -(-len(ranks) // MOST_RANKS) or 1
    rows = max(-(-len(ranks) // by_rank), 1)
    by_step = -(-len(steps) // max(min(MOST_STEPS, MOST_CELLS // rows), 1)) or 1
    row_names, column_names = _shared(ranks, by_rank), _shared(steps, by_step)
    placed = cells.with_columns(
        row=pl.col("rank").replace_strict(ranks, [k // by_rank for k in range(len(ranks))], return_dtype=pl.Int32),
        column=pl.col("step").replace_strict(steps, [k // by_step for k in range(len(steps))], return_dtype=pl.Int32),
    )
    slowest = placed.sort(-pl.col("clear_ratio"), "rank", "step").unique(
        ["row", "column"], keep="first", maintain_order=True
    )
    found = slowest.with_columns(
        ranks=pl.col("row").replace_strict(range(len(row_names)), row_names, return_dtype=pl.String),
        steps=pl.col("column").replace_strict(range(len(column_names)), column_names, return_dtype=pl.String),
        kind=pl.when(pl.col("clear_ns") > 0).then("kind"),
    )
    notes = []
    if by_rank > 1 or by_step > 1:
        notes.append(
            Text(
                f"{len(ranks)} ranks and {len(steps)} steps share {rows} rows and {len(column_names)} columns: "
                "a cell shows the slowest of those that share it.",
                f"{len(ranks)} 个 rank 和 {len(steps)} 步合并为 {rows} 行、{len(column_names)} 列："
                "每格显示其中最慢的。",
            )
        )
    return Data([Rows(found, _COLUMNS)], notes, {"rows": row_names, "columns": column_names})


def _shared(numbers: list[int], at_once: int) -> list[str]:
    """Names of rows or columns, each of as many numbers."""
    return [describe_numbers(numbers[start : start + at_once]) for start in range(0, len(numbers), at_once)]


def draw(data: Data, language: Language) -> Spec:
    """Rows of cells, the lowest rank at the top."""
    rows, names, steps = data.main, data.facts["rows"], data.facts["columns"]
    unit = unit_of("clear_ns", rows["clear_ns"])
    ratios: list[list[float | None]] = [[None] * len(steps) for _ in names]
    excess: list[list[float | None]] = [[None] * len(steps) for _ in names]
    for row, place, ratio, clear in rows.select("row", "column", "clear_ratio", "clear_ns").iter_rows():
        ratios[row][place], excess[row][place] = ratio * 100, clear / unit.factor
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
                "customdata": [short(row, 3) for row in excess],
                "zmin": 0,
                "zmax": short([max(widest, COLOURED) * 100], 3)[0],
                "hoverongaps": False,
                "xgap": 1 if len(steps) <= 80 else 0,
                "ygap": 1 if len(names) <= 80 else 0,
                "colorbar": {"title": {"text": f"{above} (%)"}},
                "hovertemplate": f"rank %{{y}}, {step} %{{x}}<br>{above}: %{{customdata:.3~g}}{unit.after}"
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
