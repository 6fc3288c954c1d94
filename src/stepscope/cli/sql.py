"""`stepscope sql`: any question to the tables."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from stepscope.cli.formatted import formatted
from stepscope.cli.options import Format, NoStore, OnePath, OneRun, Ranks, Steps
from stepscope.errors import StepscopeError

_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_ALLOWED = re.compile(r"[\s(]*(select|with|show\s+tables)\b", re.IGNORECASE)

_VALID_COLUMNS = re.compile(r"; valid columns: \[.*\]$")
"""Polars' own list; the hint names the columns by table."""


@formatted
def sql(
    path: OnePath,
    query: Annotated[str, typer.Argument(help="A SELECT over the tables; SHOW TABLES lists them.", metavar="QUERY")],
    *,
    run: OneRun = None,
    ranks: Ranks = None,
    steps: Steps = None,
    no_store: NoStore = False,
    form: Format,
    wide: bool,
) -> None:
    """Run a SQL query over the tables of a run."""
    import polars as pl

    from stepscope.cli.opening import opened
    from stepscope.cli.output import print_frame
    from stepscope.tables import TABLES

    if not _ALLOWED.match(_COMMENTS.sub(" ", query)):
        words = " ".join(query.split()[:2]) or "an empty query"
        raise StepscopeError(f"{words}: only SELECT, WITH ... SELECT and SHOW TABLES can be asked. {_hint(query)}")
    chosen = opened([path], run=run, ranks=ranks, steps=steps, use_store=not no_store)
    # A table that no rank has is there and empty, so that one query serves every source.
    frames = {n: chosen.table(n) if chosen.has(n) else pl.LazyFrame(schema=t.schema) for n, t in TABLES.items()}
    context = pl.SQLContext(frames)
    try:
        result = context.execute(query, eager=True)
    except pl.exceptions.PolarsError as error:
        raise StepscopeError(f"the query failed: {_first_line(error)}. {_hint(query)}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Polars raises where it has a fault of its own
            raise
        raise StepscopeError(f"the query failed inside Polars: {_first_line(error)}. Try to put it simpler") from error
    print_frame(result, form, wide=wide)


def _first_line(error: BaseException) -> str:
    """What went wrong, without the query plan that Polars shows after it."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return _VALID_COLUMNS.sub("", line).rstrip(".")


def _hint(query: str) -> str:
    """The columns of the tables that a query names; the names of all tables if it names none."""
    from stepscope.tables import TABLES

    words = set(re.findall(r"\w+", query.lower()))
    columns = [f"{t.name}({', '.join(c.name for c in t.columns)})" for t in TABLES.values() if t.name in words]
    return f"Columns: {'; '.join(columns)}" if columns else f"Tables: {', '.join(TABLES)}"
