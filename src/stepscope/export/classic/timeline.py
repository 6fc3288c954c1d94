"""`cpu_timeline_display` and `gpu_timeline_display` with their summaries, in the trace-event format.

The file is written event by event. If it would grow beyond the limit, it ends with the last event that fits, so it is
valid JSON in any case; the most useful events come first, the operators of the host last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import polars as pl

from stepscope.analysis.methods.step_windows import step_windows
from stepscope.errors import Unavailable
from stepscope.export.classic import timeline_events as events
from stepscope.export.classic.launches import thread_numbers
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import ms
from stepscope.export.rank_export import RankExport
from stepscope.export.timelines import CappedList, overlaps
from stepscope.recording_format.rows import MARKS

_PHASES = ("data", "forward", "backward", "optimizer", "validation", "compile", "checkpoint", "epoch", "range")
_OPERATOR = ("full_name", "op_name", "op_type", "thread", "start_ns", "duration_ns", "self_ns")


def write_timeline(export: RankExport) -> None:
    """Write timeline and summary, of the GPU if there is one, else of the host."""
    kind = "gpu" if export.on_gpu else "cpu"
    display = f"{kind}_timeline_display_{export.rank}.json"
    steps = export.rows("steps").filter(pl.col("step") > 0).sort("start_ns")
    operators = named_operators(export).select(_OPERATOR).sort("start_ns", maintain_order=True).collect()
    if steps.is_empty() and operators.is_empty():
        export.leave_out(display, "neither steps nor operators were recorded")
        return
    indent = "    " if export.pretty else ""  # each event is one line in any case
    lines = (indent + line for line in chain.from_iterable(_parts(export, steps, operators)))
    written = CappedList(lines, export.timeline_limit_bytes, "[\n", "\n]")
    export.write(display, written)
    if written.cut:
        limit = f"{export.timeline_limit_bytes / (1 << 20):g} MB (timeline_limit)"
        export.leave_out(f"{display} (events)", f"the last {written.cut} events: the file would be larger than {limit}")
    export.write_json(f"{kind}_timeline_summary_{export.rank}.json", _summary(export, operators))


def _parts(export: RankExport, steps: pl.DataFrame, operators: pl.DataFrame) -> Iterator[Iterator[str]]:
    streams = export.lazy("kernels").select(pl.col("stream").fill_null(0).unique().sort()).collect()["stream"].to_list()
    marks = export.raw(MARKS).filter(pl.col("kind").is_in(_PHASES))
    yield events.metadata(export, thread_numbers(operators).values(), streams)
    yield events.step_events(steps)
    yield events.overlap_events(_overlaps(export))
    yield events.phase_events(export.within(marks, "start_ns").sort("start_ns"))
    yield events.collective_events(export.rows("collectives").sort("start_ns"))
    yield events.kernel_events(export)
    yield events.scope_events(operators)
    yield events.operator_events(operators)


def _overlaps(export: RankExport) -> dict[str, pl.DataFrame]:
    """What was going on in the steps; nothing if that is unknown."""
    if not export.run.has("operators") and not export.run.has("kernels"):
        return {}
    try:
        activity = export.run.analyse("activity")
    except Unavailable:
        return {}
    return overlaps(activity, step_windows(export.lazy("steps")).lazy())


def _summary(export: RankExport, operators: pl.DataFrame) -> dict[str, float | int]:
    """Total time of operators (device work on a GPU) in ms, rows, distinct operators, calls, depth of scopes."""
    if export.on_gpu:
        kernels = export.rows("kernels")
        time, stream, name = kernels["duration_ns"], kernels["stream"], kernels["name"]
    else:
        time = operators.select(pl.coalesce("self_ns", "duration_ns")).to_series()
        stream, name = operators["thread"], operators["full_name"]
    return {
        "total_time": ms(int(time.sum())),
        "num_of_streams": stream.n_unique(),
        "num_of_ops": name.n_unique(),
        "op_exe_times": time.len(),
        "max_scope_name_num": events.scope_depth(operators),
    }
