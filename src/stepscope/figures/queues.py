"""How full the queues of the input pipeline were, batch by batch; else how long each step waited for data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import FEW, label, unit_of, whole_ticks
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import COLOURS, SERIES
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Batches or steps of a curve; of more, several share a point, which shows the emptiest queue or the longest wait."""

_QUEUES = (
    column("queue", "queue", "Queue."),
    column("number", "batch", "Number of the batch in the queue, from 1.", "int64"),
    column("queue_size", "in the queue", "Items in the queue when it was taken.", "int64"),
    column("queue_capacity", "capacity", "Capacity of the queue.", "int64"),
    column("duration_ns", "time", "Total time of the batch.", "int64"),
)
_WAITS = (
    column("step", "{step}", "Number of the step.", "int32"),
    column("wait_ns", "data wait", "Time in which the training loop waited for its batches.", "int64"),
    column("wait_ratio", "share", "The same over the step.", "float64"),
    column("ready", "ready", "Mean number of batches still ready after one was taken.", "float64"),
)


def data(run: Run, *, rank: int | None = None) -> Data:
    """The batches of a rank (default: the one whose queues are empty most often), or the waits of its loader."""
    try:
        queues = run.analyse("input_queues")
        known = queues.filter(pl.col("mean_size").is_not_null())
        if rank is not None:
            known = known.filter(pl.col("rank") == rank)
        if known.height:
            return _batches(run, known)
    except Unavailable:
        pass
    waits = run.analyse("loader_steps")
    if rank is not None:
        waits = waits.filter(pl.col("rank") == rank)
    if waits.is_empty():
        raise Unavailable("no batches of a data loader were recorded")
    sums = waits.group_by("rank").agg(pl.col("wait_ns").sum()).sort(-pl.col("wait_ns"), "rank")
    one = int(sums["rank"][0])
    own = waits.filter(pl.col("rank") == one).group_by("step", maintain_order=True)
    steps = own.agg(pl.col("wait_ns", "wait_ratio").sum(), pl.col("ready").mean()).sort("step", nulls_last=True)
    each = -(-steps.height // MOST) or 1
    placed = steps.with_row_index("place").with_columns(place=pl.col("place") // each)
    longest = placed.sort("place", -pl.col("wait_ns"), "step").unique("place", keep="first", maintain_order=True)
    notes = [
        _of(one, sums.height, "which waits longest", "其等待最长"),
        *_thinned(each, "steps", "步", "longest", "最长"),
    ]
    return Data([Rows(longest.drop("place"), _WAITS)], notes, {"waits": True})


def _batches(run: Run, known: pl.DataFrame) -> Data:
    order = known.sort(-pl.col("empty_ratio"), "mean_size", "rank", nulls_last=True)
    one = int(order["rank"][0])
    found = run.select(ranks=[one]).analyse("input_batches").filter(pl.col("queue_size").is_not_null())
    longest = found.group_by("queue").len()["len"].max()
    each = -(-int(str(longest or 1)) // MOST)
    placed = found.with_columns(place=(pl.col("number") - 1) // each)
    emptiest = placed.sort("queue", "place", "queue_size", "number").unique(
        ["queue", "place"], keep="first", maintain_order=True
    )
    notes = [
        _of(one, known["rank"].n_unique(), "whose queues are empty most often", "其队列最常为空"),
        *_thinned(each, "batches", "个批次", "emptiest", "最空"),
    ]
    return Data([Rows(emptiest.drop("place"), _QUEUES)], notes, {"waits": False})


def _of(rank: int, ranks: int, why: str, why_zh: str) -> Text:
    return (
        Text(f"Rank {rank}, {why}.", f"rank {rank}，{why_zh}。")
        if ranks > 1
        else Text(f"Rank {rank}.", f"rank {rank}。")
    )


def _thinned(each: int, what: str, what_zh: str, which: str, which_zh: str) -> list[Text]:
    if each == 1:
        return []
    return [Text(f"Of every {each} {what}, the {which} is shown.", f"每 {each} {what_zh}显示其中{which_zh}的。")]


def draw(data: Data, language: Language) -> Spec:
    """A line for each queue and its capacity, or a bar for each step."""
    return _waits(data.main, language) if data.facts["waits"] else _lines(data.main, language)


def _lines(rows: pl.DataFrame, language: Language) -> Spec:
    batch, items, room = (
        ("batch", "batches in the queue", "capacity") if language == "en" else ("批次", "队列中的批次", "容量")
    )
    traces = []
    for number, (queue,) in enumerate(rows.select("queue").unique(maintain_order=True).iter_rows()):
        own = rows.filter(pl.col("queue").eq_missing(queue))
        name, colour = label(queue or "-"), SERIES[number % len(SERIES)]
        line = {"type": "scatter", "mode": "lines", "x": own["number"].to_list()}
        traces.append(
            {
                **line,
                "name": name,
                "y": own["queue_size"].to_list(),
                "line": {"color": colour, "shape": "hv", "width": 1.8},
                "hovertemplate": f"{batch} %{{x}}: %{{y}}<extra></extra>",
            }
        )
        if own["queue_capacity"].count():
            traces.append(
                {
                    **line,
                    "name": f"{name}: {room}",
                    "y": own["queue_capacity"].to_list(),
                    "line": {"color": colour, "dash": "dot", "width": 1.2},
                    "hovertemplate": f"{room}: %{{y}}<extra></extra>",
                }
            )
    return {
        "data": traces,
        "layout": {
            "height": 360,
            "showlegend": True,
            "xaxis": {"title": {"text": batch}, **whole_ticks(rows["number"])},
            "yaxis": {"title": {"text": items}, "rangemode": "tozero"},
        },
    }


def _waits(rows: pl.DataFrame, language: Language) -> Spec:
    step, wait, ready = ("step", "data wait", "batches ready") if language == "en" else ("步", "等待数据", "已就绪批次")
    unit = unit_of("wait_ns", rows["wait_ns"])
    traces: list[Spec] = [
        {
            "type": "bar",
            "name": wait,
            "x": rows["step"].to_list(),
            "y": unit.of(rows["wait_ns"]),
            "customdata": [None if one is None else round(one, 4) for one in rows["wait_ratio"]],
            "marker": {"color": COLOURS["data_loading"]},
            "hovertemplate": f"{step} %{{x}}: %{{y:.4~g}}{unit.after} (%{{customdata:.1%}})<extra></extra>",
        }
    ]
    layout: Spec = {
        "height": 360,
        "showlegend": bool(rows["ready"].count()),
        "bargap": 0.7 if rows.height < FEW else 0.2,
        "xaxis": {"title": {"text": step}, **whole_ticks(rows["step"])},
        "yaxis": {"title": {"text": f"{wait} ({unit.name})"}, "rangemode": "tozero"},
    }
    if rows["ready"].count():
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": ready,
                "x": rows["step"].to_list(),
                "y": rows["ready"].to_list(),
                "yaxis": "y2",
                "line": {"color": SERIES[2]},
                "hovertemplate": f"{step} %{{x}}: %{{y:.3~g}}<extra>{ready}</extra>",
            }
        )
        layout["yaxis2"] = {"title": {"text": ready}, "overlaying": "y", "side": "right", "rangemode": "tozero"}
    return {"data": traces, "layout": layout}


FIGURE = Figure(
    "queues",
    Text("Input pipeline", "数据输入流水线"),
    Text(
        "How many batches lay ready in each queue when one was taken: a queue that is empty keeps training waiting. "
        "Without recorded queues, how long each {per} waited for its batch.",
        "取走一个批次时各队列中有多少批次：队列为空时训练就要等待。没有记录队列时，显示每{per:noun}等待数据的时间。",
    ),
    ("input_queues", "input_batches", "loader_steps"),
    data,
    draw,
)
