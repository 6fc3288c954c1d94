"""What communication costs each rank, and how much of it is waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.rank_bars import RANK, Bars, draw_bars, fewer, in_order, place_of
from stepscope.figures.slow_marks import slow_of
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

PARTS = ("transmit", "wait", "unsplit")
SORTED_BY = {"total": "total_ns", **{part: f"{part}_ns" for part in PARTS}}

_COLUMNS = (
    column("rank", "rank"),
    column("host", "host", "Its host."),
    column("stage", "stage", "Its pipeline stage, from 0.", "int32"),
    column("part", "part", "What the time goes to.", values=PARTS),
    column("value_ns", "time", "Its time in a step.", "int64"),
    column("share_ratio", "share", "Share of all its communication.", "float64"),
    column("total_ns", "total", "All of it.", "int64"),
)


def data(run: Run, *, step: int | None = None, sort: str = "") -> Data:
    """Transmission and waiting of each rank.

    Args:
        step: The step. Default: the mean of all that count.
        sort: `total` or a part (`wait`, `transmit`), the greatest first. Default: by rank.

    Raises:
        StepscopeError: If there is no such part.
    """
    found = run.analyse("rank_communication", **({} if step is None else {"chosen": str(step)}))
    if step is not None and found["total_ns"].null_count() == found.height:
        raise Unavailable(f"no communication is known of step {step}", question="rank_communication")
    found = found.sort("total_ns", descending=True, nulls_last=True).unique(RANK, keep="first").sort(RANK)
    slow = slow_of(run)
    notes = [Text(f"Step {step}.", f"第 {step} 步。")] if step is not None else []
    shown, left = fewer(found, "total_ns", slow)
    keys = in_order(shown, sort or RANK, RANK, SORTED_BY)
    columns = [f"{part}_ns" for part in PARTS]
    long = (
        shown.unpivot(columns, index=[RANK, "host", "stage", "total_ns"], variable_name="part", value_name="value_ns")
        .filter((pl.col("value_ns") > 0) | ((pl.col("value_ns") == 0) & (pl.col("part") == "wait_ns")))
        .with_columns(
            part=pl.col("part").str.strip_suffix("_ns"),
            share_ratio=pl.when(pl.col("total_ns") > 0).then(pl.col("value_ns") / pl.col("total_ns")),
        )
    )
    order = pl.DataFrame({RANK: keys, "order": range(len(keys))}, schema_overrides={RANK: shown.schema[RANK]})
    rows = long.join(order, on=RANK).sort("order", maintain_order=True)
    facts = {"keys": keys, "slow": slow, "step": step}
    return Data([Rows(rows, _COLUMNS)], [*slow.notes(shown[RANK]), *notes, *left], facts)


def draw(data: Data, language: Language) -> Spec:
    """Stacked bars, a rank each."""
    facts = data.facts
    rows = data.main.with_columns(key=pl.col(RANK), place=place_of(language))
    axis = word("time", language) if facts["step"] is not None else "mean time" if language == "en" else "平均时间"
    return draw_bars(Bars(rows, PARTS, RANK, facts["keys"], facts["slow"], {}), language, axis)


FIGURE = Figure(
    "rank-communication",
    Text("Communication and waiting of each rank", "各 rank 的通信与等待"),
    Text(
        "All time in communication in one {per}, hidden by computing or not. The rank that waits least is the one that "
        "the others wait for.",
        "一{per:noun}中全部通信时间，无论是否被计算掩盖。等待最少的 rank 就是其他 rank 所等待的。",
    ),
    ("rank_communication",),
    data,
    draw,
    for_pages=True,
)
