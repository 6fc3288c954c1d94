"""How full the output queues of dataset operators were, sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.axes import labels, short, whole_ticks
from stepscope.figures.base import Data, Figure, Rows, Spec, column, one_rank
from stepscope.figures.style import GREY, SERIES
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Points of a curve; of more samples, several share one, which shows the emptiest."""

MOST_CURVES = len(SERIES)
"""Queues that have a curve: those nearest to the training loop."""

_COLUMNS = (
    column("operator", "operator", "Dataset operator whose output queue it is."),
    column("sample", "sample", "Number of the sample, from 0.", "int64"),
    column("step", "{step}", "Number of the step.", "int32"),
    column("queue_size", "in the queue", "Items in the queue.", "int64"),
    column("queue_capacity", "capacity", "Capacity of the queue.", "int64"),
)


def data(run: Run, *, rank: int | None = None, operator: str | None = None) -> Data:
    """The samples of an operator's output queue, or of all queues of a rank.

    Raises:
        StepscopeError: If the operator has no such queue.
    """
    one, samples, notes = one_rank(run, "input_samples", rank)
    there = samples["operator"].unique(maintain_order=True).to_list()
    if operator is not None and operator not in there:
        raise StepscopeError(f"no queue of {operator!r} was sampled. {close_matches(operator, [*map(str, there)])}")
    try:
        listed = one.analyse("input_operators")
        order = [name for name in listed["operator"] if name in there]
        every = listed["sample_interval_ns"].drop_nulls()
    except Unavailable:
        order, every = [], pl.Series([], dtype=pl.Int64)
    order += [name for name in there if name not in order]
    chosen = [operator] if operator is not None else order[:MOST_CURVES]
    if operator is None and len(there) > MOST_CURVES:
        notes.append(
            Text(
                f"{MOST_CURVES} of {len(there)} queues, those nearest to the training loop.",
                f"共 {len(there)} 个队列，这里是最靠近训练循环的 {MOST_CURVES} 个。",
            )
        )
    shown = samples.filter(pl.col("operator").is_in(chosen))
    longest = shown.group_by("operator").len()["len"].max()
    each = -(-int(str(longest or 1)) // MOST)
    if each > 1:
        notes.append(Text(f"Of every {each} samples, the emptiest is shown.", f"每 {each} 个采样显示其中最空的。"))
        placed = shown.with_columns(place=pl.col("sample") // each)
        emptiest = placed.sort("operator", "place", "queue_size", "sample", nulls_last=True)
        shown = emptiest.unique(["operator", "place"], keep="first", maintain_order=True).drop("place")
    facts = {"operators": chosen, "every_ns": every[0] if len(every) else None}
    return Data([Rows(shown.sort("operator", "sample"), _COLUMNS)], notes, facts)


def draw(data: Data, language: Language) -> Spec:
    """A line for each queue; a dotted one at the capacity where only one queue is shown."""
    rows, operators = data.main, data.facts["operators"]
    sample, items, room, step = (
        ("sample", "items in the queue", "capacity", "step")
        if language == "en"
        else ("采样", "队列中的数量", "容量", "步")
    )
    traces: list[Spec] = []
    for number, (operator, name) in enumerate(zip(operators, labels(operators), strict=True)):
        own = rows.filter(pl.col("operator") == operator)
        xs = own["sample"].to_list()
        known_step = f"<br>{step} %{{customdata[2]}}" if own["step"].count() else ""
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if own.height <= 80 else "lines",
                "name": name,
                "x": xs,
                "y": own["queue_size"].to_list(),
                "customdata": [[operator, *row] for row in own.select("sample", "step").iter_rows()],
                "line": {"color": SERIES[number % len(SERIES)], "width": 1.8, "shape": "hv"},
                "hovertemplate": f"{sample} %{{x}}: %{{y}}{known_step}<extra></extra>",
            }
        )
        if len(operators) == 1 and own["queue_capacity"].count():
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": room,
                    "x": xs,
                    "y": short(own["queue_capacity"]),
                    "line": {"color": GREY, "dash": "dot", "width": 1.3},
                    "hovertemplate": f"{room}: %{{y}}<extra></extra>",
                }
            )
    every = data.facts["every_ns"]
    between = "" if not every else f" ({'every' if language == 'en' else '间隔'} {duration(every)})"
    return {
        "data": traces,
        "layout": {
            "height": 340,
            "showlegend": True,
            "xaxis": {"title": {"text": f"{sample}{between}"}, "zeroline": False, **whole_ticks(rows["sample"])},
            "yaxis": {"title": {"text": items}, "rangemode": "tozero"},
        },
    }


FIGURE = Figure(
    "input-curves",
    Text("Queues of the dataset over time", "数据集各队列随时间的变化"),
    Text(
        "How many items each operator's output queue held from sample to sample. A queue at 0 means that what follows "
        "waits for this operator.",
        "各算子输出队列在每次采样时的数量。队列为 0 说明后面的算子在等待它。",
    ),
    ("input_samples",),
    data,
    draw,
    of_rank=True,
)
