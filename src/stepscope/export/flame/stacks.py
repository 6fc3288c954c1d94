"""Flame graphs as files of other tools: collapsed stacks (flamegraph.pl, inferno) and speedscope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stepscope._version import __version__
from stepscope.export.flame.frames import Flame


def collapsed(flame: Flame) -> Iterator[bytes]:
    """A line for each stack of calls with own time: names from the outermost to the innermost with `;` between them,
    and the time in ns."""
    for stack, own_ns in _stacks(flame):
        names = ";".join(name.replace(";", ":").strip() or "?" for name in stack)
        yield f"{names} {own_ns}\n".encode("utf-8", "backslashreplace")


def speedscope(flames: Sequence[Flame]) -> Iterator[bytes]:
    """A file of https://www.speedscope.app with a profile for each flame graph, in pieces: calls begin and end one in
    another, which takes a few bytes a call however deep it is."""
    numbers: dict[str, int] = {}
    for flame in flames:
        for name in flame.rows["name"]:
            numbers.setdefault(name, len(numbers))
    head: dict[str, Any] = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"stepscope {__version__}",
        "name": flames[0].title,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in numbers]},
    }
    yield msgspec.json.encode(head)[:-1] + b',"profiles":['
    for place, flame in enumerate(flames):
        about = {
            "type": "evented",
            "name": f"{flame.title}, {flame.time} time",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": flame.total_ns,
        }
        yield b"," * bool(place) + msgspec.json.encode(about)[:-1] + b',"events":['
        yield from _events(flame, numbers)
        yield b"]}"
    yield b"]}"


def _events(flame: Flame, numbers: Mapping[str, int]) -> Iterator[bytes]:
    """When each call begins and ends, in order of time: calls in another one from its start on, its own time last."""
    opened: list[tuple[int, int]] = []  # frame and end of calls that are not over
    starts, mark = [0], b""
    rows = flame.rows.select("depth", "name", "whole_ns").iter_rows()
    for depth, name, whole_ns in rows:
        while len(opened) > depth:
            frame, end_ns = opened.pop()
            yield mark + b'{"type":"C","frame":%d,"at":%d}' % (frame, end_ns)
        del starts[depth + 1 :]
        start_ns = starts[depth]
        yield mark + b'{"type":"O","frame":%d,"at":%d}' % (numbers[name], start_ns)
        mark = b","
        opened.append((numbers[name], start_ns + whole_ns))
        starts[depth] += whole_ns
        starts.append(start_ns)
    while opened:
        frame, end_ns = opened.pop()
        yield mark + b'{"type":"C","frame":%d,"at":%d}' % (frame, end_ns)


def _stacks(flame: Flame) -> Iterator[tuple[list[str], int]]:
    """Each call's names from the outermost on, with its own time, in the order of the tree."""
    names: list[str] = []
    for depth, name, own_ns in flame.rows.select("depth", "name", "own_ns").iter_rows():
        del names[depth:]
        names.append(name)
        if own_ns > 0:
            yield [*names], own_ns
