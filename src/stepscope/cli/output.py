"""Text and tables for the terminal, for spreadsheets and for programs."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from typing import Any, NoReturn

import polars as pl
from rich.console import Console

from stepscope import present
from stepscope.cli.layout import Column, lay_out, lay_out_whole
from stepscope.cli.options import Format

TEXT_WIDTH = 120
"""Longer lines of prose are hard to read, however wide the terminal is."""

PATHS = ("input", "file", "path")
"""Columns whose end tells one value from the next."""


_FORMULA = r"^[=+\-@\t\r]"
"""How a text begins that a spreadsheet would run."""


class Output(Console):
    """Standard output. Names in what is printed are never taken for markup, and a closed pipe is an error.

    Args:
        wide: Tables have all their columns and whole names, however wide they become.
    """

    def __init__(self, *, wide: bool = False) -> None:
        super().__init__(markup=False, emoji=False, highlight=False)
        self._wide = wide

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command line's `main`."""
        raise BrokenPipeError

    @property
    def room(self) -> int | None:
        """Cells a line has; None where it may be as long as it needs: in files and pipes."""
        return self.width if self.file.isatty() else None

    def say(self, text: str, style: str | None = None, *, indent: int = 0) -> None:
        """Print a sentence, wrapped between words in a terminal.

        Args:
            text: One line.
            style: Its style.
            indent: Spaces before the lines after the first.
        """
        text = present.printable(text)
        if self.room is not None:
            width = max(min(self.room, TEXT_WIDTH), indent + 20)
            text = textwrap.fill(
                text,
                width,
                subsequent_indent=" " * indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        self.print(text, style=style, soft_wrap=True)

    def table(self, frame: pl.DataFrame, heading: str = "", *, raw: bool = False, whole: bool = False) -> None:
        """Print a frame.

        Args:
            frame: The rows.
            heading: A line above it.
            raw: Keep names and values as they are, without titles and units.
            whole: Lose nothing: where it is too wide, fold texts instead of cutting them.
        """
        columns = [_column(frame, name, raw=raw) for name in frame.columns]
        room = None if self._wide else self.room
        laid = (lay_out_whole if whole or self._wide else lay_out)(columns, room)
        if heading:
            self.say(heading, "bold")
        for line in laid.header:
            self.out(line, style="bold", highlight=False)
        if laid.rule:
            self.out(laid.rule, style="dim", highlight=False)
        if laid.body:
            self.out("\n".join(laid.body), highlight=False)
        if laid.dropped:
            self.say(f"… {', '.join(laid.dropped)}: shown with --wide", "dim")


def _column(frame: pl.DataFrame, name: str, *, raw: bool) -> Column:
    dtype = frame.schema[name]
    values = frame[name].to_list()
    texts = ["" if v is None else str(v) for v in values] if raw else [present.cell(name, v) for v in values]
    is_text = dtype == pl.String or dtype.is_nested()
    may_go = not raw and present.is_expendable(name, frame.columns, is_text=is_text)
    expendable = present.EXPENDABLE.index(name) if may_go else None
    return Column(
        present.printable(name if raw else present.title(name)),
        [present.printable(text) for text in texts],
        right=dtype.is_numeric(),
        cut=None if not is_text else "start" if name in PATHS else "end",
        expendable=expendable,
    )


def print_frame(frame: pl.DataFrame, form: Format, heading: str = "", *, wide: bool = False) -> None:
    """Print any frame in the asked form, with its own column names and whole values."""
    if form is Format.TABLE:
        Output(wide=wide).table(frame, heading, raw=True, whole=True)
        return
    text = csv_text(frame) if form is Format.CSV else frame.write_json() + "\n"
    # What a program reads stays as it is; a terminal must not obey it.
    sys.stdout.write(present.printable(text, keep="\n") if sys.stdout.isatty() else text)


def print_document(found: dict[str, Any]) -> None:
    """Print an object as JSON, which has no NaN and no infinity."""
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    sys.stdout.write((present.printable(text) if sys.stdout.isatty() else text) + "\n")


def csv_text(frame: pl.DataFrame) -> str:
    """A frame as CSV that is safe to open in a spreadsheet.

    Lists are joined with spaces. A text that a spreadsheet would run as a formula gets an apostrophe in front, as OWASP
    recommends against CSV injection: names in a trace come from anywhere.
    """
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    flat = frame.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists)
    runs = pl.col(pl.String).str.contains(_FORMULA)
    guarded = flat.with_columns(pl.when(runs).then("'" + pl.col(pl.String)).otherwise(pl.col(pl.String)).name.keep())
    titles = {name: f"'{name}" for name in flat.columns if re.match(_FORMULA, name)}
    return guarded.rename(titles).write_csv()
