"""Reading the light records of one process into tables."""

from __future__ import annotations

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.json_values import whole_number
from stepscope.present import plural
from stepscope.recording_format.about import About
from stepscope.recording_format.light import GROUP_FILE, WORKER_FILE
from stepscope.sources.base import Input, Sink
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.kineto.tables import write_events
from stepscope.sources.light.about import about_of
from stepscope.sources.light.processes import files_by_process
from stepscope.sources.light.ranges import LOADER, LOADS, Ranges
from stepscope.sources.light.stored import StoredRanges
from stepscope.sources.light.supplement import LightSupplement
from stepscope.sources.recording.marks import add_marks
from stepscope.sources.recording.ranks import rank_row
from stepscope.tables import INPUT_PIPELINE, RANKS, STEPS


def read_light(item: Input, sink: Sink) -> None:
    """Read the records of one process.

    Raises:
        UnreadableInput: If there is no range in them.
    """
    files = [file for file in item.files if file.name not in (GROUP_FILE, WORKER_FILE)]
    process = whole_number(item.label.removeprefix("process ")) or next(iter(files_by_process(files))) or None
    stored = StoredRanges(sink.scratch)
    ranges = Ranges(files, process, sink, stored)
    about = about_of(item, process, sink)
    events = Events(sink.scratch)
    marks = add_marks(ranges.marks(), about, item.path, events, sink)
    ranges.report()
    if strays := stored.drop_strays():
        problem = f"{plural(strays, 'stored range')} with impossible times left out of the timeline"
        sink.issue("warning", item.path, problem, "The rest is complete", lost=strays)
    if not marks.rows and (span := stored.span()) is not None:
        _write_alone(item, about, stored, span, sink)
        return
    if not marks.rows:
        remedy = "Switch some kinds on (stepscope live switch step=on), or let the job run for longer"
        raise UnreadableInput(item.path, "no range of light tracing was recorded", remedy)
    supplement = LightSupplement(about, marks)
    written = write_events(item.path, events, sink, supplement)
    steps = written.facts.steps
    if not steps.ranges.height:
        problem = "no step was recorded, so ranges are not divided into steps"
        sink.issue("note", item.path, problem, "Switch steps on: `stepscope live switch step=on`", place=STEPS.name)
    if supplement.left_out:
        problem = f"{plural(supplement.left_out, 'call')} left out: their step is not recorded, or only in part"
        sink.issue("note", item.path, problem, "Nothing to do: they cannot be matched with those of other ranks")
    problem = "backward passes and optimizers are not marked by light tracing: their time shows as idle"
    sink.issue("note", item.path, problem, "For a whole picture of some steps: `stepscope live capture`")
    _write_loads(ranges, steps, sink)
    stored.write(steps, sink)
    row = rank_row(about, written.span).with_columns(format=pl.lit("light"))
    if ranges.on_device:
        problem = "steps, forward passes and calls have the times of the device, batches and checkpoints of the host"
        sink.issue("note", item.path, problem, "Nothing to do")
        row = row.with_columns(device_kind=pl.lit(None, pl.String))  # what a device does not mark is not unknown work
    sink.write(RANKS, row)


def _write_alone(item: Input, about: About, stored: StoredRanges, span: tuple[int, int], sink: Sink) -> None:
    """Write ranges of which none tells an analysis anything: they have no end, or names of the user's own."""
    problem = "no range of light tracing has ended yet, so there is only a timeline"
    remedy = "Switch some kinds on (stepscope live switch step=on), or let the job run for longer"
    sink.issue("note", item.path, problem, remedy)
    stored.write(Steps(), sink)
    sink.write(RANKS, rank_row(about, span).with_columns(format=pl.lit("light")))


def _write_loads(ranges: Ranges, steps: Steps, sink: Sink) -> None:
    """Write the rows of `input_pipeline`: what the training loop waited for batches."""
    loads = pl.concat([pl.DataFrame(schema=LOADS), *ranges.loads]).filter(pl.col("duration_ns") >= 0)
    if loads.height:
        middle = loads["time_ns"] - loads["duration_ns"] // 2
        sink.write(INPUT_PIPELINE, loads.with_columns(operator=pl.lit(LOADER), step=steps.of(middle)))
