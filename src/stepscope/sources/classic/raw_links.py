"""What went over links, from the tasks of calls in the exports of a raw profile by iteration.

A task that moves data states its two ends, the bytes, and the link that it took. Over RDMA, a transfer is three tasks
one after the other: two are sent, and it is over when a third has waited for the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend.iterations import NAME
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.link_ranks import offset_of
from stepscope.sources.kineto.communication import operation_of
from stepscope.sources.sinks import SilentSink
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables import LINKS

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


def write_raw_links(files: RankFiles, exported: list[Path], steps: pl.DataFrame, sink: Sink) -> None:
    """Write `links`: totals of each step, and what each call moved.

    Args:
        files: The rank.
        exported: The traces of its export.
        steps: Range of each step: `step`, `start_ns`, `end_ns`.
        sink: Takes the rows, and an issue if the ends of links are not ranks of the job.
    """
    moved = [rows for file in _with_calls(exported) if (rows := _moved(file)) is not None and rows.height]
    if not moved:
        return
    ranges = steps.select("step", "end_ns", at="start_ns").sort("at")
    rows = pl.concat(moved).sort("start_ns").join_asof(ranges, left_on="start_ns", right_on="at")
    offset = offset_of(files, rows, exported[0].parent, sink)
    if offset is None:
        return
    key = ["step", "source", "destination", "transport"]
    sums = (
        pl.sum("size_bytes", "duration_ns"),
        pl.when(pl.col("wait_ns").count() > 0).then(pl.sum("wait_ns")).alias("wait_ns"),
    )
    totals = rows.group_by(key, maintain_order=True).agg(*sums)
    calls = rows.drop_nulls("name").group_by(*key, "name", maintain_order=True).agg(*sums)
    both = pl.concat([totals, calls.with_columns(operation=operation_of(pl.col("name")))], how="diagonal")
    order = ["step", "name", "source", "destination", "transport"]
    placed = both.with_columns(pl.col("source", "destination").cast(pl.Int32) + offset)
    sink.write(LINKS, placed.sort(order, nulls_last=False))


def _with_calls(files: Iterable[Path]) -> list[Path]:
    """The files that have the tasks of calls, each iteration once; traces of all iterations have them, too."""
    files = list(files)
    best: dict[tuple[str, ...], list[Path]] = {}
    for kind in ("hccl", "msprof"):
        found: dict[tuple[str, ...], list[Path]] = {}
        for file in files:
            if (match := NAME.fullmatch(file.name)) and match[1] == kind:
                found.setdefault(match.group(2, 3, 4), []).append(file)
        best = {**found, **best}
    whole = [file for file in files if NAME.fullmatch(file.name) is None]
    return sorted([*whole, *(file for named in best.values() for file in named)])


def _moved(file: Path) -> pl.DataFrame | None:
    """What each task of a file moved, with the name of its call; None if the file cannot be read.

    The reader of iterations reads it as well, and reports its damage.
    """
    tracks: list[pl.DataFrame] = []
    tasks: list[pl.DataFrame] = []
    try:
        for batch in TraceEvents(file, _LAYOUT, report=SilentSink().issue, workers=1):
            if (named := batch.frames.get("metadata")) is not None:
                tracks.append(named.filter(name="thread_name").select("process", "thread", "label"))
            if (found := batch.frames.get("tasks")) is not None:
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
    placed = rows.with_columns(
        sends=sends.fill_null(False), begins=begins.fill_null(False), more=more, wait_ns=lengths[2]
    )
    whole_ns = pl.sum_horizontal(lengths)
    begun = pl.col("begins")
    return placed.with_columns(
        duration_ns=pl.when(begun).then(whole_ns).otherwise("duration_ns"),
        size_bytes=pl.when(begun).then(pl.col("size_bytes") + pl.col("more").fill_null(0)).otherwise("size_bytes"),
        wait_ns=pl.when(begun).then("wait_ns"),
    ).filter(begun | ~pl.col("sends"))
