"""Links between ranks as a matrix: bandwidth, bytes and time of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.axes import label, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.sharing import Shared, shared, some_ticks
from stepscope.figures.style import ALARMS, PURPLE
from stepscope.present import Language
from stepscope.selection import Choice
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 64
"""Rows and columns of the matrix; of more ranks, several that follow one another share one."""

GAPS = 40
"""Rows up to which cells stand apart."""

NAMED = 8
"""Links that a note lists."""

_COLUMNS = (
    column("sources", "from", "Rank that sends, or ranks that share a row."),
    column("destinations", "to", "Rank that receives, or ranks that share a column."),
    column("transport", "transport", "Kind of link."),
    column("bandwidth_bytes_per_s", "bandwidth", "Bytes over time.", "float64"),
    column("of_mean_ratio", "of mean", "Bandwidth over the mean of all links of its transport.", "float64"),
    column("size_bytes", "size", "Bytes moved in a step.", "int64"),
    column("duration_ns", "time", "Time on the link in a step.", "int64"),
)


VALUES = {"bandwidth": "bandwidth_bytes_per_s", "traffic": "size_bytes", "time": "duration_ns"}
"""What may colour the cells, and its column."""


def data(
    run: Run,
    *,
    value: str = "bandwidth",
    transport: str | None = None,
    step: int | None = None,
    source: Choice = None,
    destination: Choice = None,
) -> Data:
    """The links of `link_totals` between different ranks; of those that share a cell, the slowest for its transport.

    Args:
        value: What colours a cell: `bandwidth`, `traffic` or `time`. Buttons of the figure choose another.
        transport: Only links of this transport. Default: all.
        step: The step. Default: the mean of all.
        source, destination: Only links from, or to, these ranks.

    Raises:
        StepscopeError: If there is no such value.
    """
    if value not in VALUES:
        raise StepscopeError(f"links have no {value!r}. {close_matches(value, [*VALUES])}")
    chosen = {"transport": transport, "source": source, "destination": destination}
    options = {name: one for name, one in chosen.items() if one is not None}
    links = run.analyse("link_totals", by_step=step is not None, **options)
    links = links.filter(pl.col("source") != pl.col("destination"))
    if step is not None:
        links = links.filter(pl.col("step") == step)
    notes = [Text(f"Step {step}.", f"第 {step} 步。")] if step is not None else []
    if links.is_empty():
        raise Unavailable("nothing went over links like these", question="link_totals")
    ranks = shared([*links["source"], *links["destination"]], MOST)
    placed = links.with_columns(row=ranks.place("source"), column=ranks.place("destination"))
    order = ("row", "column", "of_mean_ratio", "bandwidth_bytes_per_s", "source", "destination", "transport")
    slowest = placed.sort(order, nulls_last=True).unique(["row", "column"], keep="first", maintain_order=True)
    shown = slowest.with_columns(sources=ranks.name("row"), destinations=ranks.name("column")).sort(
        "of_mean_ratio", "source", "destination", nulls_last=True
    )
    if slowest.height < links.height:
        notes.append(
            Text(
                f"{links.height} links in {slowest.height} cells: each shows the slowest one for its transport.",
                f"{links.height} 条链路合并为 {slowest.height} 格：每格显示相对其传输方式最慢的一条。",
            )
        )
    slow, whole_notes = _slow(run, ranks)
    return Data(
        [Rows(shown, _COLUMNS)],
        [*whole_notes, *notes],
        {"names": ranks.names, "value": VALUES[value], "slow": slow},
    )


def _slow(run: Run, ranks: Shared) -> tuple[list[tuple[int, int]], list[Text]]:
    """Cells of links that are slow (`slow_links`), and a note that they are marked."""
    try:
        found = run.whole.analyse("slow_links").drop_nulls(["rank_a", "rank_b"])
    except Unavailable:
        return [], []
    place = {rank: at for at, some in enumerate(ranks.members) for rank in some}
    pairs = [(a, b) for a, b in found.select("rank_a", "rank_b").iter_rows() if a in place and b in place]
    if not pairs:
        return [], []
    cells = sorted({cell for a, b in pairs for cell in ((place[a], place[b]), (place[b], place[a]))})
    named = ", ".join(f"{a}-{b}" for a, b in pairs[:NAMED]) + (", …" if len(pairs) > NAMED else "")
    return cells, [Text(f"Slow, and outlined: {named}.", f"已框出的慢链路：{named}。")]


def draw(data: Data, language: Language) -> Spec:
    """A cell for each link; buttons choose what colours it. `customdata` is source, destination, transport."""
    rows, names = data.main, data.facts["names"]
    rate, size, time = (unit_of(name, rows[name]) for name in ("bandwidth_bytes_per_s", "size_bytes", "duration_ns"))
    words = {
        "bandwidth_bytes_per_s": ("bandwidth", "带宽", rate),
        "size_bytes": ("bytes a step", "每步字节", size),
        "duration_ns": ("time a step", "每步时间", time),
    }
    texts = [[""] * len(names) for _ in names]
    ends: list[list[Any]] = [[None] * len(names) for _ in names]
    cells: dict[str, list[list[float | None]]] = {name: [[None] * len(names) for _ in names] for name in words}
    for row in rows.iter_rows(named=True):
        texts[row["row"]][row["column"]] = label(row["transport"] or "-", 24)
        ends[row["row"]][row["column"]] = [row["source"], row["destination"]]
        for name, (_, _, unit) in words.items():
            value = row[name]
            cells[name][row["row"]][row["column"]] = None if value is None else value / unit.factor
    grids = {name: [short(row, 4) for row in grid] for name, grid in cells.items()}
    titles = {name: f"{en if language == 'en' else zh} ({unit.name})" for name, (en, zh, unit) in words.items()}
    main = data.facts["value"]
    rates = "bandwidth_bytes_per_s"  # slow links stand out, in the other columns much
    buttons = [
        {
            "label": titles[name],
            "method": "restyle",
            "args": [
                {
                    "z": [grids[name]],
                    "colorbar.title.text": titles[name],
                    "hovertemplate": _hover(titles[name]),
                    "reversescale": name == rates,
                }
            ],
        }
        for name in words
    ]
    heat: dict[str, Any] = {
        "type": "heatmap",
        "x": list(range(len(names))),
        "y": list(range(len(names))),
        "z": grids[main],
        "text": texts,
        "customdata": ends,
        "colorscale": ALARMS,
        "reversescale": main == rates,
        "hoverongaps": False,
        "xgap": 1 if len(names) <= GAPS else 0,
        "ygap": 1 if len(names) <= GAPS else 0,
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
            "xaxis": {
                **some_ticks(names, most=32),
                "title": {"text": destination},
                "showgrid": False,
                "zeroline": False,
            },
            "yaxis": {
                **some_ticks(names, most=max((height - 190) // 18, 4)),
                "title": {"text": source},
                "autorange": "reversed",
                "showgrid": False,
                "zeroline": False,
            },
            "shapes": [_outline(row, place) for row, place in data.facts["slow"]],
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


def _outline(row: int, place: int) -> dict[str, Any]:
    """What marks a cell."""
    corners = {"x0": place - 0.5, "x1": place + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", **corners, "line": {"color": PURPLE, "width": 3}}


def _hover(title: str) -> str:
    return f"%{{customdata[0]}} → %{{customdata[1]}} (%{{text}})<br>{title}: %{{z:.4~g}}<extra></extra>"


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
