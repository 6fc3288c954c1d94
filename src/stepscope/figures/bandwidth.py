"""How fast collectives of each size move data, against the fastest links of each transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import label, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import SERIES
from stepscope.present import Language, size
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Points; of more, those of the calls with most bytes in all."""

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")

_COLUMNS = (
    column("operation", "operation", "Operation of the call."),
    column("group_name", "group", "Process group."),
    column("ranks", "ranks", "Ranks in the group.", "int32"),
    column("size_bytes", "size", "Size of the buffer.", "int64"),
    column("calls", "calls", "Number of calls.", "int64"),
    column("bus_bytes_per_s", "bus bandwidth", "Algorithm bandwidth times the factor of the operation.", "float64"),
    column("best_bus_bytes_per_s", "best", "Bus bandwidth of the shortest call.", "float64"),
    column("transmit_ns", "transmission", "Median transmission.", "int64"),
)
_TRANSPORTS = (
    column("transport", "transport", "Kind of link."),
    column("links", "links", "Number of links between different ranks.", "int64"),
    column("mean_bytes_per_s", "mean", "Mean of the links' bandwidths.", "float64"),
    column("slowest_bytes_per_s", "slowest", "Lowest bandwidth of a link.", "float64"),
    column("fastest_bytes_per_s", "fastest", "Highest bandwidth of a link.", "float64"),
)


def data(run: Run) -> Data:
    """The rows of `bus_bandwidth` with a rate, and the links of `transport_totals` if they were recorded."""
    found = run.analyse("bus_bandwidth").filter((pl.col("bus_bytes_per_s") > 0) & (pl.col("size_bytes") > 0))
    if found.is_empty():
        raise Unavailable("no collective has a size and a transmission that all its ranks were seen in")
    notes = []
    if found.height > MOST:
        notes.append(
            Text(
                f"{MOST} of {found.height} kinds of calls, those with most bytes.",
                f"共 {found.height} 种调用，这里是字节最多的 {MOST} 种。",
            )
        )
        weight = pl.col("size_bytes").cast(pl.Float64) * pl.col("calls")
        found = found.sort(-weight, "operation", "group", "size_bytes", nulls_last=True).head(MOST)
    rows = [Rows(found.sort("operation", "size_bytes", "group", nulls_last=True), _COLUMNS)]
    try:
        transports = run.analyse("transport_totals").filter(pl.col("fastest_bytes_per_s") > 0)
        rows.append(Rows(transports, _TRANSPORTS, Text("Links by transport", "各传输方式的链路")))
    except Unavailable:
        notes.append(
            Text(
                "Links were not recorded, so the speed of transports is unknown.",
                "没有记录链路，因此各传输方式的速度未知。",
            )
        )
    return Data(rows, notes)


def draw(data: Data, language: Language) -> Spec:
    """A mark for each size of an operation, a line for the fastest link of each transport."""
    rows = data.main
    bandwidth, buffer, calls, fastest = (
        ("bus bandwidth", "size", "calls", "fastest link")
        if language == "en"
        else ("总线带宽", "大小", "次调用", "最快的链路")
    )
    unit = unit_of("bus_bytes_per_s", rows["bus_bytes_per_s"])
    traces: list[dict[str, Any]] = []
    for number, (operation,) in enumerate(rows.select("operation").unique(maintain_order=True).iter_rows()):
        own = rows.filter(pl.col("operation").eq_missing(operation))
        groups = [label(name or "-", 24) for name in own["group_name"]]
        facts = zip(own["calls"], groups, own["ranks"], own["size_bytes"], strict=True)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(operation or "-"),
                "x": own["size_bytes"].to_list(),
                "y": unit.of(own["bus_bytes_per_s"]),
                "marker": {
                    "color": SERIES[number % len(SERIES)],
                    "symbol": _SYMBOLS[number % len(_SYMBOLS)],
                    "size": 10,
                },
                "customdata": [[count, group, ranks, size(held)] for count, group, ranks, held in facts],
                "hovertemplate": f"%{{customdata[3]}}: %{{y:.4~g}}{unit.after}<br>%{{customdata[0]:,}} {calls}, "
                "%{customdata[1]} (%{customdata[2]} rank)<extra></extra>",
            }
        )
    sizes = rows["size_bytes"].to_list()
    for number, row in enumerate(data.rows[1].frame.iter_rows(named=True) if len(data.rows) > 1 else ()):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{fastest}: {label(row['transport'] or '-', 24)}",
                "x": [min(sizes) * 0.7, max(sizes) * 1.4],
                "y": short([row["fastest_bytes_per_s"] / unit.factor] * 2),
                "line": {"color": SERIES[-1 - number % len(SERIES)], "dash": "dash", "width": 2},
                "hovertemplate": f"%{{y:.4~g}}{unit.after}<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": {
            "height": 430,
            "showlegend": True,
            "xaxis": {"title": {"text": f"{buffer} (B)"}, "type": "log", "exponentformat": "SI"},
            "yaxis": {"title": {"text": f"{bandwidth} ({unit.name})"}, "type": "log"},
        },
    }


FIGURE = Figure(
    "bandwidth",
    Text("Bandwidth of collectives by size", "集合通信带宽与大小"),
    Text(
        "Small calls are limited by latency, large ones by links: bus bandwidth is comparable with the speed of one "
        "link, or of several that work side by side. Waiting for late ranks does not count.",
        "小的调用受时延限制，大的调用受链路限制：总线带宽可与一条链路的速度比较，多条链路并行时可与其总和比较。"
        "等待迟到的 rank 不计。",
    ),
    ("bus_bandwidth",),
    data,
    draw,
)
