"""Reading one CSV file into a frame with our columns and units."""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.decoding import decode, unreadable_cells
from stepscope.sources.csv_files.heading import HEADER_LIMIT, Heading, heading_of, report_order
from stepscope.sources.csv_files.layout import Field, FileLayout, bare_key, column_key
from stepscope.sources.csv_files.values import EXACT, KEPT_AS
from stepscope.sources.plausible import STRAY_REMEDY, Times, lost_rows, sort_out
from stepscope.sources.side_files import report_unreadable
from stepscope.tables.base import with_schema

PART_BYTES = 16 << 20
"""A larger file is read in parts of that size."""
_MATCHES_KEPT = 64
"""The files of all ranks have the same headers."""


def read_csv(path: Path | None, layout: FileLayout, sink: Sink) -> pl.DataFrame | None:
    """All rows of `read_csv_parts` with all columns of `layout`; None if nothing can be read, or there is no file."""
    frames = [] if path is None else list(read_csv_parts(path, layout, sink))
    if not frames:
        return None
    rows = frames[0] if len(frames) == 1 else pl.concat(frames)
    known = {field.column: KEPT_AS.get(field.kind, pl.Int64) for field in layout.fields}
    return with_schema(rows, {**known, **rows.schema})


def read_csv_parts(path: Path, layout: FileLayout, sink: Sink) -> Iterator[pl.DataFrame]:
    """Read the columns that `layout` knows, as far as a file has them. No frame if nothing can be read.

    Unknown columns, damaged rows and failures are reported.
    """
    rows = _Rows(path, layout)
    repeated: list[str] = []
    unknown: list[str] = []
    try:
        heading = heading_of(path, layout)
        headers = [column_key(header) for header in heading.headers]
        report_order(path, heading, sink)
        if not headers:
            if heading.is_stated:
                sink.issue("error", path, "is empty", "Copy or export the file again.")
            return
        chosen, repeated, unknown = _matched(tuple(headers), layout)
        missing = [f.headers[0] for f in layout.fields if f.required and f not in chosen.values()]
        if missing:
            remedy = "Export the profile again with the profiler's own tools, or report the header if it is new."
            sink.issue("error", path, f"has no column {', '.join(missing)}", remedy, place="line 1")
            return
        for text in _parts(path, heading):
            if (frame := rows.checked(text, len(headers), chosen)) is not None:
                yield frame
    except OSError as error:
        report_unreadable(error, path, sink)
        rows.is_whole = False
    rows.report(sink)
    if repeated:
        problem = f"columns that mean the same as others, which are read, are left out: {', '.join(repeated)}"
        sink.issue("warning", path, problem, "Check that they agree; export the file again if not.", place="line 1")
    if unknown:
        problem = f"unknown columns are left out: {', '.join(unknown)}"
        sink.issue("note", path, problem, "Nothing to do. A newer stepscope may know them.", place="line 1")


def _parts(path: Path, heading: Heading) -> Iterator[bytes]:
    """The file in parts of whole lines, each behind the file's header."""
    with path.open("rb") as file:
        rest = os.fstat(file.fileno()).st_size - heading.start
        size = min(PART_BYTES, max(rest, 0) + 1)  # room for more than is read is room to be fetched
        file.seek(heading.start)
        for text in chain([file.read(size)], iter(partial(file.read, size), b"")):
            yield heading.line + text + (b"" if len(text) < size else _rest_of_row(file, text))


def _rest_of_row(file: BinaryIO, text: bytes) -> bytes:
    """What follows `text` up to the end of its last row: a line's end that is not in quotes."""
    rest = b"" if text.endswith(b"\n") else file.readline(HEADER_LIMIT)
    quotes = text.count(b'"') + rest.count(b'"')
    while quotes % 2 and len(rest) < HEADER_LIMIT and (line := file.readline(HEADER_LIMIT)):
        rest += line
        quotes += line.count(b'"')
    return rest


def _lines(text: bytes) -> int:
    """Lines of a text, the last one with or without its end."""
    return text.count(b"\n") + (not text.endswith(b"\n"))


class _Rows:
    """Takes the rows of one file from its parts, and counts those that are left out."""

    def __init__(self, path: Path, layout: FileLayout) -> None:
        self.is_whole = True
        """Whether the file could be read to its end."""
        self._path = path
        self._layout = layout
        self._required: list[Field] = []
        self._times = Times()
        self._rows = 0
        self._cut = False
        self._open = False
        self._unclosed = False
        self._malformed: int | None = None
        self._unreadable = 0
        self._strays: Counter[str] = Counter()
        self._problem = ""
        self._unread = 0
        self._cells: Counter[str] = Counter()

    def checked(self, text: bytes, width: int, chosen: dict[int, Field]) -> pl.DataFrame | None:
        """The rows of one part; None if they cannot be separated."""
        self._required = [field for field in chosen.values() if field.required or field.expected]
        text = self._without_cut_row(text, width)
        self._unclosed |= text.count(b'"') % 2 == 1
        try:
            with warnings.catch_warnings(record=True) as malformed:
                warnings.simplefilter("always")
                frame = decode(text, width, chosen)
                if self._layout.report_cells:
                    self._cells.update(unreadable_cells(text, width, chosen, frame, self._required))
        except pl.exceptions.PolarsError as error:
            self._problem = str(error).partition("\n")[0]  # advice for callers of Polars follows
            self._unread += max(1, _lines(text) - 1)
            return None
        if malformed:
            self._malformed = (self._malformed or 0) + max(0, _lines(text) - 1 - frame.height)
        self._rows += frame.height
        lacking = [field.column for field in self._required if frame[field.column].null_count()]
        kept = frame.drop_nulls(lacking) if lacking else frame
        self._unreadable += frame.height - kept.height
        time = next((field.column for field in self._required if field.kind in EXACT), None)
        if time is not None:
            lengths = (pl.col(field.column) for field in self._required if field.kind in ("duration", "ms"))
            end = next((pl.col(time) + length for length in lengths), None)
            self._times.add(kept[time])
            checked = sort_out(kept, self._times.middle_ns, start=pl.col(time), end=end)
            self._strays.update(checked.wrong)
            kept = checked.rows
        return kept

    def _without_cut_row(self, text: bytes, width: int) -> bytes:
        """Leave out a last row that ends in the middle: without a line's end, and with fewer fields than the header."""
        end = text.rfind(b"\n") + 1
        last = text[end:]
        if not end or not last.strip() or len(last) > HEADER_LIMIT:
            return text
        try:
            fields = next(csv.reader([last.decode("utf-8", "replace")]), [])
        except csv.Error:
            return text
        if last.count(b'"') % 2 == 0 and len(fields) >= width:
            self._open = True
            return text
        self._cut = True
        return text[:end]

    def report(self, sink: Sink) -> None:
        """Report what was left out."""
        error, warning = partial(sink.issue, "error", self._path), partial(sink.issue, "warning", self._path)
        again = "Copy or export the file again."
        if self._problem:
            error(f"cannot be read: {self._problem}", again, lost=self._unread)
        if self._cut:
            error("its last row is truncated and is left out", again, lost=1)
        if self._unclosed:
            error("a quote is not closed; rows after it may be lost", again)
        found_none = self.is_whole and not (self._rows or self._problem or self._cut or self._unclosed)
        if self._layout.report_empty and found_none:
            warning("has a header but no rows", "Nothing to do if there was nothing to list; otherwise copy it again.")
        if self._open and self._layout.report_cells and not self._layout.may_end_open:
            problem = "its last row has no line end; if the file is truncated there, the row's last value is wrong"
            warning(problem, again, place=f"row {self._rows}")
        if self._malformed is not None:
            problem = f"has rows that cannot be separated; {self._malformed or 'some'} others may be lost"
            error(problem, again, lost=self._malformed or None)
        if self._unreadable:
            named = " or ".join(field.headers[0] for field in self._required)
            problem = f"{self._unreadable} of {self._rows} rows have no readable {named} and are left out"
            error(problem, "The file is truncated or damaged; copy or export it again.", lost=self._unreadable)
        for header, count in self._cells.items():
            problem = f"{count} of {self._rows} rows have an unreadable {header}; it is treated as unknown"
            error(problem, "The file is damaged; copy or export it again.", lost=count)
        if lost := sum(self._strays.values()):
            error(lost_rows(self._strays, self._rows - self._unreadable), STRAY_REMEDY, lost=lost)


@lru_cache(_MATCHES_KEPT)
def _matched(headers: tuple[str, ...], layout: FileLayout) -> tuple[dict[int, Field], list[str], list[str]]:
    """The columns that are read by their positions, those that mean the same, and those that are unknown."""
    chosen = _match(headers, layout)
    return chosen, *_unread(headers, chosen, layout)


def _match(headers: Sequence[str], layout: FileLayout) -> dict[int, Field]:
    """Position to field for the headers that are read: the first with the usual spelling, if several mean one field."""
    places: dict[str, int] = {}
    for at, name in chain(enumerate(headers), enumerate(map(bare_key, headers))):
        places.setdefault(name, at)
    chosen: dict[int, Field] = {}
    for field in layout.fields:
        names = (*field.headers, *map(bare_key, field.headers))
        if (found := next((places[name] for name in names if name in places), None)) is not None:
            chosen.setdefault(found, field)
    return chosen


def _unread(headers: Sequence[str], chosen: dict[int, Field], layout: FileLayout) -> tuple[list[str], list[str]]:
    """The headers of columns that mean the same as one that is read, and the unknown headers."""
    ignored = set(map(bare_key, layout.ignored))
    same = {bare_key(headers[at]) for at in chosen} - ignored | layout.known - layout.usual
    others = [header for at, header in enumerate(headers) if header and at not in chosen]
    repeated = [header for header in others if bare_key(header) in same]
    return repeated, [header for header in others if bare_key(header) not in layout.known]
