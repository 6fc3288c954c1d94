"""`stepscope sql`: any query on the tables."""

from __future__ import annotations

from typing import Annotated

from stepscope.cli.formatted import formatted
from stepscope.cli.notes import note_warnings
from stepscope.cli.options import EngineOption, Format, NoStore, OnePath, OneRun, Ranks, Steps, argument


@formatted
def sql(
    path: OnePath,
    query: Annotated[str, argument("QUERY", "SELECT statement over the tables; SHOW TABLES lists them.")],
    *,
    run: OneRun = None,
    ranks: Ranks = None,
    steps: Steps = None,
    no_store: NoStore = False,
    engine: EngineOption = None,
    form: Format,
    wide: bool,
) -> None:
    """Run an SQL query on the tables of a run."""
    from stepscope.cli.opening import opened
    from stepscope.cli.output import print_frame

    chosen = opened([path], run=run, ranks=ranks, steps=steps, use_store=not no_store, engine=engine)
    print_frame(chosen.query(query), form, wide=wide)
    note_warnings(chosen.warnings)
