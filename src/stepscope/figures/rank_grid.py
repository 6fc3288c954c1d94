"""Ranks as cells of a grid, a row for each host where hosts are known, coloured by a share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.figures.axes import label, short
from stepscope.figures.base import Spec
from stepscope.figures.sharing import some_ticks
from stepscope.figures.style import SHADES
from stepscope.present import Language, cell
from stepscope.selection import describe_numbers
from stepscope.texts import Text

MOST = 4096
"""Cells; of more ranks, several that follow one another share one."""

HOST_ROWS = 64
"""Hosts up to which each has a row."""

NUMBERED = 256
"""Cells up to which each has its number."""

HALF = 50
"""Percent at which colours of shares begin at the highest."""

_WIDTHS = (4, 8, 16, 32, 64)
"""Ranks in a row where hosts do not tell."""


@dataclass(frozen=True)
class Said:
    """A column that is said of a cell when it is pointed at.

    Args:
        title: What it is.
    """

    column: str
    title: Text


def placed(rows: pl.DataFrame, extreme: str, *, lowest: bool) -> tuple[pl.DataFrame, list[str], list[Text]]:
    """Rows (`rank`, `host`) with their `row` and `column` in the grid; names of its rows, and notes.

    Args:
        extreme: Of ranks that share a cell, the one is kept for which this column is lowest, or greatest.
        lowest: Which of both.
    """
    ordered = rows.sort("rank")
    each = -(-ordered.height // MOST) or 1
    notes = []
    if each > 1:
        at = ordered.with_row_index("at").with_columns(pl.col("at") // each)
        ordered = at.sort("at", extreme, "rank", descending=[False, not lowest, False], nulls_last=True)
        ordered = ordered.unique("at", keep="first", maintain_order=True).drop("at")
        which = Text("lowest", "最低") if lowest else Text("greatest", "最高")
        notes.append(
            Text(
                f"{rows.height} ranks share {ordered.height} cells, {each} that follow one another each: a cell shows "
                f"the one with the {which.en} value.",
                f"{rows.height} 个 rank 合并为 {ordered.height} 格，每格 {each} 个相邻的 rank，"
                f"显示其中数值{which.zh}的。",
            )
        )
    hosts = ordered["host"].unique(maintain_order=True).to_list()
    if 1 < len(hosts) <= HOST_ROWS and None not in hosts:
        row = pl.col("host").replace_strict(hosts, range(len(hosts)), return_dtype=pl.Int32)
        made = ordered.with_columns(row=row).with_columns(column=pl.col("rank").cum_count().over("row") - 1)
        return made, [label(host, 24) for host in hosts], notes
    width = next((one for one in _WIDTHS if ordered.height <= 2 * one * one), _WIDTHS[-1])
    made = ordered.with_row_index("at").with_columns(row=pl.col("at") // width, column=pl.col("at") % width)
    numbers = ordered["rank"].to_list()
    lines = [numbers[start : start + width] for start in range(0, len(numbers), width)]
    return made.drop("at"), [describe_numbers(line) for line in lines], notes


def draw_grid(
    rows: pl.DataFrame,
    names: Sequence[str],
    value: str,
    title: str,
    said: Sequence[Said],
    language: Language,
    *,
    is_limited: bool = False,
) -> Spec:
    """Cells coloured by a share; `customdata` of a cell is its rank, and what is said of it.

    Args:
        rows: As `placed` gives them.
        names: Of its rows.
        value: The column that colours a cell, a share.
        title: What that is.
        is_limited: Whether shares are of a limit, so that a great one stands out; else colours only tell them apart.
    """
    width = int(rows["column"].max() or 0) + 1  # type: ignore[arg-type]
    shares: list[list[float | None]] = [[None] * width for _ in names]
    numbers = [[""] * width for _ in names]
    told: list[list[Any]] = [[None] * width for _ in names]
    for row in rows.iter_rows(named=True):
        at, place = row["row"], row["column"]
        shares[at][place] = None if row[value] is None else row[value] * 100
        numbers[at][place] = str(row["rank"])
        told[at][place] = [row["rank"], _told(row, said, language)]
    least = min((share for line in shares for share in line if share is not None), default=0)
    by_host = rows["host"].n_unique() > 1 and names[0] == label(rows["host"][0] or "", 24)
    row_word = ("host" if language == "en" else "主机") if by_host else "rank"
    texts = {"text": numbers, "texttemplate": "%{text}"} if rows.height <= NUMBERED else {"text": numbers}
    height = max(min(44 * len(names), 620), 130)
    return {
        "data": [
            {
                "type": "heatmap",
                "x": list(range(width)),
                "y": list(range(len(names))),
                "z": [short(row, 4) for row in shares],
                **texts,
                "customdata": told,
                "zmin": 0 if is_limited else min(least // 10 * 10, HALF),
                "zmax": 100,
                **({} if is_limited else {"colorscale": SHADES}),
                "hoverongaps": False,
                "xgap": 2 if width <= 64 else 0,
                "ygap": 2 if len(names) <= 64 else 0,
                "colorbar": {"title": {"text": f"{title} (%)"}},
                "hovertemplate": f"rank %{{text}}<br>{title}: %{{z:.3~g}} %<br>%{{customdata[1]}}<extra></extra>",
            }
        ],
        "layout": {
            "showlegend": False,
            "margin": {"t": 16},
            "height": 90 + height,
            "xaxis": {"showgrid": False, "showticklabels": False, "zeroline": False},
            "yaxis": {
                **some_ticks(names, most=max(height // 18, 4)),
                "title": {"text": row_word},
                "autorange": "reversed",
                "showgrid": False,
                "zeroline": False,
            },
        },
    }


def _told(row: Mapping[str, Any], said: Sequence[Said], language: Language) -> str:
    """What is said of a cell."""
    lines = [
        f"{one.title.of(language)}: {label(cell(one.column, row[one.column]))}"
        for one in said
        if row.get(one.column) is not None
    ]
    return "<br>".join(lines)
