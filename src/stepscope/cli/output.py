"""Tables for the terminal, for spreadsheets and for programs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stepscope import present
from stepscope.cli.options import Format

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.table import Table

NAME_WIDTH = 48
"""Longer names are cut in the terminal; `--json` and `sql` give them whole."""


def console() -> Console:
    """Standard output; without a terminal wide enough for the tables instead of wrapped at 80."""
    from rich.console import Console

    wide = Console()
    return wide if wide.is_terminal else Console(width=max(wide.width, 140))


def rich_table(frame: pl.DataFrame, heading: str, *, raw: bool = False) -> Table:
    """A frame as a Rich table; `raw` keeps names and values as they are."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(heading), title_justify="left", title_style="bold", header_style="bold", expand=False)
    for column, dtype in frame.schema.items():
        right = dtype.is_numeric() if raw else present.is_number(column)
        table.add_column(
            escape(column if raw else present.title(column)),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=None if right else NAME_WIDTH,
        )
    for row in frame.iter_rows(named=True):
        cells = (("" if v is None else str(v)) if raw else present.cell(c, v) for c, v in row.items())
        table.add_row(*(escape(text) for text in cells))
    return table


def print_frame(frame: pl.DataFrame, form: Format, heading: str = "") -> None:
    """Print any frame in the asked form, with its own column names."""
    if form is Format.CSV:
        sys.stdout.write(_flat(frame).write_csv())
    elif form is Format.JSON:
        sys.stdout.write(frame.write_json() + "\n")
    else:
        console().print(rich_table(frame, heading, raw=True))


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """CSV has no lists: join them with spaces."""
    import polars as pl

    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    return frame.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists)
