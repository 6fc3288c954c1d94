"""The CSV files of a recording: their columns, and rows as text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Mark = tuple[str, str, int, int, int, int, str]
"""Kind, name, start and end (`time.perf_counter_ns`), step, thread (`get_ident`), detail."""
Batch = tuple[int, str, int, int, int, "int | None", "int | None", "int | None"]
"""Arrival (`time.perf_counter_ns`), pipeline, number, step, wait in ns, batches ready, queue capacity, workers."""

_QUOTED = re.compile('[",\r\n]').search
"""Finds characters that must be quoted in a CSV file."""


@dataclass(frozen=True)
class CsvFile:
    """One CSV file of a recording.

    Args:
        name: Its name.
        columns: Names and types, in file order.
        required: Columns without which a row is useless.
    """

    name: str
    columns: Mapping[str, type[int] | type[float] | type[str]]
    required: tuple[str, ...]

    @property
    def header(self) -> str:
        """Its first line."""
        return ",".join(self.columns)


MARKS = CsvFile(
    "marks.csv",
    {"kind": str, "name": str, "start_ns": int, "end_ns": int, "step": int, "thread": str, "detail": str},
    ("kind", "start_ns", "end_ns"),
)
BATCHES = CsvFile(
    "batches.csv",
    {
        "time_ns": int,
        "pipeline": str,
        "batch": int,
        "step": int,
        "wait_ns": int,
        "queue_size": int,
        "queue_capacity": int,
        "workers": int,
    },
    ("time_ns", "pipeline"),
)
HOST = CsvFile(
    "host.csv",
    {
        "time_ns": int,
        "scope": str,
        "pid": int,
        "name": str,
        "user_ns": int,
        "system_ns": int,
        "idle_ns": int,
        "io_wait_ns": int,
        "rss_bytes": int,
        "uss_bytes": int,
        "available_bytes": int,
        "total_bytes": int,
        "read_bytes": int,
        "written_bytes": int,
        "threads": int,
        "context_switches": int,
        "runnable": int,
        "processors": int,
    },
    ("time_ns", "scope"),
)
DEVICE = CsvFile("device.csv", {"time_ns": int, "device": int, "name": str, "value": float}, ("time_ns", "name"))
WINDOWS = CsvFile(
    "windows.csv",
    {
        "window": int,
        "start_ns": int,
        "end_ns": int,
        "first_step": int,
        "last_step": int,
        "kind": str,
        "state": str,
        "files": str,
    },
    ("window", "start_ns", "end_ns", "kind"),
)

TIMES = ("time_ns", "start_ns", "end_ns")
"""Columns that are moments; others in ns are durations."""
CSV_FILES = (MARKS, BATCHES, HOST, DEVICE, WINDOWS)


def row_lines(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV text, each with a newline; None becomes an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def mark_lines(marks: Iterable[Mark], shift_ns: int, threads: Mapping[int, int]) -> str:
    """Marks as lines of `MARKS`. Formatted by hand, in a third of the time of the `csv` module, since training waits.

    Args:
        marks: The marks.
        shift_ns: Offset of their times to the epoch.
        threads: Native id of each thread.
    """
    texts = _Texts()
    return "".join(
        [
            f"{kind},{texts[name]},{start + shift_ns},{end + shift_ns},{step},{threads[thread]},{texts[detail]}\n"
            for kind, name, start, end, step, thread, detail in marks
        ]
    )


def batch_lines(batches: Iterable[Batch], shift: int) -> str:
    """Batches as lines of `BATCHES`.

    Args:
        batches: The batches.
        shift: Offset of their times to the epoch, in ns.
    """
    texts = _Texts()
    return "".join(
        [
            f"{came + shift},{texts[pipeline]},{number},{step},{wait},{texts[ready]},{texts[room]},{texts[workers]}\n"
            for came, pipeline, number, step, wait, ready, room, workers in batches
        ]
    )


class _Texts(dict[object, str]):
    """Values as CSV fields, each formatted once."""

    def __missing__(self, value: object) -> str:
        text = "" if value is None else str(value)
        if _QUOTED(text):
            text = '"' + text.replace('"', '""') + '"'
        self[value] = text
        return text
