"""A report as one HTML file that loads nothing: no network, no other file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

from stepscope import present
from stepscope._version import __version__
from stepscope.errors import StepscopeError
from stepscope.report.report_words import CONFIDENCE, WORDS
from stepscope.report.targets import MARK

try:
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise StepscopeError(f"a report needs Jinja2 ({error}). Run `pip install 'stepscope[report]'`") from error

if TYPE_CHECKING:
    import polars as pl

    from stepscope.pages.shown_table import ShownTable
    from stepscope.present import Language
    from stepscope.report.contents import Contents

LONGEST_CELL = 160
"""Characters of a name in a table; longer ones are cut in the middle, where names of kernels differ least."""

LONGEST_LINE = 44
"""Characters of a name on one line; longer ones take several, so that the figures beside them are in sight."""

LONGEST_TEXT = 4_000
"""Characters of any other text: names in a recording may have any length."""

BLOCKED = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load: nothing but pictures inside the file. Scripts are allowed by a nonce."""


def to_html(found: Contents) -> bytes:
    """The report as a file."""
    from stepscope.advice.messages import fill  # noqa: PLC0415 - pages that only have parts of a report load less
    from stepscope.figures import bundle, fragment  # noqa: PLC0415

    language = found.language
    environment = environment_in(language, {"report.html.j2": template_file("report.html.j2")})
    environment.globals.update(figure=lambda drawn: Markup(fragment(drawn)))
    drawn = any(part.figures for module in found.modules for part in module.parts)
    figures = bundle() if drawn else ""
    template = environment.get_template("report.html.j2")
    text = template.render(
        report=found,
        mark=MARK,
        made=fill(WORDS["made"], {"version": __version__}, language),
        style=Markup(template_file("parts.css") + template_file("report.css")),
        script=Markup(template_file("report.js") + template_file("parts.js")),
        figures=Markup(figures.replace("<script>", '<script nonce="NONCE">')),
        policy=f"{BLOCKED}; script-src 'nonce-NONCE'",
    )
    return _with_nonce(text).encode("utf-8", "backslashreplace")


def environment_in(language: Language, templates: Mapping[str, str]) -> Environment:
    """Templates of pages that have parts of a report: findings and tables (`parts.html.j2`), with its words.

    Args:
        templates: The texts of the pages' own templates by name.
    """
    environment = Environment(
        loader=DictLoader({"parts.html.j2": template_file("parts.html.j2"), **templates}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.globals.update(
        words={name: text.of(language) for name, text in WORDS.items()},
        confidence={name: text.of(language) for name, text in CONFIDENCE.items()},
        body=table_body,
        head=table_head,
        counted=lambda table: _counted(table, language),
        saving_cell=lambda one: _problems().saving_cell(one, language),
        cost_cell=lambda one: _problems().cost_cell(one),
        percent=lambda ratio: f"{ratio:.1%}",
    )
    environment.filters["coded"] = coded
    return environment


def _problems() -> Any:
    """The words of findings; loaded when there is one, as it loads all that findings rest on."""
    return import_module("stepscope.report.problems")


def _with_nonce(text: str) -> str:
    """The page with the word by which its own scripts may run.

    It is made of the page itself, so no name inside the page can contain it, and it is the same for the same page.
    """
    nonce = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    for place in ("script-src &#39;nonce-{}&#39;", '<script nonce="{}">'):
        text = text.replace(place.format("NONCE"), place.format(nonce))
    return text


def template_file(name: str) -> str:
    """A file of the templates, e.g. `parts.css`."""
    return (resources.files("stepscope.report") / "templates" / name).read_text(encoding="utf-8")


def _finalized(value: Any) -> Any:
    """A value in the page: names from a recording may have any characters and any length."""
    return cleaned(value, LONGEST_TEXT) if isinstance(value, str) and not isinstance(value, Markup) else value


def coded(text: str) -> Markup:
    """A text with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(cleaned(text, LONGEST_TEXT)))))


_CODE = re.compile("`([^`]+)`")


def cleaned(text: str, longest: int) -> str:
    """A text without characters that are obeyed, cut in the middle if it is too long."""
    if len(text) > longest:
        text = f"{text[: longest * 2 // 3]} … {text[-longest // 3 :]}"
    return present.printable(text, keep="\n")


def _counted(table: ShownTable, language: Language) -> str:
    """How many rows a table has, and whether all of them are here."""
    from stepscope.advice.messages import fill  # noqa: PLC0415 - it loads all that findings rest on

    rows, every = table.rows.height, table.rows.height if table.found is None else table.found
    known = {"shown": rows, "found": every}
    return fill(WORDS["first_rows" if rows < every else "all_rows"], known, language)


def table_head(table: ShownTable) -> list[Mapping[str, Any]]:
    """The columns of a table: title, meaning, whether they hold numbers."""
    return [
        {"title": column.title, "doc": column.doc, "number": table.rows.schema[column.name].is_numeric()}
        for column in table.columns
    ]


def table_body(table: ShownTable, link: Callable[[str, Any], str | None] | None = None) -> Markup:
    """The rows of a table; numbers with what they are sorted by, shares with a bar.

    Args:
        link: Gives the URL that a cell leads to, if any, by the name of its column and its value.
    """
    units = table.rows[table.named_by].to_list() if table.named_by else []
    columns = [list(_cells(table, column.name, units, link or _nowhere)) for column in table.columns]
    rows = ("".join(cells) for cells in zip(*columns, strict=True))
    return Markup("".join(f"<tr>{row}</tr>\n" for row in rows))


def _nowhere(_column: str, _value: Any) -> None:
    return None


def _linked(text: str, url: str | None) -> str:
    return text if url is None else f'<a href="{escape(url)}">{text}</a>'


def _cells(table: ShownTable, name: str, units: list[str], link: Callable[[str, Any], str | None]) -> Iterator[str]:
    values = table.rows[name]
    if not values.dtype.is_numeric():
        for value in values.to_list():
            text = "-" if value is None else present.cell(name, value)
            start = "<td class=t>" if len(text) > LONGEST_LINE else "<td>"
            yield f"{start}{_linked(escape(cleaned(text, LONGEST_CELL)), link(name, value))}</td>"
        return
    names = units if units and values.dtype.is_float() else [name] * values.len()
    whole = _bar_of(table, name, values)
    for unit, value in zip(names, values.to_list(), strict=True):
        text = _linked(escape(present.cell(unit, value)), link(name, value))
        if value is None:
            yield "<td class=n>-</td>"
        elif whole and value > 0:
            yield f'<td class="n bar" data-v={_short(value)} style="--w:{min(value / whole, 1):.1%}">{text}</td>'
        else:
            yield f"<td class=n data-v={_short(value)}>{text}</td>"


def _bar_of(table: ShownTable, name: str, values: pl.Series) -> float:
    """What fills a bar in a column; 0 if it has none: shares of a whole, and the column that the page draws."""
    if name != table.bar and (name in WITHOUT_BAR or not name.endswith("_ratio")):
        return 0.0
    highest = float(values.max() or 0)  # type: ignore[arg-type]
    if name == table.bar:
        return highest
    return 1.0 if 0 < highest <= 1 and float(values.min() or 0) >= 0 else 0.0  # type: ignore[arg-type]


WITHOUT_BAR = ("probability_ratio",)
"""Ratios that are no shares of anything."""


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"
