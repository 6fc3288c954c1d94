"""`cluster_analyse`: what each step spent on communication alone, and in pipelines on receiving, mostly in ms.

Its rows are the steps and, if there are several, the average of all but the first, which is kept only if it is of more
steps than the file has. Headers differ by version, so a column is recognised by the words in its name, otherwise by
position. Files of 1.x of jobs without model parallelism have the phases of each step instead, in ticks of the step
trace.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.average_rows import is_mean_row, without
from stepscope.sources.classic.figures import write_averages
from stepscope.sources.csv_files.heading import header_of
from stepscope.sources.csv_files.layout import Field, FileLayout, column_key, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
from stepscope.tables import STEP_TOTALS

COMPUTING, COMMUNICATION, STAGE = "computing_and_free_ns", "communication_not_overlapped_ns", "stage_ns"
BUBBLE, COLLECTIVE = "bubble_ns", "communication_not_overlapped_exclude_receive_ns"
_WORDS = (
    (BUBBLE, r"^(?!.*(?:exclu|except|without)).*(?:receive|recv)"),
    (COLLECTIVE, r"collective|receive|recv"),
    (COMMUNICATION, r"communicat|comm(?:_|$)"),
    (STAGE, r"stage"),
    (COMPUTING, r"comput"),
    ("interval_ns", r"interval"),
    ("forward_backward_ns", r"fp.*bp|forward.*backward"),
    ("tail_ns", r"tail|refresh"),
)
"""Column to the words that its header may have; the first that fits counts."""
_FORMS = (
    (COMPUTING, COMMUNICATION),
    (COMPUTING, COMMUNICATION, STAGE, BUBBLE, COLLECTIVE),
    ("interval_ns", "forward_backward_ns", "tail_ns"),
)
"""The columns in their places, by how many there are."""
_ORDERS = (
    order("computation_time,communication_alone_time"),
    order(
        "computation_time,communication_alone_time,stage_time,receive_alone_time,collective_communication_alone_time"
    ),
    order("iteration_interval,fp_and_bp,tail"),
)
_KNOWN = FileLayout(fields=tuple(Field(name, "float", (name,)) for keys in _ORDERS for name in keys), orders=_ORDERS)
"""What headers are usual, for files without one."""
_ROUNDING_NS = 200
"""Twice the file's last digit, 0.1 us."""
_STATED = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_UNIT = re.compile(r"\((ns|us|ms|s)\)", re.IGNORECASE)
_CANDIDATES = {"ms": 1_000_000, "ticks of 10 ns": 10, "us": 1_000, "ns": 1}
_AGREES = 1.5
"""A sum of phases up to this many times a step still matches that step; units differ by more."""
_PARTS = (_FORMS[2], (COMPUTING, COMMUNICATION))
"""Columns that make up a step."""


def write_step_totals(path: Path, steps: pl.DataFrame | None, sink: Sink) -> None:
    """Write the rows of steps.

    The rows of `steps` in order, if known, decide whether a row is the average, what the steps' numbers are, and the
    unit if nothing else does.
    """
    rows = _read(path, steps, sink)
    if rows is None:
        return
    if rows.is_empty():
        sink.issue("error", path, "holds no steps", "Copy the file again, or run the profiler's analysis again.")
        return
    columns = [pl.col(name) for name in rows.columns]
    if negative := rows.filter(pl.any_horizontal(column < 0 for column in columns)).height:
        problem = f"{negative} of {rows.height} rows have negative times, which are treated as unknown"
        sink.issue("error", path, problem, "The file is damaged; copy it again.", lost=negative)
    rows = rows.with_columns(pl.when(column >= 0).then(column) for column in columns)
    known = None if steps is None else steps["step"]
    if (at := _average_place(rows, known)) is not None:
        average, rows = rows.row(at, named=True), without(rows, at)
        values = tuple(average.values())
        if (
            any(values)
            and not _is_average_of(rows, values)
            and not is_mean_row(values, rows.mean().row(0), _ROUNDING_NS)
        ):
            write_averages(average, sink)
    if known is None or len(known) != rows.height:
        if known is not None:
            problem = f"has {rows.height} steps but the step trace has {len(known)}; they are numbered from 1"
            sink.issue("warning", path, problem, "Copy both files again: one may be cut off or of another profile.")
        known = pl.Series(range(1, rows.height + 1), dtype=pl.Int32)
    sink.write(STEP_TOTALS, rows.with_columns(step=known))


def _read(path: Path, steps: pl.DataFrame | None, sink: Sink) -> pl.DataFrame | None:
    """The rows with our columns in ns; None if none of its columns is known."""
    headers = header_of(path, _KNOWN)
    meant = _meant(path, headers, sink)
    if headers and not meant:
        problem = f"has none of the expected columns: {', '.join(_ORDERS[0])}"
        remedy = "Run the profiler's analysis again, or report the header if it is new."
        sink.issue("error", path, problem, remedy, place="line 1")
        return None
    fields = tuple(Field(column, "float", (key,), expected=True) for key, column in meant.items())
    rows = read_csv(path, FileLayout(fields, report_cells=True, orders=_ORDERS), sink)
    if rows is None or rows.is_empty():
        return rows
    unit = _unit_ns(path, headers, rows, steps, sink)
    times = rows.select(whole(pl.col(name) * unit) for name in rows.columns)
    if lost := sum(times[name].null_count() - rows[name].null_count() for name in rows.columns):
        problem = f"{lost} values are impossible times and are treated as unknown"
        sink.issue("error", path, problem, "The file is damaged; copy it again.", lost=lost)
    return times


def _unit_ns(path: Path, headers: list[str], rows: pl.DataFrame, steps: pl.DataFrame | None, sink: Sink) -> int:
    """The unit of the times in ns: from a header, then by fit with the step trace, then by form."""
    stated = {match[1].lower() for header in headers if (match := _UNIT.search(header))}
    if len(stated) == 1:
        return _STATED[stated.pop()]
    has_phases = not {*_FORMS[2]}.isdisjoint(rows.columns)
    usual = "ticks of 10 ns" if has_phases and _are_ticks(rows) else "ms"
    fitting = [name for name, unit in _CANDIDATES.items() if _fits(rows, unit, steps)]
    unit = fitting[0] if len(fitting) == 1 else usual
    if unit != "ms":
        why = "this matches the steps of the step trace" if fitting == [unit] else "they are whole numbers"
        sink.issue("note", path, f"its times are read as {unit}: {why}", "Nothing to do.", place="line 1")
    return _CANDIDATES[unit]


def _are_ticks(rows: pl.DataFrame) -> bool:
    """Whether all figures are whole numbers, which times in ms with their four decimals are not."""
    return all(bool((rows[name].drop_nulls() % 1 == 0).all()) for name in rows.columns)


def _fits(rows: pl.DataFrame, unit: int, steps: pl.DataFrame | None) -> bool:
    """Whether, in a unit, the figures of the middle row make up the middle step."""
    parts = next((part for part in _PARTS if {*part} <= {*rows.columns}), None)
    if parts is None or steps is None or steps.is_empty():
        return False
    length = steps.select((pl.col("end_ns") - pl.col("start_ns")).median()).item()
    own = rows.select(pl.sum_horizontal(sorted(parts)).median()).item()
    return bool(own and length and 1 / _AGREES <= own * unit / length <= _AGREES)


def _meant(path: Path, headers: list[str], sink: Sink) -> dict[str, str]:
    """Header key to our column: by its words, otherwise by position; each column once."""
    keys = [column_key(header) for header in headers]
    found: dict[str, str] = {}
    for key in keys:
        column = next((column for column, words in _WORDS if re.search(words, key)), None)
        if column is not None and column not in found.values():
            found[key] = column
    if found:
        return found
    named = [key for key in keys if key]
    form = next((form for form in _FORMS if len(form) == len(named)), None)
    if form is None or any(key.replace(".", "").isdecimal() for key in named):
        return {}
    problem = "has unknown headers; its columns are read by position"
    sink.issue("note", path, problem, "Report the header if the figures look wrong.", place="line 1")
    return dict(zip(named, form, strict=True))


def _average_place(rows: pl.DataFrame, steps: pl.Series | None) -> int | None:
    """Position of the average, the last or the first row: by the number of steps, otherwise by its values."""
    if rows.height < 2 or (steps is not None and len(steps) == rows.height):
        return None
    last = rows.height - 1
    by_number = last if steps is not None and len(steps) == last else None
    return next((at for at in (last, 0) if _is_average(rows, at)), by_number)


def _is_average(rows: pl.DataFrame, at: int) -> bool:
    """Whether a row is the mean of the others without their first, or all zeros, as of one step."""
    others = without(rows, at)
    own = rows.row(at)
    if not any(own):
        return any(any(row) for row in others.iter_rows())
    return _is_average_of(others, own)


def _is_average_of(steps: pl.DataFrame, row: tuple[float | None, ...]) -> bool:
    """Whether a row is the mean of steps without their first."""
    if steps.height == 1:
        return row == steps.row(0)
    return is_mean_row(row, steps.slice(1).mean().row(0), _ROUNDING_NS)
