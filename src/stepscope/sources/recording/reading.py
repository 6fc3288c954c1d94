"""Reading one recording of our own into tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.recording_format.about import About
from stepscope.recording_format.layout import ABOUT, ASCEND, KINETO, MINDSPORE_CPU, RECORDER_LOG
from stepscope.recording_format.marks import GARBAGE as GARBAGE_MARK
from stepscope.recording_format.reading import read_about
from stepscope.sources.base import Input, Sink
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import DEVICE_CLASSES, HOST_CLASSES, event_frame
from stepscope.sources.kineto.slices import GARBAGE
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.kineto.tables import write_events
from stepscope.sources.recording.ascend_windows import AscendWindows
from stepscope.sources.recording.kineto_windows import KinetoWindows
from stepscope.sources.recording.marks import Marks, read_marks
from stepscope.sources.recording.mindspore_windows import MindSporeWindows
from stepscope.sources.recording.ranks import rank_row
from stepscope.sources.recording.samples import write_batches, write_device_samples, write_host_samples, write_minddata
from stepscope.sources.recording.supplement import RecordingSupplement
from stepscope.sources.recording.windows import Window, listed_windows, readable, unread
from stepscope.sources.windows import around
from stepscope.tables import RANKS, STEPS


def read_recording(item: Input, sink: Sink) -> None:
    """Read one recording.

    Raises:
        UnreadableInput: If it has no valid header, or a newer version.
    """
    about = read_about(item.path)
    _report_state(about, sink)
    events = Events(sink.scratch)
    marks = read_marks(about, events, sink)
    ascend = AscendWindows(about, events, sink)
    supplement = _read_windows(about, marks, events, ascend, sink)
    steps, span = Steps(), None
    if ascend.has_any:
        _add_collections(marks, events, ascend.collections())
        steps, span = ascend.write(supplement)
    elif any(events.rows(name) for name in (*HOST_CLASSES, *DEVICE_CLASSES) if name != "other"):
        _add_collections(marks, events, _collections(events))
        written = write_events(item.path, events, sink, supplement)
        steps, span = written.facts.steps, written.span
    else:
        problem = "nothing was recorded: no step was marked and no window was finished"
        remedy = "Train between start() and stop(), or let the job run for longer"
        sink.issue("error", item.path, problem, remedy, place=STEPS.name)
    if supplement.unrecorded:
        some = f"{supplement.unrecorded} of {steps.ranges.height} steps"
        problem = f"operators were not recorded in {some}: only marked phases are known for these"
        remedy = "Nothing to do if they follow the last window or were left out on purpose; else see recorder.log"
        sink.issue("note", item.path, problem, remedy)
    has_host = write_host_samples(about, sink)
    write_device_samples(about, sink)
    write_batches(about, steps, sink)
    write_minddata(about, steps, sink, with_host=not has_host)
    if span is None:
        span = around([(start + about.shift_ns, end + about.shift_ns) for start, end in about.closed_spans])
    sink.write(RANKS, rank_row(about, span))


def _read_windows(about: About, marks: Marks, events: Events, ascend: AscendWindows, sink: Sink) -> RecordingSupplement:
    """Read the operators of all windows that can be read, into the events or, of an Ascend device, into `ascend`."""
    mindspore = MindSporeWindows(about, events, sink)
    read: dict[str, Callable[[Window], object]] = {
        KINETO: KinetoWindows(events, about.shift_ns, sink).add,
        MINDSPORE_CPU: mindspore.add,
        ASCEND: ascend.add,
    }
    spans, first = [], None
    for window in listed_windows(about.directory, sink.issue):
        first = first or window.kind
        if window.kind not in read or window.kind != first:
            _report_foreign(window, first if window.kind in read else None, sink)
        elif window.kind == ASCEND or readable(window, sink):
            try:
                if read[window.kind](window) is not False:
                    spans.append((window.start_ns + about.shift_ns, window.end_ns + about.shift_ns))
            except (UnreadableInput, OSError) as error:
                unread(window, error, sink)
    ascend.report_raw()
    return RecordingSupplement(about, marks, mindspore.calls, spans)


def _add_collections(marks: Marks, events: Events, shown: Iterable[pl.DataFrame]) -> None:
    """Add the marked garbage collections to the events, without those that windows show themselves."""
    if (rows := marks.unshown_collections(shown)).height:
        events.add("other", event_frame("other", rows.with_columns(category=pl.lit(GARBAGE_MARK))))


def _collections(events: Events) -> Iterator[pl.DataFrame]:
    """`start_ns` and `duration_ns` of the garbage collections among events."""
    is_garbage = pl.col("category").str.to_lowercase().is_in(GARBAGE)
    for frame in events.frames("other", ["start_ns", "duration_ns", "category"]):
        yield frame.filter(is_garbage)


def _report_state(about: About, sink: Sink) -> None:
    """Report how the recorder ended, and its own problems."""
    path = about.directory / ABOUT
    if not about.was_stopped:
        problem = "the recorder was not stopped: the job still runs or was killed"
        remedy = "Nothing to do if the job was killed; if it still runs, stop() writes the rest"
        sink.issue("note", path, f"{problem}; operators after the last finished window are missing", remedy)
    for problem in about.problems:
        sink.issue("warning", path, f"the recorder reported: {problem}", f"See {RECORDER_LOG} next to it")


def _report_foreign(window: Window, first: str | None, sink: Sink) -> None:
    """Report a window of another kind than `first`, or of an unknown kind if `first` is None."""
    if first is None:
        problem = f"window {window.number} has the unknown kind {window.kind!r}"
        remedy = "Update stepscope to at least the version that recorded it"
    else:
        problem = f"window {window.number} has kind {window.kind!r} but the first one has {first!r}; it is not read"
        remedy = "A recorder writes one kind only: remove files that were copied here from another recording"
    sink.issue("warning", window.directory, problem, remedy)
