"""The CSV files of a recording: whole lines count, a damaged line costs only itself."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import polars as pl

from stepscope.recording_format.rows import CsvFile
from stepscope.sources.base import Report
from stepscope.tables.base import with_schema

_Schema = Mapping[str, type[pl.DataType]]
_TYPES: Mapping[type, type[pl.DataType]] = {int: pl.Int64, float: pl.Float64, str: pl.String}

BLOCK_BYTES = 8 << 20
"""About as much text is read at a time."""

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_LARGEST = 2**63 - 1

_MOST_LINES = 50
"""No text of ours is longer; an open quote that reaches further is damage."""


def read_rows(recording: Path, csv_file: CsvFile, report: Report) -> Iterator[pl.DataFrame]:
    """The rows of a CSV file of a recording, in parts; a file that is missing has none.

    A line without its newline is truncated and left out. Missing columns are null, unknown ones are left out. A row
    without a required value is damaged; damage is reported.
    """
    path, schema, required = recording / csv_file.name, _schema(csv_file), csv_file.required
    lost, first = 0, 0
    try:
        with path.open("rb") as file:
            header = next(csv.reader([file.readline().decode("utf-8", "replace").rstrip("\n")]), [])
            line = 2
            for block in _blocks(file):
                rows = _at_once(block, header, schema, required)
                if rows is None:
                    rows, wrong = _one_by_one(block, header, schema, required)
                    first = first or (line + wrong[0] if wrong else 0)
                    lost += len(wrong)
                line += block.count("\n")
                yield rows
    except FileNotFoundError:
        return
    except (OSError, csv.Error) as error:
        report("error", path, f"cannot be read: {error}", "Check the file and its disk")
    if lost:
        problem = f"{lost} lines are damaged and left out"
        remedy = "The rest is complete. Copy the recording again if you need them"
        report("warning", path, problem, remedy, place=f"first: line {first}", lost=lost)


def read_all_rows(recording: Path | None, csv_file: CsvFile, report: Report) -> pl.DataFrame:
    """Like `read_rows`, for small files: all rows in one frame; none without a recording."""
    rows: Iterable[pl.DataFrame] = () if recording is None else read_rows(recording, csv_file, report)
    return pl.concat([pl.DataFrame(schema=_schema(csv_file)), *rows])


def _schema(csv_file: CsvFile) -> _Schema:
    return {name: _TYPES[kind] for name, kind in csv_file.columns.items()}


def _blocks(file: IO[bytes]) -> Iterator[str]:
    """Text of whole lines, and of whole quoted texts where quotes are sound."""
    rest = b""
    while piece := file.read(BLOCK_BYTES):
        text = rest + piece
        end = _last_line_end(text) if len(piece) == BLOCK_BYTES else text.rfind(b"\n") + 1
        rest = text[end:]
        if end:
            yield text[:end].decode("utf-8", "replace")
    if end := rest.rfind(b"\n") + 1:  # the last piece was a whole block
        yield rest[:end].decode("utf-8", "replace")


def _last_line_end(text: bytes) -> int:
    """Behind the last newline that is not within quotes; behind the last one if there are only such."""
    last = end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end)
    for _ in range(_MOST_LINES):
        if not end or quotes % 2 == 0:
            return end
        before = text.rfind(b"\n", 0, end - 1) + 1
        quotes -= text.count(b'"', before, end)
        end = before
    return last


def _at_once(block: str, header: list[str], schema: _Schema, required: tuple[str, ...]) -> pl.DataFrame | None:
    """The rows of a block without damage; None if it has some, or may have."""
    if "\0" in block:
        return None
    try:
        raw = pl.read_csv(block.encode("utf-8", "replace"), has_header=False, new_columns=header, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if raw.height != block.count("\n") or raw.width != len(header):
        return None
    rows = _typed(raw, schema)
    return None if any(rows[name].null_count() for name in required) else rows


def _one_by_one(
    block: str, header: list[str], schema: _Schema, required: tuple[str, ...]
) -> tuple[pl.DataFrame, list[int]]:
    """The sound rows of a block, and the numbers of the lines (from 0) that are damaged."""
    lines = block.split("\n")[:-1]
    rows: list[list[str]] = []
    wrong: list[int] = []
    at = 0
    while at < len(lines):
        taken, row = _row_at(lines, at)
        if row is not None and len(row) == len(header) and _is_sound(row, header, schema, required):
            rows.append(row)
            at += taken
            continue
        if lines[at]:
            wrong.append(at)
        at += 1
    columns = {name: pl.Series([row[k] or None for row in rows], dtype=pl.String) for k, name in enumerate(header)}
    return _typed(pl.DataFrame(columns), schema), wrong


def _row_at(lines: list[str], at: int) -> tuple[int, list[str] | None]:
    """The row that begins in a line, and how many lines it takes."""
    text, taken = lines[at], 1
    while text.count('"') % 2 and taken < _MOST_LINES and at + taken < len(lines):
        text += "\n" + lines[at + taken]
        taken += 1
    try:
        found = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return 1, None
    return taken, found[0] if len(found) == 1 else None


def _is_sound(row: list[str], header: list[str], schema: _Schema, required: tuple[str, ...]) -> bool:
    values = dict(zip(header, row, strict=True))
    return "\0" not in "".join(row) and all(_is_value(values.get(name, ""), schema[name]) for name in required)


def _is_value(text: str, kind: type[pl.DataType]) -> bool:
    """Whether a text stands for a value of a column: not empty, and of whole numbers one that the column holds."""
    if kind == pl.String:
        return bool(text)
    return bool(_WHOLE.fullmatch(text)) and abs(int(text)) <= _LARGEST


def _typed(raw: pl.DataFrame, schema: _Schema) -> pl.DataFrame:
    return with_schema(raw.select(name for name in raw.columns if name in schema), schema, strict=False)
