"""How a compiler divided the graph of a pipeline stage over devices: nodes in the order of the data, with their
strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analysis.methods.parallel_graphs import ROLES
from stepscope.errors import Unavailable
from stepscope.figures.axes import label
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import BLUE, GREEN, GREY, LIGHT_GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Nodes; of more, those that are divided or were put in by the compiler come first, then those first in the file."""

NAMED = 48
"""Nodes up to which each has its type beside it."""

WIDE = 60
"""Layers from which on a slider below chooses which of them are seen."""

SORTS = ("divided", "operator", "parameter", "constant", *ROLES)
_LOOKS: dict[str, tuple[str, str, int]] = {
    "divided": (BLUE, "circle", 14),
    "operator": (GREY, "circle", 11),
    "parameter": (GREEN, "square", 9),
    "constant": (LIGHT_GREY, "diamond", 8),
}
_OF_ROLES = (
    (ORANGE, "diamond"),
    (PURPLE, "hexagon"),
    (SKY, "triangle-right"),
    (VERMILION, "triangle-left"),
    (YELLOW, "cross"),
)

_COLUMNS = (
    column("stage", "stage", "Pipeline stage, from 0.", "int32"),
    column("node", "node", "Its name in the graph."),
    column("type", "type", "Operator type."),
    column("name", "name", "Its place in the model."),
    column("sort", "kind", "What it is.", values=SORTS),
    column("strategy", "strategy", "How its inputs are divided."),
    column("group", "group", "Communication group."),
    column("output_shapes", "shapes of outputs", "Shapes of its outputs."),
)


def data(run: Run, *, stage: int | None = None) -> Data:
    """The nodes and edges of a stage.

    Args:
        stage: The stage. Default: the first with a graph.
    """
    found = run.analyse("strategy_nodes")
    stages = found["stage"].unique().sort().to_list()
    if not stages:
        raise Unavailable("no graph with its parallel strategy was recorded", question="strategy_nodes")
    chosen = stages[0] if stage is None else stage
    if chosen not in stages:
        raise Unavailable(f"no graph of stage {chosen} was recorded", question="strategy_nodes")
    nodes = found.filter(pl.col("stage") == chosen).with_row_index("order")
    sort = pl.coalesce("role", pl.when(pl.col("divided")).then(pl.lit("divided")), "kind")
    nodes = nodes.with_columns(sort=sort)
    notes = (
        [Text(f"Stage {chosen} of {len(stages)}.", f"阶段 {chosen}，共 {len(stages)} 个。")] if len(stages) > 1 else []
    )
    if nodes.height > MOST:
        telling = (pl.col("role").is_not_null() | pl.col("divided").fill_null(value=False)).not_()
        kept = nodes.sort(telling, pl.col("kind") != "operator", "order").head(MOST).sort("order")
        notes.append(
            Text(
                f"{MOST} of {nodes.height} nodes: those that are divided, and what the compiler put in, come first.",
                f"共 {nodes.height} 个节点，显示 {MOST} 个：优先显示被切分的和编译器插入的。",
            )
        )
        nodes = kept
    edges = run.analyse("strategy_edges").filter(
        (pl.col("stage") == chosen)
        & (pl.col("to_stage") == chosen)
        & pl.col("source").is_in(nodes["node"].implode())
        & pl.col("target").is_in(nodes["node"].implode())
    )
    pairs = list(dict.fromkeys(edges.select("source", "target").iter_rows()))
    return Data([Rows(nodes, _COLUMNS)], notes, {"edges": pairs, "stage": chosen})


def draw(data: Data, language: Language) -> Spec:
    """Nodes from left to right as data flows; `customdata` is the stage, the node, and what is said of it."""
    rows, edges = data.main, data.facts["edges"]
    places = _places(rows["node"].to_list(), edges)
    lines: dict[str, list[float | None]] = {"x": [], "y": []}
    for source, target in edges:
        for axis, at in (("x", 0), ("y", 1)):
            lines[axis] += [places[source][at], places[target][at], None]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            **lines,
            "line": {"color": "rgba(140,140,140,0.55)", "width": 1},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    looks = {**_LOOKS, **{role: (*look, 14) for role, look in zip(ROLES, _OF_ROLES, strict=True)}}
    titles = (
        {"strategy": "strategy", "group": "group", "output_shapes": "outputs"}
        if language == "en"
        else {"strategy": "切分策略", "group": "通信组", "output_shapes": "输出"}
    )
    for sort in SORTS:
        own = rows.filter(pl.col("sort") == sort)
        if own.is_empty():
            continue
        colour, symbol, size = looks[sort]
        told = []
        for row in own.iter_rows(named=True):
            more = [f"{title}: {label(row[name])}" for name, title in titles.items() if row[name]]
            told.append([row["stage"], row["node"], "<br>".join([label(row["name"] or row["node"]), *more])])
        types = [
            label(kind or (name or node).rpartition("/")[2], 16)
            for kind, name, node in own.select("type", "name", "node").iter_rows()
        ]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text" if rows.height <= NAMED and sort != "constant" else "markers",
                "name": word(sort, language, "sort"),
                "x": [places[node][0] for node in own["node"]],
                "y": [places[node][1] for node in own["node"]],
                "text": types,
                "textposition": "bottom center",
                "customdata": told,
                "marker": {"color": colour, "symbol": symbol, "size": size},
                "hovertemplate": "<b>%{text}</b><br>%{customdata[2]}<extra></extra>",
            }
        )
    layers = max((x for x, _ in places.values()), default=0) + 1
    tallest = max((abs(y) for _, y in places.values()), default=0)
    nothing = {"showgrid": False, "zeroline": False, "showticklabels": False}
    wide = layers > WIDE
    return {
        "data": traces,
        "layout": {
            "height": int(160 + min(max(70 * (tallest + 1), 160), 620)) + (60 if wide else 0),
            "showlegend": True,
            "hovermode": "closest",
            "dragmode": "pan",
            "xaxis": {
                **nothing,
                "range": [-0.6, min(layers, WIDE) - 0.4],
                **({"rangeslider": {"visible": True, "thickness": 0.1, "range": [-0.6, layers - 0.4]}} if wide else {}),
            },
            "yaxis": {**nothing, "range": [-tallest - 0.8, tallest + 0.8]},
        },
    }


def _places(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Each node one layer behind the last of those that it takes something from, layers centred."""
    inputs: dict[str, list[str]] = {}
    outputs: dict[str, list[str]] = {}
    for source, target in edges:
        inputs.setdefault(target, []).append(source)
        outputs.setdefault(source, []).append(target)
    layer = dict.fromkeys(nodes, 0)
    waiting = {node: len(inputs.get(node, ())) for node in nodes}
    ready = [node for node in nodes if not waiting[node]]
    while ready:  # nodes in a circle stay where they are
        node = ready.pop(0)
        for target in outputs.get(node, ()):
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for node in nodes:  # what has no inputs stands just before what it is for
        if not inputs.get(node) and outputs.get(node):
            layer[node] = max(min(layer[target] for target in outputs[node]) - 1, 0)
    members: dict[int, list[str]] = {}
    for node in nodes:
        members.setdefault(layer[node], []).append(node)
    return {node: (at, len(some) / 2 - 0.5 - place) for at, some in members.items() for place, node in enumerate(some)}


FIGURE = Figure(
    "strategy",
    Text("Parallel strategy of a stage", "一个阶段的并行策略"),
    Text(
        "The graph of a pipeline stage as its data flows: operators that are divided over devices, and what the "
        "compiler put in for that. Point at a node to see its strategy.",
        "一个流水线阶段的计算图，按数据流向排列：切分到多设备的算子，以及编译器为此插入的算子。指向节点可查看其切分策略。",
    ),
    ("strategy_nodes", "strategy_edges"),
    data,
    draw,
    for_pages=True,
)
