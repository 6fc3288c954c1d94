"""How much memory was in use, where it peaked, and the life of what was held at the peak.

Each point of the curve says where it is (`customdata`: graph, node, time in ns as a text, name), so that a page can ask
`memory_breakdown` what was held there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import Unit, label, labels, named_ticks, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.memory_marks import PLACE, marks_of, peak_of, with_marks
from stepscope.figures.operator_groups import names_of
from stepscope.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from stepscope.present import Language
from stepscope.present import size as in_words
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Parts of the curve; of each, the highest point and the last one are shown."""

BLOCKS = 15
"""Blocks or tensors whose life is shown: the largest."""

SMALL = 0.5
"""Share of the capacity below which the capacity is only drawn at a click, since the curve would be flat beside it."""


_CURVE = (
    column("since_ns", "time", "Since the first change.", "int64"),
    column("node", "node", "Node of the compiled graph.", "int32"),
    column("step", "{step}", "Number of the step.", "int32"),
    column("total_bytes", "in use", "In use, including the static part.", "int64"),
    column("reserved_bytes", "reserved", "Reserved by the allocator.", "int64"),
)
_HELD = (
    column("name", "name", "Tensor, or operator that allocated the block."),
    column("size_bytes", "size", "Size.", "int64"),
    column("share_ratio", "share", "Share of the memory in use at the peak.", "float64"),
    column("from_ns", "allocated", "When, since the first change; null if before.", "int64"),
    column("to_ns", "released", "When, since the first change; null if that is not in the recording.", "int64"),
    column("life_start", "first node", "First node at which it is alive.", "int32"),
    column("life_end", "last node", "Last node at which it is alive.", "int32"),
)


def data(
    run: Run,
    *,
    rank: int | None = None,
    graph: int | None = None,
    component: str | None = None,
    device: int | None = None,
) -> Data:
    """The curve with the highest peak of a rank (default: the rank with the highest), and what was held there.

    Args:
        graph, component, device: Only curves of this compiled graph, allocator or device.
    """
    peak, notes = peak_of(run, rank, {"graph": graph, "component": component, "device": device})
    one = run.select(ranks=[peak["rank"]])
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(peak[name])) for name in PLACE)
    found = one.analyse("memory_usage").filter(same & pl.col("total_bytes").is_not_null())
    by_time = found["time_ns"].count() == found.height
    first = found["time_ns"].min() if by_time else None
    place = "time_ns" if by_time else "node"
    curve = _thinned(found.sort(place, maintain_order=True), place)
    curve = curve.with_columns(since_ns=(pl.col("time_ns") - first) if by_time else pl.lit(None, pl.Int64))
    held = _held(one, same, peak, first)
    rows = [Rows(curve, _shown(curve, _CURVE))]
    if held.height:
        heading = Text("Largest of what was held at the peak", "峰值时占用最多的部分")
        rows.append(Rows(held, _shown(held, _HELD), heading))
    facts = {"by_time": by_time, "peak": peak["peak_bytes"], "capacity": peak["capacity_bytes"]}
    facts["peak_at"] = peak["time_ns"] - first if by_time else peak["node"]
    facts["peak_point"] = peak
    facts["static"] = peak["static_bytes"]
    facts["marks"] = marks_of(found, peak, first)
    return Data(rows, notes, facts)


def _thinned(rows: pl.DataFrame, place: str) -> pl.DataFrame:
    """The highest and the last row of each part of the curve."""
    if rows.height <= 2 * MOST:
        return rows
    numbered = rows.with_row_index("row")
    start, end = (rows[place].cast(pl.Float64)[at] for at in (0, -1))
    part = ((pl.col(place).cast(pl.Float64) - start) / max(end - start, 1.0) * MOST).floor()
    parts = numbered.with_columns(part=part).sort("part", -pl.col("total_bytes"), "row")
    highest = parts.unique("part", keep="first", maintain_order=True)
    last = numbered.with_columns(part=part).unique("part", keep="last", maintain_order=True)
    return pl.concat([highest, last]).unique("row", keep="first").sort("row").drop("row", "part")


def _held(run: Run, same: pl.Expr, peak: Mapping[str, Any], first: Any) -> pl.DataFrame:
    try:
        found = run.analyse("memory_breakdown")
    except Unavailable:
        return pl.DataFrame()
    held = found.filter(same)
    if held.is_empty():  # blocks of a device may be recorded without the name of their allocator
        device, graph = pl.lit(peak["device"], pl.Int32), pl.lit(peak["graph"], pl.Int64)
        unnamed = pl.col("component").is_null() & pl.col("device").eq_missing(device)
        held = found.filter(unnamed & pl.col("graph").eq_missing(graph))
    largest = held.sort(-pl.col("size_bytes"), "name", "allocation_ns", "tensor", nulls_last=True).head(BLOCKS)
    return largest.with_columns(from_ns=pl.col("allocation_ns") - first, to_ns=pl.col("release_ns") - first)


def _shown(rows: pl.DataFrame, columns: Any) -> list[Any]:
    """The columns of which something is known."""
    return [one for one in columns if rows[one.name].count()]


def draw(data: Data, language: Language) -> Spec:
    """The curve above, with its peak; below, a bar for the life of each of the largest blocks at the peak."""
    rows, facts = data.main, data.facts
    size = unit_of("size_bytes", [*rows["total_bytes"], *rows["reserved_bytes"]])
    by_time = facts["by_time"]
    place = "since_ns" if by_time else "node"
    unit = unit_of("since_ns", rows["since_ns"]) if by_time else Unit(1.0, "")
    in_use, reserved, peak, capacity, static, held = (
        ("in use", "reserved", "peak", "capacity", "static part", "held at the peak")
        if language == "en"
        else ("使用中", "已保留", "峰值", "容量", "静态部分", "峰值时占用")
    )
    xs = unit.of(rows[place])
    traces: list[Spec] = [_line(in_use, xs, size.of(rows["total_bytes"]), BLUE, size)]
    traces[0] |= {"fill": "tozeroy", "fillcolor": "rgba(0,114,178,0.2)", "customdata": _points(rows)}
    traces[0]["hovertemplate"] = _hover(in_use, size, language, by_time=by_time)
    if (rows["reserved_bytes"].fill_null(0) > 0).any():
        traces.append(_line(reserved, xs, size.of(rows["reserved_bytes"]), ORANGE, size))
    if facts["capacity"]:
        line = _line(capacity, [xs[0], xs[-1]], size.of([facts["capacity"]] * 2), GREY, size)
        small = facts["peak"] < SMALL * facts["capacity"]
        hidden = {"visible": "legendonly"} if small else {}
        traces.append({**line, "line": {"color": GREY, "dash": "dash"}, **hidden})
    if facts["static"]:
        line = _line(static, [xs[0], xs[-1]], size.of([facts["static"]] * 2), GREEN, size)
        traces.append({**line, "line": {"color": GREEN, "dash": "dash"}})
    traces.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": peak,
            "x": unit.of([facts["peak_at"]]),
            "y": size.of([facts["peak"]]),
            "text": [f"{peak}: {in_words(facts['peak'])}"],
            "textposition": "top center",
            "cliponaxis": False,
            "marker": {"color": VERMILION, "size": 10, "symbol": "diamond"},
            "customdata": [_point(facts["peak_point"])],
            "hovertemplate": "%{text}<extra></extra>",
        }
    )
    axis = ("time" if language == "en" else "时间") if by_time else ("node" if language == "en" else "节点")
    title = f"{axis}{f' ({unit.name})' if unit.name else ''}"
    layout: Spec = {"height": 400, "yaxis": {"title": {"text": size.name}, "rangemode": "tozero"}}
    if len(data.rows) > 1:
        blocks = data.rows[1].frame
        traces.append(_lives(blocks, xs, unit, held, by_time=by_time))
        ticks = named_ticks(labels(names_of(blocks), 34))
        room = 22 * blocks.height + 40
        below = room / (room + 330)
        layout = {
            "height": 330 + room + 90,
            "xaxis": {"title": {"text": title}, "anchor": "y2"},
            "yaxis": {**layout["yaxis"], "domain": [below + 0.06, 1]},
            "yaxis2": {**ticks, "domain": [0, below - 0.02], "autorange": "reversed", "showgrid": False},
        }
    else:
        layout["xaxis"] = {"title": {"text": title}}
    lowest = layout["yaxis"].get("domain", [0])[0]
    return {"data": traces, "layout": with_marks(layout, facts["marks"], unit, language, lowest)}


def _point(row: Mapping[str, Any]) -> list[Any]:
    """What a click gets: graph, node, time in ns since the epoch (a text, as it has more digits than a browser's
    numbers), step; then the name to show."""
    at = None if row["time_ns"] is None else str(row["time_ns"])
    return [row["graph"], row["node"], at, row["step"], label(row["name"] or "-")]


def _points(rows: pl.DataFrame) -> list[list[Any]]:
    return [_point(row) for row in rows.select("graph", "node", "time_ns", "step", "name").iter_rows(named=True)]


def _hover(name: str, size: Unit, language: Language, *, by_time: bool) -> str:
    step, node = ("step", "node") if language == "en" else ("步", "节点")
    where = f"{step} %{{customdata[3]}}" if by_time else f"{node} %{{customdata[1]}}: %{{customdata[4]}}"
    return f"{name}: %{{y:.4~g}}{size.after}<br>{where}<extra></extra>"


def _line(name: str, xs: list[Any], ys: list[Any], colour: str, size: Unit) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs,
        "y": ys,
        "line": {"color": colour, "shape": "hv", "width": 1.5},
        "hovertemplate": f"{name}: %{{y:.4~g}}{size.after}<extra></extra>",
    }


def _lives(blocks: pl.DataFrame, xs: list[Any], unit: Unit, name: str, *, by_time: bool) -> Spec:
    """Bars from allocation to release; what is not recorded reaches to the edge."""
    begin, end = ("from_ns", "to_ns") if by_time else ("life_start", "life_end")
    edges = blocks.with_columns(
        pl.col(begin).fill_null(xs[0] * unit.factor).clip(lower_bound=xs[0] * unit.factor),
        (pl.col(end) + (0 if by_time else 1))  # to the end of its last node
        .fill_null(xs[-1] * unit.factor)
        .clip(upper_bound=xs[-1] * unit.factor),
    )
    starts, ends = edges[begin], edges[end]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "base": unit.of(starts),
        "x": unit.of((ends - starts).cast(pl.Float64)),
        "y": list(range(blocks.height)),
        "yaxis": "y2",
        "marker": {"color": GREEN},
        "customdata": [
            [in_words(held), *short([share], 3)]
            for held, share in blocks.select("size_bytes", "share_ratio").iter_rows()
        ],
        "hovertemplate": "%{customdata[0]} (%{customdata[1]:.1%})<extra></extra>",
    }


FIGURE = Figure(
    "memory",
    Text("Memory in use", "内存使用"),
    Text(
        "The curve of the allocator, or of a compiled graph node by node, with its peak. Below, bars show how long the "
        "largest blocks that were held at the peak live.",
        "分配器（或编译图逐节点）的内存曲线及其峰值。下方的条表示峰值时占用最多的内存块的存活时间。",
    ),
    ("memory_peak", "memory_usage", "memory_breakdown"),
    data,
    draw,
)
