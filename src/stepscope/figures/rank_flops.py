"""Floating point operations of each rank beside those of the rank that runs most, as a grid of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.rank_grid import Said, draw_grid, placed
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

_COLUMNS = (
    column("rank", "rank"),
    column("host", "host", "Its host."),
    column("stage", "stage", "Its pipeline stage, from 0.", "int32"),
    column("of_most_ratio", "of most", "FLOPs of a step over those of the rank that runs most.", "float64"),
    column("step_flops", "FLOPs", "Operations in a step.", "float64"),
    column("flops_per_s", "rate", "Over the time of the operators that run them.", "float64"),
    column("mfu_ratio", "of peak", "Rate over a whole step, over the device's peak.", "float64"),
)

_SAID = (
    Said("host", Text("host", "主机")),
    Said("stage", Text("pipeline stage", "流水线阶段")),
    Said("step_flops", Text("FLOPs in a step", "每步运算量")),
    Said("flops_per_s", Text("rate while computing", "计算时的算力")),
    Said("step_flops_per_s", Text("rate over a step", "整步的算力")),
    Said("mfu_ratio", Text("of the device's peak", "占设备峰值")),
)


def data(run: Run) -> Data:
    """The ranks of `rank_flops`."""
    found = run.analyse("rank_flops").drop_nulls("of_most_ratio")
    if found.is_empty():
        raise Unavailable("how many operations ranks run is not known", question="rank_flops")
    rows, names, notes = placed(found, "of_most_ratio", lowest=True)
    shown = rows.sort(pl.col("of_most_ratio"), "rank")
    return Data([Rows(shown, _COLUMNS)], notes, {"names": names})


def draw(data: Data, language: Language) -> Spec:
    """A cell for each rank."""
    title = "of the most" if language == "en" else "与最多者之比"
    return draw_grid(data.main, data.facts["names"], "of_most_ratio", title, _SAID, language)


FIGURE = Figure(
    "rank-flops",
    Text("Floating point operations of each rank", "各 rank 的浮点运算量"),
    Text(
        "A cell is a rank, a row a host where hosts are known; colour shows its operations in one {per} over those of "
        "the rank that runs most. Ranks of a stage should be alike.",
        "每格是一个 rank，已知主机时每行是一台主机；颜色表示其一{per:noun}的运算量与最多的 rank 之比。"
        "同一阶段的 rank 应当相近。",
    ),
    ("rank_flops",),
    data,
    draw,
    for_pages=True,
)
