"""How long each step took on each rank, as a map in which a cell opens the rank's step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import label, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.sharing import cells, sharing_note, some_ticks
from stepscope.figures.slow_marks import slow_of
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

USUAL, LONG = 0.9, 2.0
"""Times the median step at which colours begin, and at which they end at the latest: what is usual is light, and one
step of start-up leaves the others some colour."""

ALIKE = 1.25
"""The strongest colour is for steps so many times as long as those of the lightest, at least: what is alike looks
alike."""

_COLUMNS = (
    column("ranks", "ranks", "Rank, or ranks that share a row."),
    column("steps", "{step}", "Step, or steps that share a column."),
    column("step_ns", "time", "Length of the step; of several, of the longest.", "int64"),
    column("rank", "longest on", "The rank on which it is longest.", "int32"),
    column("host", "host", "Its host."),
    column("stage", "stage", "Its pipeline stage, from 0.", "int32"),
)


def data(run: Run) -> Data:
    """The steps of `rank_steps`; of those that share a cell, the longest."""
    found = run.analyse("rank_steps").drop_nulls(["rank", "step", "step_ns"])
    if found.is_empty():
        raise Unavailable("how long steps took is not known of any rank", question="rank_steps")
    rows, columns = cells(found["rank"], found["step"])
    placed = found.with_columns(row=rows.place("rank"), column=columns.place("step"))
    longest = placed.sort(-pl.col("step_ns"), "rank", "step").unique(
        ["row", "column"], keep="first", maintain_order=True
    )
    shown = longest.with_columns(ranks=rows.name("row"), steps=columns.name("column"))
    slow = slow_of(run)
    median, least, most = (found["step_ns"].quantile(at, "nearest") or 0 for at in (0.5, 0, 1))
    low = max(least, USUAL * median)
    top = max(min(most, LONG * median), ALIKE * low)
    notes = sharing_note(rows, columns, Text("the longest", "最长的"))
    if most > top:
        notes.append(
            Text(
                f"Steps of {duration(top)} and more have the same colour; the longest takes {duration(most)}.",
                f"{duration(top)} 及以上的步颜色相同；最长的为 {duration(most)}。",
            )
        )
    facts = {"rows": rows, "columns": columns, "slow": slow, "range": (low, top)}
    return Data([Rows(shown, _COLUMNS)], [*slow.notes(rows.numbers), *notes], facts)


def draw(data: Data, language: Language) -> Spec:
    """Rows of cells, the lowest rank at the top; names of slow ranks stand out."""
    facts = data.facts
    rows, columns, slow = facts["rows"], facts["columns"], facts["slow"]
    names, steps = rows.names, columns.names
    unit = unit_of("step_ns", data.main["step_ns"])
    lengths: list[list[float | None]] = [[None] * len(steps) for _ in names]
    places: list[list[Any]] = [[None] * len(steps) for _ in names]
    texts = {host: label(host, 32) for host in data.main["host"].unique() if host is not None}
    step_word, stage_word = ("step", "stage") if language == "en" else ("步", "阶段")
    for row in data.main.iter_rows(named=True):
        at, place = row["row"], row["column"]
        lengths[at][place] = row["step_ns"] / unit.factor
        more = [texts[row["host"]]] if row["host"] is not None else []
        more += [f"{stage_word} {row['stage']}"] if row["stage"] is not None else []
        places[at][place] = [row["rank"], row["step"], ", ".join(more)]
    marked = [at for at, members in enumerate(rows.members) if slow.among(members)]
    low, high = short([value / unit.factor for value in facts["range"]], 4)
    height = max(min(24 * len(names), 620), 130)
    return {
        "data": [
            {
                "type": "heatmap",
                "x": steps,
                "y": list(range(len(names))),
                "z": [short(row, 4) for row in lengths],
                "customdata": places,
                "zmin": low,
                "zmax": high,
                "hoverongaps": False,
                "xgap": 1 if len(steps) <= 80 else 0,
                "ygap": 1 if len(names) <= 80 else 0,
                "colorbar": {"title": {"text": f"{step_word} ({unit.name})"}},
                "hovertemplate": f"rank %{{customdata[0]}}, {step_word} %{{customdata[1]}}: %{{z:.4~g}}{unit.after}"
                "<br>%{customdata[2]}<extra></extra>",
            }
        ],
        "layout": {
            "showlegend": False,
            "margin": {"t": 16},
            "height": 110 + height,
            "xaxis": {"title": {"text": step_word}, "showgrid": False, "type": "category"},
            "yaxis": {
                **some_ticks(names, marked, most=max(height // 18, 4)),
                "title": {"text": "rank"},
                "autorange": "reversed",
                "showgrid": False,
                "zeroline": False,
            },
        },
    }


FIGURE = Figure(
    "step-map",
    Text("Length of each {per} on each rank", "各 rank 每一{per:noun}的耗时"),
    Text(
        "A row is a rank, a column a step; colour shows what takes longer than usual. Ranks that wait for one another "
        "take about as long in each step: those that hold up the others are marked.",
        "每行是一个 rank，每列是一步；颜色表示耗时超出平常。互相等待的 rank 每步耗时相近：拖慢其他 rank 的已标记。",
    ),
    ("rank_steps",),
    data,
    draw,
    for_pages=True,
)
