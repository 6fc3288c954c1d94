"""`PROF_*/mindstudio_profiler_output/step_trace_*`: steps as the device's own profiler exported them.

They are used if MindSpore's step trace is missing. A graph (`Model ID`) counts its own iterations, so with several
graphs steps are numbered by their start. Times are us, of the epoch or since the machine's start.

The CSV files have a row for each iteration. The JSON files are traces: each has all iterations of a model, and an
export by iteration has them again in `msprof_*.json`. An iteration is an event from its first task to its end; others
span forward and backward, and each call of communication.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.step_trace import StepTrace, stated_steps
from stepscope.sources.csv_files.heading import header_of, raw_rows
from stepscope.sources.csv_files.layout import Field, FileLayout, column_key, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import nanoseconds, whole
from stepscope.sources.plausible import Times, sort_out
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables import COLLECTIVES
from stepscope.text_columns import filled_in

_LAYOUT = FileLayout(
    fields=(
        Field("iteration", "small", ("iteration_id",), required=True),
        Field("end_ns", "time", ("iteration_end",), required=True),
        Field("forward_start_ns", "time", ("fp_start",)),
        Field("backward_end_ns", "time", ("bp_end",)),
        Field("took_ns", "duration", ("iteration_time",)),
        Field("before_ns", "duration", ("data_aug_bound",)),
        Field("graph", "int", ("model_id",)),
    ),
    ignored=frozenset({"reduce_start", "reduce_duration"}),
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "iteration_id,fp_start,bp_end,iteration_end,iteration_time,"
            "fp_to_bp_time,iteration_refresh,data_aug_bound,model_id"
        ),
        order(
            "device_id,iteration_id,fp_start,bp_end,iteration_end,iteration_time,"
            "fp_to_bp_time,iteration_refresh,data_aug_bound,model_id"
        ),
    ),
)
_PAIR = ("reduce_start", "reduce_duration")
_POINTS = {"FP Start": "forward_us", "BP End": "backward_us"}
_EVENTS = Layout(
    (
        EventClass(
            "marks",
            frozenset({"X"}),
            frozenset({"iteration time", "fp_bp time", "reduce"}),
            tuple(Arg(key, name, "float") for key, name in _POINTS.items()),
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
_CALLS = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "name": pl.String}


def read_raw_steps(paths: list[Path], sink: Sink) -> StepTrace | None:
    """The steps and calls of files of one profile, each with other iterations; None if they hold none.

    A step begins where the previous one ended, `Data Aug Bound` ahead of the forward pass.
    """
    read = [rows for path in paths if (rows := read_csv(path, _LAYOUT, sink)) is not None and rows.height]
    if not read:
        return None
    return _trace_of(pl.concat(read), pl.concat(map(_reduces, paths)), paths[0], sink)


def _trace_of(rows: pl.DataFrame, calls: pl.DataFrame, path: Path, sink: Sink) -> StepTrace | None:
    """The steps and calls of iterations; None if none is left. Rows and calls may come again.

    Args:
        rows: `iteration`, `end_ns`, and null where they are unknown `forward_start_ns`, `backward_end_ns`, `before_ns`
            (from the end of the iteration before to the start of forward), `took_ns` and `graph`.
        calls: What communicated, of any iteration: `start_ns`, `duration_ns`, `name`.
        path: Where they were read, for issues.
        sink: Takes an issue about rows with impossible times.
    """
    stated = pl.col("forward_start_ns", "backward_end_ns")
    points = pl.when(stated > 0).then(stated)  # 0 is a missing point
    begins = pl.col("forward_start_ns") - pl.col("before_ns").fill_null(0)
    placed = rows.with_columns(points).with_columns(start_ns=pl.coalesce(begins, pl.col("end_ns") - pl.col("took_ns")))
    if placed["graph"].n_unique() > 1:
        placed = _apart(placed)
    times = Times()
    times.add(placed["end_ns"])
    sound = sort_out(placed, times.middle_ns, start=pl.col("start_ns"), end=pl.col("end_ns"))
    if sound.lost:
        remedy = "The file is truncated or damaged; export the profile again."
        sink.issue("error", path, sound.problem(), remedy, lost=sound.lost)
    steps = _numbered(sound.rows)
    return StepTrace(steps, _calls(calls, steps)) if steps.height else None


def _apart(rows: pl.DataFrame) -> pl.DataFrame:
    """Iterations that begin where that of another graph ended: each graph counts from its own previous one."""
    ends = rows.select(at="end_ns").drop_nulls().unique().sort("at")
    forward = pl.max_horizontal("forward_start_ns", "start_ns")
    placed = rows.with_columns(forward=forward).with_row_index("row").sort("forward", nulls_last=True)
    ended = placed.join_asof(ends, left_on="forward", right_on="at", coalesce=False)
    return ended.sort("row").with_columns(start_ns=pl.max_horizontal("start_ns", "at")).drop("row", "forward", "at")


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `steps`, by their iteration, or by their start if graphs count separately."""
    rows = rows.unique(["iteration", "graph", "start_ns"], keep="first", maintain_order=True)
    rows = rows.sort("start_ns", maintain_order=True)
    by_start = pl.int_range(1, pl.len() + 1, dtype=pl.Int32)
    number = by_start if rows["iteration"].is_duplicated().any() else pl.col("iteration")
    kept = ("start_ns", "end_ns", "forward_start_ns", "backward_end_ns", "graph")
    return stated_steps(rows.select(*kept, step=number))


def _calls(found: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Rows of `collectives`: calls of one name in each step; the operation is not recorded."""
    ranges = steps.select("step", "end_ns", at="start_ns")
    calls = found.unique().sort("start_ns", "name", "duration_ns")
    placed = calls.join_asof(ranges, left_on="start_ns", right_on="at").filter(pl.col("start_ns") <= pl.col("end_ns"))
    rows = placed.select(
        *_CALLS,
        "step",
        operation=pl.lit("unknown"),
        group="name",
        sequence=pl.int_range(pl.len()).over("name"),
        on_device=pl.lit(True),
    )
    return COLLECTIVES.shaped(rows.with_row_index("collective"))


def _reduces(path: Path) -> pl.DataFrame:
    """The calls, of pairs of columns that all have the same two headers: the k-th pair is the k-th call of a step."""
    headers = [column_key(header) for header in header_of(path, _LAYOUT)]
    pairs = [at for at, header in enumerate(headers[:-1]) if (header, headers[at + 1]) == _PAIR]
    cells: list[tuple[str, ...]] = []
    for row in raw_rows(path, _LAYOUT) if pairs else ():
        cells += [(*row[at : at + 2], f"Reduce_{number}") for number, at in enumerate(pairs) if at + 1 < len(row)]
    calls = pl.DataFrame(cells, schema=dict.fromkeys(_CALLS, pl.String), orient="row")
    times = calls.with_columns(nanoseconds(pl.col(name)).alias(name) for name in ("start_ns", "duration_ns"))
    return times.filter(pl.col("start_ns") > 0, pl.col("duration_ns") >= 0)


def read_step_events(paths: list[Path], sink: Sink) -> StepTrace | None:
    """The steps and calls that the files of one device mark; None if they mark none.

    A step begins where the previous iteration ended; the first one with its own first task.
    """
    read = [marks for path in paths if (marks := _marks(path, sink)) is not None and marks.height]
    if not read:
        return None
    marks = pl.concat(read)
    rows = _iterations(marks)
    return None if rows.is_empty() else _trace_of(rows, _marked_calls(marks), paths[0], sink)


def _marks(path: Path, sink: Sink) -> pl.DataFrame | None:
    """The marks of one file, with their model (`graph`)."""
    frames: list[pl.DataFrame] = []
    names: dict[str, int] = {}
    try:
        for batch in TraceEvents(path, _EVENTS, sink):
            if (named := batch.get("metadata")) is not None:
                found = named.filter(name="thread_name").select("thread", model=pl.col("label").str.extract(_MODEL))
                names |= {thread: int(model) for thread, model in found.drop_nulls().iter_rows()}
            if (marks := batch.get("marks")) is not None:
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
    """The iterations as `_trace_of` takes them."""
    forward = _by_iteration(marks, _FORWARD_BACKWARD).select(*_KEY, first_ns="start_ns", length_ns="duration_ns")
    both = _by_iteration(marks, _ITERATION).join(forward, on=_KEY, how="left", nulls_equal=True)
    stated = [whole(pl.col(name) * 1000) for name in _POINTS.values()]
    placed = both.with_columns(
        end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        forward_start_ns=pl.coalesce("first_ns", stated[0]),
        backward_end_ns=pl.coalesce(pl.col("first_ns") + pl.col("length_ns"), stated[1]),
    ).sort(*_KEY)
    previous = pl.col("end_ns").shift(1).over("graph")
    follows = (pl.col("iteration").diff().over("graph") == 1) & (previous <= pl.col("start_ns"))
    began = pl.when(follows).then(previous).otherwise("start_ns")
    return placed.with_columns(before_ns=pl.col("forward_start_ns") - began, took_ns=pl.col("end_ns") - began).select(
        *_KEY, "end_ns", "forward_start_ns", "backward_end_ns", "before_ns", "took_ns"
    )


def _by_iteration(marks: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """The marks of a kind, each once, with the number of their iteration."""
    number = pl.col("name").str.extract(pattern).cast(pl.Int32, strict=False)
    found = marks.with_columns(iteration=number).drop_nulls("iteration")
    return found.unique(_KEY, keep="first", maintain_order=True)


def _marked_calls(marks: pl.DataFrame) -> pl.DataFrame:
    """The calls: the k-th of each iteration has the same name."""
    number = pl.col("name").str.extract(_REDUCE, 2)
    found = marks.with_columns(number=number).drop_nulls("number")
    return found.select("start_ns", "duration_ns", name=filled_in("Reduce_{}", "number"))
