"""What has to be known of a whole trace before any part of it becomes rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.json_values import whole_number
from stepscope.sources.distinct import Distinct
from stepscope.sources.kineto.compiling import RANGES, Compiling, find_compiling
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import HOST_CLASSES
from stepscope.sources.kineto.steps import STEP_PREFIX, Steps, find_steps
from stepscope.sources.windows import around, span_of

_MARKING = ("operator", "annotation")
_MARKS = f"^{STEP_PREFIX}|{RANGES}"


@dataclass(frozen=True)
class Facts:
    """Facts of one trace; times in ns, None if there are no such events."""

    steps: Steps
    overlapping_steps: int
    """How many steps overlapped the next one and were cut."""
    host: tuple[int, int] | None
    """First start and last end on the host."""
    recorded: tuple[int, int] | None
    """The same without the profiler's own span."""
    device_starts: tuple[int, int] | None
    """First and last start of device work, without what has none."""
    has_launches: bool
    """Whether any host call states what it launched."""
    ids_are_correlations: bool
    """Whether device work has its correlation in place of the id of its operator."""
    process: int | None
    """Where most operators run."""
    compiling: Compiling
    """When a compiler ran."""


class _Marked:
    """Events, of operators and annotations only those that mark steps or compiling."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._kept: dict[str, list[pl.DataFrame]] = {name: [] for name in _MARKING}

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Look through a frame of a class that has marks."""
        self._kept[name].append(frame.filter(Distinct(frame["name"]).matching(_MARKS)))

    def frames(self, name: str, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
        """As `Events.frames`."""
        if name not in self._kept:
            return self._events.frames(name, columns)
        return (frame.select(columns or pl.all()) for frame in self._kept[name])


def gather_facts(events: Events) -> Facts:
    """Look through all events once."""
    own = pl.col("category").str.to_lowercase() == "trace"
    spans = []
    recorded = []
    marked = _Marked(events)
    for name in HOST_CLASSES:
        more = ["category"] if name == "other" else ["name", "place"] if name in _MARKING else []
        for frame in events.frames(name, ["start_ns", "duration_ns", *more]):
            if name in _MARKING:
                marked.add(name, frame)
            spans.append(span_of(frame))
            recorded.append(span_of(frame.filter(~own.fill_null(False))) if name == "other" else spans[-1])
    steps, overlapping = find_steps(marked)
    return Facts(
        steps=steps,
        overlapping_steps=overlapping,
        host=around(spans),
        recorded=around(recorded),
        device_starts=_device_starts(events),
        has_launches=any((f["correlation"] > 0).any() for f in events.frames("runtime", ["start_ns", "correlation"])),
        ids_are_correlations=_ids_are_correlations(events),
        process=_process(events),
        compiling=find_compiling(marked),
    )


def _device_starts(events: Events) -> tuple[int, int] | None:
    timed = (frame.filter(pl.col("start_ns") > events.base_ns) for frame in events.frames("device", ["start_ns"]))
    return around([span_of(frame.with_columns(duration_ns=0)) for frame in timed])


def _ids_are_correlations(events: Events) -> bool:
    known = 0
    for frame in events.frames("device", ["start_ns", "external_id", "correlation"]):
        same = (pl.col("external_id") == pl.col("correlation")) | (pl.col("correlation") <= 0)
        count, all_same = frame.select(pl.col("external_id").count(), same=same.fill_null(True).all()).row(0)
        known += count
        if not all_same:
            return False
    return known > 0


def _process(events: Events) -> int | None:
    """The process of most operators, by the first of them."""
    for name in ("operator", "annotation", "runtime"):
        frames = events.frames(name, ["start_ns", "place"])
        if (first := next((frame for frame in frames if frame.height), None)) is not None:
            return whole_number(events.located(first)["process"].drop_nulls().mode().sort().first())
    return None
