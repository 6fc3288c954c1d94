"""Flame graphs as files of other tools: collapsed stacks (flamegraph.pl, inferno) and speedscope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def speedscope(flames: Sequence[Flame]) -> bytes:
    """A file of https://www.speedscope.app with a profile for each flame graph."""
    numbers: dict[str, int] = {}
    profiles = []
    for flame in flames:
        stacks = list(_stacks(flame))
        profiles.append(
            {
                "type": "sampled",
                "name": f"{flame.title}, {flame.time} time",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(own_ns for _, own_ns in stacks),
                "samples": [[numbers.setdefault(name, len(numbers)) for name in stack] for stack, _ in stacks],
                "weights": [own_ns for _, own_ns in stacks],
            }
        )
    document: dict[str, Any] = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"stepscope {__version__}",
        "name": flames[0].title,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": profiles,
    }
    return msgspec.json.encode(document)


def _stacks(flame: Flame) -> Iterator[tuple[list[str], int]]:
    """Each call's names from the outermost on, with its own time, in the order of the tree."""
    names: list[str] = []
    for depth, name, own_ns in flame.rows.select("depth", "name", "own_ns").iter_rows():
        del names[depth:]
        names.append(name)
        if own_ns > 0:
            yield [*names], own_ns
