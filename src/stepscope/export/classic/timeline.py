"""`ascend_`, `gpu_` and `cpu_timeline_display` with their summaries, in the trace-event format.

The file is written event by event. If it would grow beyond the limit, it ends with the last event that fits, so it is
valid JSON in any case; the most useful events come first, the operators of the host last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import polars as pl

from stepscope.analysis.methods.step_windows import step_windows
from stepscope.errors import Unavailable
from stepscope.export.classic.cpu_operators import thread_numbers
from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.classic.timeline_calls import call_events, call_threads, calls_of
from stepscope.export.classic.timeline_layout import (
    ACTIVITY,
    AI_CPU,
    HOST,
    HOST_THREAD,
    OVERLAP,
    OVERLAPS,
    SCOPE_NAMES,
    STEPS,
    Layout,
    Thread,
    event,
    layout_of,
    work_arguments,
)
from stepscope.export.formatting import ms
from stepscope.export.rank_export import RankExport
from stepscope.recording_format.rows import MARKS
from stepscope.timeline.options import TimelineOptions
from stepscope.timeline.overlaps import overlaps
from stepscope.timeline.scopes import SCOPES, scopes
from stepscope.timeline.tracks.base import Part
from stepscope.timeline.tracks.scopes import FAMILY as SCOPE_BARS
from stepscope.timeline.writing.events import capped

_PHASES = ("data", "forward", "backward", "optimizer", "validation", "compile", "checkpoint", "epoch", "range")
_TIME = ("start_ns", "duration_ns")
_OPERATOR = ("full_name", "op_name", "op_type", "thread", *_TIME, "self_ns")
_WORK = ("op_name", "full_name", "op_type", "stream", *_TIME)
_PART = 50_000
_ON_AI_CPU = pl.col("core").is_in(["AI_CPU", "AICPU"]).fill_null(value=False)
_MOVES = "(?i)memcpy|memset"


def write_timeline(export: RankExport) -> None:
    """Write timeline and summary, of the device if there is one, else of the host."""
    layout = layout_of(export)
    display = f"{layout.kind}_timeline_display_{export.rank}.json"
    steps = export.numbered_steps
    operators = named_operators(export).select(_OPERATOR).sort("start_ns", maintain_order=True).collect()
    has_work = operators.height or (layout.on_ascend and (export.run.has("kernels") or export.run.has("collectives")))
    if steps.is_empty() and not has_work:
        export.leave_out(display, "neither steps nor operators were recorded")
        return
    kernels = _kernels(export, layout)
    indent = "    " if export.pretty else ""  # each event is one line in any case
    lines = (indent + line for line in _lines(export, layout, steps, operators, kernels))

    def note(_: int, cut: int) -> None:
        limit = f"{export.timeline_limit_bytes / (1 << 20):g} MB (timeline_limit)"
        export.leave_out(f"{display} (events)", f"the last {cut} events: the file would be larger than {limit}")

    export.write(display, capped(lines, export.timeline_limit_bytes, note, "[\n", "\n]"))
    summary = _summary(layout, operators, kernels)
    export.write_json(f"{layout.kind}_timeline_summary_{export.rank}.json", summary)


def _kernels(export: RankExport, layout: Layout) -> pl.DataFrame:
    """Device work in order of start: `_WORK`, `name` and `on_ai_cpu`; of an Ascend device without communication.

    The tracks of `stepscope timeline` have no operators that launched it, whose names the format wants.
    """
    owned = owned_kernels(export)
    if layout.on_ascend:
        is_memory = pl.col("kind") == "memory"
        told = pl.col("op_type").str.contains(_MOVES) | pl.col("full_name").str.contains(_MOVES)
        kind = pl.when(is_memory & ~told).then(pl.lit("Memcpy")).otherwise("op_type")  # readers tell copies by this
        owned = owned.filter(pl.col("kind") != "communication").with_columns(op_type=kind)
    rows = owned.select("name", *_WORK, on_ai_cpu=_ON_AI_CPU)
    return rows.sort("start_ns", maintain_order=True).collect()


def _lines(
    export: RankExport, layout: Layout, steps: pl.DataFrame, operators: pl.DataFrame, kernels: pl.DataFrame
) -> Iterator[str]:
    """All events, the most useful ones first."""
    numbers, calls = thread_numbers(operators), calls_of(export, layout)
    yield from layout.metadata([*_threads(layout, [*numbers.values()], kernels), *call_threads(calls, layout)])
    for step, start, end in steps.select("step", "start_ns", "end_ns").iter_rows():
        yield event(str(step), layout.first, STEPS, start, end - start)
    yield from _overlap_events(export)
    marks = export.within(export.raw(MARKS).filter(pl.col("kind").is_in(_PHASES)), "start_ns").sort(
        "start_ns", maintain_order=True
    )
    for kind, name, start, end in marks.select("kind", "name", "start_ns", "end_ns").iter_rows():
        yield event(kind, HOST, HOST_THREAD, start, end - start, args={"name": name})
    yield from call_events(calls, layout)
    if layout.on_ascend:
        for process, on_ai_cpu in ((layout.first, False), (AI_CPU, True)):
            work = kernels.filter(pl.col("on_ai_cpu") == on_ai_cpu)
            yield from _work_events(work.select(_WORK), process, lambda stream: stream or 0)
    else:
        yield from _work_events(kernels.select("name", *_WORK[1:]), ACTIVITY, lambda stream: stream or 0)
    for level, name, start, end in _scopes(export, layout, operators).iter_rows():
        yield event(name, layout.first, SCOPE_NAMES, start, end - start, more=f',"scope_level":{level}')
    launches = operators.select("op_name", "full_name", "op_type", "thread", *_TIME)
    yield from _work_events(launches, layout.operators, lambda thread: f"HostCpuOps{numbers[thread]}")


def _threads(layout: Layout, numbers: list[int], kernels: pl.DataFrame) -> Iterator[Thread]:
    """Threads of the host's operators, and streams of the device."""
    yield from ((layout.operators, f"HostCpuOps{number}", f"HostCpuOps{number}", number) for number in numbers)
    streams = kernels.select(pl.col("stream").fill_null(0), "on_ai_cpu").unique().sort("on_ai_cpu", "stream")
    for stream, on_ai_cpu in streams.iter_rows():
        process = ACTIVITY if not layout.on_ascend else AI_CPU if on_ai_cpu else layout.first
        yield process, stream, f"Stream {stream}", stream


def _scopes(export: RankExport, layout: Layout, operators: pl.DataFrame) -> pl.DataFrame:
    """Bars of scopes as `SCOPES`: as `stepscope timeline` shows those of kernels; on a host, those of operators, whose
    names may have scopes in these files alone."""
    if not layout.on_ascend:
        return scopes(_of_busiest(operators)).select(*SCOPES)
    rows = SCOPE_BARS.rows(Part(export.run, TimelineOptions(scope_names=True)))
    if rows is None:
        return pl.DataFrame(schema=SCOPES)
    bars = rows.filter(pl.col("table") == "kernels").with_columns(
        level=pl.col("order"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    return bars.select(*SCOPES).collect()


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
            yield event(name, process, track(place), start, ns, more=work_arguments(kind, full))


def _overlap_events(export: RankExport) -> Iterator[str]:
    """What was going on in the steps; nothing if that is unknown.

    These are the steps of this file, which may be iterations that repeat with certainty; those of `stepscope timeline`
    are the marked ones.
    """
    if not export.run.has("operators") and not export.run.has("kernels"):
        return
    with suppress(Unavailable):
        found = overlaps(export.run.analyse("activity"), step_windows(export.lazy("steps")).lazy())
        for part, (name, thread, _) in OVERLAPS.items():
            for start, end in found[part].select("start_ns", "end_ns").iter_rows():
                yield event(name, OVERLAP, thread, start, end - start)


def _summary(layout: Layout, operators: pl.DataFrame, kernels: pl.DataFrame) -> dict[str, float | int]:
    """Total time of operators (device work on a device) in ms, rows, distinct operators, calls, depth of scopes."""
    if layout.kind == "cpu":
        time = operators.select(pl.coalesce("self_ns", "duration_ns")).to_series()
        stream, name = operators["thread"], operators["full_name"]
    else:
        time, stream = kernels["duration_ns"], kernels["stream"]
        name = kernels["full_name" if layout.on_ascend else "name"]
    scoped = kernels["full_name"] if layout.on_ascend else operators["full_name"]
    return {
        "total_time": ms(int(time.sum())),
        "num_of_streams": stream.n_unique(),
        "num_of_ops": name.n_unique(),
        "op_exe_times": time.len(),
        "max_scope_name_num": max(scoped.str.count_matches("/"), default=0),
    }
