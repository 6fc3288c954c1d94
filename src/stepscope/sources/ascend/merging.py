"""Find and read the recordings of one rank, and merge them: one clock, unique ids and one numbering of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import polars as pl

from stepscope.sources.ascend.collective_tables import described_calls
from stepscope.sources.ascend.db import take_database
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_files import OUTPUT, RANK_DIRECTORY
from stepscope.sources.ascend.rank_info import RankInfo
from stepscope.sources.ascend.source import AscendDb, AscendText
from stepscope.sources.ascend.steps import STEP_NAME, step_at
from stepscope.sources.ascend.text import take_text
from stepscope.sources.ascend.timeline import KINDS, Timeline
from stepscope.sources.base import Input, Sink
from stepscope.sources.windows import around
from stepscope.tables import OPERATOR_TOTALS

_TOTALS_OF = ("unit", "level", "name", "core", "type", "full_name", "subgraph", "process")
_TOTAL = pl.col("class").str.ends_with("-total")
_LINK_FIGURES = ("size_mb", "time_ms", "bandwidth")
_TIMES = {
    "operator_starts": ("operator_start_ns",),
    "allocations": ("allocation_ns", "release_ns", "active_release_ns"),
    "memory_curve": ("time_ns",),
    "counters": ("time_ns",),
}


def rank_directories(parent: Path) -> list[Path]:
    """The directories that Ascend profilers wrote in `parent`, exported or raw, in order of their names.

    Raises:
        OSError: If `parent` cannot be listed.
    """
    below = sorted(path for path in parent.iterdir() if path.is_dir())
    return [path for path in below if RANK_DIRECTORY.match(path.name) or (path / OUTPUT).is_dir()]


def find_export(directory: Path) -> Input | None:
    """The export in a rank directory; None if it holds raw data only.

    Raises:
        OSError: If it cannot be listed.
    """
    names = sorted(path.name for path in directory.iterdir())
    found = AscendDb().find(directory, names) or AscendText().find(directory, names)
    return None if found is None else found.inputs[0]


def read_export(item: Input, sink: Sink) -> ExportedRank:
    """What an export, found by `find_export`, holds, whose steps are known from elsewhere.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    if item.source == AscendDb.name:
        return take_database(item, sink, has_marks=True)[0]
    return take_text(item, sink)[0]


class Merging:
    """Merges recordings in order of time.

    Args:
        identity: The rank.
        ranges: All steps of the rank, as `recording.STEPS`; these replace the recordings' own steps.
        scratch: Gives the directory for what does not fit memory.
    """

    def __init__(self, identity: RankInfo, ranges: pl.DataFrame, scratch: Callable[[], Path]) -> None:
        self._merged = ExportedRank(identity, Groups(), Timeline(scratch), steps=ranges)
        self._ranges = ranges
        self._last_id = 0
        self._calls = 0
        self._parts: dict[str, list[pl.DataFrame]] = {}

    def add(self, found: ExportedRank, shift_ns: int, covered: pl.DataFrame) -> None:
        """Take one recording, which covers the steps `covered`; its events are used up."""
        numbers = _numbers_of(found, shift_ns, self._ranges, covered)
        self._take_calls(found, shift_ns, numbers)
        for name, times in _TIMES.items():
            self._keep(name, self._moved(getattr(found, name), times, shift_ns))
        only = covered["step"][0] if covered.height == 1 else None
        totals = found.step_totals.with_columns(pl.coalesce(_renumbered(numbers), pl.lit(only, pl.Int32)).alias("step"))
        self._keep("step_totals", totals.drop_nulls("step"))
        self._keep("totals", found.totals)
        self._merged.groups.take(found.groups)
        self._last_id += self._take_events(found.timeline, shift_ns, numbers)

    def _keep(self, name: str, frame: pl.DataFrame) -> None:
        self._parts.setdefault(name, []).append(frame)

    def _moved(self, frame: pl.DataFrame, times: tuple[str, ...], shift_ns: int) -> pl.DataFrame:
        """`frame` by another clock, with its ids behind those that are given away."""
        ids = [pl.col("correlation") + self._last_id] if "correlation" in frame.columns else []
        return frame.with_columns(pl.col(*times) + shift_ns, *ids)

    def _take_calls(self, found: ExportedRank, shift_ns: int, numbers: Mapping[int, int | None]) -> None:
        """Take communication. Each recording names its calls anew, so they are described here.

        Packets and links get the number of their call (`collective`).
        """
        calls = described_calls(found.communication, found.calls, found.packets, found.groups)
        calls = calls.with_columns(pl.col("collective").cast(pl.Int64) + self._calls)
        self._calls += calls.height
        ids = calls.select("name", "collective", step=pl.col("step_analysed").cast(pl.Int64))
        ids = ids.unique(["name", "step"], keep="first", maintain_order=True)
        for name, frame in (("packets", found.packets), ("links", found.links)):
            tied = frame.join(ids, on=["name", "step"], how="left", nulls_equal=True, maintain_order="left")
            self._keep(name, tied.with_columns(_renumbered(numbers).cast(pl.Int64)))
        calls = self._moved(calls, ("start_ns",), shift_ns)
        # calls that only the analysis has have no launch: their start gives the step
        late = step_at(calls["start_ns"], self._ranges, inside=False).cast(pl.Int64) if self._ranges.height else None
        analysed = pl.coalesce(_renumbered(numbers, "step_analysed").cast(pl.Int64), pl.lit(late))
        self._keep("described", calls.with_columns(_renumbered(numbers), analysed))

    def _take_events(self, timeline: Timeline, shift_ns: int, numbers: Mapping[int, int | None]) -> int:
        """Take all events; returns the largest id among them."""
        largest = 0
        for kind in KINDS:
            for frame in timeline.taken(kind):
                rows = self._moved(frame, ("start_ns",), shift_ns)
                if kind == "host":
                    rows = rows.filter(~pl.col("name").str.contains(STEP_NAME))
                if "step" in rows.columns:
                    rows = rows.with_columns(_renumbered(numbers))
                largest = max(largest, int(frame["correlation"].max() or 0))  # type: ignore[arg-type]
                self._merged.timeline.add(kind, rows)
        return largest

    def host(self, *columns: str) -> Iterator[pl.DataFrame]:
        """Columns of the ranges on the host that were taken so far."""
        return self._merged.timeline.frames("host", list(columns))

    def merged(self, host: pl.DataFrame) -> ExportedRank:
        """All of them as one, with other known ranges on the host (as `HOST`)."""
        whole = self._merged
        whole.timeline.add("host", host)
        for name, frames in self._parts.items():
            setattr(whole, name, pl.concat(frames, how="vertical_relaxed"))
        whole.memory_curve = whole.memory_curve.sort("time_ns", "component", nulls_last=True)
        whole.totals = _summed(whole.totals)
        if "collective" in whole.links.columns:
            whole.links = _summed_links(whole.links)
        return whole


def span_of_events(found: ExportedRank) -> tuple[int, int] | None:
    """First and last start of the events of a recording."""
    spans: list[tuple[int, int] | None] = []
    for kind in KINDS:
        for frame in found.timeline.frames(kind, ["start_ns"]):
            first, last = frame.select(first=pl.min("start_ns"), last=pl.max("start_ns")).row(0)
            spans.append(None if first is None else (first, last))
    return around(spans)


def _numbers_of(
    found: ExportedRank, shift_ns: int, ranges: pl.DataFrame, covered: pl.DataFrame
) -> dict[int, int | None]:
    """Number of a step in the recording -> its number among all steps; unknown ones are missing.

    A device's profiler restarts its numbers in each recording. If it has ranges of steps, their middle gives the
    step; if only its work has numbers, they are matched in order with the covered steps if there are as many.
    """
    own = found.steps
    if not ranges.height:
        return {}
    if own.height:
        middle = own.select((pl.col("start_ns") + pl.col("end_ns")) // 2 + shift_ns).to_series()
        return dict(zip(own["step"].to_list(), step_at(middle, ranges, inside=True).to_list(), strict=True))
    stated = sorted(found.stated_steps() | {*found.calls["step"].drop_nulls()})
    return dict(zip(stated, covered["step"].to_list(), strict=True)) if len(stated) == covered.height else {}


def _renumbered(numbers: Mapping[int, int | None], column: str = "step") -> pl.Expr:
    """`column` by the numbers that all recordings share; null if unknown."""
    return pl.col(column).replace_strict(dict(numbers), default=None, return_dtype=pl.Int32)


def _summed_links(links: pl.DataFrame) -> pl.DataFrame:
    """Links of all recordings: totals belong to no call, and those of several steps are summed up."""
    links = links.with_columns(collective=pl.when(~_TOTAL).then("collective"))
    nowhere = _TOTAL & pl.col("step").is_null()
    keys = [name for name in links.columns if name not in _LINK_FIGURES]
    sums = links.filter(nowhere).group_by(keys, maintain_order=True).agg(pl.sum("size_mb", "time_ms"))
    return pl.concat([links.filter(~nowhere), sums], how="diagonal")


def _summed(totals: pl.DataFrame) -> pl.DataFrame:
    """Totals over all recordings."""
    summed = pl.col("count", "total_ns").sum()
    waited = pl.when(pl.col("wait_ns").count() > 0).then(pl.col("wait_ns").sum()).alias("wait_ns")
    figures = (summed, waited, pl.min("min_ns"), pl.max("max_ns"), pl.max("operators"))
    return OPERATOR_TOTALS.shaped(totals.group_by(_TOTALS_OF, maintain_order=True).agg(figures))
