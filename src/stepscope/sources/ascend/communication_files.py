"""The communication files of the text export as flat frames, one row a call, transport packet or link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_number
from stepscope.sources.base import Sink
from stepscope.sources.plausible import STRAY_REMEDY, Times, sort_out
from stepscope.sources.side_files import read_object

TIMES = {
    "start_us": "Start Timestamp(us)",
    "elapse_ms": "Elapse Time(ms)",
    "transit_ms": "Transit Time(ms)",
    "wait_ms": "Wait Time(ms)",
    "synchronization_ms": "Synchronization Time(ms)",
}
MOVED = {"size_mb": "Transit Size(MB)", "time_ms": "Transit Time(ms)", "bandwidth": "Bandwidth(GB/s)"}
"""Columns to the recorded names of their figures."""
_CALL = {"step": pl.Int64, "group": pl.String, "name": pl.String}
CALLS: dict[str, type[pl.DataType]] = {**_CALL, **dict.fromkeys(TIMES, pl.Float64)}
"""One row per call. A start in floating microseconds is exact to a quarter of one only."""
PACKETS: dict[str, type[pl.DataType]] = {
    **_CALL,
    "transport": pl.String,
    **dict.fromkeys((*MOVED, "packet_mb", "packets", "packets_ms"), pl.Float64),
}
"""One row per call, transport and packet size; the packet columns are null if none are listed."""
LINKS: dict[str, type[pl.DataType]] = {
    "step": pl.Int64,
    "group": pl.String,
    "class": pl.String,
    "name": pl.String,
    "source": pl.Int64,
    "destination": pl.Int64,
    "transport": pl.String,
    **dict.fromkeys(MOVED, pl.Float64),
}
"""One row per link; source and destination count within the group. `class` is like `allreduce-top1`."""


def step_number(word: object) -> int | None:
    """`step10` is 10; `step` (no schedule) is null."""
    digits = str(word).removeprefix("step")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None


def read_communication(path: Path, sink: Sink) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read communication.json: calls and packets. Totals are left out; they are sums of the calls."""
    calls: list[tuple[Any, ...]] = []
    packets: list[tuple[Any, ...]] = []
    bad = 0
    for step, key, entry in _entries(path, sink):
        name, _, group = key.partition("@")
        if name.startswith("Total Op Info"):
            continue
        times, bands = entry.get("Communication Time Info"), entry.get("Communication Bandwidth Info")
        if not isinstance(times, dict):
            bad += 1
            continue
        calls.append((step, group or None, name, *_figures(times, TIMES)))
        for transport, band in bands.items() if isinstance(bands, dict) else ():
            if isinstance(band, dict):
                packets += _packets((step, group or None, name, transport), band)
    _report(bad, path, sink)
    frame = pl.DataFrame(calls, schema=CALLS, orient="row")
    return timed_calls(frame, path, sink), pl.DataFrame(packets, schema=PACKETS, orient="row")


def timed_calls(calls: pl.DataFrame, path: Path, sink: Sink, *, table: str | None = None) -> pl.DataFrame:
    """Rows of `CALLS` with plausible times; `table` is the table of a database that held them.

    A call without times is kept: it still shows how a step's time was spent.
    """
    start = (pl.col("start_us") * 1000).cast(pl.Int64, strict=False)
    lasted = (pl.col("elapse_ms") * 1e6).cast(pl.Int64, strict=False)
    times = Times()
    times.add(calls.select(start).to_series())
    stated = calls.select(missing=pl.any_horizontal(pl.col("start_us", "elapse_ms").is_null())).to_series()
    checked = sort_out(calls.filter(~stated), times.middle_ns, start=start, end=start + lasted)
    if checked.lost:
        problem = f"table {table}: {checked.problem()}" if table else checked.problem()
        sink.issue("error", path, problem, STRAY_REMEDY, place="collectives", lost=checked.lost)
    return pl.concat([checked.rows, calls.filter(stated)]) if stated.any() else checked.rows


def read_matrix(path: Path, sink: Sink) -> pl.DataFrame:
    """Read communication_matrix.json: links."""
    links: list[tuple[Any, ...]] = []
    bad = 0
    for step, key, entry in _entries(path, sink):
        kind, _, group = key.partition("@")
        for link, values in entry.items():
            source, _, destination = str(link).partition("-")
            if not isinstance(values, dict) or not (source.isdecimal() and destination.isdecimal()):
                bad += 1
                continue
            moved = _figures(values, MOVED)
            if source == destination and not moved[0]:
                continue  # shows which rank of its group wrote the file; a copy within the rank has a size
            name, transport = (
                text if isinstance(text, str) else None for text in map(values.get, ("Op Name", "Transport Type"))
            )
            ends = int(source[:9]), int(destination[:9])
            links.append((step, group or None, kind, name, *ends, transport, *moved))
    _report(bad, path, sink)
    return pl.DataFrame(links, schema=LINKS, orient="row")


def _entries(path: Path, sink: Sink) -> Iterator[tuple[int | None, str, Mapping[str, Any]]]:
    """Step, key and value of each entry below step and kind (`p2p` or `collective`)."""
    for step, kinds in (read_object(path, sink) or {}).items():
        for entries in kinds.values() if isinstance(kinds, dict) else ():
            for key, entry in entries.items() if isinstance(entries, dict) else ():
                if isinstance(entry, dict):
                    yield step_number(step), key, entry


def _packets(call: tuple[Any, ...], band: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    if not any(map(band.get, ("Transit Size(MB)", "Transit Time(ms)", "Size Distribution"))):
        return []  # most transports are not used
    size, time, rate = _figures(band, MOVED)
    distribution = band.get("Size Distribution")
    rows = []
    for packet, parts in distribution.items() if isinstance(distribution, dict) else ():
        if isinstance(parts, list) and len(parts) == 2:
            with suppress(ValueError):
                rows.append((*call, size, time, rate, float(packet), *map(as_number, parts)))
    if not rows and (size or time):
        rows.append((*call, size, time, rate, None, None, None))
    return rows


def _figures(entry: Mapping[str, Any], names: Mapping[str, str]) -> list[float | None]:
    return [as_number(entry.get(name)) for name in names.values()]


def _report(bad: int, path: Path, sink: Sink) -> None:
    if bad:
        problem = f"{bad} entries have an unknown form and are left out"
        sink.issue("error", path, problem, "Export the profile again.", lost=bad)
