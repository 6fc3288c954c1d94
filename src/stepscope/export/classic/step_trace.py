"""`step_trace_raw` and `step_trace_point_info`: interval, forward and backward, tail of each step, in ticks of 10 ns.

Steps and their points are those of the analysis `step_trace`. Rows count from 1, as in the files of real devices,
since readers look a step up by its row; the list of exported files has the steps' own numbers. The last row is the mean
of the steps whose predecessor was recorded too: the first step of a recording often builds things, so it would bias the
mean, as it does in other tools that write this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.communication_calls import WORDS
from stepscope.export.formatting import TICK_NS, csv_text
from stepscope.export.rank_export import RankExport
from stepscope.text_columns import filled_in

Row = tuple[int, ...]
Call = dict[int, tuple[int, int]]
"""Start and end in ticks of one call in each step that has it."""

TRAINING = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
INFERENCE = "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"

MAX_REDUCES = 200
"""Three columns each; the first ones of a step are kept."""


OPERATION = pl.col("operation").replace(WORDS)
"""What the format calls the operation of a call."""
CALL_NAME = pl.coalesce(pl.col("name").str.extract(r"^stream_\d+_\d+_(.+)$"), OPERATION)
"""What the format calls a call: its operator if it is recorded so (`AllReduce-op3`), else its operation."""


def write_step_trace(export: RankExport) -> None:
    """Write both files."""
    trace, points_file = f"step_trace_raw_{export.rank}_detail_time.csv", f"step_trace_point_info_{export.rank}.json"
    steps = export.numbered_steps
    if steps.is_empty():
        for name in (trace, points_file):
            export.leave_out(name, "no step was recorded from its start to its end")
        return
    points = export.run.analyse("step_trace")
    rows, training = _rows(steps, points)
    reduces = _reduces(export)
    if len(reduces) > MAX_REDUCES:
        export.leave_out(f"{trace} (reduce columns)", f"{len(reduces) - MAX_REDUCES} of {len(reduces)} calls in a step")
        reduces = dict(islice(reduces.items(), MAX_REDUCES))
    columns = (f"{name},{name}_start_point,{name}_end_point" for name in reduces)
    header = ",".join([TRAINING if training else INFERENCE, *columns])
    # the steps whose predecessor was recorded, wanted or not; without any, all but the first
    counted = [row for row in rows if row[0] - 1 in export.recorded_steps] or rows[1:] or rows
    average = [_rounded_mean(column) for column in list(zip(*counted, strict=True))[1:]]  # without the step's number
    lines: list[list[object]] = []
    for number, (step, start, step_end, *rest) in enumerate(rows, 1):
        # a step without a call has it, without length, at its end: readers take whole numbers only
        times = (calls.get(step, (step_end, step_end)) for calls in reduces.values())
        lines.append([number, start, step_end, *rest, *(cell for at, end in times for cell in (end - at, at, end))])
    starts = {row[0]: row[1] for row in counted}
    last = [cell for calls in reduces.values() for cell in _mean_call(calls, starts, *average[:2])]
    export.write(trace, csv_text(header, [*lines, ["-", *average, *last]]))
    named = {
        "fp_start": _operator_at(export, points, "forward_start"),
        "bp_end": _operator_at(export, points, "backward_end"),
    }
    if known := {name: operator for name, operator in named.items() if operator}:
        export.write_json(points_file, known)
    else:
        export.leave_out(points_file, export.because("no operators were recorded", "op_time is off"))


def _rows(steps: pl.DataFrame, points: pl.DataFrame) -> tuple[list[Row], bool]:
    """A row for each step, and whether there is a backward pass in any.

    Of steps that the analysis leaves out, since their operators were not recorded, the points are those of the marks.
    """
    found = points.select("step", "forward_start_ns", "backward_end_ns")
    known = steps.join(found, on="step", how="left", suffix="_found", maintain_order="left").with_columns(
        pl.coalesce(f"{name}_found", name).alias(name) for name in ("forward_start_ns", "backward_end_ns")
    )
    training = bool(known["backward_end_ns"].count())
    start, end = (pl.col(name) // TICK_NS for name in ("start_ns", "end_ns"))
    first = (pl.coalesce("forward_start_ns", "start_ns") // TICK_NS).clip(start, end)
    last = (pl.coalesce("backward_end_ns", "end_ns") // TICK_NS).clip(first, end)
    parts = [first, last, first - start, last - first, end - last] if training else [first, first - start, end - first]
    cells = enumerate((pl.col("step"), start, end, end - start, *parts))
    return known.select(cell.alias(str(place)) for place, cell in cells).rows(), training


def _rounded_mean(values: Sequence[int]) -> int:
    """The mean as a whole number, exact for numbers that a float would not hold."""
    return (2 * sum(values) + len(values)) // (2 * len(values))


def _operator_at(export: RankExport, points: pl.DataFrame, point: str) -> str:
    """The full name of the operator that `step_trace` found at a point of the first step that has one."""
    known = points.filter(pl.col(f"{point}_operator").is_not_null() & (pl.col("step") > 0)).sort("step").head(1)
    if known.is_empty():
        return ""
    name, at_ns = known.select(f"{point}_operator", f"{point}_ns").row(0)
    if export.is_mindspore:  # a name is the place in the model already
        return str(name)
    work = (owned_kernels(export) if export.run.has("kernels") else named_operators(export)).select(
        "name", "full_name", "start_ns", "duration_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    mine = work.filter(pl.col("name") == name)
    if point == "forward_start":
        found = mine.filter(pl.col("start_ns") >= at_ns).sort("start_ns", -pl.col("duration_ns")).head(1)
    else:
        found = mine.filter(pl.col("end_ns") <= at_ns).sort("end_ns", "start_ns").tail(1)
    return next(iter(found.collect()["full_name"]), str(name))


def _mean_call(calls: Call, starts: Mapping[int, int], mean_start: int, mean_end: int) -> list[int]:
    """Length, start and end of a call in the average step, from the steps that have it and count (`starts`)."""
    mine = [(at - starts[step], end - at) for step, (at, end) in calls.items() if step in starts]
    if not mine:
        return [0, mean_end, mean_end]
    offset, length = (_rounded_mean(column) for column in zip(*mine, strict=True))
    return [length, mean_start + offset, mean_start + offset + length]


def _reduces(export: RankExport) -> dict[str, Call]:
    """The calls by the names of their columns, in the order in which they come in a step."""
    found: dict[str, Call] = {}
    calls = named_reduces(export, export.rows("collectives")).select("reduce", "step", "start_ns", "duration_ns")
    for name, step, start_ns, ns in calls.iter_rows():
        found.setdefault(name, {})[step] = (start_ns // TICK_NS, (start_ns + ns) // TICK_NS)
    return found


def named_reduces(export: RankExport, collectives: pl.DataFrame) -> pl.DataFrame:
    """The calls in steps under the names that they have in all classic files.

    Args:
        export: The rank.
        collectives: Its calls.

    Returns:
        Columns of `collectives`, and `reduce` (`stream_0_2_AllReduce`: stream, number of the call in a step as of
        `step_reduces`, operation), by call, then by step.
    """
    try:
        layout = export.run.analyse("step_reduces", on_host=True)
    except Unavailable:
        return collectives.clear().with_columns(reduce=pl.lit(None, pl.String))
    calls = layout.filter((pl.col("segment") == "call") & (pl.col("step") > 0)).select(
        "collective", "call", place=filled_in("stream_{}_{}", pl.col("stream").fill_null(0), "call")
    )
    named = collectives.join(calls, on="collective", maintain_order="left").sort("call", "start_ns")
    named = named.with_columns(reduce=filled_in("{}_{}", "place", CALL_NAME))
    return named.select(*collectives.columns, "reduce")
