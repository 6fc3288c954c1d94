"""The cells of `hccl_raw` that hold JSON: links of a step, and its calls with theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import as_number
from stepscope.sources.base import Sink

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

_LINK = re.compile(r"(\d{1,9})-(\d{1,9})")


def read_cells(steps: pl.DataFrame, path: Path, sink: Sink) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls and links of all steps, with the columns of `CALLS` and `LINKS`.

    `steps` has `step`, and the texts `links` and `operators`, null if a file has none.
    """
    calls: list[dict[str, Any] | None] = []
    links: list[dict[str, Any] | None] = []
    damaged = 0
    for step, linked, called in steps.select("step", "links", "operators").iter_rows():
        of_step, operators = _object(linked), _object(called)
        damaged += (of_step is None) + (operators is None)
        links += _links(step, None, of_step or {})
        for name, entry in (operators or {}).items():
            call = _call(step, name, entry)
            calls.append(call)
            if call is not None and len(entry) > 3 and isinstance(entry[3], Mapping):
                links += _links(step, name, entry[3])
    known_calls, known_links = ([row for row in rows if row is not None] for rows in (calls, links))
    if lost := damaged + len(calls) - len(known_calls) + len(links) - len(known_links):
        problem = f"{lost} entries of links and calls cannot be read and are left out"
        sink.issue("error", path, problem, "Copy the file again, or run the profiler's analysis again", lost=lost)
    return pl.DataFrame(known_calls, schema=CALLS), pl.DataFrame(known_links, schema=LINKS)


def _object(cell: str | None) -> Mapping[str, Any] | None:
    """The object in a cell; None if it is damaged, which an empty cell is not."""
    content = value_in(cell) if cell else {}
    return content if isinstance(content, Mapping) else None


def _call(step: int, name: str, entry: object) -> dict[str, Any] | None:
    """A row of `CALLS`, of `[step, cost, wait, links]`."""
    if not isinstance(entry, list) or len(entry) < 3:
        return None
    cost, wait = _number(entry[1]), _number(entry[2])
    return None if cost is None or wait is None else {"step": step, "name": name, "cost": cost, "wait": wait}


def _links(step: int, name: str | None, entries: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """Rows of `LINKS`, of `{"0-1": {"SDMA": [time, size, bandwidth]}}`, with a wait in fourth place for RDMA.

    None if damaged.
    """
    for pair, transports in entries.items():
        ends = _LINK.fullmatch(pair)
        if ends is None or not isinstance(transports, Mapping):
            yield None
            continue
        for transport, values in transports.items():
            numbers = [_number(value) for value in values] if isinstance(values, list) else []
            if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
                yield None
                continue
            row = (step, name, int(ends[1]), int(ends[2]), transport, *numbers, None, None)
            yield dict(zip(LINKS, row, strict=False))


def _number(value: object) -> float | None:
    """A number that is not negative."""
    number = as_number(value)
    return number if number is not None and 0 <= number < 1e15 else None
