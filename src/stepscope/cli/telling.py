"""Printing the tables of a command about one rank: for people, as JSON, as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analysis.listing import Page, listed
from stepscope.cli.asking import View
from stepscope.cli.moments import since_start
from stepscope.cli.options import Format
from stepscope.cli.output import Output, print_document, print_frame
from stepscope.errors import StepscopeError
from stepscope.present import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.cli.asking import Request, Table
    from stepscope.run import Run

    Asked = Sequence[tuple[Table, pl.DataFrame | str]]

ROWS = 20
"""Rows of a table in a terminal where nothing else is asked for."""


def print_tables(run: Run, request: Request, asked: Asked) -> None:
    """Every table with its heading and units, then why others are not there and what could not be read."""
    from dataclasses import replace

    from stepscope.advice.units import unit_of
    from stepscope.cli.troubles import show_troubles
    from stepscope.report.counting import counted
    from stepscope.report.sentences import spoken

    out = Output(wide=request.wide, unit=run.analyse(unit_of, otherwise="step"))
    if marked_as := counted(run):
        out.say(spoken(marked_as))
        out.say("")
    listing = replace(request.listing, top=request.listing.top or ROWS)
    for table, answer in asked:
        if isinstance(answer, str):
            continue
        page = listed(answer, listing)
        rows, since = since_start(page.rows, answer, run.ranks[0].facts)
        for view in _views(table, rows):
            shown = _shown(view, table, rows, wide=request.wide)
            heading = _heading(view.heading + _all_steps(table, answer), table, page, shown.height, request, since)
            if page.found:
                out.table(shown, heading, keeps=table.keeps, titles=table.titles, bar=table.bar)
            else:
                out.say(out.words(heading), "bold")
            out.say("")
        sentences = list(table.says(answer)) if table.says else []
        for sentence in sentences:
            out.say(out.words(sentence))
        if sentences:
            out.say("")
    for reason, questions in _lacking(asked).items():
        out.say(f"{', '.join(questions)}: {reason}", "dim", indent=2)
    show_troubles(out, run)


def _views(table: Table, rows: pl.DataFrame) -> Sequence[View]:
    """The tables that people see of it: those of which something is known."""
    views = [
        view
        for view in table.views
        if (not view.needs or any(rows[name].count() for name in view.needs if name in rows.columns))
        and (view.split is None or view.split in rows["split"])
    ]
    return views or [View(table.heading)]


def _shown(view: View, table: Table, rows: pl.DataFrame, *, wide: bool) -> pl.DataFrame:
    """The rows and columns of a view that people see."""
    if view.split is not None:
        rows = rows.filter(pl.col("split").is_null() | (pl.col("split") == view.split)).drop("split")
    left_out = {"rank", *view.without, *(() if wide else table.hidden)}
    return _told(
        rows.select(name for name in rows.columns if name not in left_out and (not view.shows or name in view.shows))
    )


def _lacking(asked: Asked) -> dict[str, list[str]]:
    """Each reason why there is no answer, and the questions that have none because of it."""
    reasons: dict[str, list[str]] = {}
    for table, answer in asked:
        if isinstance(answer, str):
            reasons.setdefault(answer, []).append(table.question)
    return reasons


def _told(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without columns in which nothing is known, and lists as texts."""
    known = rows.select(name for name in rows.columns if rows[name].count())
    lists = [name for name, dtype in known.schema.items() if isinstance(dtype, pl.List)]
    return known.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(", ") for name in lists)


def _all_steps(table: Table, answer: pl.DataFrame) -> str:
    """Says that an answer is of all steps although some were chosen: which steps its rows are of is not known."""
    if table.options.get("chosen") is None:
        return ""
    column = next((name for name in ("step", "steps") if name in answer.columns), None)
    return ", all steps" if column is not None and not answer[column].count() else ""


def _heading(what: str, table: Table, page: Page, height: int, request: Request, since: str) -> str:
    """What the table is, from where its times count, and which part of it is shown."""
    of_step = f", step {request.step}" if request.step is not None and not table.every_step else ""
    part = plural(height, "row")
    if page.rows.height < page.found:
        first = (page.page - 1) * (request.listing.top or ROWS) + 1
        part = f"rows {first}-{first + page.rows.height - 1} of {page.found}"
    return f"{what}{of_step}{since}: {part}"


def print_json(run: Run, request: Request, asked: Asked) -> None:
    """One object: the tables by name, how many rows each has, and the reasons for those that are not there."""
    found: dict[str, Any] = {"run": run.name, "rank": run.ranks[0].rank, "step": request.step}
    pages = {table.question: listed(answer, request.listing) for table, answer in asked if not isinstance(answer, str)}
    found["rows"] = {question: page.found for question, page in pages.items()}
    found["tables"] = {question: _rows(page.rows) for question, page in pages.items()}
    found["unavailable"] = {table.question: answer for table, answer in asked if isinstance(answer, str)}
    found["issues"] = _rows(run.issues.filter(pl.col("severity") != "note").drop("rank"))
    print_document(found)


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, which has no NaN and no infinity."""
    floats = pl.col(pl.Float64)
    return frame.with_columns(pl.when(floats.is_finite()).then(floats)).to_dicts()


def print_csv(run: Run, request: Request, asked: Asked) -> None:  # noqa: ARG001 - one signature for all forms
    """The one table that CSV can hold; the rank is a column of it."""
    (_, answer) = asked[0]
    if isinstance(answer, str):
        raise StepscopeError(answer)
    print_frame(listed(answer, request.listing).rows, Format.CSV)
