"""Several recordings of one rank as one: on one clock, with ids that do not meet, and steps numbered alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import polars as pl

from stepscope.sources.ascend import merged_calls
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.merged_steps import numbers_of, renumbered
from stepscope.sources.ascend.rank_info import RankInfo
from stepscope.sources.ascend.steps import STEP_NAME
from stepscope.sources.ascend.timeline import Kind, Timeline
from stepscope.sources.windows import around
from stepscope.tables import OPERATOR_TOTALS

_KINDS: tuple[Kind, ...] = get_args(Kind)
_TOTALS_OF = ("unit", "level", "name", "core", "type", "full_name", "subgraph", "process")
_TIMES = {
    "allocations": ("allocation_ns", "release_ns", "active_release_ns"),
    "memory_curve": ("time_ns",),
    "counters": ("time_ns",),
}


class Merging:
    """Takes recordings in order of time.

    Args:
        identity: The rank.
        ranges: All steps of the rank, as `recording.STEPS`; these replace the recordings' own steps.
        scratch: Gives the directory for what does not fit memory.
    """

    def __init__(self, identity: RankInfo, ranges: pl.DataFrame, scratch: Callable[[], Path]) -> None:
        self._merged = ExportedRank(identity, Groups(), Timeline(scratch), steps=ranges)
        self._ranges = ranges
        self._last_id = 0
        self._calls = merged_calls.MergedCalls(ranges)
        self._parts: dict[str, list[pl.DataFrame]] = {}

    def add(self, found: ExportedRank, shift_ns: int, covered: pl.DataFrame) -> None:
        """Take one recording; its events are used up.

        Args:
            found: The recording.
            shift_ns: Added to all its times.
            covered: Those of the steps that it covers.
        """
        numbers = numbers_of(found, shift_ns, self._ranges, covered)
        self._calls.add(found, shift_ns, self._last_id, numbers)
        starts = found.operator_starts
        self._keep("operator_starts", _moved(starts, ("operator_start_ns",), shift_ns, self._last_id))
        for name, times in _TIMES.items():
            self._keep(name, _moved(getattr(found, name), times, shift_ns, 0))
        only = covered["step"][0] if covered.height == 1 else None
        totals = found.step_totals.with_columns(pl.coalesce(renumbered(numbers), pl.lit(only, pl.Int32)).alias("step"))
        self._keep("step_totals", totals.drop_nulls("step"))
        self._keep("totals", found.totals)
        self._merged.groups.take(found.groups)
        self._last_id += self._take_events(found.timeline, shift_ns, numbers)

    def _keep(self, name: str, frame: pl.DataFrame) -> None:
        self._parts.setdefault(name, []).append(frame)

    def _take_events(self, timeline: Timeline, shift_ns: int, numbers: dict[int, int | None]) -> int:
        """Take all events; returns the largest id among them."""
        largest = 0
        for kind in _KINDS:
            for frame in timeline.taken(kind):
                rows = _moved(frame, ("start_ns",), shift_ns, self._last_id)
                if kind == "host":
                    rows = rows.filter(~pl.col("name").str.contains(STEP_NAME))
                if "step" in rows.columns:
                    rows = rows.with_columns(renumbered(numbers))
                largest = max(largest, int(frame["correlation"].max() or 0))  # type: ignore[arg-type]
                self._merged.timeline.add(kind, rows)
        return largest

    def host(self, *columns: str) -> Iterator[pl.DataFrame]:
        """Columns of the ranges on the host that were taken so far."""
        return self._merged.timeline.frames("host", *columns)

    def merged(self, host: pl.DataFrame) -> ExportedRank:
        """All of them as one.

        Args:
            host: Other known ranges on the host, as `recording.HOST`.
        """
        whole = self._merged
        whole.timeline.add("host", host)
        for name, frames in self._parts.items():
            setattr(whole, name, pl.concat(frames))
        whole.memory_curve = whole.memory_curve.sort("time_ns", "component", nulls_last=True)
        whole.totals = _summed(whole.totals)
        whole.described, whole.packets, whole.links = self._calls.merged()
        whole.groups.mention(whole.described["group"])
        return whole


def span_of_events(found: ExportedRank) -> tuple[int, int] | None:
    """First and last start of the events of a recording."""
    spans: list[tuple[int, int] | None] = []
    for kind in _KINDS:
        for frame in found.timeline.frames(kind, "start_ns"):
            first, last = frame.select(first=pl.min("start_ns"), last=pl.max("start_ns")).row(0)
            spans.append(None if first is None else (first, last))
    return around(spans)


def _moved(frame: pl.DataFrame, times: tuple[str, ...], shift_ns: int, first_id: int) -> pl.DataFrame:
    """`frame` by another clock, with its ids behind those that are given away."""
    ids = [pl.col("correlation") + first_id] if "correlation" in frame.columns else []
    return frame.with_columns(pl.col(*times) + shift_ns, *ids)


def _summed(totals: pl.DataFrame) -> pl.DataFrame:
    """Totals over all recordings."""
    summed = pl.col("count", "total_ns").sum()
    waited = pl.when(pl.col("wait_ns").count() > 0).then(pl.col("wait_ns").sum()).alias("wait_ns")
    figures = (summed, waited, pl.min("min_ns"), pl.max("max_ns"), pl.max("operators"))
    return OPERATOR_TOTALS.shaped(totals.group_by(_TOTALS_OF, maintain_order=True).agg(figures))
