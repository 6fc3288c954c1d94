"""The operators of a dataset pipeline from left to right, and how full the queues between them are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures.axes import label, short, shortened
from stepscope.figures.base import Data, Figure, Note, Rows, Spec, column, one_rank
from stepscope.figures.style import BLUE, GREEN, VERMILION
from stepscope.present import Language
from stepscope.selection import named_numbers
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 60
"""Operators in the figure: those nearest to the training loop."""

LONGEST = 14
"""Characters of a line of an operator's name."""

WIDE = 6
"""Operators beside each other; a longer pipeline goes on in the line below."""

BOX, QUEUE, HIGH = 0.3, 0.15, 0.26
"""Half the width of an operator and of a queue, and half their height; operators are 1 apart."""

_FILL, _EDGE = "rgba(128,128,128,0.16)", "rgba(128,128,128,0.75)"
"""Of boxes: they stand out on light and dark pages."""

_COLUMNS = (
    column("operator", "operator", "Dataset operator."),
    column("type", "type", "Its type."),
    column("parent", "to", "Operator that takes its output; null for the last."),
    column("workers", "workers", "Number of its threads or processes.", "int32"),
    column("mean_size", "in the queue", "Mean number of items in its output queue.", "float64"),
    column("queue_capacity", "capacity", "Capacity of that queue.", "int64"),
    column("usage_ratio", "share", "The mean over the capacity.", "float64"),
    column("empty_ratio", "empty", "Share of samples in which the queue was empty.", "float64"),
    column("processors", "processors", "Processors that it kept busy.", "float64"),
    column("bottleneck", "bottleneck", "Whether it slows the pipeline down.", "bool"),
)


def data(run: Run, *, rank: int | None = None, pipeline: int | None = None, operator: str | None = None) -> Data:
    """The rows of `input_operators` of a rank.

    Args:
        pipeline: Only this pipeline. Default: all.
        operator: Mark this operator.

    Raises:
        StepscopeError: If there is no such pipeline.
    """
    _, found, notes = one_rank(run, "input_operators", rank)
    if pipeline is not None:
        there = found["pipeline"].unique().sort().to_list()
        if pipeline not in there:
            raise StepscopeError(f"there is no pipeline {pipeline}. Recorded: {named_numbers('pipeline', there)}")
        found = found.filter(pl.col("pipeline") == pipeline)
    shown = found.sort("depth", "pipeline", "number", "operator", nulls_last=True).head(MOST)
    if found.is_empty():
        raise Unavailable("the operators of a dataset pipeline were not recorded")
    if found.height > MOST:
        notes.append(
            Text(
                f"{MOST} of {found.height} operators, those nearest to the training loop.",
                f"共 {found.height} 个算子，这里是最靠近训练循环的 {MOST} 个。",
            )
        )
    if not shown["usage_ratio"].count():
        notes.append(Text("How full the queues were was not sampled.", "没有采样队列的使用率。"))
    for chain in shown["chain"].drop_nulls().unique(maintain_order=True):
        notes.append(
            Note(Text("Slowest operators: {chain}.", "最慢的算子：{chain}。"), {"chain": shortened(chain, 200)})
        )
    ordered = shown.sort("pipeline", "depth", "number", "operator", nulls_last=True)
    return Data([Rows(ordered, _COLUMNS)], notes, {"operator": operator})


@dataclass(frozen=True)
class _Node:
    """An operator or queue with its place; operators are 1 apart."""

    row: Mapping[str, Any]
    x: float
    y: float


def _placed(rows: pl.DataFrame) -> list[_Node]:
    """Operators with their places: branches one below the other, an operator in the middle of those that feed it."""
    found: list[_Node] = []
    lines = 0.0
    for _, own in rows.group_by("pipeline", maintain_order=True):
        below: dict[str | None, list[int]] = {}
        listed = list(own.iter_rows(named=True))
        there = {row["operator"] for row in listed}
        for number, row in enumerate(listed):
            below.setdefault(row["parent"] if row["parent"] in there else None, []).append(number)
        places: dict[int, float] = {}
        for number in reversed(range(len(listed))):  # those further from the root come later
            inside = [places[child] for child in below.get(listed[number]["operator"], []) if child in places]
            if inside:
                places[number] = sum(inside) / len(inside)
            else:
                places[number] = lines
                lines += 1
        found += [_Node(row, -float(row["depth"] or 0), places[number]) for number, row in enumerate(listed)]
    return _in_lines(found, lines)


def _in_lines(nodes: list[_Node], lines: float) -> list[_Node]:
    """Operators from 0 to the right, and below again where there are too many beside each other."""
    first = min(node.x for node in nodes)
    columns = [int(node.x - first) for node in nodes]
    return [
        _Node(node.row, float(column % WIDE), node.y + column // WIDE * lines)
        for node, column in zip(nodes, columns, strict=True)
    ]


def draw(data: Data, language: Language) -> Spec:
    """Boxes of operators joined by arrows, with a queue on each; what is filled of a queue is its usage."""
    nodes = _placed(data.main)
    by_name = {(node.row["pipeline"], node.row["operator"]): node for node in nodes}
    last = max(node.x for node in nodes)
    goes_on = any(node.x == WIDE - 1 and node.row["parent"] for node in nodes)
    room = 0.78 if goes_on else 0.45  # the last queue of such a line is beyond its last operator
    lines = 1 + max(node.y for node in nodes)
    shapes: list[Spec] = []
    arrows: list[Spec] = []
    queues: list[_Node] = []
    for node in nodes:
        marked = data.facts["operator"] is not None and node.row["operator"] == data.facts["operator"]
        shapes.append(_box(node.x, node.y, BOX, _colour(node.row), wide=marked or bool(node.row["bottleneck"])))
        target = by_name.get((node.row["pipeline"], node.row["parent"]))
        if target is None:
            continue
        queue = _Node(node.row, node.x + 0.5, node.y)
        start, end = (node.x + BOX, node.y), (target.x - BOX, target.y)
        if node.row["queue_capacity"] is not None:
            arrows.append(_arrow(start, (queue.x - QUEUE, queue.y)))
            start = (queue.x + QUEUE, queue.y)
            queues.append(queue)
            shapes += _queue(queue)
        if target.x > node.x:
            arrows.append(_arrow(start, end))
        else:  # in the line below
            arrows += [_sign("↵", start[0] + 0.06, start[1]), _sign("↳", end[0] - 0.06, end[1])]
    traces = [_operators(nodes, language), _queues(queues, language)] if queues else [_operators(nodes, language)]
    return {
        "data": traces,
        "layout": {
            "height": int(60 + 120 * lines),
            "showlegend": False,
            "hovermode": "closest",
            "margin": {"l": 16, "r": 16, "b": 16},
            "shapes": shapes,
            "annotations": arrows,
            "xaxis": {"visible": False, "range": [-0.45, last + room], "fixedrange": True},
            "yaxis": {"visible": False, "range": [lines - 0.35, -0.6], "fixedrange": True},
        },
    }


def _colour(row: Mapping[str, Any]) -> str:
    return VERMILION if row["bottleneck"] else _EDGE


def _box(x: float, y: float, half: float, colour: str, *, wide: bool) -> Spec:
    place = {"x0": x - half, "x1": x + half, "y0": y - HIGH, "y1": y + HIGH}
    return {
        "type": "rect",
        **place,
        "fillcolor": _FILL,
        "layer": "below",
        "line": {"color": colour, "width": 3 if wide else 1.2},
    }


def _queue(node: _Node) -> list[Spec]:
    """A queue as a vessel: filled from the bottom by its usage."""
    place = {"x0": node.x - QUEUE, "x1": node.x + QUEUE, "y1": node.y + HIGH}
    edge = {"color": GREEN, "width": 1.5}
    vessel = {"type": "rect", **place, "y0": node.y - HIGH, "line": edge, "layer": "below"}
    usage = min(max(node.row["usage_ratio"] or 0.0, 0.0), 1.0)
    filled = {
        **vessel,
        "y0": node.y + HIGH - 2 * HIGH * usage,
        "fillcolor": GREEN,
        "opacity": 0.6,
        "line": {"width": 0},
    }
    return [vessel, filled] if usage else [vessel]


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> Spec:
    """From an operator to its queue, or from the queue to the operator that takes its items."""
    refs = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
    tail = {"ax": start[0], "ay": start[1], "x": end[0], "y": end[1]}
    return {"text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": 1.3, "arrowcolor": _EDGE, **refs, **tail}


def _sign(text: str, x: float, y: float) -> Spec:
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"size": 18}}


def _operators(nodes: Sequence[_Node], language: Language) -> Spec:
    workers, processors = ("workers", "processors busy") if language == "en" else ("工作线程", "繁忙的处理器")
    texts, hovers = [], []
    for node in nodes:
        name = str(node.row["operator"])
        stem, _, number = name.rpartition("_")
        lines = [label(stem, LONGEST), label(number, 6)] if stem else [label(name, LONGEST)]
        texts.append("<br>".join(lines))
        known = [label(name, 120), label(node.row["type"] or "-")]
        for what, figure in ((workers, node.row["workers"]), (processors, node.row["processors"])):
            if figure is not None:
                known.append(f"{what}: {short([figure], 3)[0]}")
        if node.row["bottleneck"]:
            known.append("bottleneck" if language == "en" else "瓶颈")
        hovers.append("<br>".join(known))
    return _marks("operator", nodes, texts, hovers, 46)


def _queues(nodes: Sequence[_Node], language: Language) -> Spec:
    full, empty, of = ("full", "of samples empty", "of") if language == "en" else ("使用率", "的采样为空", "/")
    texts, hovers = [], []
    for node in nodes:
        row = node.row
        texts.append("?" if row["usage_ratio"] is None else f"{row['usage_ratio']:.1%}")
        known = [f"{label(row['operator'])} → {label(row['parent'])}"]
        if row["usage_ratio"] is not None:
            known.append(f"{texts[-1]} {full}: {short([row['mean_size']], 3)[0]} {of} {row['queue_capacity']}")
        if row["empty_ratio"] is not None:
            known.append(f"{row['empty_ratio']:.1%} {empty}")
        hovers.append("<br>".join(known))
    return _marks("queue", nodes, texts, hovers, 34)


def _marks(kind: str, nodes: Sequence[_Node], texts: Sequence[str], hovers: Sequence[str], size: int) -> Spec:
    """Texts, and marks that nobody sees but a pointer finds."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": kind,
        "x": [node.x for node in nodes],
        "y": [node.y for node in nodes],
        "text": list(texts),
        "textfont": {"size": 12 if len({node.x for node in nodes}) <= 9 else 10},
        "marker": {"size": size, "symbol": "square", "opacity": 0, "color": BLUE},
        "customdata": [
            [kind, node.row["operator"], node.row["pipeline"], hover] for node, hover in zip(nodes, hovers, strict=True)
        ],
        "hovertemplate": "%{customdata[3]}<extra></extra>",
    }


FIGURE = Figure(
    "input-pipeline",
    Text("Pipeline of the dataset", "数据集流水线"),
    Text(
        "Operators from the readers to the training loop, with the queues between them filled by their mean usage. A "
        "queue that is mostly full waits for what follows; an empty one waits for what comes before. Bottlenecks have "
        "a red frame.",
        "从读取到训练循环的算子及其间的队列，填充高度为平均使用率。队列常满说明后面慢，常空说明前面慢；瓶颈以红框标出。",
    ),
    ("input_operators",),
    data,
    draw,
    of_rank=True,
)
