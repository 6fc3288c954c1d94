"""When each rank of a pipeline runs forward and backward of each micro-batch; else how evenly stages work and wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import named_ticks, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import COLOURS
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 3000
"""Passes in the figure; of more, only the first rank of each stage has a row."""

KNOWN = 0.5
"""Share of the passes whose start and end must be known."""

_BLOCKS = (
    column("rank", "rank"),
    column("stage", "stage", "Pipeline stage, from 0.", "int32"),
    column("direction", "pass", "Which pass.", values=("forward", "backward")),
    column("micro_batch", "micro-batch", "Micro-batch, from 0.", "int32"),
    column("model_chunk", "model chunk", "Virtual stage of the rank.", "int32"),
    column("since_ns", "start", "Since the first pass of the step.", "int64"),
    column("length_ns", "time", "Length of the pass.", "int64"),
    column("known_by", "known by", "How it is known."),
)
_STAGES = (
    column("stage", "stage", "Pipeline stage, from 0.", "int32"),
    column("ranks", "ranks", "Its recorded ranks."),
    column("work_ns", "computing", "Computing of its median rank.", "int64"),
    column("bubble_ns", "waiting", "Waiting for other stages, mean of its ranks.", "int64"),
    column("bubble_ratio", "share", "The same over the step.", "float64"),
)


def data(run: Run, *, step: int | None = None) -> Data:
    """The passes of a step (default: the second one, as the first may be start-up), or means of stages."""
    try:
        blocks = run.analyse("pipeline_blocks")
        known = blocks.filter(pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null())
        known = known if known.height > KNOWN * blocks.height else known.clear()
    except Unavailable:
        known = pl.DataFrame()
    if known.is_empty():
        return Data([Rows(run.analyse("pipeline_stages"), _STAGES)], facts={"stages": True})
    steps = known["step"].unique().sort().to_list()
    chosen = step if step is not None else steps[min(1, len(steps) - 1)]
    if chosen not in steps:
        raise Unavailable(f"no passes of step {chosen} are known")
    of_step = blocks.filter(pl.col("step") == chosen)
    rows = known.filter(pl.col("step") == chosen)
    notes = [Text(f"Step {chosen}.", f"第 {chosen} 步。")]
    if rows.height > MOST:
        firsts = rows.group_by("stage").agg(pl.col("rank").min())
        notes.append(
            Text(
                f"{firsts.height} of {rows['rank'].n_unique()} ranks: the lowest of each stage.",
                f"共 {rows['rank'].n_unique()} 个 rank，这里是每个阶段编号最小的 {firsts.height} 个。",
            )
        )
        rows = rows.join(firsts, on=["stage", "rank"], how="semi")
        of_step = of_step.join(firsts, on=["stage", "rank"], how="semi")
    if left := of_step.height - rows.height:
        notes.append(
            Text(
                f"{left} passes whose start or end is unknown are left out.",
                f"{left} 个起止时间未知的计算未显示。",
            )
        )
    guessed = sorted({*rows["known_by"]}.difference(("operations", "marks")))
    if guessed:
        notes.append(
            Text(
                f"Found by the order of sends and receives, which fits {' and '.join(guessed)}.",
                "由发送和接收的顺序推断。",
            )
        )
    first = rows["start_ns"].min()
    timed = rows.with_columns(
        since_ns=pl.col("start_ns") - first, length_ns=pl.col("end_ns") - pl.col("start_ns")
    ).sort("stage", "rank", "since_ns", "direction", "micro_batch", nulls_last=True)
    return Data([Rows(timed, _BLOCKS)], notes, {"stages": False})


def draw(data: Data, language: Language) -> Spec:
    """A row of bars for each rank, or two bars for each stage."""
    return _of_stages(data.main, language) if data.facts["stages"] else _of_ranks(data.main, language)


def _of_ranks(rows: pl.DataFrame, language: Language) -> Spec:
    places = rows.select("stage", "rank").unique(maintain_order=True).rows()
    rank_rows = {rank: place for place, (_, rank) in enumerate(places)}
    stage_word, batch = ("stage", "micro-batch") if language == "en" else ("阶段", "微批次")
    names = [f"rank {rank} ({stage_word} {stage})" for stage, rank in places]
    unit = unit_of("length_ns", [(rows["since_ns"] + rows["length_ns"]).max()])
    numbered = rows.height <= 400
    traces = []
    for direction in ("forward", "backward"):
        own = rows.filter(pl.col("direction") == direction)
        name = word(direction, language)
        batches = own["micro_batch"].to_list()
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "base": unit.of(own["since_ns"]),
                "x": unit.of(own["length_ns"]),
                "y": [rank_rows[rank] for rank in own["rank"]],
                "customdata": [
                    [number, rank, step] for number, rank, step in own.select("micro_batch", "rank", "step").iter_rows()
                ],
                "marker": {"color": COLOURS[direction]},
                "hovertemplate": f"{name}, {batch} %{{customdata[0]}}<br>%{{x:.4~g}}{unit.after}<extra></extra>",
                **({"text": [str(one) for one in batches], "textposition": "inside"} if numbered else {}),
            }
        )
    return {
        "data": traces,
        "layout": {
            "barmode": "overlay",
            "bargap": 0.15,
            "height": 150 + min(30 * len(names), 900),
            "showlegend": True,
            "xaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}},
            "yaxis": {**named_ticks(names), "autorange": "reversed", "showgrid": False},
        },
    }


def _of_stages(rows: pl.DataFrame, language: Language) -> Spec:
    unit = unit_of("work_ns", [*rows["work_ns"], *rows["bubble_ns"]])
    stage = "stage" if language == "en" else "阶段"
    traces = []
    for name, kind in (("work_ns", "computing"), ("bubble_ns", "wait")):
        text = word(kind if kind == "computing" else "stages", language)
        traces.append(
            {
                "type": "bar",
                "name": text,
                "x": [str(one) for one in rows["stage"]],
                "y": unit.of(rows[name]),
                "customdata": short(rows["bubble_ratio"], 4),
                "marker": {"color": COLOURS[kind]},
                "hovertemplate": f"{stage} %{{x}}<br>{text}: %{{y:.4~g}}{unit.after}<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": {
            "barmode": "group",
            "height": 380,
            "showlegend": True,
            "xaxis": {"title": {"text": stage}, "type": "category"},
            "yaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "rangemode": "tozero"},
        },
    }


FIGURE = Figure(
    "pipeline",
    Text("Pipeline", "流水线"),
    Text(
        "When each rank runs forward and backward of each micro-batch in one {per}; gaps are bubbles. If most passes "
        "are unknown, how long each stage computes and waits for others.",
        "一{per:noun}中每个 rank 何时执行各微批次的前向和反向，空隙即气泡。"
        "大多未知时，显示各阶段计算和等待其他阶段的时间。",
    ),
    ("pipeline_blocks", "pipeline_stages"),
    data,
    draw,
)
