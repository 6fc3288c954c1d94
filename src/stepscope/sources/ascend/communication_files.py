"""The communication files of the text export as flat frames, one row a call, transport packet or link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import msgspec
import polars as pl

from stepscope.json_files import read_as
from stepscope.json_values import as_number
from stepscope.sources.base import Sink
from stepscope.sources.plausible import STRAY_REMEDY, Times, sort_out
from stepscope.sources.side_files import read_object
from stepscope.tables.base import columns_of, frame_of

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
_BAND = {**_CALL, "transport": pl.String}
PACKETS: dict[str, type[pl.DataType]] = {
    **_BAND,
    **dict.fromkeys((*MOVED, "packet_mb", "packets", "packets_ms"), pl.Float64),
}
"""One row per call, transport and packet size; the packet columns are null if none are listed."""
_CLASS = {"step": pl.Int64, "group": pl.String, "class": pl.String}
_PLACE = {**_CLASS, "source": pl.Int64, "destination": pl.Int64}
_NAMED = {"name": "Op Name", "transport": "Transport Type"}
LINKS: dict[str, type[pl.DataType]] = {**_PLACE, **dict.fromkeys(_NAMED, pl.String), **dict.fromkeys(MOVED, pl.Float64)}
"""One row per link; source and destination count within the group. `class` is like `allreduce-top1`."""


class _Link(msgspec.Struct, frozen=True, gc=False, rename={**_NAMED, **MOVED}):
    """What communication_matrix.json says of one link."""

    name: str | None = None
    transport: str | None = None
    size_mb: float | None = None
    time_ms: float | None = None
    bandwidth: float | None = None

    @classmethod
    def among(cls, values: Mapping[str, Any]) -> _Link:
        """The values that are of the right types; others are unknown."""
        name, transport = (word if isinstance(word := values.get(said), str) else None for said in _NAMED.values())
        return cls(name, transport, *(as_number(values.get(said)) for said in MOVED.values()))


_MATRIX = msgspec.json.Decoder(dict[str, dict[str, dict[str, dict[str, _Link]]]])
"""By step, kind, operation and ends. Matrices of large groups are most of what a recording says."""


def step_number(word: object) -> int | None:
    """`step10` is 10; `step` (no schedule) is null."""
    digits = str(word).removeprefix("step")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None


def read_communication(path: Path, sink: Sink) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read communication.json: calls and packets. Totals are left out; they are sums of the calls."""
    calls: list[tuple[Any, ...]] = []
    entries: list[Mapping[str, Any]] = []
    packets = _Packets()
    bad = 0
    for step, key, entry in _entries(path, sink):
        name, _, group = key.partition("@")
        if name.startswith("Total Op Info"):
            continue
        times, bands = entry.get("Communication Time Info"), entry.get("Communication Bandwidth Info")
        if not isinstance(times, dict):
            bad += 1
            continue
        if isinstance(bands, dict):
            packets.add(len(calls), bands)
        calls.append((step, group or None, name))
        entries.append(times)
    _report(bad, path, sink)
    frame = frame_of([*columns_of(calls, _CALL), *_figures(entries, TIMES)])
    return timed_calls(frame, path, sink), packets.frame(frame.select(_CALL.keys()))


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
    places: dict[str, list[Any]] = {name: [] for name in _PLACE}
    entries: list[_Link] = []
    bad = 0
    for step, key, given, entry in _matrix(path, sink):
        kind, _, group = key.partition("@")
        ends, links = _ends(tuple(entry)), list(entry.values())
        # one of a rank with itself shows which rank of its group wrote the file; a copy within the rank has a size
        left_out = {at for at in ends.within if not as_number(links[at].size_mb)}.union(ends.unknown)
        bad += given - len(entry) + len(ends.unknown)
        sources, destinations = ends.sources, ends.destinations
        if left_out:
            kept = [at for at in range(len(links)) if at not in left_out]
            sources, destinations = ([values[at] for at in kept] for values in (sources, destinations))
            links = [links[at] for at in kept]
        entries += links
        for name, value in zip(_CLASS, (step, group or None, kind), strict=True):
            places[name] += [value] * len(links)
        places["source"] += sources
        places["destination"] += destinations
    _report(bad, path, sink)
    placed = [pl.Series(name, values, dtype=_PLACE[name]) for name, values in places.items()]
    named = [pl.Series(name, list(map(attrgetter(name), entries)), dtype=pl.String) for name in _NAMED]
    return frame_of([*placed, *named, *(_numbers(name, list(map(attrgetter(name), entries))) for name in MOVED)])


def _matrix(path: Path, sink: Sink) -> Iterator[tuple[int | None, str, int, Mapping[str, _Link]]]:
    """Step, key, number of links as written, and those that can be read, of each entry below step and kind."""
    if (typed := read_as(path, _MATRIX)) is not None:
        for step, kinds in typed.items():
            for links in kinds.values():
                yield from ((step_number(step), key, len(entry), entry) for key, entry in links.items())
        return
    for number, key, values in _entries(path, sink):
        yield number, key, len(values), {ends: _Link.among(link) for ends, link in values.items() if type(link) is dict}


class _Ends(NamedTuple):
    """Sources and destinations of links like `0-13`, and the places of those between a rank and itself, and others."""

    sources: list[int]
    destinations: list[int]
    within: list[int]
    unknown: list[int]


@lru_cache(1 << 8)
def _ends(links: tuple[str, ...]) -> _Ends:
    """The ends of some links: nearly all calls of a group list the same ones."""
    parts = [link.partition("-") for link in links]
    known = [source.isdecimal() and destination.isdecimal() for source, _, destination in parts]
    return _Ends(
        [int(source[:9]) if is_known else 0 for (source, _, _), is_known in zip(parts, known, strict=True)],
        [int(destination[:9]) if is_known else 0 for (_, _, destination), is_known in zip(parts, known, strict=True)],
        [at for at, (source, _, destination) in enumerate(parts) if known[at] and source == destination],
        [at for at, is_known in enumerate(known) if not is_known],
    )


def _entries(path: Path, sink: Sink) -> Iterator[tuple[int | None, str, Mapping[str, Any]]]:
    """Step, key and value of each entry below step and kind (`p2p` or `collective`)."""
    for step, kinds in (read_object(path, sink) or {}).items():
        for entries in kinds.values() if isinstance(kinds, dict) else ():
            for key, entry in entries.items() if isinstance(entries, dict) else ():
                if isinstance(entry, dict):
                    yield step_number(step), key, entry


class _Packets:
    """Collects the rows of `PACKETS`."""

    def __init__(self) -> None:
        self._calls: list[int] = []
        self._transports: list[str] = []
        self._entries: list[Mapping[str, Any]] = []
        """What each call moved over each transport."""
        self._bands: list[int] = []
        """For each row the number of the entry."""
        self._rows: list[tuple[float | None, object, object]] = []
        """Packet size, number of packets and their time."""

    def add(self, call: int, bands: Mapping[str, Any]) -> None:
        """Take what the call of a number moved over the transports."""
        for transport, band in bands.items():
            if not isinstance(band, dict):
                continue
            distribution = band.get("Size Distribution")
            if not (distribution or band.get(MOVED["size_mb"]) or band.get(MOVED["time_ms"])):
                continue  # most transports are not used
            rows: list[tuple[float | None, object, object]] = [
                (size, *parts)
                for packet, parts in (distribution.items() if isinstance(distribution, dict) else ())
                if isinstance(parts, list) and len(parts) == 2 and (size := _packet_mb(packet)) is not None
            ]
            if not rows and any(as_number(band.get(MOVED[name])) for name in ("size_mb", "time_ms")):
                rows.append((None, None, None))
            self._bands += [len(self._entries)] * len(rows)
            self._rows += rows
            self._calls.append(call)
            self._transports.append(transport)
            self._entries.append(band)

    def frame(self, calls: pl.DataFrame) -> pl.DataFrame:
        """All rows, with the names of the calls."""
        packet_mb, packets, packets_ms = list(zip(*self._rows, strict=True)) or ((), (), ())
        transports = pl.Series("transport", self._transports, dtype=pl.String)
        bands = calls[_places(self._calls)].hstack([transports, *_figures(self._entries, MOVED)])
        sizes = [pl.Series("packet_mb", packet_mb, dtype=pl.Float64), _numbers("packets", packets)]
        return bands[_places(self._bands)].hstack([*sizes, _numbers("packets_ms", packets_ms)])


def _places(rows: list[int]) -> pl.Series:
    return pl.Series(rows, dtype=pl.UInt32)


@lru_cache(1 << 10)
def _packet_mb(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _figures(entries: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[pl.Series]:
    """Columns of figures of some entries, by their recorded names."""
    return [_numbers(column, [entry.get(name) for entry in entries]) for column, name in names.items()]


def _numbers(name: str, values: Sequence[object]) -> pl.Series:
    """A column of figures as of `as_number`."""
    if not {*map(type, values)} <= {float, NoneType}:
        values = list(map(as_number, values))
    column = pl.Series(name, values, dtype=pl.Float64)
    return column if isfinite(column.sum()) else column.set(~column.is_finite(), None)


def _report(bad: int, path: Path, sink: Sink) -> None:
    if bad:
        problem = f"{bad} entries have an unknown form and are left out"
        sink.issue("error", path, problem, "Export the profile again.", lost=bad)
