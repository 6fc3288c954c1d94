"""The cells of `hccl_raw` that hold JSON: links of a step, and its calls with theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import as_number
from stepscope.sources.base import Sink
from stepscope.tables.base import columns_of, frame_of

CALLS = {"step": pl.Int32, "name": pl.String, "cost": pl.Float64, "wait": pl.Float64}
"""What calls cost and waited, in the unit of the file."""
LINKS = {
    "step": pl.Int32,
    "name": pl.String,
    "source": pl.Int32,
    "destination": pl.Int32,
    "transport": pl.String,
    "time": pl.Float64,
    "size": pl.Float64,
    "stated": pl.Float64,
    "wait": pl.Float64,
}
"""What went over links: time and wait in the unit of the file, size in KB, the bandwidth that it states."""

_LARGEST = 1e15
_LINK = re.compile(r"(\d{1,9})-(\d{1,9})")


def read_cells(steps: pl.DataFrame, path: Path, sink: Sink) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls and links of all steps, with the columns of `CALLS` and `LINKS`.

    `steps` has `step`, and the texts `links` and `operators`, null if a file has none.
    """
    calls: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    lost = 0
    for step, linked, called in steps.select("step", "links", "operators").iter_rows():
        of_step, operators = _object(linked), _object(called)
        lost += (of_step is None) + (operators is None)
        lost += _take_links(step, None, of_step or {}, links)
        for name, entry in (operators or {}).items():
            call = _call(step, name, entry)
            if call is None:
                lost += 1
                continue
            calls.append(call)
            if len(entry) > 3 and isinstance(entry[3], Mapping):
                lost += _take_links(step, name, entry[3], links)
    if lost:
        problem = f"{lost} entries of links and calls cannot be read and are left out"
        sink.issue("error", path, problem, "Copy the file again, or run the profiler's analysis again", lost=lost)
    return frame_of(columns_of(calls, CALLS)), frame_of(columns_of(links, LINKS))


def _object(cell: str | None) -> Mapping[str, Any] | None:
    """The object in a cell; None if it is damaged, which an empty cell is not."""
    content = value_in(cell) if cell else {}
    return content if isinstance(content, Mapping) else None


def _call(step: int, name: str, entry: object) -> tuple[Any, ...] | None:
    """A row of `CALLS`, of `[step, cost, wait, links]`."""
    if not isinstance(entry, list) or len(entry) < 3:
        return None
    cost, wait = _number(entry[1]), _number(entry[2])
    return None if cost is None or wait is None else (step, name, cost, wait)


def _take_links(step: int, name: str | None, entries: Mapping[str, Any], links: list[tuple[Any, ...]]) -> int:
    """Add rows of `LINKS`, of `{"0-1": {"SDMA": [time, size, bandwidth]}}`, with a wait in fourth place for RDMA.

    Returns the number of damaged entries.
    """
    damaged = 0
    for pair, transports in entries.items():
        ends = _ends(pair)
        if ends is None or not isinstance(transports, Mapping):
            damaged += 1
            continue
        for transport, values in transports.items():
            numbers = [*map(_number, values), None, None] if isinstance(values, list) else []
            if len(numbers) < 4 or numbers[0] is None or numbers[1] is None:
                damaged += 1
                continue
            links.append((step, name, *ends, transport, *numbers[:4]))
    return damaged


@lru_cache(1 << 14)
def _ends(pair: str) -> tuple[int, int] | None:
    """Source and destination of a link."""
    ends = _LINK.fullmatch(pair)
    return ends and (int(ends[1]), int(ends[2]))


def _number(value: object) -> float | None:
    """A number that is not negative."""
    if type(value) is float and 0 <= value < _LARGEST:  # nearly all are
        return value
    number = as_number(value)
    return number if number is not None and 0 <= number < _LARGEST else None
