"""`stepscope sql`: any question to the tables."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope.cli.options import Debug, Format, FormatOption, NoStore, OnePath, Ranks, Steps


def sql(
    path: OnePath,
    query: Annotated[str, typer.Argument(help="A SELECT over the tables; see `stepscope info` for their names.")],
    form: FormatOption = Format.TABLE,
    ranks: Ranks = None,
    steps: Steps = None,
    no_store: NoStore = False,
    debug: Debug = False,  # noqa: ARG001 - read from the command line by main()
) -> None:
    """Run a SQL query over the tables of a run."""
    import polars as pl

    from stepscope.cli.opening import opened
    from stepscope.cli.output import print_frame
    from stepscope.errors import StepscopeError
    from stepscope.tables import TABLES

    run = opened([path], ranks=ranks, steps=steps, use_store=not no_store)
    # A table that no rank has is there and empty, so that one query serves every source.
    frames = {n: run.table(n) if run.has(n) else pl.LazyFrame(schema=t.schema) for n, t in TABLES.items()}
    context = pl.SQLContext(frames)
    try:
        result = context.execute(query, eager=True)
    except pl.exceptions.PolarsError as error:
        named = [t for t in TABLES.values() if t.name in query]
        columns = "; ".join(f"{t.name}({', '.join(c.name for c in t.columns)})" for t in named)
        hint = f"Columns: {columns}" if columns else f"Tables: {', '.join(TABLES)}"
        raise StepscopeError(f"the query failed: {error}. {hint}") from error
    print_frame(result, form)
