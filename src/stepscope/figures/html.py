"""Figures in a page that needs no network: Plotly packed into the page, once, and a fragment for each figure.

A page has `bundle()` once, at its end, and a `fragment(drawn)` where a figure belongs. A fragment has the figure as
JSON and its table; the script of the bundle unpacks Plotly, draws all figures, folds their tables and follows the theme
of the page. Where it cannot (scripting is off, an old browser), the tables stay as they are.
"""

from __future__ import annotations

import base64
import html
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from isal import igzip

from stepscope.errors import StepscopeError
from stepscope.figures.base import INSTALL, Drawn, Spec
from stepscope.figures.style import THEMES, template
from stepscope.pages.short_names import readable
from stepscope.pages.shown_table import ShownTable
from stepscope.present import Language, cell, printable

TABLE_ROWS = 60
"""Rows of a figure's table in a page; the others are counted."""

_SCRIPT = Path(__file__).with_name("figures.js")

_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "table": "Table: ",
        "more": "{count} more rows are not shown here.",
        "failed": "This figure needs a browser with scripting; its table follows.",
    },
    "zh": {
        "table": "数据表：",
        "more": "另有 {count} 行未在此显示。",
        "failed": "显示此图需要启用脚本的浏览器；数据见下表。",
    },
}


def to_json(drawn: Drawn | Spec) -> str:
    """A figure as compact JSON, the same at every call and safe inside a `<script>`."""
    spec = drawn.spec if isinstance(drawn, Drawn) else drawn
    return _safe(json.dumps(spec, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def _safe(text: str) -> str:
    """JSON in which nothing ends a script or begins a comment."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def fragment(drawn: Drawn, *, identity: str = "", rows: int = TABLE_ROWS, heading: bool = True) -> str:
    """A figure as a part of a page: title, drawing, what it shows, its tables.

    Args:
        drawn: The figure.
        identity: The element's id. Default: `figure-` and the figure's name.
        rows: Most rows of each of its tables.
        heading: Whether the title is a part of it.
    """
    words = _WORDS[drawn.language]
    identity = html.escape(identity or f"figure-{drawn.name}")
    height = int(drawn.spec["layout"].get("height", 400))
    title, shows = html.escape(drawn.title), html.escape(drawn.shows)
    caption = f'<figcaption id="{identity}-title">{title}</figcaption>' if heading else ""
    notes = "".join(f'<p class="ss-note">{html.escape(printable(note))}</p>' for note in drawn.notes)
    tables = "".join(_table(table, drawn.language, rows, with_heading=len(drawn.tables) > 1) for table in drawn.tables)
    return (
        f'<figure class="ss-figure" id="{identity}" lang="{drawn.language}">{caption}'
        f'<p class="ss-shows">{shows}</p>'
        f'<div class="ss-plot" role="img" aria-label="{title}" style="min-height:{height}px" hidden></div>'
        f'<script type="application/json" class="ss-spec">{to_json(drawn)}</script>{notes}'
        f'<details class="ss-table" open><summary>{words["table"]}{title}</summary>{tables}</details></figure>\n'
    )


def _table(table: ShownTable, language: Language, most: int, *, with_heading: bool) -> str:
    shown = table.rows.head(most)
    if language == "en":
        shown = readable(shown)
    numeric = {name for name, dtype in shown.schema.items() if dtype.is_numeric()}
    heads = "".join(_head(column.title or column.name, column.name in numeric) for column in table.columns)
    body = "".join(
        "<tr>"
        + "".join(_cell(name, value, name in numeric) for name, value in zip(shown.columns, row, strict=True))
        + "</tr>"
        for row in shown.iter_rows()
    )
    caption = f"<caption>{html.escape(printable(table.heading))}</caption>" if with_heading else ""
    left = table.rows.height - shown.height
    more = f"<p>{_WORDS[language]['more'].format(count=left)}</p>" if left else ""
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"


def _head(title: str, numeric: bool) -> str:
    text = html.escape(printable(title))
    return f'<th class="ss-n">{text}</th>' if numeric else f"<th>{text}</th>"


def _cell(column: str, value: Any, numeric: bool) -> str:
    if isinstance(value, pl.Series | list):
        value = ", ".join(map(str, value))
    text = html.escape(printable(_cut(cell(column, value))))
    return f'<td class="ss-n">{text}</td>' if numeric else f"<td>{text}</td>"


def _cut(text: str, longest: int = 200) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def bundle() -> str:
    """What a page with figures needs once, at its end: Plotly, packed, and the script that draws the fragments.

    Raises:
        StepscopeError: If Plotly is not installed.
    """
    themes = {theme: template(theme, clear=True) for theme in THEMES}
    return (
        f"<style>{_STYLE}</style>"
        f'<script type="text/plain" id="ss-plotly">{_packed()}</script>'
        f'<script type="application/json" id="ss-themes">{_safe(json.dumps(themes, separators=(",", ":")))}</script>'
        f"<script>{_SCRIPT.read_text(encoding='utf-8')}</script>\n"
    )


_STYLE = (
    ".ss-figure{margin:1.2em 0}.ss-figure figcaption{font-weight:600;font-size:1.1em}.ss-shows,.ss-note{margin:.3em 0;"
    "opacity:.8;font-size:.92em}.ss-table table{border-collapse:collapse;font-size:.9em;margin:.5em 0}.ss-table th,"
    ".ss-table td{padding:.2em .7em;text-align:left;border-bottom:1px solid rgba(128,128,128,.35);"
    "overflow-wrap:anywhere}"
    ".ss-figure .modebar{opacity:0}.ss-figure:hover .modebar,.ss-figure:focus-within .modebar{opacity:1}"
    ".ss-table .ss-n{text-align:right;font-variant-numeric:tabular-nums}.ss-table summary{cursor:pointer}"
    "@media print{.ss-table:not([open]){display:none}.ss-figure{break-inside:avoid}.modebar{display:none!important}}"
)


@cache
def _packed() -> str:
    """Plotly's script, with gzip and in base64; a level that takes ten times as long makes it a tenth smaller."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise StepscopeError(INSTALL)
    script = Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    return base64.b64encode(igzip.compress(script.read_bytes(), 3, mtime=0)).decode("ascii")
