"""Text and tables for the terminal, for spreadsheets and for programs."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl
from rich.console import Console

from stepscope import present
from stepscope.cli.bars import bars
from stepscope.cli.layout import Column, lay_out, lay_out_whole
from stepscope.cli.options import Format

if TYPE_CHECKING:
    from stepscope.advice.units import Unit

TEXT_WIDTH = 120
"""Longer lines of prose are hard to read, however wide the terminal is."""

ALWAYS = 2
"""The most important columns of a table, which never go."""

BAR_NARROW, BAR_WIDE, BAR_ROOM = 8, 16, 100
"""Cells of the longest bar, and from how many cells of a line on it is the longer one."""

_IN_ASCII = str.maketrans({"─": "-", "…": "~"})

PATHS = ("input", "file", "path")
"""Columns whose end tells one value from the next."""


_FORMULA = r"^[=+\-@\t\r]"
"""How a text begins that a spreadsheet would run."""


class Output(Console):
    """Standard output. Names in what is printed are never taken for markup, and a closed pipe is an error.

    Args:
        wide: Tables have all their columns and whole names, however wide they become.
        unit: What steps are called in tables and their headings.
    """

    def __init__(self, *, wide: bool = False, unit: Unit | None = None) -> None:
        super().__init__(markup=False, emoji=False, highlight=False)
        self._wide = wide
        self._unit = unit

    def words(self, text: str) -> str:
        """A text about steps, in words for what they are."""
        return text if self._unit is None else self._unit.words(text)

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
        self.print(text if self._draws else text.replace("…", "..."), style=style, soft_wrap=True)

    def table(
        self,
        frame: pl.DataFrame,
        heading: str = "",
        *,
        raw: bool = False,
        whole: bool = False,
        keeps: Sequence[str] = (),
        titles: Mapping[str, str] | None = None,
        bar: str = "",
    ) -> None:
        """Print a frame: a row is a line, and a narrow terminal shows the most important columns.

        Args:
            frame: The rows.
            heading: A line above it.
            raw: Keep names and values as they are, without titles and units; all columns stay.
            whole: Lose nothing: where it is too wide, fold texts instead of cutting them.
            keeps: Columns that stay longest, the most important first; the first two of them always.
            titles: Titles that are not the usual ones.
            bar: Column whose values a terminal shows as bars, too.
        """
        if self._unit is not None:
            frame = frame.drop(self._unit.counts, strict=False)
        columns = [_column(frame, name, raw=raw) for name in frame.columns]
        if not raw:
            named = titles or {}
            columns = [
                replace(
                    c,
                    title=self.words(named.get(name, c.title)),
                    cells=[self.words(cell) for cell in c.cells] if name == "phase" else c.cells,
                )
                for c, name in zip(columns, frame.columns, strict=True)
            ]
            columns = _ordered(columns, frame, keeps)
        if bar in frame.columns and self.room is not None:
            columns.insert(frame.columns.index(bar) + 1, self._bars(frame[bar].to_list(), len(columns)))
        room = None if self._wide else self.room
        laid = (lay_out_whole if whole or self._wide else lay_out)(columns, room)
        if heading:
            self.say(self.words(heading), "bold")
        for line in laid.header:
            self._line(line, "bold")
        if laid.rule:
            self._line(laid.rule, "dim")
        if laid.body:
            self._line("\n".join(laid.body))
        dropped = [title for title in laid.dropped if title]
        if dropped:
            self.say(f"… {', '.join(dropped)}: shown with --wide", "dim")

    def _bars(self, values: list[float | None], place: int) -> Column:
        width = BAR_WIDE if (self.room or TEXT_WIDTH) >= BAR_ROOM else BAR_NARROW
        return Column("", bars(values, width, blocks=self._draws), expendable=place)

    @property
    def _draws(self) -> bool:
        """Whether the terminal's encoding has more than ASCII."""
        return self.encoding.startswith("utf")

    def _line(self, text: str, style: str | None = None) -> None:
        self.out(text if self._draws else text.translate(_IN_ASCII), style=style, highlight=False)


def _ordered(columns: list[Column], frame: pl.DataFrame, keeps: Sequence[str]) -> list[Column]:
    """The columns with the order in which they may go: least important figures, then from the right, then `keeps`."""
    names = frame.columns
    stays = [name for name in keeps if name in names] or names[:ALWAYS]
    texts = {name for name, dtype in frame.schema.items() if dtype == pl.String or dtype.is_nested()}
    early = [n for n in names if n not in stays and present.is_expendable(n, names, is_text=n in texts)]
    late = [name for name in reversed(names) if name not in early and name not in stays]
    order = [*sorted(early, key=present.EXPENDABLE.index), *late, *reversed(stays[ALWAYS:])]
    return [
        replace(column, expendable=order.index(name) if name in order else None)
        for column, name in zip(columns, names, strict=True)
    ]


def _column(frame: pl.DataFrame, name: str, *, raw: bool) -> Column:
    dtype = frame.schema[name]
    values = frame[name].to_list()
    texts = ["" if v is None else str(v) for v in values] if raw else [present.cell(name, v) for v in values]
    is_text = dtype == pl.String or dtype.is_nested()
    return Column(
        present.printable(name if raw else present.title(name)),
        [present.printable(text) for text in texts],
        right=dtype.is_numeric(),
        cut=None if not is_text else "start" if name in PATHS else "end",
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
