"""How a job is divided among its ranks: their places in the parallel dimensions, as a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import label
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.sharing import some_ticks
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 4096
"""Cells; of more ranks, those of the first data-parallel positions are shown."""

WIDEST = 256
"""Columns up to which data-parallel positions stand side by side."""

NUMBERED = 32
"""Columns up to which cells have their numbers."""

HUES = ("#8fbfe0", "#f0c466", "#7fcdb5", "#efab7a", "#bba3d6", "#c9c9c9", "#e3a6c4", "#cfc94f")
"""Colours of hosts or stages side by side, in turn; black text is readable on each."""

ACROSS, DOWN = ("tp", "cp"), ("pp",)

_COLUMNS = (
    column("rank", "rank"),
    column("host", "host", "Its host."),
    column("tp", "tensor parallel", "Position in its tensor-parallel group, from 0.", "int32"),
    column("cp", "context parallel", "Position in its context-parallel group.", "int32"),
    column("ep", "expert parallel", "Position in its expert-parallel group.", "int32"),
    column("dp", "data parallel", "Position in its data-parallel group.", "int32"),
    column("pp", "pipeline parallel", "Pipeline stage.", "int32"),
)


def data(run: Run, *, layout: str | None = None) -> Data:
    """The ranks of `parallel_layout`.

    Args:
        layout: Parallel sizes as of the page, e.g. `tp=2,pp=4`, if they were not recorded.
    """
    found = run.analyse("parallel_layout", **({} if layout is None else {"layout": layout})).sort("rank")
    sizes: dict[str, int] = {}
    for name in ("tp", "cp", "dp", "pp"):
        size = found[f"{name}_size"].drop_nulls()
        if size.len() and size.to_list()[0] > 1:
            sizes[name] = int(size.to_list()[0])
    if not sizes:
        raise Unavailable(
            "in which parallel groups ranks are is not known, or there is only one rank", question="parallel_layout"
        )
    notes = []
    rows = found.drop_nulls(list(sizes))
    if left := found.height - rows.height:
        notes.append(
            Text(
                f"Where {left} of {found.height} ranks belong is not known; they are left out.",
                f"{found.height} 个 rank 中有 {left} 个位置未知，未显示。",
            )
        )
    if rows.height > MOST and "dp" in sizes:
        kept = max(MOST * sizes["dp"] // rows.height, 1)
        rows = rows.filter(pl.col("dp") < kept)
        notes.append(
            Text(
                f"{rows.height} of {found.height} ranks: the first {kept} of {sizes['dp']} data-parallel positions.",
                f"共 {found.height} 个 rank，显示 {rows.height} 个：数据并行 {sizes['dp']} 个位置中的前 {kept} 个。",
            )
        )
        sizes["dp"] = kept
    across = [name for name in ACROSS if name in sizes]
    down = [name for name in DOWN if name in sizes]
    width = 1
    for name in across:
        width *= sizes[name]
    if "dp" in sizes:
        (across if width * sizes["dp"] <= WIDEST else down).append("dp")
    shown = rows.with_columns(row=_position(down, sizes), column=_position(across, sizes))
    facts = {"sizes": sizes, "across": across, "down": down}
    return Data([Rows(shown, _COLUMNS)], notes, facts)


def _position(names: list[str], sizes: dict[str, int]) -> pl.Expr:
    """Where ranks stand along an axis of several dimensions, the first one changing fastest for columns."""
    found: pl.Expr = pl.lit(0, pl.Int32)
    step = 1
    for name in names if names[:1] != ["pp"] else reversed(names):
        found = found + pl.col(name) * step
        step *= sizes[name]
    return found


def draw(data: Data, language: Language) -> Spec:
    """A cell for each rank, coloured by host, or by stage; `customdata` is the rank and its place in words."""
    rows, facts = data.main, data.facts
    width, height = int(rows["column"].max() or 0) + 1, int(rows["row"].max() or 0) + 1  # type: ignore[arg-type]
    hosts = rows["host"].unique(maintain_order=True).to_list()
    by_host = len(hosts) > 1 and None not in hosts
    hues: list[list[float | None]] = [[None] * width for _ in range(height)]
    numbers = [[""] * width for _ in range(height)]
    told: list[list[Any]] = [[None] * width for _ in range(height)]
    host_word = "host" if language == "en" else "主机"
    for row in rows.iter_rows(named=True):
        at, place = row["row"], row["column"]
        colour = hosts.index(row["host"]) if by_host else row["pp"] or 0
        hues[at][place] = colour % len(HUES)
        numbers[at][place] = str(row["rank"])
        where = ", ".join(f"{name} {row[name]}" for name in ("tp", "cp", "ep", "dp", "pp") if row[name] is not None)
        told[at][place] = [row["rank"], where + (f"<br>{host_word} {label(row['host'], 32)}" if row["host"] else "")]
    count = len(HUES)
    steps = [[edge / count, hue] for at, hue in enumerate(HUES) for edge in (at, at + 1)]
    names = {axis: _names(rows, axis, place) for axis, place in (("down", "row"), ("across", "column"))}
    titles = {
        axis: ", ".join(f"{name} {facts['sizes'][name]}" for name in facts[axis]) or "" for axis in ("down", "across")
    }
    tall = max(min(44 * height, 640), 70)
    return {
        "data": [
            {
                "type": "heatmap",
                "x": list(range(width)),
                "y": list(range(height)),
                "z": hues,
                "zmin": -0.5,
                "zmax": count - 0.5,
                "colorscale": steps,
                "showscale": False,
                "text": numbers,
                **({"texttemplate": "%{text}"} if width <= NUMBERED and height <= NUMBERED else {}),
                "textfont": {"color": "#1f2430"},
                "customdata": told,
                "hoverongaps": False,
                "xgap": 2 if width <= 64 else 0,
                "ygap": 2 if height <= 64 else 0,
                "hovertemplate": "rank %{text}<br>%{customdata[1]}<extra></extra>",
            }
        ],
        "layout": {
            "showlegend": False,
            "margin": {"t": 16},
            "height": 110 + tall,
            "xaxis": {
                **some_ticks(names["across"], most=24),
                "title": {"text": titles["across"]},
                "showgrid": False,
                "zeroline": False,
            },
            "yaxis": {
                **some_ticks(names["down"], most=max(tall // 18, 2)),
                "title": {"text": titles["down"]},
                "autorange": "reversed",
                "showgrid": False,
                "zeroline": False,
            },
        },
    }


def _names(rows: pl.DataFrame, axis: str, place: str) -> list[str]:
    """What stands at the places of an axis."""
    names = (*DOWN, "dp") if axis == "down" else (*ACROSS, "dp")
    first = rows.sort(place, "rank").unique(place, keep="first", maintain_order=True)
    others = rows.group_by(place).agg(pl.col(name).n_unique() for name in names)
    same = [name for name in names if (others[name] == 1).all() and rows[name].n_unique() > 1]
    return [" ".join(f"{name}{row[name]}" for name in same) for row in first.iter_rows(named=True)]


FIGURE = Figure(
    "layout",
    Text("How the job is divided among its ranks", "作业在各 rank 间的划分"),
    Text(
        "A cell is a rank; along the axes are its positions in the parallel dimensions: tp tensor, cp context, dp "
        "data, pp pipeline. Colours tell hosts apart, or stages where hosts are unknown.",
        "每格是一个 rank；坐标轴是其在各并行维度中的位置：tp 张量、cp 上下文、dp 数据、pp 流水线。"
        "颜色区分主机，主机未知时区分阶段。",
    ),
    ("parallel_layout",),
    data,
    draw,
    for_pages=True,
)
