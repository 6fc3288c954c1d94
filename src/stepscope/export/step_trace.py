"""`step_trace_raw` and `step_trace_point_info`: interval, forward and backward, tail of each step, in ticks of 10 ns.

A step starts where the one before it ended, if nothing lies between them. Its forward pass starts and its backward
pass ends where the recorder marked them, or where the operators lie that `PROFILING_FP_START` and `PROFILING_BP_END`
name. The last row is the mean of steps 2 to n: the first step has no predecessor and often builds things, so it would
bias the mean, as it does in other tools that write this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import polars as pl

from stepscope.export.forms import TICK_NS, csv_text
from stepscope.export.job import Job
from stepscope.export.operator_names import named_operators
from stepscope.export.step_points import Points, find_points

Row = list[int | None]

TRAINING = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
INFERENCE = "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"
MAX_REDUCES = 200
"""Three columns each; a step with more calls keeps its first ones."""

_OPERATIONS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "all_to_all": "AlltoAll",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
    "barrier": "Barrier",
    "send": "Send",
    "recv": "Receive",
}


def write_step_trace(job: Job) -> None:
    """Write both files."""
    trace, points_file = f"step_trace_raw_{job.rank}_detail_time.csv", f"step_trace_point_info_{job.rank}.json"
    steps = job.rows("steps").filter(pl.col("step") > 0).sort("start_ns")
    if steps.is_empty():
        for name in (trace, points_file):
            job.leave_out(name, "no step was recorded from its start to its end")
        return
    points = find_points(job, steps, named_operators(job))
    rows = [_row(one, points) for one in _starts(steps)]
    reduces = _reduces(job, steps["step"].to_list())
    if len(reduces) > MAX_REDUCES:
        job.leave_out(f"{trace} (reduce columns)", f"{len(reduces) - MAX_REDUCES} of {len(reduces)} calls in a step")
        reduces = dict(list(reduces.items())[:MAX_REDUCES])
    header = TRAINING if points.training else INFERENCE
    for name in reduces:
        header += f",{name},{name}_start_point,{name}_end_point"
    rows = [row + _reduce_cells(row, reduces.values()) for row in rows]
    job.write(trace, csv_text(header, [*rows, ["-", *_mean(rows)]]))
    info = {"fp_start": points.first_forward, "bp_end": points.last_backward}
    job.write_json(points_file, info if points.training else {"fp_start": points.first_forward})


def _starts(steps: pl.DataFrame) -> list[tuple[int, int, int]]:
    """Step, start, end; a step that follows the one before it starts at its end."""
    rows = steps.select("step", "start_ns", "end_ns").rows()
    joined = rows[:1]
    for (last, _, ended), (step, start, end) in pairwise(rows):
        joined.append((step, min(start, ended) if step == last + 1 else start, end))
    return joined


def _row(one: tuple[int, int, int], points: Points) -> Row:
    step, start_ns, end_ns = one
    start, end = start_ns // TICK_NS, end_ns // TICK_NS
    first = min(max(points.forward_ns.get(step, start_ns) // TICK_NS, start), end)
    if not points.training:
        return [step, start, end, end - start, first, first - start, end - first]
    last = min(max(points.backward_ns.get(step, end_ns) // TICK_NS, first), end)
    return [step, start, end, end - start, first, last, first - start, last - first, end - last]


def _reduce_cells(row: Row, reduces: Iterable[dict[int, list[int | None]]]) -> Row:
    """The cells of a step's calls. Readers want numbers: a call that the step lacks lies at its end, without length."""
    step, end = row[0] or 0, row[2]
    return [cell for calls in reduces for cell in calls.get(step, [0, end, end])]


def _mean(rows: Sequence[Row]) -> Row:
    """The mean of steps 2 to n, column by column; that of the only step where there is one."""
    counted = rows[1:] or rows
    means: Row = []
    for column in list(zip(*counted, strict=True))[1:]:
        known = [value for value in column if value is not None]
        means.append((2 * sum(known) + len(known)) // (2 * len(known)) if known else None)
    return means


def _reduces(job: Job, steps: Sequence[int]) -> dict[str, dict[int, list[int | None]]]:
    """The collective calls by their place in the step: name to step to length, start and end in ticks."""
    calls = job.rows("collectives").filter(pl.col("step").is_in(steps)).sort("start_ns")
    found: dict[tuple[int, int, str], dict[int, list[int | None]]] = {}
    seen: dict[int, int] = {}
    for step, stream, operation, start_ns, ns in calls.select(
        "step", "stream", "operation", "start_ns", "duration_ns"
    ).iter_rows():
        place = seen[step] = seen.get(step, -1) + 1
        key = (stream or 0, place, _OPERATIONS.get(operation, operation))
        start, end = start_ns // TICK_NS, (start_ns + ns) // TICK_NS
        found.setdefault(key, {})[step] = [end - start, start, end]
    order = sorted(found, key=lambda key: (key[1], key[0], key[2]))
    return {
        f"stream_{stream}_{place}_{operation}": found[stream, place, operation] for stream, place, operation in order
    }
