"""Device work in a database: kernels with their counters, memory operations, communication and its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from stepscope.sources.ascend.collective_tables import with_payload
from stepscope.sources.ascend.communication_tasks import communication_tasks
from stepscope.sources.ascend.database import CONNECTION, TEXT_ID, Database, Types, columns_of, joined
from stepscope.sources.ascend.exported_rank import COMMUNICATION, COMPUTE, TASKS, first_of_each, shaped
from stepscope.sources.ascend.groups import Groups, group_key
from stepscope.sources.ascend.headers import KERNEL_DETAILS
from stepscope.sources.ascend.placeholders import NO_TASK
from stepscope.sources.ascend.pmu import COUNTERS, scaled
from stepscope.sources.ascend.timeline import MEMORY_BYTES, Timeline
from stepscope.sources.ascend.trace_view import MEMORY_TASK
from stepscope.sources.csv_files.layout import column_key
from stepscope.sources.spool import Spool, quantiles, share_out
from stepscope.tables import COMMUNICATION_TASKS
from stepscope.text_columns import filled_in

_TASK = {
    "device": "deviceId",
    "correlation": "connectionId",
    "task": "globalTaskId",
    "task_type": "taskType",
    "stream": "streamId",
}
_LISTED = [field for field in KERNEL_DETAILS.fields if field.kind in ("text", "shape", "int")]
"""What the file of kernels and the table of kernels both have; times are in the table of tasks."""
_LISTED_TYPES: Types = {field.column: TEXT_ID for field in _LISTED if field.kind != "int"}
_CALL = {
    "name": "opName",
    "correlation": "connectionId",
    "communicator": "groupName",
    "element": "dataType",
    "count": "count",
    "type": "opType",
    "device": "deviceId",
    "algorithm": "algType",
    "relayed": "relay",
    "retried": "retry",
}
_CALL_TYPES: Types = {"count": pl.Float64, **dict.fromkeys(("name", "communicator", "type", "algorithm"), TEXT_ID)}
_PART = {
    "task": "globalTaskId",
    "plane": "planeId",
    "kind": "taskType",
    "call": "name",
    "communicator": "groupName",
    "source": "srcRank",
    "destination": "dstRank",
    "transport": "transportType",
    "link": "linkType",
    "size_bytes": "size",
    "element_type": "dataType",
}
_ENUMERATIONS = {
    "transport": ("ENUM_HCCL_TRANSPORT_TYPE", {0: "SDMA", 1: "RDMA", 2: "LOCAL"}),
    "link": ("ENUM_HCCL_LINK_TYPE", {0: "ON_CHIP", 1: "HCCS", 2: "PCIE", 3: "ROCE", 4: "SIO"}),
    "element_type": ("ENUM_HCCL_DATA_TYPE", {}),
}
"""Column to the table with the names of its numbers, and the names that are known without it."""
DIRECTIONS = {0: "host to host", 1: "host to device", 2: "device to host", 3: "device to device"}
"""Directions of copies, known without the table with the names of their numbers."""
_PMU = {"task": "globalTaskId", "number": "name", "value": "value"}
_NUMBERS = {"task": pl.Int64, "number": pl.Int64, "value": pl.Float64}
_TASKS_AT_ONCE = 50_000
_MOST_COUNTERS = 200
"""As a rule every kernel has the same counters in the same order, and fewer than that."""


def read_tasks(database: Database) -> pl.DataFrame:
    """All tasks of the device: times, stream, connection id and the name of their type."""
    tasks = database.ranges("TASK", _TASK, {"task_type": TEXT_ID})
    return tasks.filter(pl.col("task").ne_missing(NO_TASK)).with_columns(
        correlation=CONNECTION,
        task_type=pl.col("task_type").fill_null(""),
    )


def read_compute(database: Database, tasks: pl.DataFrame, timeline: Timeline) -> pl.Series:
    """Put compute kernels into a timeline as rows of `COMPUTE`, with the columns of their counters; returns the
    numbers of their tasks."""
    table = "COMPUTE_TASK_INFO"
    waits = _with_wait(tasks).drop("task_type")
    ids = database.read(table, {"task": "globalTaskId"})["task"]
    bounds = quantiles([ids.to_frame()], "task", 1 + len(ids) // _TASKS_AT_ONCE)
    spool: Spool[tuple[int, str]] = Spool(database.sink.scratch, MEMORY_BYTES)

    def take(frame: pl.DataFrame, name: str) -> None:
        """Share out rows by their tasks, so that those of the two tables that belong together are in memory at once."""
        if len(bounds):
            share_out(frame, bounds.search_sorted(frame["task"], side="right"), name, spool)
        else:
            spool.add((0, name), frame.drop_nulls("task"))

    wanted = {"task": "globalTaskId", **columns_of(_LISTED)}
    for frame in database.read_batches(table, wanted, _LISTED_TYPES, needed=("task",)):
        take(frame, "details")
    numbers: set[int] = set()
    if database.has("TASK_PMU_INFO", "globalTaskId", "name", "value"):
        for frame in database.read_batches("TASK_PMU_INFO", _PMU, _NUMBERS):
            take(frame.drop_nulls() if any(column.null_count() for column in frame) else frame, "numbers")
            numbers.update(frame["number"].drop_nulls().unique())
    columns = _counter_columns(database, numbers)
    kept = {**COMPUTE, **dict.fromkeys(columns.values(), pl.Float64())}
    shapes = pl.col("input_shapes", "output_shapes").str.strip_chars('"')
    for part in range(len(bounds) + 1):
        details, counted = (list(spool.taken((part, name))) for name in ("details", "numbers"))
        if not details:
            continue
        listed = first_of_each(pl.concat(details).with_columns(shapes), "task")
        rows = listed.join(waits, on="task", how="inner", maintain_order="left")
        if counted and columns:
            wide = scaled(_wide(pl.concat(counted), columns))
            rows = rows.join(wide, on="task", how="left", maintain_order="left")
        timeline.add("compute", shaped(rows.with_columns(name=pl.coalesce("name", "type", pl.lit("unknown"))), kept))
    return ids


def _with_wait(tasks: pl.DataFrame) -> pl.DataFrame:
    """Add what kernel_details.csv calls the wait: from the end of the task before on the stream to the start."""
    on_stream = tasks.filter(~pl.col("task_type").str.starts_with("MSTX")).sort("stream", "start_ns")
    before = (pl.col("start_ns") + pl.col("duration_ns")).cum_max().shift(1).over("stream", "device")
    return on_stream.with_columns(wait_ns=(pl.col("start_ns") - before).clip(lower_bound=0))


def _counter_columns(database: Database, numbers: Iterable[int]) -> dict[int, str]:
    """Number of each known hardware counter to our column."""
    named = database.texts(numbers)
    columns = {number: COUNTERS[key] for number, name in named.items() if (key := column_key(name)) in COUNTERS}
    unknown = [name for name in named.values() if column_key(name) not in COUNTERS]
    if unknown:
        problem = f"has unknown counters, which are left out: {', '.join(sorted(unknown))}"
        database.note("TASK_PMU_INFO", problem, "Nothing to do. A newer stepscope may know them.")
    return columns


def _wide(long: pl.DataFrame, columns: Mapping[int, str]) -> pl.DataFrame:
    """A column for each counter, from rows of task, counter's number and value; of several values the first."""
    each = int((long["task"] != long["task"].first()).arg_max() or long.height)
    task, number = pl.col("task"), pl.col("number")
    firsts = task.gather_every(each)
    same_order = (number == number.shift(each)).all() & number.head(each).is_unique().all()
    same_task = ((task == task.shift(1)) | (pl.int_range(pl.len()) % each == 0)).all()
    fits = each <= _MOST_COUNTERS and long.height % each == 0
    if fits and long.select(same_order & same_task & firsts.is_unique().all()).item():
        places = {n: at for at, n in enumerate(long["number"].head(each)) if n in columns}
        values = (pl.col("value").gather_every(each, at).alias(columns[n]) for n, at in places.items())
        return long.select(firsts, *values)
    known = long.filter(pl.col("number").is_in(list(columns)))
    wide = known.pivot("number", index="task", values="value", aggregate_function="first")
    return wide.rename(lambda name: name if name == "task" else columns[int(name)])


def read_other_tasks(database: Database, tasks: pl.DataFrame, kernels: pl.Series, groups: Groups) -> pl.DataFrame:
    """Tasks that are not kernels: memory operations, tasks of communication, waits and marks.

    Writes the tasks of communication to the database's sink as well, as rows of `communication_tasks`.
    """
    rest = tasks.join(kernels.to_frame(), on="task", how="anti")
    directions = {**DIRECTIONS, **database.enumeration("ENUM_MEMCPY_OPERATION")}
    sizes = database.read("MEMCPY_INFO", {"task": "globalTaskId", "size_bytes": "size", "number": "memcpyOperation"})
    named = pl.col("number").replace_strict(directions, default=None, return_dtype=pl.String)
    sizes = sizes.with_columns(direction=named).drop("number")
    parts = first_of_each(
        database.read("COMMUNICATION_TASK_INFO", _PART, dict.fromkeys(("kind", "call", "communicator"), TEXT_ID)),
        "task",
    )
    _write_parts(database, rest, parts, groups)
    for known in (first_of_each(sizes, "task"), parts.select("task", "plane", "kind")):
        rest = rest.join(known, on="task", how="left", maintain_order="left")
    is_part = pl.col("plane").is_not_null()
    is_memory = pl.col("size_bytes").is_not_null() | pl.col("task_type").str.contains(MEMORY_TASK)
    is_mark = pl.col("task_type").str.starts_with("MSTX")
    rest = rest.with_columns(
        category=pl.coalesce(
            pl.when(is_part).then(pl.lit("communication_task")),
            pl.when(is_memory).then(pl.lit("memory")),
            pl.when(is_mark).then(pl.lit("device_annotation")),
            pl.lit("other"),
        ),
        name=pl.coalesce("kind", "task_type"),
        # Marks lie over the kernels of their stream; as a process of their own they enclose none.
        process=pl.coalesce(
            pl.when(is_part).then(pl.lit("Communication")),
            pl.when(is_mark).then(pl.lit("MSTX")),
            pl.lit("Ascend Hardware"),
        ),
        thread=pl.coalesce(filled_in("Group Plane {}", "plane"), pl.col("stream").cast(pl.String)),
    )
    return shaped(rest, TASKS)


def _write_parts(database: Database, tasks: pl.DataFrame, parts: pl.DataFrame, groups: Groups) -> None:
    """Write the tasks of communication calls."""
    if parts.is_empty():
        return
    names = {
        column: pl.col(column).replace_strict(
            {**known, **database.enumeration(table)}, default=None, return_dtype=pl.String
        )
        for column, (table, known) in _ENUMERATIONS.items()
    }
    timed = tasks.join(with_group(parts).with_columns(**names), on="task", how="inner", maintain_order="left")
    rows = timed.with_columns(name=pl.coalesce("kind", "task_type"))
    database.sink.write(COMMUNICATION_TASKS, communication_tasks(rows, groups))


def with_group(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `group`, the key of each row's communicator."""
    communicators = rows["communicator"].drop_nulls().unique().to_list()
    keys = {text: text if text.isdecimal() else group_key(text) for text in communicators}
    group = pl.col("communicator").replace_strict(keys, default=None, return_dtype=pl.String)
    return rows.with_columns(group=group)


def read_calls(database: Database) -> pl.DataFrame:
    """Communication calls as rows of `COMMUNICATION`."""
    rows = joined(database.named_ranges("COMMUNICATION_OP", _CALL, _CALL_TYPES))
    elements = database.enumeration("ENUM_HCCL_DATA_TYPE")
    rows = with_group(rows).with_columns(
        pl.col("relayed", "retried") != 0,
        element_type=pl.col("element").replace_strict(elements, default=None, return_dtype=pl.String),
        correlation=CONNECTION,
    )
    return shaped(with_payload(rows), COMMUNICATION)
