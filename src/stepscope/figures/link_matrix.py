"""Links between ranks as a matrix: bandwidth, bytes and time of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.advice.messages import Text
from stepscope.figures.axes import label, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.present import Language
from stepscope.selection import describe_numbers

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 64
"""Rows and columns of the matrix; of more ranks, several that follow one another share one."""

_COLUMNS = (
    column("sources", "from", "Rank that sends, or ranks that share a row."),
    column("destinations", "to", "Rank that receives, or ranks that share a column."),
    column("transport", "transport", "Kind of link."),
    column("bandwidth_bytes_per_s", "bandwidth", "Bytes over time.", "float64"),
    column("of_mean_ratio", "of mean", "Bandwidth over the mean of all links of its transport.", "float64"),
    column("size_bytes", "size", "Bytes moved in a step.", "int64"),
    column("duration_ns", "time", "Time on the link in a step.", "int64"),
)


def data(run: Run) -> Data:
    """The links of `link_totals` between different ranks; of those that share a cell, the slowest for its transport."""
    links = run.analyse("link_totals").filter(pl.col("source") != pl.col("destination"))
    ranks = pl.concat([links["source"], links["destination"]]).unique().sort().to_list()
    each = -(-len(ranks) // MOST) or 1
    names = [describe_numbers(ranks[start : start + each]) for start in range(0, len(ranks), each)]
    places = [place // each for place in range(len(ranks))]
    placed = links.with_columns(
        row=pl.col("source").replace_strict(ranks, places, return_dtype=pl.Int32),
        column=pl.col("destination").replace_strict(ranks, places, return_dtype=pl.Int32),
    )
    order = ("row", "column", "of_mean_ratio", "bandwidth_bytes_per_s", "source", "destination", "transport")
    slowest = placed.sort(order, nulls_last=True).unique(["row", "column"], keep="first", maintain_order=True)
    shown = slowest.with_columns(
        sources=pl.col("row").replace_strict(range(len(names)), names, return_dtype=pl.String),
        destinations=pl.col("column").replace_strict(range(len(names)), names, return_dtype=pl.String),
    ).sort("of_mean_ratio", "source", "destination", nulls_last=True)
    notes = []
    if slowest.height < links.height:
        notes.append(
            Text(
                f"{links.height} links in {slowest.height} cells: each shows the slowest one for its transport.",
                f"{links.height} 条链路合并为 {slowest.height} 格：每格显示相对其传输方式最慢的一条。",
            )
        )
    return Data([Rows(shown, _COLUMNS)], notes, {"names": names})


def draw(data: Data, language: Language) -> Spec:
    """A cell for each link; buttons choose what colours it."""
    rows, names = data.main, data.facts["names"]
    rate, size, time = (unit_of(name, rows[name]) for name in ("bandwidth_bytes_per_s", "size_bytes", "duration_ns"))
    words = {
        "bandwidth_bytes_per_s": ("bandwidth", "带宽", rate),
        "size_bytes": ("bytes a step", "每步字节", size),
        "duration_ns": ("time a step", "每步时间", time),
    }
    texts = [[""] * len(names) for _ in names]
    cells: dict[str, list[list[float | None]]] = {name: [[None] * len(names) for _ in names] for name in words}
    for row in rows.iter_rows(named=True):
        texts[row["row"]][row["column"]] = label(row["transport"] or "-", 24)
        for name, (_, _, unit) in words.items():
            value = row[name]
            cells[name][row["row"]][row["column"]] = None if value is None else value / unit.factor
    grids = {name: [short(row, 4) for row in grid] for name, grid in cells.items()}
    titles = {name: f"{en if language == 'en' else zh} ({unit.name})" for name, (en, zh, unit) in words.items()}
    main = "bandwidth_bytes_per_s"  # slow links stand out, in the other columns much
    buttons = [
        {
            "label": titles[name],
            "method": "restyle",
            "args": [
                {
                    "z": [grids[name]],
                    "colorbar.title.text": titles[name],
                    "hovertemplate": _hover(titles[name]),
                    "reversescale": name == main,
                }
            ],
        }
        for name in words
    ]
    heat: dict[str, Any] = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": grids[main],
        "text": texts,
        "reversescale": True,
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"title": {"text": titles[main]}},
        "hovertemplate": _hover(titles[main]),
    }
    source, destination = ("from rank", "to rank") if language == "en" else ("发送 rank", "接收 rank")
    height = 190 + min(max(30 * len(names), 200), 560)
    return {
        "data": [heat],
        "layout": {
            "height": height,
            "showlegend": False,
            "margin": {"t": 64},
            "xaxis": {"title": {"text": destination}, "type": "category", "showgrid": False},
            "yaxis": {"title": {"text": source}, "type": "category", "autorange": "reversed", "showgrid": False},
            "updatemenus": [
                {
                    "type": "buttons",
                    "direction": "right",
                    "buttons": buttons,
                    "x": 0,
                    "xanchor": "left",
                    "y": 1.02,
                    "yanchor": "bottom",
                    "showactive": False,
                }
            ],
        },
    }


def _hover(title: str) -> str:
    return f"%{{y}} → %{{x}} (%{{text}})<br>{title}: %{{z:.4~g}}<extra></extra>"


FIGURE = Figure(
    "link-matrix",
    Text("Links between ranks", "rank 之间的链路"),
    Text(
        "A row is a rank that sends, a column one that receives. A link that is slower than others of its transport "
        "stands out in bandwidth; the table lists the slowest first.",
        "每行是发送的 rank，每列是接收的 rank。比同种传输方式的其他链路慢的链路在带宽中很明显；表格中最慢的在前。",
    ),
    ("link_totals",),
    data,
    draw,
)
