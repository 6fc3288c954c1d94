"""`step_trace_*.json`: the iterations that the device's own profiler marked, as events of a trace.

Each file has all iterations of a model, and an export by iteration has them again in `msprof_*.json`. An iteration is
an event from its first task to its end; others span forward and backward, and each call of communication.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.raw_steps import Call, steps_of
from stepscope.sources.classic.step_trace import StepTrace
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents

_CATEGORIES = frozenset({"iteration time", "fp_bp time", "reduce"})
_POINTS = {"FP Start": "forward_us", "BP End": "backward_us"}
_LAYOUT = Layout(
    (
        EventClass(
            "marks", frozenset({"X"}), _CATEGORIES, tuple(Arg(key, name, "float") for key, name in _POINTS.items())
        ),
        EventClass("metadata", frozenset({"M"}), None, (Arg("name", "label", "text"),)),
    )
)
_MODEL = r"Model ID\s*:\s*(\d{1,9})"
_FILE = re.compile(r"step_trace_\d+_(\d{1,9})_\d+(?:_\d+)?\.json")
_ITERATION = r"^Iteration (\d{1,9})$"
_FORWARD_BACKWARD = r"^FP_BP Time (\d{1,9})$"
_REDUCE = r"^Reduce_(\d{1,9})_(\d{1,9})$"
_KEY = ("graph", "iteration")


def read_step_events(paths: Iterable[Path], sink: Sink) -> StepTrace | None:
    """The steps and calls that these files mark; None if they mark none.

    A step begins where the previous iteration ended; the first one with its own first task.

    Args:
        paths: The files of one device.
        sink: Told about damage.
    """
    listed = list(paths)
    read = [marks for path in listed if (marks := _read(path, sink)) is not None and marks.height]
    if not read:
        return None
    marks = pl.concat(read)
    rows = _iterations(marks)
    if rows.is_empty():
        return None
    return steps_of(rows, _calls(marks), listed[0], sink)


def _read(path: Path, sink: Sink) -> pl.DataFrame | None:
    """The marks of one file, with their model (`graph`)."""
    frames: list[pl.DataFrame] = []
    names: dict[str, int] = {}
    try:
        for batch in TraceEvents(path, _LAYOUT, report=sink.issue, workers=sink.workers):
            if (named := batch.frames.get("metadata")) is not None:
                found = named.filter(name="thread_name").select("thread", model=pl.col("label").str.extract(_MODEL))
                names |= {thread: int(model) for thread, model in found.drop_nulls().iter_rows()}
            if (marks := batch.frames.get("marks")) is not None:
                frames.append(marks.select("name", "thread", "start_ns", "duration_ns", *_POINTS.values()))
    except UnreadableInput as error:
        sink.issue("error", path, error.problem, error.remedy)
        return None
    if not frames:
        return None
    match = _FILE.fullmatch(path.name)
    model = pl.col("thread").replace_strict(names, default=None, return_dtype=pl.Int64)
    of_file = pl.lit(int(match[1]) if match else None, pl.Int64)
    return pl.concat(frames).with_columns(graph=pl.coalesce(model, of_file)).drop("thread")


def _iterations(marks: pl.DataFrame) -> pl.DataFrame:
    """The iterations as `raw_steps.steps_of` takes them."""
    whole = _numbered(marks, _ITERATION).select(
        *_KEY, "start_ns", pl.col("duration_ns").alias("took_ns"), *_POINTS.values()
    )
    forward = _numbered(marks, _FORWARD_BACKWARD).select(*_KEY, first_ns="start_ns", length_ns="duration_ns")
    both = whole.join(forward, on=_KEY, how="left", nulls_equal=True)
    end = pl.col("start_ns") + pl.col("took_ns")
    stated = [(pl.col(name) * 1000).round().cast(pl.Int64, strict=False) for name in _POINTS.values()]
    placed = both.with_columns(
        end_ns=end,
        forward_start_ns=pl.coalesce("first_ns", stated[0]),
        backward_end_ns=pl.coalesce(pl.col("first_ns") + pl.col("length_ns"), stated[1]),
    ).sort(*_KEY)
    previous = pl.col("end_ns").shift(1).over("graph")
    follows = (pl.col("iteration").diff().over("graph") == 1) & (previous <= pl.col("start_ns"))
    began = pl.when(follows).then(previous).otherwise("start_ns")
    return placed.with_columns(before_ns=pl.col("forward_start_ns") - began, took_ns=pl.col("end_ns") - began).select(
        *_KEY, "end_ns", "forward_start_ns", "backward_end_ns", "before_ns", "took_ns"
    )


def _numbered(marks: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """The marks of a kind, each once, with the number of their iteration."""
    number = pl.col("name").str.extract(pattern).cast(pl.Int32, strict=False)
    found = marks.with_columns(iteration=number).drop_nulls("iteration")
    return found.unique(_KEY, keep="first", maintain_order=True)


def _calls(marks: pl.DataFrame) -> list[Call]:
    """The calls: the k-th of each iteration has the same name."""
    number = pl.col("name").str.extract(_REDUCE, 2)
    found = marks.with_columns(number=number).drop_nulls("number")
    return found.select("start_ns", "duration_ns", pl.format("Reduce_{}", "number")).unique().sort("start_ns").rows()
