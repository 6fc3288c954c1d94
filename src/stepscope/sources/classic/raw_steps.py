"""`PROF_*/mindstudio_profiler_output/step_trace_*.csv`: steps as the device's own profiler exported them.

They are used if MindSpore's step trace is missing. A graph (`Model ID`) counts its own iterations, so with
several graphs steps are numbered by their start. Times are us, of the epoch or since the machine's start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.step_trace import StepTrace
from stepscope.sources.csv_files.heading import header_of, raw_rows
from stepscope.sources.csv_files.layout import Field, FileLayout, column_key, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.plausible import Times, sort_out
from stepscope.tables import COLLECTIVES, STEPS

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
    ignored=frozenset({"device_id", "fp_to_bp_time", "iteration_refresh", "reduce_start", "reduce_duration"}),
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
Call = tuple[int, int, str]
"""Start, length (both in ns) and name of a call."""


def read_raw_steps(paths: list[Path], sink: Sink) -> StepTrace | None:
    """The steps and calls of some of these files; None if they hold none.

    A step begins where the previous one ended, `Data Aug Bound` ahead of the forward pass.

    Args:
        paths: The files of one profile; several hold different iterations.
        sink: Told about damage.
    """
    read = [rows for path in paths if (rows := read_csv(path, _LAYOUT, sink)) is not None and rows.height]
    if not read:
        return None
    return steps_of(
        pl.concat(read, how="diagonal"), [call for path in paths for call in _reduces(path)], paths[0], sink
    )


def steps_of(rows: pl.DataFrame, calls: list[Call], path: Path, sink: Sink) -> StepTrace | None:
    """The steps and calls of iterations; None if none is left.

    Args:
        rows: `iteration`, `end_ns`, and as far as they are known `forward_start_ns`, `backward_end_ns`, `before_ns`
            (from the end of the iteration before to the start of forward), `took_ns` and `graph`; some may come again.
        calls: What communicated, of any iteration.
        path: Where they were read, for issues.
        sink: Told about rows whose times cannot be.
    """
    points = {name: _point(rows, name) for name in ("forward_start_ns", "backward_end_ns")}
    given = [pl.col(name) if name in rows.columns else pl.lit(None, pl.Int64) for name in ("before_ns", "took_ns")]
    timed = rows.with_columns(**points, before_ns=given[0], took_ns=given[1])
    start = pl.coalesce(
        pl.col("forward_start_ns") - pl.col("before_ns").fill_null(0), pl.col("end_ns") - pl.col("took_ns")
    )
    placed = timed.with_columns(start_ns=start)
    times = Times()
    times.add(placed["end_ns"])
    sound = sort_out(placed, times.middle_ns, start=pl.col("start_ns"), end=pl.col("end_ns"))
    if sound.lost:
        remedy = "The file is truncated or damaged; export the profile again."
        sink.issue("error", path, sound.problem(), remedy, lost=sound.lost)
    steps = _numbered(sound.rows)
    return StepTrace(steps, _calls(calls, steps)) if steps.height else None


def _point(rows: pl.DataFrame, name: str) -> pl.Expr:
    column = pl.col(name) if name in rows.columns else pl.lit(None, pl.Int64)
    return pl.when(column > 0).then(column)  # 0 is a missing point


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `steps`, by their iteration, or by their start if graphs count separately."""
    graph = pl.col("graph") if "graph" in rows.columns else pl.lit(None, pl.Int64)
    rows = rows.with_columns(graph=graph).unique(["iteration", "graph", "start_ns"]).sort("start_ns")
    by_start = pl.int_range(1, pl.len() + 1, dtype=pl.Int32)
    number = by_start if rows["iteration"].is_duplicated().any() else pl.col("iteration")
    kept = ("start_ns", "end_ns", "forward_start_ns", "backward_end_ns", "graph")
    window = {"window_start_ns": pl.col("start_ns"), "window_end_ns": pl.col("end_ns"), "window": pl.lit("stated")}
    return STEPS.shaped(rows.select(*kept, step=number, **window))


def _calls(found: list[Call], steps: pl.DataFrame) -> pl.DataFrame:
    """Rows of `collectives`: the k-th pair of columns is the k-th call of a step; the operation is not recorded."""
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "name": pl.String}
    calls = pl.DataFrame(found, schema=schema, orient="row").unique().sort("start_ns")
    ranges = steps.select("step", "end_ns", at="start_ns")
    placed = calls.join_asof(ranges, left_on="start_ns", right_on="at").filter(pl.col("start_ns") <= pl.col("end_ns"))
    told = placed.select("start_ns", "duration_ns", "name", "step", operation=pl.lit("unknown"), group=pl.col("name"))
    sequence = pl.int_range(pl.len()).over("name")
    return COLLECTIVES.shaped(
        told.with_columns(sequence=sequence, on_device=pl.lit(value=True)).with_row_index("collective")
    )


def _reduces(path: Path) -> Iterator[Call]:
    """Start, length and name of each call, of pairs of columns that all have the same two headers."""
    headers = [column_key(header) for header in header_of(path, _LAYOUT)]
    pairs = [at for at, header in enumerate(headers[:-1]) if (header, headers[at + 1]) == _PAIR]
    if not pairs:
        return
    for row in raw_rows(path, _LAYOUT):
        for number, at in enumerate(pairs):
            start, length = (_nanoseconds(cell) for cell in [*row, "", "", ""][at : at + 2])
            if start is not None and length is not None and start > 0:
                yield start, length, f"Reduce_{number}"


_PAIR = ("reduce_start", "reduce_duration")


def _nanoseconds(cell: str) -> int | None:
    """us as text in ns."""
    whole, _, part = cell.strip().partition(".")
    if not whole.isdecimal() or len(whole) > 16 or (part and not part.isdecimal()):
        return None
    return int(whole) * 1000 + int((part + "000")[:3])
