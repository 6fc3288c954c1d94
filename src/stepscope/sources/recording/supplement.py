"""What a recording has besides its events: phases from marks, communication calls from marks and traces together."""

from __future__ import annotations

import polars as pl

from stepscope.recording_format.about import About
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.kineto.tables import TraceSupplement
from stepscope.sources.recording.call_pairs import LATE_NS, pairs
from stepscope.sources.recording.marks import CALLS, Marks
from stepscope.sources.recording.ranks import group_rows
from stepscope.tables.operators import BACKWARD

_SHORTLY_NS = 100_000
"""By so much, at most, marks and windows may disagree on the time."""


class RecordingSupplement(TraceSupplement):
    """What a recording has besides its windows.

    Args:
        about: The recording.
        marks: Its marks.
        calls: Operators of the windows that communicate, as `marks.CALLS`.
        windows: Start and end of the windows that were read, on the clock of the events.
    """

    def __init__(self, about: About, marks: Marks, calls: list[pl.DataFrame], windows: list[tuple[int, int]]) -> None:
        super().__init__(group_rows(about))
        self.own_threads = frozenset(map(str, about.own_threads))
        self._marks = marks
        self._calls = calls
        self._windows = windows
        self.unrecorded = 0
        """Steps of which operators are missing while others have them."""

    def phases(self, steps: Steps, events: Events) -> pl.DataFrame | None:
        """From the marks; the end of the backward pass also from the scope of MindSpore's operators."""
        marked = self._marks.phases_of(steps)
        scoped = [pl.DataFrame(schema={"step": pl.Int32, "end_ns": pl.Int64})]
        for frame in events.frames("operator", ["name", "start_ns", "duration_ns"]):
            backward = frame.filter(pl.col("name").str.contains(BACKWARD))
            end = pl.col("start_ns") + pl.col("duration_ns")
            ends = backward.select(step=steps.of(backward["start_ns"]), end_ns=end)
            scoped.append(ends.drop_nulls("step").group_by("step").agg(pl.max("end_ns")))
        last = pl.concat(scoped).group_by("step").agg(pl.max("end_ns"))
        both = marked.join(last, on="step", how="full", coalesce=True)
        until = pl.coalesce("backward_end_ns", "end_ns")
        known = both.select("step", "forward_start_ns", "run_delay_ns", backward_end_ns=until)
        return known if known.height else None

    def recorded(self, steps: Steps) -> pl.Series | None:
        """A step belongs to the window in which it ends: steps and windows change places at the same moment."""
        inside = self.window_of(steps).is_not_null()
        if not inside.any() or inside.all():
            return None
        self.unrecorded = int((~inside).sum())
        return inside

    def window_of(self, steps: Steps) -> pl.Series:
        """Of each step the place, among the windows that were read, of the one that it belongs to; null for none."""
        found = pl.repeat(None, steps.ranges.height, dtype=pl.Int32, eager=True)
        for place, (start, end) in enumerate(self._windows):
            inside = ending_within(steps.ranges, start, end)
            found = pl.select(pl.when(inside).then(place).otherwise(found)).to_series().cast(pl.Int32)
        return found

    def calls(self, found: pl.DataFrame, steps: Steps) -> pl.DataFrame:
        """Calls of the windows, with what marks know of them, and the marks of calls that no window shows."""
        of_operators = pl.concat([pl.DataFrame(schema=CALLS), *self._calls])
        found = pl.concat([found, _as_found(of_operators, steps)], how="diagonal_relaxed")
        until = pl.col("start_ns") + pl.col("duration_ns") + pl.when("is_async").then(LATE_NS).otherwise(0)
        marks = self._marks.all_calls().with_row_index("mark").with_columns(until_ns=until)
        if not marks.height:
            return found
        on_host = found.filter(~pl.col("on_device"))
        shown = self._in_windows(marks["start_ns"])
        known = pairs(on_host, marks, self._windows)
        if on_host.height == found.height:
            around = _marks_around(on_host, marks)
            shown &= marks["mark"].is_in(pl.concat([known["mark"], around]).to_list())
        rest = _as_found(marks.filter(~shown).select(*CALLS), steps)
        parts = [found.filter("on_device"), _with_details(on_host, marks, known), rest]
        return pl.concat(parts, how="diagonal_relaxed")

    def _in_windows(self, times: pl.Series) -> pl.Series:
        """Whether each time lies in a window that was read."""
        inside = pl.repeat(False, len(times), dtype=pl.Boolean, eager=True)
        for start, end in self._windows:
            inside |= times.is_between(start, end)
        return inside


def ending_within(ranges: pl.DataFrame, start_ns: int, end_ns: int) -> pl.Series:
    """Whether each step ends in a window."""
    length = pl.col("end_ns") - pl.col("start_ns")
    shortly_before = pl.col("end_ns") - pl.min_horizontal(length // 4, _SHORTLY_NS)
    return ranges.select(shortly_before.is_between(start_ns, end_ns)).to_series()


def _as_found(calls: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    """`CALLS` in the form of those that events show."""
    return calls.drop("is_async").with_columns(on_device=pl.lit(False), step=steps.of(calls["start_ns"]))


def _marks_around(found: pl.DataFrame, marks: pl.DataFrame) -> pl.Series:
    """The marks in which calls of any operation began."""
    candidates = marks.select("mark", "start_ns", "until_ns").sort("start_ns", "mark")
    joined = found.select("start_ns").sort("start_ns").join_asof(candidates, on="start_ns", check_sortedness=False)
    return joined.filter(pl.col("start_ns") <= pl.col("until_ns"))["mark"].unique()


def _with_details(found: pl.DataFrame, marks: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Calls with group, size and peer from their marks."""
    details = ["group", "size_bytes", "element_type", "group_size", "peer"]
    known = known.join(marks.select("mark", *details), on="mark")
    rows = found.with_row_index("call").join(known, on="call", how="left", suffix="_mark", maintain_order="left")
    return rows.with_columns(pl.coalesce(f"{name}_mark", name).alias(name) for name in details).select(found.columns)
