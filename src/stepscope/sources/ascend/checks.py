"""Compare totals with the events that they come from, and report device work that should be there.

A rank whose device work is missing must not look like one whose device was idle.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.rank_files import ExportFiles
from stepscope.sources.ascend.trace_view import TraceView
from stepscope.sources.base import Sink

_TOLERANCE = 0.01
_REMEDY = "Export the profile again, or copy its files again."


class Busy:
    """Time covered by at least one of many ranges that come in order of time, and the sum of their durations."""

    def __init__(self) -> None:
        self.union_ns = 0
        self.summed_ns = 0
        self._until_ns = 0

    def add(self, ranges: pl.DataFrame) -> None:
        """Take in ranges that start no earlier than those before."""
        if ranges.is_empty():
            return
        ends = pl.col("start_ns") + pl.col("duration_ns")
        before = pl.max_horizontal("start_ns", ends.cum_max().shift(1), pl.lit(self._until_ns))
        places = ranges[["start_ns", "duration_ns"]]
        sorted_places = places if places["start_ns"].is_sorted() else places.sort("start_ns")
        covered, summed, until = sorted_places.select(
            covered=(ends - before).clip(lower_bound=0).sum(), summed=pl.sum("duration_ns"), until=ends.max()
        ).row(0)
        self.union_ns += covered
        self.summed_ns += summed
        self._until_ns = max(self._until_ns, until)


def check_text(recording: ExportedRank, computed: Busy, view: TraceView, files: ExportFiles, sink: Sink) -> None:
    """Report stated totals that differ from their parts by more than 1 %; the parts are used."""
    communicated = Busy()
    communicated.add(recording.communication)
    overlap = dict(view.overlap.iter_rows())
    on_host = recording.identity.device_kind == "cpu"  # where waiting for a call counts as communication as well
    for name, busy in (("Computing", computed), ("Communication", communicated)):
        if name in overlap and busy.summed_ns and not on_host:
            _compare(overlap[name], busy.union_ns, f"the overlap analysis gives {name}", files, "trace", sink)
    stated = recording.totals.filter(pl.col("level") == "kernel")["total_ns"].sum()
    if stated and computed.summed_ns:
        _compare(int(stated), computed.summed_ns, "op_statistic.csv gives kernel time", files, "kernel_totals", sink)


def _compare(stated: int, summed: int, what: str, files: ExportFiles, part: str, sink: Sink) -> None:
    if abs(stated - summed) > _TOLERANCE * max(summed, 1):
        problem = f"{what} as {stated} ns, but the events add up to {summed} ns"
        remedy = "Nothing to do: the events are used. The file may be truncated or cover other steps."
        sink.issue("note", files.texts.get(part, files.path), problem, remedy)


def report_lost_kernels(recording: ExportedRank, path: Path, sink: Sink) -> None:
    """Report a recording that should have compute kernels but has none."""
    if not recording.has_kernels:
        problem = "no compute kernels can be read, so what the device did is unknown"
        sink.issue("error", path, problem, _REMEDY, place="kernels")


def report_lost_device(recording: ExportedRank, path: Path, sink: Sink) -> None:
    """Report and mark a recording that should have device work but has none."""
    recording.device_is_lost = (
        not recording.has_kernels and recording.communication.is_empty() and recording.calls.is_empty()
    )
    if recording.device_is_lost:
        problem = "no work of the device can be read, so where its steps begin and end is unknown"
        sink.issue("error", path, problem, _REMEDY, place="steps")
