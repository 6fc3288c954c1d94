"""`stepscope pack`: what was read of recordings, in small files for analysis on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.formatted import chosen_form
from stepscope.cli.options import AsJson, Debug, FormatOption, NoStore, Paths
from stepscope.cli.progress import ProgressBar


def pack(
    paths: Paths,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for the files.", metavar="DIR")],
    no_store: NoStore = False,
    form: FormatOption = None,
    json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Read recordings and write what was read to small files, to analyse them on another machine.

    The files take the place of the recordings: `stepscope analyze DIR` gives the same answers there, with the same
    version of stepscope. `collect --summaries` runs this command on each host.
    """
    import polars as pl

    from stepscope import present
    from stepscope.cli.notes import note
    from stepscope.cli.output import Output, print_document, print_frame
    from stepscope.export.packing import pack as packed_into
    from stepscope.pages.shown_table import undeclared

    chosen = chosen_form(form, json=json, csv=False)
    with ProgressBar() as progress:
        done = packed_into(paths, output, use_store=not no_store, progress=progress.watch)
    rows = [(one.file, one.size_bytes, one.input_bytes) for one in done.packed]
    schema = {"file": pl.String, "size_bytes": pl.Int64, "input_bytes": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if chosen == "json":
        unread = [{"file": one.file, "problem": one.problem, "remedy": one.remedy} for one in done.unread]
        print_document({"output": str(output), "packed": frame, "unread": unread})
        return
    if chosen == "csv":
        print_frame(frame, "csv")
    else:
        total, before = sum(row[1] for row in rows), sum(row[2] for row in rows)
        held = present.plural(frame.height, "recording")
        heading = f"{output}: {held}, {present.size(total)} instead of {present.size(before)}"
        Output().table(undeclared(frame, heading))
    for one in done.unread:
        note(f"{one.file}: {one.problem}. {one.remedy}")
