"""Device work: TASK, and what kernels, copies and tasks of communication have in addition."""

from __future__ import annotations

import polars as pl

from stepscope.export.ascend_db.rank import RankDatabase, connection
from stepscope.export.ascend_db.schema import NO_NUMBER, NO_TYPE, NOT_AVAILABLE, number_of
from stepscope.sources.ascend.placeholders import NO_TASK
from stepscope.sources.ascend.pmu import recorded_counter
from stepscope.sources.ascend.trace_view import MEMORY_TASK
from stepscope.tables import KERNEL_COUNTERS

_SUFFIXES = {
    "AI_CORE": "AICORE",
    "AI_VECTOR_CORE": "AIVEC",
    "AI_CPU": "AICPU",
    "MIX_AIC": "MIX_AIC",
    "MIX_AIV": "MIX_AIV",
}
"""Cores to the end of the type of a task on it."""
_TEXTS = {
    "name": "name",
    "taskType": "core",
    "inputFormats": "input_formats",
    "inputDataTypes": "input_types",
    "inputShapes": "input_shapes",
    "outputFormats": "output_formats",
    "outputDataTypes": "output_types",
    "outputShapes": "output_shapes",
    "opState": "state",
}
"""Columns of COMPUTE_TASK_INFO with texts, and those of `kernels`."""
_WAYS = {"htoh": 0, "htod": 1, "dtoh": 2, "dtod": 3, "ptop": 3}
"""What names of copies on a GPU say, to the number of the direction."""
_COPY = "MEMCPY_ASYNC"
_CALL_OF = ("start_ns", "duration_ns", "correlation")
_COUNTER_NAMES = {"aic_time_ns": "aic_total_time", "aiv_time_ns": "aiv_total_time"}
_KERNELS_AT_ONCE = 20_000
"""Each has tens of counters, and so rows."""
_OTHERS = (pl.col("category") == "other") & (pl.col("device").is_not_null() | pl.col("stream").is_not_null())
_MARKED = (pl.col("category") == "device_annotation") & pl.col("name").str.starts_with("MSTX")


def write_kernels(rank: RankDatabase, calls: pl.DataFrame) -> int:
    """Write kernels and memory operations; kernels that are calls of communication are in COMMUNICATION_OP.

    Returns:
        The first number that is free for other tasks.
    """
    free, has_copies = 0, False
    on_device = calls.filter("on_device").select(_CALL_OF).unique()
    for batch in rank.parts(rank.lazy("kernels")):
        free = max(free, int(batch["kernel"].max() or 0) + 1)  # type: ignore[arg-type]
        is_call = pl.col("kind") == "communication"
        work = pl.concat(
            [
                batch.filter(~is_call),
                batch.filter(is_call).join(on_device, on=_CALL_OF, how="anti", nulls_equal=True, maintain_order="left"),
            ]
        ).sort("kernel")
        _write_compute(rank, work.filter(pl.col("kind") != "memory"))
        copies = work.filter(pl.col("kind") == "memory")
        has_copies |= copies.height > 0
        _write_copies(rank, copies)
        launched = batch.select(id="external_id", connectionId="correlation").drop_nulls()
        rank.out.add("CONNECTION_IDS", launched.unique(maintain_order=True))
    if not has_copies:
        _write_stand_in(rank, calls)
    return free


def _write_stand_in(rank: RankDatabase, calls: pl.DataFrame) -> None:
    """Write a copy of no duration for a rank without copies: a recipe of msprof-analyze fails if there is none. Our own
    reader leaves it out."""
    starts = [rank.export.rows("steps")["start_ns"].min(), calls["start_ns"].min()]
    known = [start for start in starts if start is not None]
    if known:
        copy = pl.DataFrame({"start_ns": known[:1], "duration_ns": [0], "task": [NO_TASK], "task_type": [_COPY]})
        empty = {"correlation": pl.Int64, "device": pl.Int32, "stream": pl.Int32}
        _write_tasks(rank, copy.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in empty.items()))


def _write_compute(rank: RankDatabase, kernels: pl.DataFrame) -> None:
    kind = pl.col("core").replace_strict(_SUFFIXES, default="", return_dtype=pl.String)
    task = pl.when(kind == "").then(pl.lit("KERNEL")).otherwise("KERNEL_" + kind)
    _write_tasks(rank, kernels.with_columns(task_type=task, task=pl.col("kernel")))
    rows = kernels.select(
        *(pl.col(ours).fill_null(NOT_AVAILABLE).alias(theirs) for theirs, ours in _TEXTS.items()),
        globalTaskId="kernel",
        blockDim="block_dim",
        mixBlockDim="mix_block_dim",
        opType=pl.coalesce("type", "name"),
        attrInfo=pl.lit(NOT_AVAILABLE),
        hf32Eligible=pl.lit(NOT_AVAILABLE),
    )
    rank.out.add("COMPUTE_TASK_INFO", rank.out.numbered(rows, *_TEXTS, "opType", "attrInfo", "hf32Eligible"))


def _write_copies(rank: RankDatabase, copies: pl.DataFrame) -> None:
    """Tools know copies by the type of their task, so that of a GPU's is the one of this format."""
    is_set = pl.col("name").str.contains("(?i)memset")
    made = pl.when(is_set).then(pl.lit("MEMSET_ASYNC")).otherwise(pl.lit(_COPY))
    task = pl.when(pl.col("name").str.contains(f"^[A-Z_]*(?:{MEMORY_TASK})[A-Z_]*$")).then("name").otherwise(made)
    _write_tasks(rank, copies.with_columns(task_type=task, task=pl.col("kernel")))
    stated = pl.col("direction").replace_strict(number_of("ENUM_MEMCPY_OPERATION"), default=None, return_dtype=pl.Int64)
    way = pl.col("name").str.to_lowercase().str.extract(r"\b([hdp]to[hdp])\b")
    named = way.replace_strict(_WAYS, default=None, return_dtype=pl.Int64)
    rows = copies.select(globalTaskId="kernel", size="size_bytes", memcpyOperation=pl.coalesce(stated, named))
    rank.out.add("MEMCPY_INFO", rows.filter(pl.any_horizontal(pl.col("size", "memcpyOperation").is_not_null())))


def _write_tasks(rank: RankDatabase, work: pl.DataFrame) -> None:
    """Rows of TASK, from `task` (its number), `task_type` and columns of `kernels`."""
    rows = rank.ranges(work).select(
        "startNs",
        "endNs",
        connection(),
        deviceId=pl.col("device").fill_null(rank.device),
        globalTaskId="task",
        globalPid=pl.lit(rank.process),
        taskType="task_type",
        contextId=pl.lit(NO_NUMBER),
        streamId=pl.col("stream").cast(pl.Int64).fill_null(NO_NUMBER),
        taskId="task",
        modelId=pl.lit(NO_NUMBER),
    )
    rank.out.add("TASK", rank.out.numbered(rows, "taskType"))


def write_counters_of_kernels(rank: RankDatabase) -> None:
    """Write TASK_PMU_INFO: hardware counters of kernels, in the units of the format."""
    names, factors = {}, {}
    for column in KERNEL_COUNTERS.stored_schema:
        if column != "kernel":
            name, factors[column] = recorded_counter(column)
            names[column] = _COUNTER_NAMES.get(column, name.partition("(")[0])
    whole = rank.parts(rank.lazy("kernel_counters"))
    for batch in (part for each in whole for part in each.iter_slices(_KERNELS_AT_ONCE)):
        filled = [column for column in names if batch[column].count()]
        scaled = batch.select("kernel", *((pl.col(column) / factors[column]).alias(names[column]) for column in filled))
        long = scaled.unpivot(index="kernel", variable_name="name").drop_nulls("value")
        rows = long.sort("kernel", maintain_order=True).rename({"kernel": "globalTaskId"})
        rank.out.add("TASK_PMU_INFO", rank.out.numbered(rows.with_columns(pl.col("name").cast(pl.String)), "name"))


def write_parts(rank: RankDatabase, calls: pl.DataFrame, free: int) -> int:
    """Write tasks of communication calls, from `communication_tasks`; returns the next free number of a task."""
    named = calls.unique("name", keep="first", maintain_order=True)
    of_call = named.select(
        call="name",
        opName="call",
        groupName="communicator",
        opId="collective",
        group="group",
        correlation="correlation",
    )
    places = rank.places.drop("key")
    kinds = {
        "transport": ("transportType", "ENUM_HCCL_TRANSPORT_TYPE"),
        "link": ("linkType", "ENUM_HCCL_LINK_TYPE"),
        "element_type": ("dataType", "ENUM_HCCL_DATA_TYPE"),
    }
    for batch in rank.parts(rank.lazy("communication_tasks").drop("rank")):
        rows = batch.with_columns(task=pl.int_range(free, free + pl.len(), dtype=pl.Int64), task_type=pl.col("name"))
        free += rows.height
        rows = rows.join(of_call, on="call", how="left", maintain_order="left")
        for end in ("source", "destination"):
            placed = places.rename({"member": end, "place": f"{end}_place"})
            rows = rows.join(placed, on=["group", end], how="left", maintain_order="left")
        _write_tasks(rank, rows)
        rate = pl.col("size_bytes") / pl.col("duration_ns") * 1e9
        info = rows.select(
            name=pl.coalesce("opName", "call").fill_null(NOT_AVAILABLE),
            globalTaskId="task",
            taskType="task_type",
            planeId=pl.col("plane").fill_null(0),
            groupName=pl.col("groupName").fill_null(NOT_AVAILABLE),
            notifyId=pl.lit(0),
            rdmaType=pl.lit(NO_TYPE),
            srcRank=pl.col("source_place").fill_null(NO_NUMBER),
            dstRank=pl.col("destination_place").fill_null(NO_NUMBER),
            size="size_bytes",
            opId=pl.col("opId").fill_null(0),
            isMaster=pl.lit(1),
            bandwidth=pl.when(pl.col("duration_ns") > 0).then(rate).fill_null(0.0),
            **{
                theirs: pl.col(ours).replace_strict(number_of(enumeration), default=NO_TYPE, return_dtype=pl.Int64)
                for ours, (theirs, enumeration) in kinds.items()
            },
        )
        rank.out.add("COMMUNICATION_TASK_INFO", rank.out.numbered(info, "name", "taskType", "groupName"))
    return free


def write_other_tasks(rank: RankDatabase, slices: pl.DataFrame, free: int) -> int:
    """Write work of the device that is neither kernel nor copy: waits and marks; returns the next free number."""
    rows = slices.filter(_OTHERS | _MARKED)
    rank.lose("annotations of a GPU's work", slices.filter(pl.col("category") == "device_annotation", ~_MARKED).height)
    numbered = rows.with_columns(task=pl.int_range(free, free + pl.len(), dtype=pl.Int64), task_type=pl.col("name"))
    _write_tasks(rank, numbered)
    return free + rows.height
