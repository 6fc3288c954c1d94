"""What a text export states twice: totals and unions, compared with the events that they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.sources.ascend.rank_files import RankFiles
from stepscope.sources.ascend.recording import Recording
from stepscope.sources.ascend.trace_view import TraceView

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

_TOLERANCE = 0.01


def check_text(recording: Recording, view: TraceView, files: RankFiles, sink: Sink) -> None:
    """Tell where stated totals differ from their parts by more than 1 %; the parts are used."""
    overlap = dict(view.overlap.iter_rows())
    busy = {
        "Computing": recording.compute,
        "Communication": recording.communication,
    }
    for name, rows in busy.items():
        if name in overlap and not rows.is_empty():
            _compare(overlap[name], union_ns(rows), f"the overlap analysis states {name}", files, "trace", sink)
    stated = recording.totals.filter(pl.col("level") == "kernel")["total_ns"].sum()
    if stated and not recording.compute.is_empty():
        summed = int(recording.compute["duration_ns"].sum())
        _compare(int(stated), summed, "op_statistic.csv states kernel time", files, "kernel_totals", sink)


def union_ns(ranges: pl.DataFrame) -> int:
    """Time covered by at least one of the ranges."""
    ends = pl.col("start_ns") + pl.col("duration_ns")
    begun = ranges.sort("start_ns").select("start_ns", end_ns=ends, before=ends.cum_max().shift(1))
    new = pl.col("end_ns") - pl.max_horizontal("start_ns", "before")
    return int(begun.select(new.clip(lower_bound=0).sum()).item())


def _compare(stated: int, summed: int, what: str, files: RankFiles, part: str, sink: Sink) -> None:
    if abs(stated - summed) > _TOLERANCE * max(summed, 1):
        sink.issue(
            "note",
            files.texts.get(part, files.path),
            f"{what} as {stated} ns, its events give {summed} ns",
            "None needed: the events are used. The file may be cut, or hold other steps.",
        )
