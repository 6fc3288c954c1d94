"""Reading one CSV file into a frame with our columns and units."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.paths import shown
from stepscope.sources.ascend.headers import Field, FileLayout, Kind, column_key
from stepscope.sources.plausible import STRAY_REMEDY, Times, sort_out
from stepscope.sources.trace_events import native

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

FACTORS: dict[Kind, int] = {"duration": 1000, "kib": 1024, "mib": 1 << 20}
READ_AS: dict[Kind, type[pl.DataType]] = {
    "text": pl.String,
    "shape": pl.String,
    "time": pl.String,
    "device": pl.String,
}
"""How a kind is read; all others are read as float64, which holds every integer that occurs."""
_PLAIN: dict[Kind, native.TableColumn] = {"text": "text", "shape": "shape", "time": "time", "device": "raw"}
"""How the compiled scanner reads a kind; all others as numbers."""
_PLAIN_BYTES = 128 << 20
"""Larger files are read in parts, by Polars."""
HEADER_LIMIT = 1 << 20


def header_of(path: Path) -> list[str]:
    """The headers of a CSV file.

    Raises:
        OSError: If it cannot be opened.
    """
    with path.open("rb") as file:
        line = file.readline(HEADER_LIMIT).decode("utf-8-sig", "replace")
    return next(csv.reader([line.rstrip("\r\n")]), []) if line else []


def read_csv(
    path: Path, layout: FileLayout, sink: Sink, *, more: dict[str, Field] | None = None
) -> pl.DataFrame | None:
    """Read the columns that `layout` knows; null where a file has none. None if nothing can be read.

    Args:
        path: The file.
        layout: Its columns.
        sink: Where unknown columns, damaged rows and failures are told.
        more: Further columns by header key, all kept if present.
    """
    try:
        headers = [column_key(header) for header in header_of(path)]
        if not headers:
            sink.issue("error", path, "is empty", "Copy or export the file again.")
            return None
        chosen, unknown = _match(headers, layout, more or {})
        missing = [f.headers[0] for f in layout.fields if f.required and f not in chosen.values()]
        if missing:
            sink.issue(
                "error",
                path,
                f"has no column {', '.join(missing)}",
                "Export the profile again with the profiler's own tools, or report the header if it is new.",
                place="line 1",
            )
            return None
        with warnings.catch_warnings(record=True) as malformed:
            warnings.simplefilter("always")
            frame = _read_rows(path, len(headers), chosen, sink)
    except pl.exceptions.NoDataError:
        return None
    except (OSError, csv.Error, pl.exceptions.PolarsError) as error:
        problem = str(error).partition("\n")[0]  # advice for callers of Polars follows
        sink.issue("error", path, f"cannot be read: {problem}", "Copy or export the file again.")
        return None
    if malformed:
        lost = max(0, _lines(path) - 1 - frame.height)
        sink.issue(
            "error",
            path,
            f"has rows that cannot be told apart; {lost or 'some'} others may be lost",
            "Copy or export the file again.",
            lost=lost or None,
        )
    if unknown:
        sink.issue(
            "note",
            path,
            f"columns not known and left out: {', '.join(unknown)}",
            "None needed; a newer stepscope may know them.",
            place="line 1",
        )
    return _keep_whole_rows(frame, path, layout, sink)


def _read_rows(path: Path, width: int, chosen: dict[int, Field], sink: Sink) -> pl.DataFrame:
    """The rows behind the header; of a file that was cut, all but the last.

    Raises:
        polars.exceptions.PolarsError: If they cannot be told apart.
    """
    if (frame := _plain(path, width, chosen)) is not None:
        return frame
    # Polars takes no other names than those in UTF-8
    source = path if shown(path) == str(path) else path.read_bytes()
    try:
        return _scan(source, width, chosen).collect()
    except pl.exceptions.ComputeError:
        whole_lines, _, rest = path.read_bytes().rpartition(b"\n")
        if not rest:
            raise
        frame = _scan(whole_lines + b"\n", width, chosen).collect()
    sink.issue("error", path, "its last row is cut off and is left out", "Copy or export the file again.", lost=1)
    return frame


def _plain(path: Path, width: int, chosen: dict[int, Field]) -> pl.DataFrame | None:
    """The rows as the compiled scanner reads them, in a quarter of the time; None if that is not for it."""
    if not native.is_there() or path.stat().st_size > _PLAIN_BYTES:
        return None
    kinds = [_PLAIN.get(chosen[at].kind, "number") if at in chosen else None for at in range(width)]
    try:
        columns = native.read_table(path.read_bytes(), kinds)
    except native.Refused:
        return None
    read = pl.DataFrame([column.alias(f"{at}") for at, column in zip(sorted(chosen), columns, strict=True)])
    whole_already = {at for at, field in chosen.items() if field.kind in ("text", "shape", "time", "float")}
    return read.select(
        (pl.col(f"{at}") if at in whole_already else _value(pl.col(f"{at}"), field)).alias(field.column)
        for at, field in chosen.items()
    )


def _scan(source: Path | bytes, width: int, chosen: dict[int, Field]) -> pl.LazyFrame:
    rows = pl.scan_csv(
        source,
        has_header=False,
        skip_rows=1,
        schema={
            f"{at}": READ_AS.get(chosen[at].kind, pl.Float64) if at in chosen else pl.String for at in range(width)
        },
        null_values=["N/A", "NA", ""],
        truncate_ragged_lines=True,
        ignore_errors=True,
        encoding="utf8-lossy",
        glob=False,
    )
    return rows.select(_value(pl.col(f"{at}"), field).alias(field.column) for at, field in chosen.items())


def _lines(path: Path) -> int:
    """Lines of a file, the last one with or without its end; 0 if it cannot be read."""
    count, last = 0, b"\n"
    try:
        with path.open("rb") as file:
            while piece := file.read(HEADER_LIMIT):
                count += piece.count(b"\n")
                last = piece
    except OSError:
        return 0
    return count + (not last.endswith(b"\n"))


def _match(headers: list[str], layout: FileLayout, more: dict[str, Field]) -> tuple[dict[int, Field], list[str]]:
    """Position to field for the headers that are kept, and the headers that nobody knows."""
    chosen: dict[int, Field] = {}
    for field in layout.fields:
        at = next((headers.index(name) for name in field.headers if name in headers), None)
        if at is not None and at not in chosen:
            chosen[at] = field
    unknown = []
    taken = {field.column for field in chosen.values()}
    for at, header in enumerate(headers):
        if at in chosen:
            continue
        if header in more and more[header].column not in taken:
            chosen[at] = more[header]
            taken.add(more[header].column)
        elif header and header not in layout.ignored and header not in more:
            unknown.append(header)
    return chosen, unknown


def _value(column: pl.Expr, field: Field) -> pl.Expr:
    if field.kind in FACTORS:
        return whole(column * FACTORS[field.kind])
    as_kept: dict[Kind, Callable[[pl.Expr], pl.Expr]] = {
        "time": nanoseconds,
        "shape": lambda text: text.str.strip_chars('"'),
        "text": lambda text: text.str.strip_chars(),
        "device": lambda text: text.str.extract(r"(\d+)\s*$").cast(pl.Int32, strict=False),
        "int": lambda number: number.cast(pl.Int64, strict=False),
        "float": lambda number: number,
    }
    return as_kept[field.kind](column)


def whole(value: pl.Expr) -> pl.Expr:
    """The nearest integer; null for what is none (infinite, not a number)."""
    return value.round().cast(pl.Int64, strict=False)


def nanoseconds(text: pl.Expr) -> pl.Expr:
    """Microseconds as text, e.g. `1760000000000462.904` with or without a tab after it, as exact ns.

    A float64 holds such a time to a quarter of a microsecond only, so the two halves are read as integers.
    """
    parts = text.str.strip_chars(' \t"').str.splitn(".", 2)
    whole_us = parts.struct.field("field_0").cast(pl.Int64, strict=False)
    fraction = parts.struct.field("field_1").fill_null("").str.pad_end(3, "0").str.slice(0, 3)
    return whole_us * 1000 + fraction.cast(pl.Int64, strict=False)


def _keep_whole_rows(frame: pl.DataFrame, path: Path, layout: FileLayout, sink: Sink) -> pl.DataFrame:
    """Leave out rows that lack what they need, or whose times cannot be true."""
    required = [field for field in layout.fields if field.required]
    kept = frame.drop_nulls([field.column for field in required])
    if lost := frame.height - kept.height:
        sink.issue(
            "error",
            path,
            f"{lost} of {frame.height} rows have no readable {' or '.join(field.headers[0] for field in required)} "
            "and are left out",
            "The file was cut or damaged; copy or export it again.",
            lost=lost,
        )
    time = next((field.column for field in required if field.kind == "time"), None)
    if time is None:
        return kept
    duration = next((pl.col(field.column) for field in required if field.kind == "duration"), None)
    times = Times()
    times.add(kept[time])
    end = None if duration is None else pl.col(time) + duration
    checked = sort_out(kept, times.middle_ns, start=pl.col(time), end=end)
    if checked.lost:
        sink.issue("error", path, checked.problem(), STRAY_REMEDY, lost=checked.lost)
    return checked.rows
