"""Exported raw profiles, by iteration or in one trace, used if MindSpore's files have no steps and kernels.

The tasks of calls in them show what went over links: a task that moves data states its two ends, the bytes, and the
link that it took. Over RDMA, a transfer is three tasks one after the other: two are sent, and it is over when a third
has waited for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend.iterations import NAME, write_iterations
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.ranks import offset_of
from stepscope.sources.classic.raw_clock import newest, raw_trace
from stepscope.sources.classic.raw_steps import read_step_events
from stepscope.sources.kineto.communication import operation_of
from stepscope.sources.sinks import SilentSink
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables import LINKS

_OWN = ("step_trace", "timeline", "timeline_display")
"""What MindSpore makes of the same work, by another clock."""
_ENDS = {"source": "src rank", "destination": "dst rank"}
_LAYOUT = Layout(
    (
        EventClass(
            "tasks",
            frozenset({"X"}),
            None,
            (
                *(Arg(key, column, "int") for column, key in _ENDS.items()),
                Arg("size(Byte)", "size_bytes", "int"),
                Arg("size(B)", "size_bytes", "int"),
                Arg("link type", "link", "text"),
                Arg("transport type", "transport", "text"),
            ),
        ),
        EventClass("metadata", frozenset({"M"}), None, (Arg("name", "label", "text"),)),
    )
)
_UNKNOWN = ("INVALID_TYPE", "RESERVED", "N/A", "")
_NOBODY = 2**31
"""Ends from this number on are not ranks (0xffffffff)."""
_SENDS, _WAITS = r"(?i)^rdma_?send", r"(?i)^notify_?wait"
_CALLS = r"^Communication|Communication$"
"""Name of the track on which whole calls stand; their tasks stand on planes."""


def has_iterations(files: RankFiles) -> bool:
    """Whether only the export of the raw profile has a rank's steps and kernels."""
    exported = files.all("iterations") or files.all("device_trace")
    return bool(exported) and not any(files.all(kind) for kind in _OWN)


def write_by_iteration(files: RankFiles, sink: Sink) -> None:
    """Write `kernels`, `collectives`, `steps`, `slices` and `links` of iterations.

    Raises:
        UnreadableInput: If there are iterations of which none can be read.
    """
    if not has_iterations(files):
        return
    traces, details = files.all("iterations"), list[Path]()
    if not traces:
        traces, details = newest(files.all("device_trace")), newest(files.all("device_summary"))
    trace = raw_trace(files, sink)
    if trace is None:  # they are in the files of whole iterations, too
        trace = read_step_events([file for file in traces if file.name.startswith("msprof_")], SilentSink())
    known = None if trace is None else trace.steps
    steps = write_iterations(traces, known, files.path, sink, details)
    _write_links(files, traces, steps, sink)


def _write_links(files: RankFiles, traces: list[Path], steps: pl.DataFrame, sink: Sink) -> None:
    """Write `links`: totals of each step, and what each call moved."""
    moved = [rows for file in _with_calls(traces) if (rows := _moved(file)) is not None and rows.height]
    if not moved:
        return
    ranges = steps.select("step", "end_ns", at="start_ns").sort("at")
    rows = pl.concat(moved).sort("start_ns").join_asof(ranges, left_on="start_ns", right_on="at")
    offset = offset_of(files, rows, traces[0].parent, sink)
    if offset is None:
        return
    key = ("step", "source", "destination", "transport")
    sums = (
        pl.sum("size_bytes", "duration_ns"),
        pl.when(pl.col("wait_ns").count() > 0).then(pl.sum("wait_ns")).alias("wait_ns"),
    )
    totals = rows.group_by(*key, maintain_order=True).agg(*sums)
    calls = rows.drop_nulls("name").group_by(*key, "name", maintain_order=True).agg(*sums)
    both = pl.concat([totals, calls.with_columns(operation=operation_of(pl.col("name")))], how="diagonal")
    order = ["step", "name", "source", "destination", "transport"]
    placed = both.with_columns(pl.col("source", "destination").cast(pl.Int32) + offset)
    sink.write(LINKS, placed.sort(order, nulls_last=False))


def _with_calls(files: Sequence[Path]) -> list[Path]:
    """The files that have the tasks of calls, each iteration once; traces of all iterations have them, too."""
    names = [(file, NAME.fullmatch(file.name)) for file in files]
    with_tasks = {match.group(2, 3, 4) for _, match in names if match and match[1] == "hccl"}
    return sorted(
        file
        for file, match in names
        if match is None or match[1] == "hccl" or (match[1] == "msprof" and match.group(2, 3, 4) not in with_tasks)
    )


def _moved(file: Path) -> pl.DataFrame | None:
    """What each task of a file moved, with the name of its call; None if the file cannot be read.

    The reader of iterations reads it as well, and reports its damage.
    """
    tracks: list[pl.DataFrame] = []
    tasks: list[pl.DataFrame] = []
    try:
        for batch in TraceEvents(file, _LAYOUT, SilentSink()):
            if (named := batch.get("metadata")) is not None:
                tracks.append(named.filter(name="thread_name").select("process", "thread", "label"))
            if (found := batch.get("tasks")) is not None:
                tasks.append(found)
    except UnreadableInput:
        return None
    if not tasks or not tracks:
        return None
    both = pl.concat(tasks).drop_nulls(["start_ns", "duration_ns"])
    calls = both.join(pl.concat(tracks).filter(pl.col("label").str.contains(_CALLS)), on=["process", "thread"])
    calls = calls.select("process", at="start_ns", name="name", until=pl.col("start_ns") + pl.col("duration_ns"))
    ends = [pl.col(name).is_between(0, _NOBODY, closed="left") for name in _ENDS]
    link, way = (pl.when(~pl.col(name).is_in(_UNKNOWN)).then(name) for name in ("link", "transport"))
    placed = (
        _whole_transfers(both)
        .filter(pl.col("size_bytes") > 0, pl.col("duration_ns") > 0, *ends)
        .select("process", "start_ns", "duration_ns", "size_bytes", "wait_ns", *_ENDS, transport=pl.coalesce(link, way))
        .sort("start_ns")
        .join_asof(calls.sort("at"), left_on="start_ns", right_on="at", by="process", check_sortedness=False)
    )
    named_call = pl.when(pl.col("start_ns") <= pl.col("until")).then("name")
    return placed.select("start_ns", "duration_ns", "size_bytes", "wait_ns", *_ENDS, "transport", name=named_call)


def _whole_transfers(tasks: pl.DataFrame) -> pl.DataFrame:
    """Tasks with `wait_ns`, each transfer over RDMA as one; a sending task alone does not show how long one took."""
    track = ["process", "thread"]
    rows = tasks.sort("start_ns", maintain_order=True)
    sends = pl.col("name").str.contains(_SENDS)
    follows = [(sends.shift(-1), pl.col("name").str.contains(_WAITS).shift(-2)), (pl.col("size_bytes").shift(-1),)]
    (again, waits), (more,) = ([part.over(track) for part in parts] for parts in follows)
    lengths = [pl.col("duration_ns").shift(-at).over(track) for at in range(3)]
    begins = sends & again & waits & ~sends.shift(1).over(track).fill_null(False)
    return rows.with_columns(
        duration_ns=pl.when(begins).then(pl.sum_horizontal(lengths)).otherwise("duration_ns"),
        size_bytes=pl.when(begins).then(pl.col("size_bytes") + more.fill_null(0)).otherwise("size_bytes"),
        wait_ns=pl.when(begins).then(lengths[2]),
        is_whole=begins.fill_null(False) | ~sends.fill_null(False),
    ).filter("is_whole")
