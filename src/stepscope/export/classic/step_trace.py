"""`step_trace_raw` and `step_trace_point_info`: interval, forward and backward, tail of each step, in ticks of 10 ns.

A step starts where `steps` says: what lies between two steps, such as the time that the recorder took to begin an
operator window, is in neither. Its forward pass starts and its backward pass ends where the recorder marked them, or
where the operators lie that `PROFILING_FP_START` and `PROFILING_BP_END` name. Rows count from 1, as in the files of
real devices, since readers look a step up by its row; the list of exported files has the steps' own numbers. The last
row is the mean of the steps whose predecessor was recorded too: the first step of a recording often builds things, so
it would bias the mean, as it does in other tools that write this file.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

import polars as pl

from stepscope.export.classic.operator_names import named_operators
from stepscope.export.classic.step_points import Points, find_points
from stepscope.export.classic.step_reduces import MAX_REDUCES, find_reduces, rounded_mean
from stepscope.export.formatting import TICK_NS, csv_text
from stepscope.export.rank_export import RankExport

Row = list[int]

TRAINING = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
INFERENCE = "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"

_ROUNDING_NS = 2_000
"""Clocks of operator windows tell whole microseconds: steps no further apart than both ends' rounding touch."""


def write_step_trace(export: RankExport) -> None:
    """Write both files."""
    trace, points_file = f"step_trace_raw_{export.rank}_detail_time.csv", f"step_trace_point_info_{export.rank}.json"
    steps = export.rows("steps").filter(pl.col("step") > 0).sort("start_ns")
    if steps.is_empty():
        for name in (trace, points_file):
            export.leave_out(name, "no step was recorded from its start to its end")
        return
    points = find_points(export, steps, named_operators(export))
    rows = [_row(one, points) for one in _starts(steps)]
    reduces = find_reduces(export.rows("collectives"), steps["step"].to_list())
    if len(reduces) > MAX_REDUCES:
        export.leave_out(f"{trace} (reduce columns)", f"{len(reduces) - MAX_REDUCES} of {len(reduces)} calls in a step")
        reduces = reduces[:MAX_REDUCES]
    header = ",".join([TRAINING if points.training else INFERENCE, *(reduce.header for reduce in reduces)])
    counted = _counted(rows, export.recorded_steps)
    average = _mean(counted)
    told = [
        [number, *row[1:], *(cell for reduce in reduces for cell in reduce.cells(row[0], row[2]))]
        for number, row in enumerate(rows, 1)
    ]
    last = [cell for reduce in reduces for cell in reduce.mean({row[0]: row[1] for row in counted}, *average[:2])]
    export.write(trace, csv_text(header, [*told, ["-", *average, *last]]))
    named = {"fp_start": points.first_forward, "bp_end": points.last_backward}
    if known := {name: operator for name, operator in named.items() if operator}:
        export.write_json(points_file, known)
    else:
        export.leave_out(points_file, "no operators were recorded (op_time is off)")


def _starts(steps: pl.DataFrame) -> list[tuple[int, int, int]]:
    """Step, start, end; a gap that is the clocks' rounding alone is joined."""
    rows = steps.select("step", "start_ns", "end_ns").rows()
    joined = rows[:1]
    for (last, _, ended), (step, start, end) in pairwise(rows):
        touches = step == last + 1 and 0 < start - ended <= _ROUNDING_NS
        joined.append((step, ended if touches else start, end))
    return joined


def _row(one: tuple[int, int, int], points: Points) -> Row:
    step, start_ns, end_ns = one
    start, end = start_ns // TICK_NS, end_ns // TICK_NS
    first = min(max(points.forward_ns.get(step, start_ns) // TICK_NS, start), end)
    if not points.training:
        return [step, start, end, end - start, first, first - start, end - first]
    last = min(max(points.backward_ns.get(step, end_ns) // TICK_NS, first), end)
    return [step, start, end, end - start, first, last, first - start, last - first, end - last]


def _counted(rows: list[Row], recorded: Container[int]) -> list[Row]:
    """The steps of the average: those whose predecessor was recorded, wanted or not; without any, all but the first."""
    return [row for row in rows if row[0] - 1 in recorded] or rows[1:] or rows


def _mean(counted: Sequence[Row]) -> Row:
    """The mean of all columns but the step's number."""
    return [rounded_mean(column) for column in list(zip(*counted, strict=True))[1:]]
