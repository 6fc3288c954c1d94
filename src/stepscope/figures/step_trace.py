"""One step drawn to scale: its parts and phases, where forward starts and backward ends, communication by stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures.axes import Unit, label, labels, named_ticks, shortened, unit_of
from stepscope.figures.base import Data, Figure, Note, Rows, Spec, column, one_rank
from stepscope.figures.style import COLOURS, GREEN, GREY, ORANGE, VERMILION, ink_on
from stepscope.figures.words import WORDS, word
from stepscope.pages.short_names import readable
from stepscope.present import Language, duration
from stepscope.selection import named_numbers
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST_CALLS = 400
"""Calls that have a bar: the longest."""

USUAL_WIDTH, CHARACTER = 1000, 8
"""Width of the figure's bars on a page of 1280 pixels, and of a character in it."""

EDGE = 1.002
"""Length of the axis over that of the step: a bar that ends beyond the axis by a rounded digit has no text."""

LONGEST_CALL = 40
"""Characters of a call's name."""

MOST_STREAMS = 12
"""Streams that have a row: those with most communication."""

STEP, POINTS, PHASES, MARKS, CALLS = "step", "points", "phases", "marks", "calls"
"""Rows of the figure, from the top; calls have a row for each stream."""

PARTS = ("interval", "forward_backward", "tail")
ALL_PHASES = (
    *("data_wait", "compile", "forward", "backward", "exposed_communication", "optimizer"),
    *("validation", "warm_up", "checkpoint", "other"),
)

COLOUR = {
    "step": GREY,
    "data_wait": COLOURS["data_loading"],
    "exposed_communication": COLOURS["communication"],
    "optimizer": GREEN,
    "validation": "#A6761D",
    "warm_up": COLOURS["compile"],
    **{name: COLOURS[name] for name in (*PARTS, "compile", "forward", "backward", "checkpoint", "other")},
}
"""Colours of parts and phases."""

_COLUMNS = (
    column("row", "row", "Row of the figure.", values=(STEP, POINTS, PHASES, MARKS, CALLS)),
    column("stream", "stream", "Stream of the device; null on the host.", "int64"),
    column("piece", "part", "Part or phase, point or call.", values=tuple(WORDS)),
    column("name", "name", "Operator at the point, or the call."),
    column("since_ns", "start", "Since the start of the step.", "int64"),
    column("length_ns", "time", "Its length; null for a point.", "int64"),
    column("share_ratio", "share", "The same over the step.", "float64"),
    column("steps", "steps", "Number of steps behind a mean.", "int64"),
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
    """The parts of a step (default: of the mean step) of a rank, from its start.

    Args:
        graph: Steps of this graph. Default: the one whose steps take most time.
        forward_start, backward_end: Operators at the two points, as for `step_trace`.
    """
    points = given_points(forward_start, backward_end)
    one, trace, notes = traced(run, rank, graph, points)
    if trace.is_empty():
        raise Unavailable("no steps were recorded")
    same = pl.col("graph").eq_missing(pl.lit(trace["graph"][0], pl.Int64))
    if step is None:
        parts = one.analyse("step_statistics", **points).filter(same)
        lengths = {row["phase"]: (row["mean_ns"], row["share_ratio"], row["steps"]) for row in parts.to_dicts()}
        notes.append(_mean_of(trace.height))
        names, at = trace.row(0, named=True), None
    else:
        own = trace.filter(pl.col("step") == step)
        if own.is_empty():
            raise StepscopeError(f"there is no step {step}. Recorded: {named_numbers('step', trace['step'].to_list())}")
        names = own.row(0, named=True)
        whole = names["step_ns"] or 1
        known = {name: names[f"{name}_ns"] for name in ("step", *PARTS, *ALL_PHASES)}
        lengths = {name: (each, each / whole, None) for name, each in known.items() if each is not None}
        notes.append(Text(f"Step {step}.", f"第 {step} 步。"))
        at = names["start_ns"]
    calls, left = _calls(one, same, step, points)
    rows = [*_bars(lengths), *_marks(lengths, names), *calls]
    notes += [*_points_in_words(names), *_of_phases(rows), *left]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return Data([Rows(frame, _COLUMNS)], notes, {"start_ns": at})


_SCHEMA = {
    "row": pl.String,
    "stream": pl.Int64,
    "piece": pl.String,
    "name": pl.String,
    "since_ns": pl.Int64,
    "length_ns": pl.Int64,
    "share_ratio": pl.Float64,
    "steps": pl.Int64,
}

_Row = tuple[Any, ...]
"""Values of the columns of `_SCHEMA`."""

_Lengths = Mapping[str, tuple[int, float | None, int | None]]
"""Of each known part or phase: how long it is, its share, and the number of steps."""


def given_points(forward_start: str | None, backward_end: str | None) -> dict[str, str]:
    """The operators at the two points that a caller names, as options of `step_trace`."""
    points = {"forward_start": forward_start, "backward_end": backward_end}
    return {name: value for name, value in points.items() if value is not None}


def traced(
    run: Run, rank: int | None, graph: int | None, points: Mapping[str, str]
) -> tuple[Run, pl.DataFrame, list[Text | Note]]:
    """A rank (default: the first that has steps), its steps of a graph, and notes about both."""
    one, trace, notes = one_rank(run, "step_trace", rank, **points)
    trace, graph_notes = _of_graph(trace, graph)
    return one, trace, [*notes, *graph_notes]


def _of_graph(trace: pl.DataFrame, graph: int | None) -> tuple[pl.DataFrame, list[Text]]:
    """The steps of one graph: the given one, or that whose steps take most time; with a note if there are several.

    Raises:
        StepscopeError: If there is no such graph.
    """
    there = trace["graph"].unique().drop_nulls().sort().to_list()
    if graph is not None:
        if graph not in there:
            raise StepscopeError(f"no graph {graph} was recorded. Recorded: {named_numbers('graph', there)}")
        return trace.filter(pl.col("graph") == graph), [Text(f"Graph {graph}.", f"图 {graph}。")]
    if len(there) < 2:
        return trace, []
    sums = trace.group_by("graph").agg(pl.col("step_ns").sum()).sort(-pl.col("step_ns"), "graph", nulls_last=True)
    chosen = sums["graph"][0]
    return trace.filter(pl.col("graph").eq_missing(pl.lit(chosen, pl.Int64))), [
        Text(
            f"Graph {chosen}, whose steps take most time; there are {len(there)} graphs.",
            f"图 {chosen}，其步耗时最多；共 {len(there)} 个图。",
        )
    ]


def _mean_of(count: int) -> Text:
    return Text(f"Mean of {count} steps.", f"{count} 步的均值。") if count > 1 else Text("One step.", "仅一步。")


def _bars(lengths: _Lengths) -> list[_Row]:
    """The whole step, what the two points cut it into, and its phases one after the other."""
    if "step" not in lengths:
        raise Unavailable("the length of the steps is unknown")
    rows: list[_Row] = [(STEP, None, "step", None, 0, *lengths["step"])]
    if "interval" in lengths:
        rows += _in_a_row(POINTS, PARTS if "forward_backward" in lengths else ("interval", "forward"), lengths)
    if "other" in lengths:  # else no phases but communication are known
        rows += _in_a_row(PHASES, ALL_PHASES, lengths)
    return rows


def _in_a_row(row: str, parts: Sequence[str], lengths: _Lengths) -> list[_Row]:
    start, rows = 0, []
    for part in parts:
        length, share, steps = lengths.get(part, (0, None, None))
        if length or (part in lengths and row == POINTS):
            rows.append((row, None, part, None, start, length, share, steps))
            start += length
    return rows


def _marks(lengths: _Lengths, names: Mapping[str, Any]) -> list[_Row]:
    """Where forward starts and backward ends."""
    if "interval" not in lengths:
        return []
    start = lengths["interval"][0]
    ends = [("forward_start", start)]
    if "forward_backward" in lengths:
        ends.append(("backward_end", start + lengths["forward_backward"][0]))
    return [(MARKS, None, side, names[f"{side}_operator"], at, None, None, None) for side, at in ends]


def _of_phases(rows: Sequence[_Row]) -> list[Text]:
    if any(row[0] == PHASES for row in rows):
        return [
            Text(
                "Phases show how long, not when: they stand one after the other.",
                "各阶段表示时长而非时刻，依次排列。",
            )
        ]
    return [Text("Phases are unknown: what ran in the steps was not recorded.", "阶段未知：没有记录各步中运行的内容。")]


def _points_in_words(names: Mapping[str, Any]) -> list[Note]:
    found = {"forward_start": _STARTS, "backward_end": _ENDS}
    named = {side: names[f"{side}_operator"] for side in found}
    return [Note(text, {"name": shortened(named[side], 160)}) for side, text in found.items() if named[side]]


_STARTS = Text("Forward starts at {name}.", "前向起点：{name}。")
_ENDS = Text("Backward ends at {name}.", "反向终点：{name}。")


def _calls(run: Run, same: pl.Expr, step: int | None, points: Mapping[str, Any]) -> tuple[list[Any], list[Text]]:
    """Calls of the communication streams: of a step, or the mean of all."""
    question = "step_reduce_statistics" if step is None else "step_reduces"
    try:
        found = run.analyse(question, **points).filter(same)
    except Unavailable:
        return [], []
    if step is None:
        found = found.select("stream", "name", "operation", "steps", since_ns="mean_start_ns", length_ns="mean_ns")
    else:
        found = found.filter((pl.col("step") == step) & (pl.col("segment") == "call")).select(
            "stream", "name", "operation", steps=pl.lit(None), since_ns="start_ns", length_ns="duration_ns"
        )
    by_stream = found.group_by("stream").agg(pl.col("length_ns").sum(), calls=pl.len())
    streams = by_stream.sort(-pl.col("length_ns"), "stream", nulls_last=True)["stream"].head(MOST_STREAMS)
    shown = found.filter(pl.col("stream").is_in(streams.drop_nulls().implode()) | pl.col("stream").is_null())
    longest = shown.sort(-pl.col("length_ns"), "stream", "since_ns", nulls_last=True).head(MOST_CALLS)
    notes = []
    if longest.height < found.height:
        notes.append(
            Text(
                f"{longest.height} of {found.height} communication calls, the longest, "
                f"on {longest['stream'].n_unique()} of {by_stream.height} streams.",
                f"共 {found.height} 次通信，这里是最长的 {longest.height} 次；"
                f"{by_stream.height} 个流中显示 {longest['stream'].n_unique()} 个。",
            )
        )
    ordered = longest.sort("stream", "since_ns", "length_ns", nulls_last=True)
    return [
        (CALLS, stream, operation, name or operation, since, length, None, steps)
        for stream, operation, name, since, length, steps in ordered.select(
            "stream", "operation", "name", "since_ns", "length_ns", "steps"
        ).iter_rows()
    ], notes


def draw(data: Data, language: Language) -> Spec:
    """Rows of bars, the whole step at the top; dotted lines at the two points."""
    rows = data.main
    length = max(int(rows["length_ns"][0]), 1)
    unit = unit_of("length_ns", [float(length)])
    scale = _Scale(unit, length, data.facts["start_ns"], language)
    traces: list[Spec] = []
    shapes: list[Spec] = []
    names: list[str] = []
    for (row, stream, point), own in rows.group_by(
        "row", "stream", pl.when(pl.col("row") == MARKS).then("piece").alias("point"), maintain_order=True
    ):
        place = len(names)
        names.append(_row_name(str(row), stream, point, language))
        if row == CALLS:
            traces.append(
                _of_stream(own, place, scale, in_legend=not any(one["name"] == scale.calls for one in traces))
            )
        elif row == MARKS:
            mark = own.row(0, named=True)
            traces.append(_mark(mark, place, scale))
            at = mark["since_ns"] / unit.factor
            line = {"color": VERMILION, "width": 1.3, "dash": "dot"}
            shapes.append({"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line})
        else:
            traces += [_bar(part, place, scale) for part in own.iter_rows(named=True)]
    since = "since the start of the step" if language == "en" else "自本步开始"
    return {
        "data": traces,
        "layout": {
            "height": 110 + 42 * len(names),
            "barmode": "overlay",
            "bargap": 0.2,
            "showlegend": True,
            "hovermode": "closest",
            "shapes": shapes,
            "xaxis": {
                "title": {"text": f"{since} ({unit.name})"},
                "range": [0, length / unit.factor * EDGE],
                "zeroline": False,
            },
            "yaxis": {**named_ticks(names), "range": [len(names) - 0.45, -0.55], "showgrid": False, "zeroline": False},
        },
    }


@dataclass(frozen=True)
class _Scale:
    """What all bars of a figure share: the unit, the length of the step, its start in ns (null for a mean)."""

    unit: Unit
    length: int
    start_ns: int | None
    language: Language

    @property
    def calls(self) -> str:
        """What calls are called in the legend."""
        return word("kind:communication", self.language)

    def has_room(self, text: str, length_ns: int) -> bool:
        """Whether a bar is wide enough for a text on a page of usual width."""
        return length_ns / self.length * USUAL_WIDTH > len(text) * CHARACTER

    def custom(self, kind: str, key: Any, row: Mapping[str, Any]) -> list[Any]:
        """What a click gets: kind, part or stream, and when it begins in ns since the epoch (as a text; null in a
        mean), how long it is; then what the hover text shows."""
        begins = None if self.start_ns is None else str(self.start_ns + row["since_ns"])
        length = row["length_ns"]
        return [kind, key, begins, length, "" if length is None else duration(length), duration(row["since_ns"])]


def _row_name(row: str, stream: Any, point: Any, language: Language) -> str:
    if row == CALLS:
        return _HOST.of(language) if stream is None else f"{_STREAM.of(language)} {stream}"
    return word(str(point), language) if row == MARKS else _ROWS[row].of(language)


_STREAM, _HOST = Text("stream", "流"), Text("communication", "通信")
_ROWS = {STEP: Text("step", "步"), POINTS: Text("parts", "部分"), PHASES: Text("phases", "阶段")}


def _bar(row: Mapping[str, Any], place: int, scale: _Scale) -> Spec:
    part, colour = row["piece"], COLOUR[row["piece"]]
    name = _ROWS[STEP].of(scale.language) if part == "step" else word(part, scale.language, "piece")
    text = f"{name} {duration(row['length_ns'])}"
    if row["share_ratio"] is not None and part != "step":
        text += f" · {row['share_ratio']:.1%}"
    return {
        "type": "bar",
        "orientation": "h",
        "name": text,
        "base": scale.unit.of([row["since_ns"]]),
        "x": scale.unit.of([row["length_ns"]]),
        "y": [place],
        "text": [text],
        "textposition": "inside" if scale.has_room(text, row["length_ns"]) else "none",
        "insidetextanchor": "middle",
        "textangle": 0,
        "insidetextfont": {"color": ink_on(colour)},
        "marker": {"color": colour, "pattern": {"shape": ""}},
        "customdata": [scale.custom("part", part, row)],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": part != "step",
    }


def _of_stream(own: pl.DataFrame, place: int, scale: _Scale, *, in_legend: bool) -> Spec:
    names = labels(readable(own.select(name=pl.col("name").fill_null("-")))["name"], LONGEST_CALL)
    rows = own.rows(named=True)
    return {
        "type": "bar",
        "orientation": "h",
        "name": scale.calls,
        "showlegend": in_legend,
        "legendgroup": CALLS,
        "base": scale.unit.of(own["since_ns"]),
        "x": scale.unit.of(own["length_ns"]),
        "y": [place] * own.height,
        "text": names,
        "textposition": [
            "inside" if scale.has_room(name, row["length_ns"]) else "none"
            for name, row in zip(names, rows, strict=True)
        ],
        "insidetextanchor": "middle",
        "textangle": 0,
        "insidetextfont": {"color": ink_on(ORANGE)},
        "marker": {"color": ORANGE},
        "customdata": [scale.custom("call", row["stream"], row) for row in rows],
        "hovertemplate": "%{text}<br>%{customdata[4]}<br>+%{customdata[5]}<extra></extra>",
    }


def _mark(row: Mapping[str, Any], place: int, scale: _Scale) -> Spec:
    """A point with the name of its operator, on the side where there is more room."""
    name = "" if row["name"] is None else str(row["name"])
    at = duration(row["since_ns"])
    last = readable(pl.DataFrame({"name": [name]}))["name"][0] if "(" in name else name.rsplit("/", 1)[-1]
    text = f"{label(last)} · {at}" if name else at
    side = "middle right" if row["since_ns"] * 2 < scale.length else "middle left"
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": word(row["piece"], scale.language),
        "x": scale.unit.of([row["since_ns"]]),
        "y": [place],
        "text": [f"  {text}  "],
        "textposition": side,
        "cliponaxis": False,
        "showlegend": False,
        "marker": {"color": VERMILION, "size": 10, "symbol": "diamond"},
        "customdata": [[*scale.custom("point", row["piece"], row), label(name, 160)]],
        "hovertemplate": "%{customdata[6]}<br>+%{customdata[5]}<extra></extra>",
    }


FIGURE = Figure(
    "step-trace",
    Text("What one {per} consists of", "一{per:noun}的组成"),
    Text(
        "One {per} drawn to scale, or the mean of all: the parts between the start of forward and the end of backward, "
        "phases, and when communication runs on each stream.",
        "按比例绘制的一{per:noun}或均值：前向起点与反向终点之间的部分、各阶段，以及各流上通信运行的时间。",
    ),
    ("step_trace", "step_statistics", "step_reduces"),
    data,
    draw,
    of_rank=True,
)
