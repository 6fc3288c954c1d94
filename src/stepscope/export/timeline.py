"""`cpu_timeline_display` and `gpu_timeline_display` with their summaries, in the trace-event format.

The file is written event by event. Where it would grow beyond the limit it ends with the last event that has room, so
it is JSON in any case; what is worth most comes first, the operators of the host last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import polars as pl

from stepscope.analysis.methods.step_windows import step_windows
from stepscope.errors import Unavailable
from stepscope.export import timeline_events as events
from stepscope.export.forms import ms
from stepscope.export.job import Job
from stepscope.export.launches import thread_numbers
from stepscope.export.limited import Limited
from stepscope.export.operator_names import named_operators
from stepscope.export.overlaps import overlaps
from stepscope.export.scopes import scope_depth

_PHASES = ("data", "forward", "backward", "optimizer", "validation", "compile", "checkpoint", "epoch", "range")
_OPERATOR = ("full_name", "op_name", "op_type", "thread", "start_ns", "duration_ns", "self_ns")


def write_timeline(job: Job) -> None:
    """Write timeline and summary, of the GPU where there is one, else of the host."""
    kind = "gpu" if job.on_gpu else "cpu"
    display = f"{kind}_timeline_display_{job.rank}.json"
    steps = job.rows("steps").filter(pl.col("step") > 0).sort("start_ns")
    operators = named_operators(job).select(_OPERATOR).sort("start_ns", maintain_order=True).collect()
    if steps.is_empty() and operators.is_empty():
        job.leave_out(display, "neither steps nor operators were recorded")
        return
    indent = "    " if job.pretty else ""  # each event is one line in any case
    lines = (indent + line for line in chain.from_iterable(_parts(job, steps, operators)))
    written = Limited(lines, job.timeline_limit_bytes, "[\n", "\n]")
    job.write(display, written)
    if written.cut:
        limit = f"{job.timeline_limit_bytes / (1 << 20):g} MB (timeline_limit)"
        job.leave_out(f"{display} (events)", f"the last {written.cut} events: the file would be larger than {limit}")
    job.write_json(f"{kind}_timeline_summary_{job.rank}.json", _summary(job, operators))


def _parts(job: Job, steps: pl.DataFrame, operators: pl.DataFrame) -> Iterator[Iterator[str]]:
    streams = job.lazy("kernels").select(pl.col("stream").fill_null(0).unique().sort()).collect()["stream"].to_list()
    marks = job.raw("marks").filter(pl.col("kind").is_in(_PHASES))
    yield events.metadata(job, thread_numbers(operators).values(), streams)
    yield events.step_events(steps)
    yield events.overlap_events(_overlaps(job))
    yield events.phase_events(job.within(marks, "start_ns").sort("start_ns"))
    yield events.collective_events(job.rows("collectives").sort("start_ns"))
    yield events.kernel_events(job)
    yield events.scope_events(operators)
    yield events.operator_events(operators)


def _overlaps(job: Job) -> dict[str, pl.DataFrame]:
    """What was going on in the steps; nothing where that is unknown."""
    if not job.run.has("operators") and not job.run.has("kernels"):
        return {}
    try:
        activity = job.run.analyse("activity")
    except Unavailable:
        return {}
    return overlaps(activity, step_windows(job.lazy("steps")).lazy())


def _summary(job: Job, operators: pl.DataFrame) -> dict[str, float | int]:
    """Total time of operators (device work on a GPU) in ms, rows, distinct operators, calls, depth of scopes."""
    if job.on_gpu:
        kernels = job.rows("kernels")
        return {
            "total_time": ms(int(kernels["duration_ns"].sum())),
            "num_of_streams": kernels["stream"].n_unique(),
            "num_of_ops": kernels["name"].n_unique(),
            "op_exe_times": kernels.height,
            "max_scope_name_num": scope_depth(operators),
        }
    return {
        "total_time": ms(int(operators.select(pl.coalesce("self_ns", "duration_ns").sum()).item())),
        "num_of_streams": operators["thread"].n_unique(),
        "num_of_ops": operators["full_name"].n_unique(),
        "op_exe_times": operators.height,
        "max_scope_name_num": scope_depth(operators),
    }
