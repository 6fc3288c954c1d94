"""The columns of a file: by its header, or, for a file that begins with data, by the order in which its writer writes.

The first row is judged by its content. A header names columns that are known, or at least holds no number; a first row
with numbers and without any known name is data. The writer's order is taken if it has as many columns, and numbers
where it needs them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import FileLayout, bare_key, column_key

HEADER_LIMIT = 1 << 20
_SHOWN = 80
_MARK = b"\xef\xbb\xbf"
_MOST_BLANK = 16
"""Blank lines above the first row that are passed over."""
_ABSENT = ("", "-", "N/A", "NA", "nan")


@dataclass(frozen=True)
class Heading:
    """What stands above the rows.

    Args:
        headers: The name of each column: as the file has it, or as its writer calls it elsewhere; empty if unknown.
        line: The same as a line of text.
        start: Where the rows begin, in bytes.
        width: Columns of the first row.
        is_stated: Whether the file has a header. An empty file is taken to have one.
    """

    headers: list[str]
    line: bytes
    start: int
    width: int
    is_stated: bool = True


def header_of(path: Path, layout: FileLayout | None = None) -> list[str]:
    """The headers of a CSV file; none if it cannot be opened, which the one who reads its rows reports.

    `layout` gives those of a file without a header.
    """
    try:
        return heading_of(path, layout or FileLayout(())).headers
    except OSError:
        return []


def heading_of(path: Path, layout: FileLayout) -> Heading:
    """The heading of a CSV file.

    Raises:
        OSError: If it cannot be opened.
    """
    line, start = _first_line(path)
    row = _cells(line)
    if not is_data(row, layout):
        return Heading(row, line, start + len(line), len(row))
    order = _order(row, layout)
    headers = [*order, *[""] * (len(row) - len(order))] if order else []
    return Heading(headers, (",".join(headers) + "\n").encode(), start, len(row), is_stated=False)


def raw_rows(path: Path, layout: FileLayout) -> Iterator[list[str]]:
    """The rows below the heading as text, as far as they can be read and separated."""
    with suppress(csv.Error, OSError), path.open("rb") as file:
        file.seek(heading_of(path, layout).start)
        yield from csv.reader(line.decode("utf-8", "replace") for line in file)


def report_order(path: Path, heading: Heading, sink: Sink) -> None:
    """Report a file without a header, and what was made of it."""
    if heading.is_stated:
        return
    if heading.headers:
        problem = "has no header; its columns are read in the usual order of this file"
        sink.issue("note", path, problem, "Nothing to do if the figures look right.", place="line 1")
    else:
        problem = f"has no header, and its {heading.width} columns are not in a known order"
        remedy = "Add the header as its first line, or export the profile again."
        sink.issue("error", path, problem, remedy, place="line 1")


def is_data(row: list[str], layout: FileLayout) -> bool:
    """Whether a first row is data: it holds a number, and no name of a column."""
    named = any(bare_key(column_key(cell)) in layout.known for cell in row if cell.strip())
    return not named and bool(layout.fields) and any(_is_number(cell) for cell in row)


def _first_line(path: Path) -> tuple[bytes, int]:
    """The first line that is not blank, without a byte order mark, and where it begins."""
    with path.open("rb") as file:
        for _ in range(_MOST_BLANK):
            start = file.tell()
            line = file.readline(HEADER_LIMIT)
            text = line.removeprefix(_MARK)
            if text.strip() or not line:
                return text, start + len(line) - len(text)
    return b"", 0


def _cells(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    try:
        return next(csv.reader([text]), []) if text else []
    except csv.Error:  # a field longer than any, so no header
        return [text[:_SHOWN]]


def _order(row: list[str], layout: FileLayout) -> tuple[str, ...]:
    """The writer's order that a first row fits; empty if it fits none."""
    filled = max((at for at, cell in enumerate(row, 1) if cell.strip()), default=0)
    for order in layout.orders:
        more = filled - len(order)
        fits = filled <= len(order) <= len(row) or (layout.repeats and more > 0 and more % layout.repeats == 0)
        if fits and _has_numbers(row, order, layout):
            return order
    return ()


def _has_numbers(row: list[str], order: tuple[str, ...], layout: FileLayout) -> bool:
    """Whether a row has numbers in the columns that need them."""
    for field in layout.fields:
        at = next((order.index(name) for name in field.headers if name in order), None)
        if field.required and at is None:
            return False
        if at is None or field.kind in ("text", "shape", "device"):
            continue
        cell = row[at].strip()
        if not _is_number(cell) and (field.required or cell not in _ABSENT):
            return False
    return True


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False
