"""Device work in a database: kernels with their counters, memory operations, communication and its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from stepscope.sources.ascend.collective_tables import with_payload
from stepscope.sources.ascend.database import CONNECTION, TEXT_ID, Database, Types, columns_of
from stepscope.sources.ascend.exported_rank import COMMUNICATION, COMPUTE, TASKS, first_of_each, shaped
from stepscope.sources.ascend.groups import group_key
from stepscope.sources.ascend.headers import KERNEL_DETAILS
from stepscope.sources.ascend.pmu import COUNTERS, scaled
from stepscope.sources.ascend.timeline import MEMORY_BYTES, Timeline
from stepscope.sources.ascend.trace_view import MEMORY_TASK
from stepscope.sources.csv_files.layout import column_key
from stepscope.sources.spool import Spool, quantiles, share_out

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
}
_CALL_TYPES: Types = {"count": pl.Float64, **dict.fromkeys(("name", "communicator", "type"), TEXT_ID)}
_NUMBERS = {"task": pl.Int64, "number": pl.Int64, "value": pl.Float64}
_TASKS_AT_ONCE = 50_000


def read_tasks(database: Database) -> pl.DataFrame:
    """All tasks of the device: times, stream, connection id and the name of their type."""
    tasks = pl.concat(database.range_batches("TASK", _TASK, {"task_type": TEXT_ID}))
    return tasks.with_columns(
        correlation=CONNECTION,
        task_type=pl.col("task_type").fill_null(""),
    )


def read_compute(database: Database, tasks: pl.DataFrame, timeline: Timeline) -> None:
    """Put compute kernels into a timeline as rows of `COMPUTE`, with the columns of their counters."""
    waits = _with_wait(tasks).drop("task_type")
    columns = _counter_columns(database)
    kept = {**COMPUTE, **dict.fromkeys(columns.values(), pl.Float64())}
    for details, numbers in _by_task(database, columns):
        shapes = pl.col("input_shapes", "output_shapes").str.strip_chars('"')
        rows = first_of_each(details.with_columns(shapes), "task").join(
            waits, on="task", how="inner", maintain_order="left"
        )
        rows = rows.join(scaled(_wide(numbers, columns)), on="task", how="left", maintain_order="left")
        timeline.add("compute", shaped(rows.with_columns(name=pl.coalesce("name", "type", pl.lit("unknown"))), kept))


def _by_task(database: Database, counters: dict[int, str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of COMPUTE_TASK_INFO and of TASK_PMU_INFO that belong together, a chunk of task numbers at a time."""
    table = "COMPUTE_TASK_INFO"
    ids = database.read(table, {"task": "globalTaskId"})
    bounds = quantiles([ids], "task", 1 + ids.height // _TASKS_AT_ONCE)
    spool: Spool[tuple[int, str]] = Spool(database.sink.scratch, MEMORY_BYTES)

    def take(frames: Iterable[pl.DataFrame], name: str) -> None:
        for frame in frames:
            share_out(frame, bounds.search_sorted(frame["task"], side="right"), name, spool)

    wanted = {"task": "globalTaskId", **columns_of(_LISTED)}
    take(database.read_batches(table, wanted, _LISTED_TYPES, needed=("task",)), "details")
    if counters:
        columns = {"task": "globalTaskId", "number": "name", "value": "value"}
        numbers = database.read_batches("TASK_PMU_INFO", columns, _NUMBERS)
        take((batch.drop_nulls() for batch in numbers), "numbers")
    for part in range(len(bounds) + 1):
        details = list(spool.taken((part, "details")))
        if details:
            yield pl.concat(details), pl.concat([pl.DataFrame(schema=_NUMBERS), *spool.taken((part, "numbers"))])


def _with_wait(tasks: pl.DataFrame) -> pl.DataFrame:
    """Add what kernel_details.csv calls the wait: from the end of the task before on the stream to the start."""
    on_stream = tasks.filter(~pl.col("task_type").str.starts_with("MSTX")).sort("stream", "start_ns")
    before = (pl.col("start_ns") + pl.col("duration_ns")).cum_max().shift(1).over("stream", "device")
    return on_stream.with_columns(wait_ns=(pl.col("start_ns") - before).clip(lower_bound=0))


def _counter_columns(database: Database) -> dict[int, str]:
    """Number of each known hardware counter to our column."""
    if not database.has("TASK_PMU_INFO", "globalTaskId", "name", "value"):
        return {}
    named = database.texts(database.read("TASK_PMU_INFO", {"number": "name"})["number"].drop_nulls().unique())
    columns = {number: COUNTERS[key] for number, name in named.items() if (key := column_key(name)) in COUNTERS}
    unknown = [name for name in named.values() if column_key(name) not in COUNTERS]
    if unknown:
        problem = f"has unknown counters, which are left out: {', '.join(sorted(unknown))}"
        database.note("TASK_PMU_INFO", problem, "Nothing to do. A newer stepscope may know them.")
    return columns


def _wide(long: pl.DataFrame, columns: dict[int, str]) -> pl.DataFrame:
    """A column for each counter, from rows of task, counter's number and value."""
    wide = pl.DataFrame(schema={"task": pl.Int64})
    for (number, *_), rows in long.partition_by("number", as_dict=True, include_key=False).items():
        if number not in columns:
            continue
        column = rows.rename({"value": columns[number]}).unique("task", keep="first", maintain_order=True)
        if wide.width == 1:
            wide = column
        elif wide["task"].equals(column["task"]):  # as a rule every kernel has every counter, in one order
            wide = wide.with_columns(column[columns[number]])
        else:
            wide = wide.join(column, on="task", how="full", coalesce=True)
    return wide


def read_other_tasks(database: Database, tasks: pl.DataFrame) -> pl.DataFrame:
    """Tasks that are not kernels: memory operations, tasks of communication, waits and marks."""
    known = database.read("COMPUTE_TASK_INFO", {"task": "globalTaskId"})
    rest = tasks.join(known, on="task", how="anti")
    sizes = database.read("MEMCPY_INFO", {"task": "globalTaskId", "size_bytes": "size"}).unique("task", keep="first")
    wanted = {"task": "globalTaskId", "plane": "planeId", "kind": "taskType"}
    planes = database.read("COMMUNICATION_TASK_INFO", wanted, {"kind": TEXT_ID}).unique("task", keep="first")
    rest = rest.join(sizes, on="task", how="left").join(planes, on="task", how="left")
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
        thread=pl.coalesce(pl.format("Group Plane {}", "plane"), pl.col("stream").cast(pl.String)),
    )
    return shaped(rest, TASKS)


def read_calls(database: Database) -> pl.DataFrame:
    """Communication calls as rows of `COMMUNICATION`."""
    rows = pl.concat(database.named_ranges("COMMUNICATION_OP", _CALL, _CALL_TYPES))
    communicators = rows["communicator"].drop_nulls().unique().to_list()
    keys = {text: text if text.isdecimal() else group_key(text) for text in communicators}
    elements = database.enumeration("ENUM_HCCL_DATA_TYPE")
    rows = rows.with_columns(
        group=pl.col("communicator").replace_strict(keys, default=None, return_dtype=pl.String),
        element_type=pl.col("element").replace_strict(elements, default=None, return_dtype=pl.String),
        correlation=CONNECTION,
    )
    return shaped(with_payload(rows), COMMUNICATION)
