"""The CSV files of a recording: their columns, and rows as text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Mark = tuple[str, str, int, int, int, int, str]
"""Kind, name, start and end (of `time.perf_counter_ns`), step, thread (of `get_ident`), detail."""
Batch = tuple[int, str, int, int, int, "int | None", "int | None", "int | None"]
"""When it came (of `time.perf_counter_ns`), pipeline, number, step, time waited for it in ns, batches ready, room for
them, workers."""

_QUOTED = re.compile('[",\r\n]').search
"""Finds what a text in a CSV file must not hold, unless in quotes."""


@dataclass(frozen=True)
class CsvFile:
    """One CSV file of a recording.

    Args:
        name: Its name.
        columns: Names and types, in the order of the file.
        required: Columns without which a row says nothing.
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
"""Columns that are moments; others in ns are lengths."""
CSV_FILES = (MARKS, BATCHES, HOST, DEVICE, WINDOWS)


def row_lines(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV text, each with its newline; None is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def mark_lines(marks: Iterable[Mark], shift_ns: int, threads: Mapping[int, int]) -> str:
    """Marks as lines of `MARKS`. Made by hand, at a third of what the `csv` module costs, for training waits meanwhile.

    Args:
        marks: The marks.
        shift_ns: Makes their times those since the epoch.
        threads: The system's number of each thread.
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
        shift: Makes their times those since the epoch, in ns.
    """
    texts = _Texts()
    return "".join(
        [
            f"{came + shift},{texts[pipeline]},{number},{step},{wait},{texts[ready]},{texts[room]},{texts[workers]}\n"
            for came, pipeline, number, step, wait, ready, room, workers in batches
        ]
    )


class _Texts(dict[object, str]):
    """Values as they stand in a CSV file, each worked out once."""

    def __missing__(self, value: object) -> str:
        text = "" if value is None else str(value)
        if _QUOTED(text):
            text = '"' + text.replace('"', '""') + '"'
        self[value] = text
        return text
