"""A report as Markdown, for a pull request: verdict, problems, and the times of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stepscope import present
from stepscope._version import __version__
from stepscope.advice.messages import fill
from stepscope.report.markdown import escaped, in_html
from stepscope.report.problems import cost_cell, saving_cell
from stepscope.report.report_words import CONFIDENCE_SHORT, WORDS
from stepscope.report.targets import MARK

if TYPE_CHECKING:
    from stepscope.pages.shown_table import ShownTable
    from stepscope.report.contents import Contents
    from stepscope.report.problems import Problem

DETAILED = 10
"""Problems with cause and action; of the others there is one line."""

ROWS = 16
"""Rows of the table of ranks."""

LONGEST = 600
"""Characters of a text."""

_SIGNS = {"high": "🔴", "medium": "🟡", "low": "🟢"}


def to_markdown(found: Contents) -> str:
    """The report as one text."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Contents) -> Iterator[str]:
    word = {name: text.of(found.language) for name, text in WORDS.items()}
    yield f"<!-- {MARK} -->"
    yield f"## {word['report']}{word['colon']}{plain(found.title)}"
    yield ""
    yield plain((" " if found.language == "en" else "").join(found.verdict))
    yield ""
    if found.alert:
        yield f"⚠️ {plain(found.alert)}"
        yield ""
    if found.problems:
        yield f"### {word['problems']}"
        yield ""
        titles = ["#", "priority", "category", "problem", "saving", "share", *["cost"] * found.has_costs]
        yield _row([word.get(name, name) for name in titles])
        yield _row(["--:", "---", "---", "---", *["--:"] * (len(titles) - 4)])
        for problem in found.problems:
            yield _row(_cells(problem, found)[: len(titles)])
        yield ""
        for problem in found.problems[:DETAILED]:
            yield from _details(problem, found, word)
    else:
        yield word["no_problems"]
        yield ""
    yield from _ranks(found)
    yield f"<sub>{in_html(fill(WORDS['made'], {'version': __version__}, found.language))}</sub>"


def _cells(problem: Problem, found: Contents) -> list[str]:
    finding = problem.finding
    return [
        str(problem.number),
        f"{_SIGNS[finding.severity]} {plain(problem.priority)}",
        plain(problem.category),
        plain(problem.words.summary),
        plain(saving_cell(problem, found.language)),
        f"{finding.saving_ratio:.1%}" if problem.saves else "-",
        cost_cell(problem),
    ]


def _details(problem: Problem, found: Contents, word: dict[str, str]) -> Iterator[str]:
    yield f"<details><summary>{problem.number}. {in_html(problem.words.summary, LONGEST)}</summary>"
    yield ""
    between = "；" if found.language == "zh" else "; "
    known = [
        (word["cause"], problem.words.cause),
        (word["action"], problem.words.action),
        (word["saving"], between.join(filter(None, (problem.words.saving, problem.daily)))),
        *((fact.name, fact.text) for fact in problem.places),
        (word["code"], between.join(problem.finding.code)),
        (word["confidence"], CONFIDENCE_SHORT[problem.finding.confidence].of(found.language)),
    ]
    for name, text in known:
        if text:
            yield f"- **{plain(name)}**{word['colon']}{plain(text)}"
    yield ""
    yield "</details>"
    yield ""


def _ranks(found: Contents) -> Iterator[str]:
    """The mean step and the times of ranks, as the first part shows them."""
    tables = [table for part in found.modules[0].parts[:1] for item in part.items[:2] for table in item.tables[:1]]
    for table in tables:
        yield f"### {plain(table.name)}"
        yield ""
        yield _row([plain(column.title) for column in table.columns])
        yield _row(["--:" if table.rows.schema[column.name].is_numeric() else "---" for column in table.columns])
        yield from _rows(table)
        yield ""


def _rows(table: ShownTable) -> Iterator[str]:
    names = table.rows.columns
    for row in table.rows.head(ROWS).iter_rows():
        yield _row([plain(present.cell(name, value)) for name, value in zip(names, row, strict=True)])
    found = table.rows.height if table.found is None else table.found
    if found > ROWS:
        yield _row(["…", *[""] * (len(names) - 1)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def plain(text: str) -> str:
    """A text of a finding that Markdown shows as it is."""
    return escaped(text, LONGEST)
