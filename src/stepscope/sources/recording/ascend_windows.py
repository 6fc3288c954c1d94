"""Windows that the profiler of an Ascend device wrote: a directory each, exported or raw, as one recording."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.recording_format.about import About
from stepscope.recording_format.layout import COMPLETE, WINDOWS
from stepscope.sources.ascend.assemble import write_tables
from stepscope.sources.ascend.exported_rank import HOST, shaped
from stepscope.sources.ascend.merging import Merging, find_export, rank_directories, read_export, span_of_events
from stepscope.sources.ascend.rank_files import ExportFiles
from stepscope.sources.ascend.rank_info import RankInfo
from stepscope.sources.base import Input, Sink
from stepscope.sources.kineto.collectives import numbered
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.steps import Steps, find_steps, report_overlaps
from stepscope.sources.plausible import report_strays
from stepscope.sources.recording.ranks import group_rows, rank_row
from stepscope.sources.recording.supplement import RecordingSupplement, ending_within
from stepscope.sources.recording.windows import Window, not_recorded
from stepscope.sources.sinks import WindowSink

_PROCESS = "Python"
"""The name in exports of the process with the marks."""
_GARBAGE = "Python GC"
"""The name in exports of the process with garbage collections."""
_MOST_SHOWN = 10


class AscendWindows:
    """Reads windows and makes the tables of the rank from them and its marks.

    Steps and ids restart in each window; they are replaced by those of the whole recording. The events are its marks.
    """

    def __init__(self, about: About, events: Events, sink: Sink) -> None:
        self._about = about
        self._events = events
        self._sink = sink
        self._merging: Merging | None = None
        self._raw: list[int] = []
        self._steps, self._overlaps = Steps(), 0

    @property
    def has_any(self) -> bool:
        """Whether any window was read."""
        return self._merging is not None

    def add(self, window: Window) -> bool:
        """Read one window; returns whether it has device work. If not, the reason is reported.

        Raises:
            UnreadableInput: If it holds an export of which nothing can be read.
            OSError: If its files cannot be read.
        """
        if not (exports := exports_of(window)):
            self._take_raw(window)
            return False
        shift = self._about.shift_ns
        sink = WindowSink(self._sink, shift, window.number)
        read = [(export, read_export(export, sink)) for export in exports]
        for export, found in read:
            _check_clock(span_of_events(found), window, export)
        merging, steps = self._begun(), self._steps.ranges
        covered = steps.filter(ending_within(steps, window.start_ns + shift, window.end_ns + shift))
        for _, found in read:
            merging.add(found, shift, covered)
        return not any(found.device_is_lost for _, found in read)

    def _begun(self) -> Merging:
        if self._merging is None:
            report_strays(self._events.drop_strays(), self._sink.issue, self._about.directory, "mark")
            self._steps, self._overlaps = find_steps(self._events)
            row = rank_row(self._about, None).row(0, named=True)
            identity = RankInfo(format=row["format"], rank=row["rank"])
            self._merging = Merging(identity, self._steps.ranges, self._sink.scratch)
        return self._merging

    def collections(self) -> Iterator[pl.DataFrame]:
        """`start_ns` and `duration_ns` of the garbage collections that windows show."""
        for frame in self._begun().host("start_ns", "duration_ns", "category"):
            yield frame.filter(pl.col("category") == "gc")

    def write(self, known: RecordingSupplement) -> tuple[Steps, tuple[int, int] | None]:
        """Write all tables but `ranks`; the events are used up.

        Returns:
            The steps, and first and last time.
        """
        report_overlaps(self._overlaps, self._about.directory, self._sink)
        self._events.drop_strays()  # among the collections, which came after the windows
        host = pl.concat([self._ranges("annotation", "annotation", _PROCESS), self._ranges("other", "gc", _GARBAGE)])
        recording = self._begun().merged(host)
        known.recorded(self._steps)  # counts the steps that no window shows
        recording.steps = recording.steps.with_columns(part=known.window_of(self._steps))
        for group in group_rows(self._about):
            recording.groups.names.setdefault(group["group"], group["name"])
            recording.groups.members.setdefault(group["group"], group["members"])
        _, span = write_tables(
            recording,
            ExportFiles(path=self._about.directory),
            self._sink,
            known_calls=partial(self._calls, known),
            known_steps=partial(self._with_phases, known),
        )
        return self._steps, span

    def _calls(self, known: RecordingSupplement, found: pl.DataFrame) -> pl.DataFrame:
        """Calls of the windows, and marks of those that no window shows."""
        # numbers that restart in each window do not identify calls
        recorded = pl.when(pl.col("sequence").is_unique().all().over("group", "on_device")).then("sequence")
        found = found.with_columns(recorded=recorded).drop("collective", "sequence")
        return numbered(known.calls(found, self._steps))

    def _with_phases(self, known: RecordingSupplement, steps: pl.DataFrame) -> pl.DataFrame:
        phases = known.phases(self._steps, self._events)
        rows = steps.drop("forward_start_ns", "backward_end_ns", "run_delay_ns", strict=False)
        return rows if phases is None else rows.join(phases, on="step", how="left", maintain_order="left")

    def _ranges(self, name: str, category: str, process: str) -> pl.DataFrame:
        """The events of a class, as `HOST`."""
        frames = (shaped(self._events.located(frame), HOST) for frame in self._events.taken(name))
        rows = pl.concat([pl.DataFrame(schema=HOST), *frames])
        return rows.with_columns(category=pl.lit(category), process=pl.lit(process))

    def _take_raw(self, window: Window) -> None:
        """Remember a window without an export; report one without raw data."""
        try:
            raw = rank_directories(window.directory)
        except OSError:
            raw = []
        if raw:
            self._raw.append(window.number)
        elif window.state == COMPLETE:
            problem = f"window {window.number} holds no files of the device's profiler"
            self._sink.issue("error", window.directory, problem, "Copy the recording with all of its `windows`")
        else:
            not_recorded(window, self._sink)

    def report_raw(self) -> None:
        """Report windows with raw data that was not exported."""
        if not self._raw:
            return
        shown = ", ".join(map(str, self._raw[:_MOST_SHOWN])) + (", ..." if len(self._raw) > _MOST_SHOWN else "")
        profiler = "MindSpore" if self._about.framework == "mindspore" else "torch_npu"
        command = shlex.join(["python3", "-m", "stepscope.record.device_exports", str(self._about.directory)])
        some = f"{len(self._raw)} of the windows ({shown})"
        problem = f"the device profiler's raw data was not exported and is not read in {some}"
        remedy = f"On a machine with {profiler} and the device's toolkit, run: {command}"
        self._sink.issue("warning", self._about.directory / WINDOWS, problem, remedy, lost=len(self._raw))


def exports_of(window: Window) -> list[Input]:
    """The exports in a window; none if it cannot be listed."""
    try:
        return [export for path in rank_directories(window.directory) if (export := find_export(path))]
    except OSError:
        return []


def _check_clock(span: tuple[int, int] | None, window: Window, export: Input) -> None:
    """Refuse a window with work of another time: it would be assigned to wrong steps."""
    if span is not None and (span[1] < window.start_ns or span[0] > window.end_ns):
        times = f"{span[0]} to {span[1]} ns, not {window.start_ns} to {window.end_ns} ns"
        remedy = "Check that the directory belongs to this window and that no clock was set while the job ran"
        raise UnreadableInput(export.path, f"covers another time than window {window.number} ({times})", remedy)
