"""How long each part of a step takes from step to step: before forward, forward and backward, after; else phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import unit_of, whole_ticks
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.step_trace import ALL_PHASES, COLOUR, PARTS, given_points, traced
from stepscope.figures.style import GREY, VERMILION
from stepscope.figures.words import WORDS, word
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 600
"""Points of a curve; of more steps, several that follow one another share one, which shows the longest of them."""

_COLUMNS = (
    column("piece", "part", "Part or phase.", values=tuple(WORDS)),
    column("step", "{step}", "Number of the step.", "int32"),
    column("length_ns", "time", "Its length in the step.", "int64"),
    column("is_outlier", "outlier", "Whether it takes far longer than in other steps.", "bool"),
)
_MEANS = (
    column("piece", "part", "Part or phase.", values=tuple(WORDS)),
    column("mean_ns", "mean", "Mean of the steps.", "int64"),
    column("share_ratio", "share", "Share of the steps' time.", "float64"),
    column("steps", "steps", "Number of steps.", "int64"),
)


def data(
    run: Run,
    *,
    rank: int | None = None,
    step: int | None = None,
    graph: int | None = None,
    forward_start: str | None = None,
    backward_end: str | None = None,
) -> Data:
    """The parts of each step of a rank, or its phases where the two points are unknown.

    Args:
        step: Mark this step.
        graph: Steps of this graph. Default: the one whose steps take most time.
        forward_start, backward_end: Operators at the two points, as for `step_trace`.
    """
    points = given_points(forward_start, backward_end)
    one, trace, notes = traced(run, rank, graph, points)
    parts = [name for name in PARTS if trace[f"{name}_ns"].count()]
    if parts and "forward_backward" not in parts:  # inference
        parts = [name for name in ("interval", "forward") if trace[f"{name}_ns"].count()]
    if not parts:
        parts = [name for name in ALL_PHASES if trace[f"{name}_ns"].fill_null(0).sum()]
        notes.append(
            Text(
                "Where forward starts and backward ends is unknown, so phases are shown.",
                "前向起点与反向终点未知，因此显示各阶段。",
            )
        )
    if not parts:
        raise Unavailable("neither parts nor phases of steps were recorded")
    if trace.height == 1:
        raise Unavailable("only one step was recorded")
    same = pl.col("graph").eq_missing(pl.lit(trace["graph"][0], pl.Int64))
    means = one.analyse("step_statistics", **points).filter(same)
    outliers = {row["phase"]: row["outlier_steps"] or [] for row in means.to_dicts()}
    shown = trace.sort("step", nulls_last=True)
    each = -(-shown.height // MOST)
    if each > 1:
        notes.append(
            Text(
                f"Of every {each} steps ({shown.height} in all) the longest of each part is shown, and all outliers.",
                f"共 {shown.height} 步，每 {each} 步显示各部分中最长的，并显示所有离群步。",
            )
        )
    rows = pl.concat(_thinned(shown, part, each, outliers.get(part, [])) for part in parts)
    known = means.filter(pl.col("phase").is_in(parts)).rename({"phase": "piece"})
    heading = Text("Means of the parts", "各部分的均值")
    marked = step if step in trace["step"] else None  # another one would stretch the axis
    return Data([Rows(rows, _COLUMNS), Rows(known, _MEANS, heading)], notes, {"parts": parts, "marked": marked})


def _thinned(trace: pl.DataFrame, part: str, each: int, outliers: Sequence[int]) -> pl.DataFrame:
    """The steps of a part, the longest of each few that follow one another and all outliers."""
    rows = trace.select(
        pl.lit(part).alias("piece"), "step", length_ns=f"{part}_ns", is_outlier=pl.col("step").is_in(list(outliers))
    ).drop_nulls("length_ns")
    if each == 1:
        return rows
    placed = rows.with_row_index("place").with_columns(place=pl.col("place") // each)
    longest = placed.sort("place", -pl.col("length_ns"), "step").unique("place", keep="first", maintain_order=True)
    both = pl.concat([longest, placed.filter("is_outlier").head(MOST)]).unique("step", keep="first")
    return both.drop("place").sort("step")


def draw(data: Data, language: Language) -> Spec:
    """Curves one above the other, each with its own scale, as the parts differ by orders of magnitude."""
    rows, parts = data.main, data.facts["parts"]
    means = {row["piece"]: row for row in data.rows[1].frame.to_dicts()}
    step = "step" if language == "en" else "步"
    traces: list[Spec] = []
    layout: Spec = {"showlegend": False, "hovermode": "closest", "annotations": [], "shapes": []}
    room = 1 / len(parts)
    for number, part in enumerate(parts):
        own = rows.filter(pl.col("piece") == part)
        unit = unit_of("length_ns", own["length_ns"])
        axis = "" if number == 0 else str(number + 1)
        top = 1 - number * room
        domain = [top - room * 0.78 if number < len(parts) - 1 else 0, top - room * 0.14]
        name = word(part, language, "piece")
        traces.append(_curve(own, part, f"y{axis}", step, unit.of(own["length_ns"]), unit.after))
        late = own.filter("is_outlier")
        if late.height:
            traces.append(_outliers(late, part, f"y{axis}", step, unit.of(late["length_ns"]), unit.after))
        title = f"<b>{name}</b>"
        if mean := means.get(part):
            title += f"   {'mean' if language == 'en' else '均值'} {duration(mean['mean_ns'])}"
            if mean["share_ratio"] is not None:
                title += f" · {mean['share_ratio']:.1%}"
            at = unit.of([mean["mean_ns"]])[0]
            line = {"color": GREY, "width": 1, "dash": "dash"}
            where = {"xref": "paper", "x0": 0, "x1": 1, "yref": f"y{axis}", "y0": at, "y1": at}
            layout["shapes"].append({"type": "line", **where, "line": line})
        place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": domain[1], "yanchor": "bottom"}
        layout["annotations"].append({"text": title, "showarrow": False, **place})
        layout[f"yaxis{axis}"] = {"title": {"text": unit.name}, "domain": domain, "rangemode": "tozero", "nticks": 5}
    last = "" if len(parts) == 1 else str(len(parts))
    layout["xaxis"] = {"title": {"text": step}, "anchor": f"y{last}", "zeroline": False, **whole_ticks(rows["step"])}
    if (marked := data.facts["marked"]) is not None:
        line = {"color": VERMILION, "width": 1.3, "dash": "dot"}
        layout["shapes"].append(
            {"type": "line", "x0": marked, "x1": marked, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        )
    layout["height"] = 70 + 165 * len(parts)
    return {"data": traces, "layout": layout}


def _curve(own: pl.DataFrame, part: str, axis: str, step: str, ys: list[Any], unit: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines+markers" if own.height <= 80 else "lines",
        "name": part,
        "x": own["step"].to_list(),
        "y": ys,
        "yaxis": axis,
        "customdata": [[part, number] for number in own["step"]],
        "line": {"color": COLOUR[part], "width": 2},
        "hovertemplate": f"{step} %{{x}}: %{{y:.4~g}}{unit}<extra></extra>",
    }


def _outliers(own: pl.DataFrame, part: str, axis: str, step: str, ys: list[Any], unit: str) -> Spec:
    marker = {"color": VERMILION, "size": 10, "symbol": "diamond"}
    return {**_curve(own, part, axis, step, ys, unit), "mode": "markers", "marker": marker}


FIGURE = Figure(
    "step-parts",
    Text("Parts of each {per}", "每一{per:noun}的组成部分"),
    Text(
        "How long each part takes from {per} to {per}: before forward, forward and backward, after backward. Dashed "
        "lines are means; marked {per}s take far longer than others.",
        "各部分在每一{per:noun}中的耗时：前向之前、前向与反向、反向之后。虚线为均值；标记处远长于其他。",
    ),
    ("step_trace", "step_statistics"),
    data,
    draw,
    of_rank=True,
)
