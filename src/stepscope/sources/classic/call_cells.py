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
    """Calls and links of all steps.

    Args:
        steps: `step`, and the texts `links` and `operators`, null if a file has none.
        path: The file, for issues.
        sink: Told how many cells and entries cannot be read.

    Returns:
        Frames with the columns of `CALLS` and `LINKS`.
    """
    calls: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    lost = 0
    for step, linked, called in steps.select("step", "links", "operators").iter_rows():
        entries, damaged = _object(linked)
        lost += damaged
        for link in _links(entries):
            links.append({"step": step, "name": None, **link}) if link else None
            lost += link is None
        operators, damaged = _object(called)
        lost += damaged
        for name, entry in operators.items():
            call = _call(entry)
            if call is None:
                lost += 1
                continue
            calls.append({"step": step, "name": name, "cost": call[0], "wait": call[1]})
            for link in _links(call[2]):
                links.append({"step": step, "name": name, **link}) if link else None
                lost += link is None
    if lost:
        problem = f"{lost} entries of links and calls cannot be read and are left out"
        sink.issue("error", path, problem, "Copy the file again, or run the profiler's analysis again", lost=lost)
    return pl.DataFrame(calls, schema=CALLS), pl.DataFrame(links, schema=LINKS)


def _object(cell: str | None) -> tuple[Mapping[str, Any], int]:
    """The object in a cell, and the number of damaged cells; an empty cell is not damage."""
    if not cell:
        return {}, 0
    content = value_in(cell)
    return (content, 0) if isinstance(content, Mapping) else ({}, 1)


def _call(entry: object) -> tuple[float, float, Mapping[str, Any]] | None:
    """Cost, waiting and links of a call, of `[step, cost, wait, links]`."""
    if not isinstance(entry, list) or len(entry) < 3:
        return None
    cost, wait = _number(entry[1]), _number(entry[2])
    linked = entry[3] if len(entry) > 3 and isinstance(entry[3], Mapping) else {}
    return None if cost is None or wait is None else (cost, wait, linked)


def _links(entries: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """Links of `{"0-1": {"SDMA": [time, size, bandwidth]}}`, with a wait in fourth place for RDMA; None if damaged."""
    for name, transports in entries.items():
        ends = _LINK.fullmatch(name)
        if ends is None or not isinstance(transports, Mapping):
            yield None
            continue
        for transport, values in transports.items():
            numbers = [_number(value) for value in values] if isinstance(values, list) else []
            if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
                yield None
                continue
            numbers += [None, None]
            yield {
                "source": int(ends[1]),
                "destination": int(ends[2]),
                "transport": transport,
                **dict(zip(("time", "size", "stated", "wait"), numbers, strict=False)),
            }


def _number(value: object) -> float | None:
    """A number that is not negative."""
    number = as_number(value)
    return number if number is not None and 0 <= number < 1e15 else None
