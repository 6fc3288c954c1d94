"""The rate of each operator against its operations for a byte, under what the device's memory and units allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import label, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.operator_groups import names_of
from stepscope.figures.style import GREY, SERIES
from stepscope.present import Language, data_type, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 150
"""Operators in the figure: those that take most time."""

NAMED = 7
"""Names with a colour of their own."""

ABOVE = 1.05
"""Rate over the peak from which on a note tells of it."""

_COLUMNS = (
    column("name", "name", "Type of the operator, else its name."),
    column("input_shapes", "shapes", "Shapes of the inputs."),
    column("data_type", "data type", "Data type."),
    column("count", "calls", "Number of calls.", "int64"),
    column("total_ns", "total", "Total time.", "int64"),
    column("flops", "FLOPs", "Operations of all calls.", "float64"),
    column("moved_bytes", "moved", "Bytes moved by all calls.", "float64"),
    column("flops_per_byte", "FLOP per byte", "Operations for each byte.", "float64"),
    column("flops_per_s", "rate", "Operations over time.", "float64"),
    column("roof_flops_per_s", "roof", "The rate that the device allows.", "float64"),
    column("roof_ratio", "of roof", "Rate over that.", "float64"),
)


def data(run: Run, *, rank: int | None = None) -> Data:
    """The operators of a rank that take most time (default: the lowest rank with an answer)."""
    if rank is None:
        silent = run.silent_ranks("operator_intensity")
        rank = next((one.rank for one in run.ranks if one.rank not in silent), run.ranks[0].rank)
    one = run.select(ranks=[rank])
    rows = one.analyse("operator_intensity")
    if rows.is_empty():
        raise Unavailable("no operator has both operations and bytes")
    by_shapes = (rows["bytes_by"] == "shapes").all()
    notes = [
        Text(
            f"Rank {rank}; bytes are the least that shapes and data types allow.",
            f"rank {rank}；字节数是由形状和数据类型得出的最小值。",
        )
        if by_shapes
        else Text(
            f"Rank {rank}; bytes and operations by hardware counters.", f"rank {rank}；字节数和运算量来自硬件计数器。"
        )
    ]
    if rows.height > MOST:
        notes.append(
            Text(
                f"{MOST} of {rows.height} operators and shapes: those with most time.",
                f"共 {rows.height} 种算子和形状，这里是耗时最多的 {MOST} 种。",
            )
        )
    shown = rows.head(MOST)
    if shown["peak_flops_per_s"].null_count() == shown.height:
        notes.append(
            Text("The device's peak rate is unknown, so no roof is drawn.", "设备的峰值算力未知，因此没有画出上限。")
        )
    elif shown["peak_bytes_per_s"].null_count() == shown.height:
        notes.append(
            Text(
                "The peak rate of the device's memory is unknown, so the roof has no slope.",
                "设备内存的峰值带宽未知，因此上限没有斜坡。",
            )
        )
    over = (shown["flops_per_s"] > shown["peak_flops_per_s"] * ABOVE).sum()
    if over:
        notes.append(
            Text(
                f"{over} operators are above the drawn peak: they ran on faster units (e.g. TF32 instead of float32), "
                "or the peak or the recorded shapes are not right.",
                f"{over} 个算子超过所画的峰值：可能使用了更快的单元（例如以 TF32 代替 float32），"
                "或峰值、形状的记录有误。",
            )
        )
    return Data([Rows(shown, _COLUMNS)], notes)


def draw(data: Data, language: Language) -> Spec:
    """A mark for each operator, log by log, as large as its time; lines for the peaks of each data type."""
    rows = data.main.with_columns(shown=pl.Series(names_of(data.main)))
    unit = unit_of("flops_per_s", [*rows["flops_per_s"], *rows["peak_flops_per_s"]])
    totals = (
        rows.group_by("shown", maintain_order=True).agg(pl.col("total_ns").sum()).sort(-pl.col("total_ns"), "shown")
    )
    kept = totals["shown"].to_list()[:NAMED]
    others = "others" if language == "en" else "其他"
    groups = [(name, rows.filter(pl.col("shown") == name)) for name in kept]
    rest = rows.filter(~pl.col("shown").is_in(kept))
    longest = max(rows["total_ns"].to_list())
    traces: list[Spec] = []
    for number, (name, own) in enumerate([*groups, *([("", rest)] if rest.height else [])]):
        facts = zip(
            own["shown"], own["input_shapes"], own["data_type"], own["total_ns"], own["roof_ratio"], strict=True
        )
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(name) if name else others,
                "x": short(own["flops_per_byte"]),
                "y": unit.of(own["flops_per_s"]),
                "marker": {
                    "color": SERIES[number] if number < NAMED else GREY,
                    "size": [round(7 + 21 * (total / longest) ** 0.5, 1) for total in own["total_ns"]],
                    "opacity": 0.8,
                },
                "customdata": [
                    [
                        label(what, 40),
                        label(shapes or "-", 60),
                        label(data_type(kind) if kind else "-", 20),
                        duration(total),
                        "" if share is None else f"{share:.1%}",
                    ]
                    for what, shapes, kind, total, share in facts
                ],
                "hovertemplate": "%{customdata[0]} %{customdata[2]}<br>%{customdata[1]}<br>"
                f"%{{y:.4~g}}{unit.after}, %{{x:.3~g}} FLOP/B<br>%{{customdata[3]}} %{{customdata[4]}}<extra></extra>",
            }
        )
    intensities = rows["flops_per_byte"].to_list()
    traces += _roofs(rows, min(intensities) / 3, max(intensities) * 3, unit.factor, language)
    intensity, rate = (
        ("operations for each byte (FLOP/B)", "rate") if language == "en" else ("每字节运算量 (FLOP/B)", "算力")
    )
    return {
        "data": traces,
        "layout": {
            "height": 480,
            "showlegend": True,
            "xaxis": {"title": {"text": intensity}, "type": "log"},
            "yaxis": {"title": {"text": f"{rate} ({unit.name})"}, "type": "log"},
        },
    }


def _roofs(rows: pl.DataFrame, low: float, high: float, factor: float, language: Language) -> list[Spec]:
    """A line for the peak of each data type, with the slope of the memory up to its ridge."""
    peak_word, ridge_word = ("peak", "ridge") if language == "en" else ("峰值", "拐点")
    peaks = rows.select("data_type", "peak_flops_per_s", "peak_bytes_per_s").unique(maintain_order=True)
    lines: list[Spec] = []
    seen: set[float] = set()
    for kind, peak, memory in peaks.drop_nulls("peak_flops_per_s").iter_rows():
        if peak in seen:
            continue
        seen.add(peak)
        ridge = peak / memory if memory else None
        name = f"{peak_word} {label(data_type(kind) if kind else '-', 16)}"
        if ridge is None:
            xs, ys = [low, high], [peak, peak]
        else:
            start = min(low, ridge / 3)
            xs, ys = [start, ridge, max(high, ridge * 3)], [start * memory, peak, peak]
            name += f" ({ridge_word} {ridge:.3g} FLOP/B)"
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": short(xs),
                "y": short(one / factor for one in ys),
                "line": {"color": GREY, "width": 2, "dash": ("solid", "dash", "dot")[min(len(lines), 2)]},
                "hoverinfo": "skip",
            }
        )
    return lines


FIGURE = Figure(
    "roofline",
    Text("Rate of operators and what the device allows", "算子算力与设备上限"),
    Text(
        "An operator left of the ridge is bound by memory, right of it by its units; far below the line it reaches "
        "neither peak. A mark is as large as the operator's time.",
        "位于拐点左侧的算子受内存限制，右侧的受计算单元限制；远低于上限则两者都没有用满。标记越大，耗时越多。",
    ),
    ("operator_intensity",),
    data,
    draw,
)
