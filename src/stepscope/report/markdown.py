"""Answers as GitHub's Markdown, e.g. for a comment on a pull request: names in them are shown as they are."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from stepscope import present
from stepscope.pages.answering import Answered, opening_of
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import ShownTable
from stepscope.references import as_typed

MOST = 60_000
"""Characters of a page: a comment on GitHub has at most 65,536."""

LONGEST = 100
"""Characters of a cell."""

ROWS = 15
"""Rows of a table; the whole answer is in the terminal and JSON."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~>$])")
_LINKS = re.compile(r"(?i)(@|#(?=\d)|\bGH-(?=\d)|://|www\.)")
_HIDDEN = "\u200b"
"""A space without width: what stands behind it is neither a mention nor a link."""


def page_as_markdown(answered: Answered) -> str:
    """The sentences and tables of a page, at most `MOST` characters; what is left out at the end is named."""
    title = f"### stepscope {answered.page.name}"
    parts, left, names = [title], MOST - len(title), list[str]()
    for heading, text in _parts(answered):
        if len(text) + 2 > left - 500:
            names.append(heading)
            continue
        parts.append(text)
        left -= len(text) + 2
    if names:
        parts.append(escaped(f"Left out, as a comment has room for no more: {', '.join(names)}"[:400]))
    return "\n\n".join(parts) + "\n"


def _parts(answered: Answered) -> Iterator[tuple[str, str]]:
    first, *more = [as_typed(text) for text in opening_of(answered)] or [""]
    if first:
        yield "summary", f"**{escaped(first, 2000)}**"
    if more:
        yield "summary", "\n".join(f"- {escaped(sentence, 2000)}" for sentence in more)
    shown = 0
    for section in shown_sections(answered):
        for table in section.tables:
            yield table.heading, _folded(table, is_open=not shown)
            shown += 1
        for sentence in section.sentences:
            yield "note", f"<sub>{escaped(as_typed(sentence), 2000)}</sub>"
    for key, reason in answered.unavailable.items():
        yield key, escaped(f"No {key.replace('_', ' ')}: {as_typed(reason)}.", 2000)


def _folded(table: ShownTable, *, is_open: bool) -> str:
    """A table below a heading that opens it."""
    heading = in_html(table.heading)
    return f"<details{' open' * is_open}><summary>{heading}</summary>\n\n{_table(table)}\n\n</details>"


def _table(table: ShownTable) -> str:
    rows = table.rows.head(ROWS)
    lines = [
        [escaped(column.title or present.title(column.name)) for column in table.columns],
        ["---:" if rows.schema[column.name].is_numeric() else "---" for column in table.columns],
    ]
    cells = [[present.cell(name, value) for value in rows[name].to_list()] for name in rows.columns]
    lines += [[escaped(text) for text in row] for row in zip(*cells, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str, longest: int = LONGEST) -> str:
    """A text that Markdown shows as it is, on one line: no markup, mention, link or cell ends in it.

    Examples:
        >>> escaped("a|b `c` <d>")
        'a\\\\|b \\\\`c\\\\` &lt;d&gt;'
    """
    plain = _SPECIAL.sub(r"\\\1", _line(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return _LINKS.sub(lambda found: found[0] + _HIDDEN, plain)


def in_html(text: str, longest: int = LONGEST) -> str:
    """A text inside an HTML element, in which Markdown has no meaning."""
    return _LINKS.sub(lambda found: found[0] + _HIDDEN, html.escape(_line(text, longest)))


def _line(text: str, longest: int) -> str:
    plain = present.printable(" ".join(text.split()))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
