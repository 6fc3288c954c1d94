"""The mean step of each rank, as bars made of what the time goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.analysis.job.step_parts import PARTS
from stepscope.errors import Unavailable
from stepscope.figures.axes import FEW, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import COLOURS, PATTERNS
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 160
"""Ranks that have a bar; of more, those that differ most from the median rank."""

STATED = (
    ("computing_ns", "communication_not_overlapped_ns", "free_ns"),
    ("computing_and_free_ns", "communication_not_overlapped_ns"),
    ("interval_ns", "forward_backward_ns", "tail_ns"),
)
"""Parts of a step as a source states them, the most telling first."""

_NAMES = {"communication_not_overlapped": "communication"}

_ALL = (*PARTS, "free", "computing_and_free", "interval", "forward_backward", "tail")
_COLUMNS = (
    column("rank"),
    column("part", "part", "What the time goes to.", values=_ALL),
    column("mean_ns", "mean", "Its mean time in a step.", "int64"),
    column("share_ratio", "share", "Share of the mean step.", "float64"),
)


def data(run: Run) -> Data:
    """Rows by rank and part: of the timeline, else as the source states them."""
    try:
        found = run.analyse("time_parts").drop("steps")
        silent = run.silent_ranks("time_parts")
    except Unavailable as reason:
        found, silent = _stated(run, reason), {}
    notes = []
    if silent:
        listed = ", ".join(map(str, sorted(silent)[:12])) + (", …" if len(silent) > 12 else "")
        notes.append(Text(f"Not known of ranks {listed}.", f"rank {listed} 的时间构成未知。"))
    ranks = found["rank"].unique().sort()
    if (count := len(ranks)) > MOST:
        found = found.join(_unlike(found), on="rank", how="semi", maintain_order="left")
        notes.append(
            Text(
                f"{MOST} of {count} ranks: those that differ most from the median rank.",
                f"共 {count} 个 rank，这里是与中位 rank 差别最大的 {MOST} 个。",
            )
        )
    return Data([Rows(found, _COLUMNS)], notes)


def _stated(run: Run, reason: Unavailable) -> pl.DataFrame:
    """The parts of the mean step that a source states."""
    try:
        means = run.analyse("rank_means")
    except Unavailable:
        raise reason from None
    means = means.unique("rank", keep="first", maintain_order=True).sort("rank")
    for parts in STATED:
        known = means.filter(pl.all_horizontal(pl.col(parts).is_not_null()))
        if known.height:
            long = known.unpivot(parts, index=["rank", "step_ns"], variable_name="part", value_name="mean_ns")
            named = pl.col("part").str.strip_suffix("_ns").replace(_NAMES)
            share = pl.when(pl.col("step_ns") > 0).then(pl.col("mean_ns") / pl.col("step_ns"))
            rows = long.with_columns(part=named, share_ratio=share)
            return rows.select("rank", "part", "mean_ns", "share_ratio").sort("rank", maintain_order=True)
    raise reason


def _unlike(found: pl.DataFrame) -> pl.DataFrame:
    """The ranks that differ most from the median rank, by the sum over parts."""
    wide = found.pivot("part", index="rank", values="mean_ns").fill_null(0).sort("rank")
    parts = [name for name in wide.columns if name != "rank"]
    off = pl.sum_horizontal((pl.col(part) - pl.col(part).median()).abs() for part in parts)
    return wide.select("rank", off=off).sort(-pl.col("off"), "rank").head(MOST).select("rank")


def draw(data: Data, language: Language) -> Spec:
    """Stacked bars, a rank each."""
    rows = data.main
    totals = rows.group_by("rank", maintain_order=True).agg(pl.col("mean_ns").sum()).sort("rank")
    unit = unit_of("mean_ns", totals["mean_ns"])
    ranks = totals["rank"].to_list()
    traces = []
    for part in _ALL:
        own = {
            rank: (mean, share)
            for rank, of, mean, share in rows.select(c.name for c in _COLUMNS).iter_rows()
            if of == part
        }
        if not own:
            continue
        name = word(part, language)
        marker = {"color": COLOURS[part]} | ({"pattern": {"shape": PATTERNS[part]}} if part in PATTERNS else {})
        traces.append(
            {
                "type": "bar",
                "name": name,
                "x": [str(rank) for rank in ranks],
                "y": unit.of(own.get(rank, (None,))[0] for rank in ranks),
                "customdata": short((own.get(rank, (None, None))[1] for rank in ranks), 4),
                "marker": marker,
                "hovertemplate": f"rank %{{x}}<br>{name}: %{{y:.4~g}}{unit.after} (%{{customdata:.1%}})<extra></extra>",
            }
        )
    mean = word("time", language)
    return {
        "data": traces,
        "layout": {
            "barmode": "stack",
            "bargap": 0.7 if len(ranks) < FEW else 0.25 if len(ranks) < 48 else 0.08,
            "height": 430,
            "xaxis": {"title": {"text": "rank"}, "type": "category"},
            "yaxis": {"title": {"text": f"{mean} ({unit.name})"}, "rangemode": "tozero"},
        },
    }


FIGURE = Figure(
    "time-by-rank",
    Text("Mean {per} of each rank", "各 rank {per:each}的平均时间"),
    Text(
        "A bar is a rank's mean step; its parts add up to the step. Communication counts only where no computing hides "
        "it.",
        "每根柱是一个 rank 的平均一步，各部分之和等于整步。通信只计未被计算掩盖的部分。",
    ),
    ("time_parts", "rank_means"),
    data,
    draw,
)
