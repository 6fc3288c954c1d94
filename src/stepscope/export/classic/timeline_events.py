"""The events of a classic timeline as lines of JSON, the most useful first, as the file may be cut at its limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.classic.launches import thread_numbers
from stepscope.export.formatting import us_text
from stepscope.export.rank_export import RankExport

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
SCOPES = {"level": pl.Int64, "name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
MAX_LEVELS = 64


def metadata(export: RankExport, threads: Iterable[int], streams: Iterable[int]) -> Iterator[str]:
    """Names and order of processes and threads."""
    labels = {COMMUNICATION: "Communication Op", HOST: "Host CPU OP", OVERLAP: "Op Overlap Analyse"}
    labels[ACTIVITY] = "Activity Op"
    first = f"GPU {export.rank}" if export.on_gpu else "Host CPU OP"
    for order, (pid, label) in enumerate({0: first, **labels}.items()):
        yield _meta("process_labels", pid, None, {"labels": label})
        yield _meta("process_name", pid, None, {"name": label})
        yield _meta("process_sort_index", pid, None, {"sort_index": 10 * order})
    names: list[tuple[int, int | str, str, int]] = [(0, STEPS, "Steps", -4), (0, SCOPE_NAMES, "Scope Name", -3)]
    names += [(OVERLAP, tid, label, tid) for _, tid, label in OVERLAPS.values()]
    names += [(0, f"HostCpuOps{number}", f"HostCpuOps{number}", number) for number in threads]
    names += [(ACTIVITY, stream, f"Stream {stream}", stream) for stream in streams]
    names += [(HOST, HOST_THREAD, "Phases", HOST_THREAD)]
    for pid, tid, name, order in names:
        yield _meta("thread_name", pid, tid, {"name": name})
        yield _meta("thread_sort_index", pid, tid, {"sort_index": order})


def step_events(steps: pl.DataFrame) -> Iterator[str]:
    """The steps, named by their numbers."""
    for step, start, end in steps.select("step", "start_ns", "end_ns").iter_rows():
        yield event(str(step), 0, STEPS, start, end - start)


def overlap_events(found: dict[str, pl.DataFrame]) -> Iterator[str]:
    """Merged computing, communication alone, merged communication, and nothing.

    Args:
        found: As of `overlaps`.
    """
    for part, ranges in found.items():
        name, thread, _ = OVERLAPS[part]
        for start, end in ranges.iter_rows():
            yield event(name, OVERLAP, thread, start, end - start)


def phase_events(marks: pl.DataFrame) -> Iterator[str]:
    """What the recorder marked: forward, backward, optimizer, data, checkpoints, ranges."""
    for kind, name, start, end in marks.select("kind", "name", "start_ns", "end_ns").iter_rows():
        yield event(kind, HOST, HOST_THREAD, start, end - start, args={"name": name})


def collective_events(collectives: pl.DataFrame) -> Iterator[str]:
    """The communication calls, those of each group in a row of their own."""
    columns = collectives.select("group", "operation", "start_ns", "duration_ns", "size_bytes")
    for group, operation, start, ns, size in columns.iter_rows():
        yield event(operation, COMMUNICATION, str(group), start, ns, args={"size_bytes": size})


def scope_events(operators: pl.DataFrame) -> Iterator[str]:
    """The scopes in the operators' full names, of the thread that ran most of them."""
    for level, name, start, end in scopes(operators).select(*SCOPES).iter_rows():
        yield event(name, 0, SCOPE_NAMES, start, end - start, more=f',"scope_level":{level}')


def scopes(operators: pl.DataFrame) -> pl.DataFrame:
    """The scopes of operators as bars: from the first to the last operator in a row that lies in the scope.

    Args:
        operators: `full_name`, `thread`, `start_ns`, `duration_ns`, in order of time.

    Returns:
        `level` (0 is outermost), `name`, `start_ns`, `end_ns`, by level and time.
    """
    empty = pl.DataFrame(schema=SCOPES)
    if operators.is_empty():
        return empty
    busiest = operators["thread"].value_counts(sort=True)["thread"][0]
    parts = operators.filter(pl.col("thread").eq_missing(busiest)).select(
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        parts=pl.col("full_name").str.split("/").list.head(pl.col("full_name").str.count_matches("/")),
    )
    depth = min(int(parts["parts"].list.len().max() or 0), MAX_LEVELS)  # type: ignore[arg-type]
    return pl.concat([empty, *(_level(parts, level) for level in range(depth))])


def _level(parts: pl.DataFrame, level: int) -> pl.DataFrame:
    prefix = parts.with_columns(
        path=pl.when(pl.col("parts").list.len() > level).then(pl.col("parts").list.head(level + 1).list.join("/"))
    )
    return (
        prefix.with_columns(run=pl.col("path").rle_id())
        .filter(pl.col("path").is_not_null())
        .group_by("run", maintain_order=True)
        .agg(
            pl.lit(level, pl.Int64).alias("level"),
            pl.col("parts").first().list.get(level).alias("name"),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
        )
        .select(list(SCOPES))
    )


def scope_depth(operators: pl.DataFrame) -> int:
    """The most parts that a full name has, its last among them."""
    return int(operators["full_name"].str.count_matches("/").max() or 0) + 1 if operators.height else 0  # type: ignore[arg-type]


def operator_events(operators: pl.DataFrame) -> Iterator[str]:
    """The operators on the host, a row a thread."""
    threads = thread_numbers(operators)
    columns = operators.select("op_name", "full_name", "op_type", "thread", "start_ns", "duration_ns")
    for part in columns.iter_slices(_PART):
        for name, full, kind, thread, start, ns in part.iter_rows():
            yield event(name, 0, f"HostCpuOps{threads[thread]}", start, ns, more=_work(kind, full))


def kernel_events(export: RankExport) -> Iterator[str]:
    """Device work, a row a stream."""
    columns = ("name", "full_name", "op_type", "stream", "start_ns", "duration_ns")
    for part in owned_kernels(export).select(columns).sort("start_ns").collect().iter_slices(_PART):
        for name, full, kind, stream, start, ns in part.iter_rows():
            yield event(name, ACTIVITY, stream or 0, start, ns, more=_work(kind, full))


def event(
    name: str, pid: int, tid: int | str, start_ns: int, ns: int, *, args: dict[str, Any] | None = None, more: str = ""
) -> str:
    """One complete event as JSON; its times are decimals, exact to the nanosecond."""
    arguments = f',"args":{json.dumps(args)}' if args else ""
    return _head(name, pid, tid) + f',"ts":{us_text(start_ns)},"dur":{us_text(ns)}{more}{arguments}}}'


@lru_cache(maxsize=65536)
def _head(name: str, pid: int, tid: int | str) -> str:
    return f'{{"name":{json.dumps(name)},"ph":"X","pid":{pid},"tid":{json.dumps(tid)}'


@lru_cache(maxsize=65536)
def _work(kind: str, full: str) -> str:
    """The arguments of an operator or kernel."""
    return f',"args":{{"type":{json.dumps(kind)},"fullname":{json.dumps(full)}}}'


def _meta(name: str, pid: int, tid: int | str | None, args: dict[str, Any]) -> str:
    thread = {} if tid is None else {"tid": tid}
    return json.dumps({"name": name, "ph": "M", "pid": pid, **thread, "args": args}, separators=(",", ":"))
