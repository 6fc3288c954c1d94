"""Text files of whole numbers, one line a record, without quotes or commas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.side_files import AGAIN

_LARGEST = 9_000_000_000_000
"""No count, no ms and no us since a machine's start is larger; times 1e6 it still fits an int64."""
_CUT = "cut"
"""Marks a line that is not a record."""


@dataclass(frozen=True)
class NumberLines:
    """The numbers of a file's sound lines, the first words of these lines, and the lines that are damaged.

    Args:
        values: Whole numbers, one column a field; row by row as in the file.
        words: The word before them, if the file has one.
        damaged: Number of lines that are not such a record.
        first: The first of these, from 1.
        is_empty: Whether the file holds nothing.
    """

    values: pl.DataFrame
    words: pl.Series
    damaged: int
    first: int | None
    is_empty: bool


def numbers_of(file: Path, count: int, *, word: bool = False) -> NumberLines:
    """Read lines of `count` whole numbers, with a word before them if `word`.

    The first line is a header if it has no number of its own: some files of a kind have one, and others do not. None
    is negative. A last line without an end was cut, so its last number may be another one.

    Raises:
        OSError: If the file cannot be read.
    """
    text = file.read_bytes().decode("utf-8-sig", "replace")
    whole, _, cut = text.rpartition("\n")
    listed = [*whole.splitlines(), _CUT] if cut.strip() else whole.splitlines()
    lines = pl.Series("line", listed, dtype=pl.String).str.strip_chars().to_frame()
    lines = lines.with_row_index("number", 1).filter(pl.col("line") != "")
    if lines.height and _is_header(lines["line"][0]):
        lines = lines.slice(1)
    pattern = r"^" + (r"(\S+)\s+" if word else r"()") + r"\s+".join([r"(\d{1,18})"] * count) + r"$"
    fields = lines.select("number", found=pl.col("line").str.extract_groups(pattern)).unnest("found")
    numbers = fields.with_columns(pl.col(f"{at}").cast(pl.Int64, strict=False) for at in range(2, count + 2))
    sound = pl.all_horizontal(pl.col(f"{at}").is_between(0, _LARGEST) for at in range(2, count + 2))
    numbers = numbers.with_columns(sound=sound.fill_null(False))
    damaged = numbers.filter(~pl.col("sound"))["number"]
    kept = numbers.filter("sound")
    first = int(damaged[0]) if len(damaged) else None
    values = kept.select(f"{at}" for at in range(2, count + 2))
    return NumberLines(values, kept["1"], len(damaged), first, not text.strip())


def _is_header(line: str) -> bool:
    """Whether a first line names columns: it has several words, and no digit."""
    return len(line.split()) > 1 and not any(letter.isdigit() for letter in line)


def report_damaged(file: Path, lines: NumberLines, sink: Sink) -> None:
    """Tell of a file without anything in it, and of lines that are left out."""
    if lines.is_empty:
        sink.issue("warning", file, "is empty", "Profile for longer, or copy the file again; everything else is read.")
    elif lines.values.is_empty() and not lines.damaged:
        problem = "has a header but no rows"
        sink.issue("warning", file, problem, "Profile for longer, or copy the file again; everything else is read.")
    if lines.damaged:
        problem = f"{lines.damaged} lines are damaged and left out"
        sink.issue("warning", file, problem, AGAIN, place=f"first: line {lines.first}", lost=lines.damaged)
