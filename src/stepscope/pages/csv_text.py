"""Answers as CSV that is safe to open in a spreadsheet, the same from the command line and from the server."""

from __future__ import annotations

import re

import polars as pl

_FORMULA = r"^[=+\-@\t\r]"
"""How a text begins that a spreadsheet would run."""


def csv_text(frame: pl.DataFrame, *, header: bool = True) -> str:
    """A frame as CSV that is safe to open in a spreadsheet, with or without a line of names.

    Lists are joined with spaces. A text that a spreadsheet would run as a formula gets an apostrophe in front, as OWASP
    recommends against CSV injection: names in a trace come from anywhere.
    """
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    flat = frame.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists)
    runs = pl.col(pl.String).str.contains(_FORMULA)
    guarded = flat.with_columns(pl.when(runs).then("'" + pl.col(pl.String)).otherwise(pl.col(pl.String)).name.keep())
    titles = {name: f"'{name}" for name in flat.columns if re.match(_FORMULA, name)}
    return guarded.rename(titles).write_csv(include_header=header)
