"""How long each step took, with the steps that stand out marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import unit_of, whole_ticks
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import BLUE, SKY, VERMILION
from stepscope.figures.words import WORDS, word
from stepscope.present import Language
from stepscope.selection import describe_numbers
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 600
"""Points of the curve; of more steps, several that follow one another share one, which shows the longest of them."""

_COLUMNS = (
    column("step", "{step}", "Number of the step.", "int32"),
    column("median_ns", "median", "Median of the ranks.", "int64"),
    column("min_ns", "shortest", "Length on the rank where it is shortest.", "int64"),
    column("max_ns", "longest", "Length on the rank where it is longest.", "int64"),
    column("max_rank", "longest on", "That rank.", "int32"),
    column("is_outlier", "outlier", "Whether it takes far longer than others.", "bool"),
    column("kind", "mostly", "What most of its extra time is spent on.", values=tuple(WORDS)),
)


def data(run: Run) -> Data:
    """The rows of `step_spread`, or the longest of each few that follow one another, and all that stand out."""
    rows = run.analyse("step_spread").sort("step")
    if rows.height == 1:
        raise Unavailable("only one step was recorded")
    notes = _outside(run)
    if rows.height > MOST:
        each = -(-rows.height // MOST)
        placed = rows.with_row_index("place").with_columns(place=pl.col("place") // each)
        longest = placed.sort("place", -pl.col("median_ns"), "step").unique("place", keep="first", maintain_order=True)
        shown = pl.concat([longest, placed.filter("is_outlier")]).unique("step", keep="first")
        notes.append(
            Text(
                f"Of every {each} steps ({rows.height} in all) the longest is shown, and all outliers.",
                f"共 {rows.height} 步，每 {each} 步显示其中最长的一步，并显示所有离群步。",
            )
        )
        rows = shown.drop("place").sort("step")
    return Data([Rows(rows, _COLUMNS)], notes)


def _outside(run: Run) -> list[Text]:
    """Which steps are longer here than in tables of windows, with time on the host outside the device's windows."""
    try:
        lengths = run.analyse("step_lengths")
    except Unavailable:
        return []
    longer = lengths.filter(pl.col("outside_ns") > 0)["step"].unique().sort().to_list()
    if not longer:
        return []
    which = describe_numbers(longer)
    return [
        Text(
            "These include time on the host before the device's first work or after its last, which tables of steps "
            f"leave out: {which}.",
            f"以下各步含设备首个任务之前或最后任务之后的主机时间，步骤表不计这段时间：{which}。",
        )
    ]


def draw(data: Data, language: Language) -> Spec:
    """A line for the median rank, a band between the shortest and the longest rank, marks for outliers."""
    rows = data.main
    unit = unit_of("max_ns", rows["max_ns"])
    steps = rows["step"].to_list()
    ticks: Spec = whole_ticks(rows["step"])
    if rows.height <= MOST and steps[-1] - steps[0] > 2 * rows.height:  # only some steps were recorded
        ticks, steps = {"type": "category"}, [str(one) for one in steps]
    step, median, band, outlier, longest = (
        ("step", "median rank", "shortest to longest rank", "outlier", "longest on rank")
        if language == "en"
        else ("步", "中位 rank", "最短到最长的 rank", "离群步", "最长的 rank：")
    )
    edge = {"width": 0, "color": SKY}
    traces: list[dict[str, Any]] = []
    if rows["ranks"].max() != 1:
        low = {"type": "scatter", "mode": "lines", "x": steps, "y": unit.of(rows["min_ns"]), "line": edge}
        high = {**low, "y": unit.of(rows["max_ns"]), "fill": "tonexty", "fillcolor": "rgba(86,180,233,0.35)"}
        traces += [
            {**low, "showlegend": False, "hoverinfo": "skip"},
            {
                **high,
                "name": band,
                "customdata": rows["max_rank"].to_list(),
                "hovertemplate": f"{step} %{{x}}<br>{longest} %{{customdata}}: %{{y:.4~g}}{unit.after}<extra></extra>",
            },
        ]
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers" if rows.height <= 80 else "lines",
            "name": median,
            "x": steps,
            "y": unit.of(rows["median_ns"]),
            "line": {"color": BLUE, "width": 2},
            "hovertemplate": f"{step} %{{x}}<br>{median}: %{{y:.4~g}}{unit.after}<extra></extra>",
        }
    )
    marked = rows.filter("is_outlier")
    if marked.height:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": outlier,
                "x": [steps[place] for place in rows["is_outlier"].arg_true()],
                "y": unit.of(marked["max_ns"]),
                "customdata": [word(kind or "unknown", language, "kind") for kind in marked["kind"]],
                "marker": {"color": VERMILION, "size": 11, "symbol": "diamond"},
                "hovertemplate": f"{step} %{{x}}: %{{y:.4~g}}{unit.after}<br>%{{customdata}}<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": {
            "height": 380,
            "hovermode": "closest",
            "xaxis": {"title": {"text": step}, **ticks},
            "yaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "rangemode": "tozero"},
        },
    }


FIGURE = Figure(
    "step-times",
    Text("Length of each {per}", "每一{per:noun}的耗时"),
    Text(
        "The line is the median rank, the band reaches from the shortest to the longest rank; marked steps take far "
        "longer than others.",
        "曲线是中位 rank，色带从最短到最长的 rank；标记的步远长于其他步。",
    ),
    ("step_spread",),
    data,
    draw,
)
