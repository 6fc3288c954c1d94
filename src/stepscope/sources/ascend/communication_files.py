"""The communication files of the text export as flat frames, one row a call, transport packet or link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.sources.plausible import STRAY_REMEDY, Times, sort_out
from stepscope.sources.side_files import read_object

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

CALLS = {
    "step": pl.Int64,
    "group": pl.String,
    "name": pl.String,
    "start_us": pl.Float64,
    "elapse_ms": pl.Float64,
    "transit_ms": pl.Float64,
    "wait_ms": pl.Float64,
    "synchronization_ms": pl.Float64,
}
"""One row per call. A start in floating microseconds is exact to a quarter of one only."""
PACKETS = {
    "step": pl.Int64,
    "group": pl.String,
    "name": pl.String,
    "transport": pl.String,
    "size_mb": pl.Float64,
    "time_ms": pl.Float64,
    "bandwidth": pl.Float64,
    "packet_mb": pl.Float64,
    "packets": pl.Float64,
    "packets_ms": pl.Float64,
}
"""One row per call, transport and packet size; the packet columns are null if none are listed."""
LINKS = {
    "step": pl.Int64,
    "group": pl.String,
    "class": pl.String,
    "name": pl.String,
    "source": pl.Int64,
    "destination": pl.Int64,
    "transport": pl.String,
    "size_mb": pl.Float64,
    "time_ms": pl.Float64,
    "bandwidth": pl.Float64,
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
        calls.append(
            (
                step,
                group or None,
                name,
                _number(times.get("Start Timestamp(us)")),
                _number(times.get("Elapse Time(ms)")),
                _number(times.get("Transit Time(ms)")),
                _number(times.get("Wait Time(ms)")),
                _number(times.get("Synchronization Time(ms)")),
            )
        )
        for transport, band in bands.items() if isinstance(bands, dict) else ():
            if isinstance(band, dict):
                packets += _packets((step, group or None, name, transport), band)
    _report(bad, path, sink)
    return timed_calls(_frame(calls, CALLS), path, sink), _frame(packets, PACKETS)


def timed_calls(calls: pl.DataFrame, path: Path, sink: Sink, *, table: str | None = None) -> pl.DataFrame:
    """Calls with plausible times. A call without times is kept: it still shows how a step's time was spent.

    Args:
        calls: Rows of `CALLS`.
        path: Where they were read.
        sink: Takes an issue with the number of calls left out.
        table: The table of a database that held them.
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
            if source == destination and not _number(values.get("Transit Size(MB)")):
                continue  # shows which rank of its group wrote the file; a copy within the rank has a size
            op_name, transport = values.get("Op Name"), values.get("Transport Type")
            links.append(
                (
                    step,
                    group or None,
                    kind,
                    op_name if isinstance(op_name, str) else None,
                    int(source[:9]),
                    int(destination[:9]),
                    transport if isinstance(transport, str) else None,
                    _number(values.get("Transit Size(MB)")),
                    _number(values.get("Transit Time(ms)")),
                    _number(values.get("Bandwidth(GB/s)")),
                )
            )
    _report(bad, path, sink)
    return _frame(links, LINKS)


def _entries(path: Path, sink: Sink) -> Iterator[tuple[int | None, str, Mapping[str, Any]]]:
    """Step, key and value of each entry below step and kind (`p2p` or `collective`)."""
    for step, kinds in (read_object(path, sink) or {}).items():
        for entries in kinds.values() if isinstance(kinds, dict) else ():
            for key, entry in entries.items() if isinstance(entries, dict) else ():
                if isinstance(entry, dict):
                    yield step_number(step), key, entry


def _packets(call: tuple[Any, ...], band: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    size, time = _number(band.get("Transit Size(MB)")), _number(band.get("Transit Time(ms)"))
    distribution = band.get("Size Distribution")
    if not (size or time or distribution):
        return []  # most transports are not used
    stated = (size, time, _number(band.get("Bandwidth(GB/s)")))
    rows = []
    for packet, parts in distribution.items() if isinstance(distribution, dict) else ():
        if isinstance(parts, list) and len(parts) == 2:
            try:
                rows.append((*call, *stated, float(packet), _number(parts[0]), _number(parts[1])))
            except ValueError:
                continue
    if not rows and (size or time):
        rows.append((*call, *stated, None, None, None))
    return rows


def _number(value: object) -> float | None:
    if type(value) is float:  # called for every figure of every call
        return value if math.isfinite(value) else None
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def _frame(rows: list[tuple[Any, ...]], schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


def _report(bad: int, path: Path, sink: Sink) -> None:
    if bad:
        sink.issue(
            "error", path, f"{bad} entries have an unknown form and are left out", "Export the profile again.", lost=bad
        )
