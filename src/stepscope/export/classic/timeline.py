"""`cpu_timeline_display` and `gpu_timeline_display` with their summaries, in the trace-event format.

The file is written event by event. If it would grow beyond the limit, it ends with the last event that fits, so it is
valid JSON in any case; the most useful events come first, the operators of the host last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import polars as pl

from stepscope.analysis.methods.step_windows import step_windows
from stepscope.errors import Unavailable
from stepscope.export.classic.cpu_operators import thread_numbers
from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import ms
from stepscope.export.rank_export import RankExport
from stepscope.recording_format.rows import MARKS
from stepscope.timeline.overlaps import overlaps
from stepscope.timeline.scopes import SCOPES, scopes
from stepscope.timeline.writing.events import arguments, capped, complete, json_text, names

_PHASES = ("data", "forward", "backward", "optimizer", "validation", "compile", "checkpoint", "epoch", "range")
_TIME = ("start_ns", "duration_ns")
_OPERATOR = ("full_name", "op_name", "op_type", "thread", *_TIME, "self_ns")
STEPS, SCOPE_NAMES = 100000, 100001
COMMUNICATION, HOST, OVERLAP, ACTIVITY = 10000, 11000, 12000, 13000
HOST_THREAD = 100003
OVERLAPS = {
    "computing": ("computation_op", 7999, "Merged Computation Op"),
    "communication_alone": ("pure_communication_op", 8000, "Pure Communication Op"),
    "communication": ("communication_op", 8001, "Merged Communication Op"),
    "free": ("free_time", 8002, "Free Time"),
}
"""Name, thread and label of each of `overlaps`."""
_PART = 50_000


def write_timeline(export: RankExport) -> None:
    """Write timeline and summary, of the GPU if there is one, else of the host."""
    kind = "gpu" if export.on_gpu else "cpu"
    display = f"{kind}_timeline_display_{export.rank}.json"
    steps = export.numbered_steps
    operators = named_operators(export).select(_OPERATOR).sort("start_ns", maintain_order=True).collect()
    if steps.is_empty() and operators.is_empty():
        export.leave_out(display, "neither steps nor operators were recorded")
        return
    indent = "    " if export.pretty else ""  # each event is one line in any case
    lines = (indent + line for line in _lines(export, steps, operators))

    def note(_: int, cut: int) -> None:
        limit = f"{export.timeline_limit_bytes / (1 << 20):g} MB (timeline_limit)"
        export.leave_out(f"{display} (events)", f"the last {cut} events: the file would be larger than {limit}")

    export.write(display, capped(lines, export.timeline_limit_bytes, note, "[\n", "\n]"))
    export.write_json(f"{kind}_timeline_summary_{export.rank}.json", _summary(export, operators))


def _lines(export: RankExport, steps: pl.DataFrame, operators: pl.DataFrame) -> Iterator[str]:
    """All events, the most useful ones first."""
    streams = export.lazy("kernels").select(pl.col("stream").fill_null(0).unique().sort()).collect()["stream"].to_list()
    threads = thread_numbers(operators)
    yield from _metadata(export, threads.values(), streams)
    for step, start, end in steps.select("step", "start_ns", "end_ns").iter_rows():
        yield _event(str(step), 0, STEPS, start, end - start)
    yield from _overlap_events(export)
    marks = export.within(export.raw(MARKS).filter(pl.col("kind").is_in(_PHASES)), "start_ns").sort(
        "start_ns", maintain_order=True
    )
    for kind, name, start, end in marks.select("kind", "name", "start_ns", "end_ns").iter_rows():
        yield _event(kind, HOST, HOST_THREAD, start, end - start, args={"name": name})
    calls = export.rows("collectives").sort("start_ns", maintain_order=True)
    for group, name, start, ns, size in calls.select("group", "operation", *_TIME, "size_bytes").iter_rows():
        yield _event(name, COMMUNICATION, str(group), start, ns, args={"size_bytes": size})
    owned = owned_kernels(export).select("name", "full_name", "op_type", "stream", *_TIME)
    kernels = owned.sort("start_ns", maintain_order=True).collect()
    yield from _work_events(kernels, ACTIVITY, lambda stream: stream or 0)
    for level, name, start, end in scopes(_of_busiest(operators)).select(*SCOPES).iter_rows():
        yield _event(name, 0, SCOPE_NAMES, start, end - start, more=f',"scope_level":{level}')
    launches = operators.select("op_name", "full_name", "op_type", "thread", *_TIME)
    yield from _work_events(launches, 0, lambda thread: f"HostCpuOps{threads[thread]}")


def _of_busiest(operators: pl.DataFrame) -> pl.DataFrame:
    """The operators of the thread that ran most of them: viewers of this file have one place for all scopes."""
    if operators.is_empty():
        return operators
    busiest = operators["thread"].value_counts(sort=True)["thread"][0]
    return operators.filter(pl.col("thread").eq_missing(busiest))


def _work_events(work: pl.DataFrame, process: int, track: Callable[[Any], int | str]) -> Iterator[str]:
    """Operators or device work, by name, full name, type, thread or stream (of which `track` makes a thread's id),
    start and length."""
    for part in work.iter_slices(_PART):
        for name, full, kind, place, start, ns in part.iter_rows():
            yield _event(name, process, track(place), start, ns, more=_work(kind, full))


def _overlap_events(export: RankExport) -> Iterator[str]:
    """What was going on in the steps; nothing if that is unknown."""
    if not export.run.has("operators") and not export.run.has("kernels"):
        return
    with suppress(Unavailable):
        found = overlaps(export.run.analyse("activity"), step_windows(export.lazy("steps")).lazy())
        for part, (name, thread, _) in OVERLAPS.items():
            for start, end in found[part].select("start_ns", "end_ns").iter_rows():
                yield _event(name, OVERLAP, thread, start, end - start)


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
        "max_scope_name_num": max(operators["full_name"].str.count_matches("/") + 1, default=0),
    }


def _metadata(export: RankExport, threads: Iterable[int], streams: Iterable[int]) -> Iterator[str]:
    """Names and order of processes and threads."""
    labels = {COMMUNICATION: "Communication Op", HOST: "Host CPU OP", OVERLAP: "Op Overlap Analyse"}
    labels[ACTIVITY] = "Activity Op"
    first = f"GPU {export.rank}" if export.on_gpu else "Host CPU OP"
    for order, (pid, label) in enumerate({0: first, **labels}.items()):
        yield from names("process", (pid, 0), labels=label, name=label, sort_index=10 * order)
    tracks: list[tuple[int, int | str, str, int]] = [(0, STEPS, "Steps", -4), (0, SCOPE_NAMES, "Scope Name", -3)]
    tracks += [(OVERLAP, tid, label, tid) for _, tid, label in OVERLAPS.values()]
    tracks += [(0, f"HostCpuOps{number}", f"HostCpuOps{number}", number) for number in threads]
    tracks += [(ACTIVITY, stream, f"Stream {stream}", stream) for stream in streams]
    tracks += [(HOST, HOST_THREAD, "Phases", HOST_THREAD)]
    for pid, tid, name, order in tracks:
        yield from names("thread", (pid, tid), name=name, sort_index=order)


def _event(
    name: str, pid: int, tid: int | str, start_ns: int, ns: int, *, args: dict[str, Any] | None = None, more: str = ""
) -> str:
    """One complete event as JSON; its times are decimals, exact to the nanosecond."""
    return complete(name, (pid, tid), start_ns, ns, args=arguments((args or {}).items()), more=more)


@lru_cache(maxsize=65536)
def _work(kind: str, full: str) -> str:
    """The arguments of an operator or kernel."""
    return f',"args":{{"type":{json_text(kind)},"fullname":{json_text(full)}}}'
