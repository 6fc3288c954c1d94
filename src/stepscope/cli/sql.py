"""`stepscope sql`: any query on the tables."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope.cli.formatted import formatted
from stepscope.cli.options import Format, NoStore, OnePath, OneRun, Ranks, Steps


@formatted
def sql(
    path: OnePath,
    query: Annotated[
        str, typer.Argument(help="SELECT statement over the tables; SHOW TABLES lists them.", metavar="QUERY")
    ],
    *,
    run: OneRun = None,
    ranks: Ranks = None,
    steps: Steps = None,
    no_store: NoStore = False,
    form: Format,
    wide: bool,
) -> None:
    """Run an SQL query on the tables of a run."""
    from stepscope.cli.opening import opened
    from stepscope.cli.output import print_frame

    chosen = opened([path], run=run, ranks=ranks, steps=steps, use_store=not no_store)
    print_frame(chosen.query(query), form, wide=wide)
