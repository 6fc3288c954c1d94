"""The host's work: PYTORCH_API with its stacks and connections, CANN_API, MSTX_EVENTS and GC_RECORD."""

from __future__ import annotations

from itertools import count

import polars as pl

from stepscope.export.ascend_db.device import write_other_tasks
from stepscope.export.ascend_db.rank import RankDatabase, connection
from stepscope.export.ascend_db.schema import MARKER, RANGE, number_of
from stepscope.sources.ascend.kernel_tables import API_WORDS
from stepscope.sources.ascend.placeholders import ALIAS
from stepscope.sources.ascend.slice_tables import ANNOTATIONS
from stepscope.tables.slices import MARKS, MODULE_MARKS

_OP, _QUEUE, _TRACE, _MSTX = 50001, 50002, 50003, 50004
"""Types of rows of PYTORCH_API."""
_TYPES = {"operator": _OP, "queue": _QUEUE, "python": _TRACE, "annotation": _MSTX}
_API = {word: number_of("ENUM_API_TYPE")[level] for level, word in API_WORDS.items()}
_NODE, _RUNTIME = (number_of("ENUM_API_TYPE")[level] for level in ("node", "runtime"))
_LAUNCH = "(?i)launch"
"""Calls of a GPU's driver that launch kernels: tools look for launches at the level of nodes."""
_BY_CORRELATION = 1 << 48
"""Numbers of connections that are not those of operators begin here."""
_OWN_TABLES = ("kernel", "memory", "communication", "communication_task", "device_annotation")
"""Categories whose rows are written from other tables, or by `device.py`."""
_UNPLACED = ("overhead", "compile", "other")
"""Categories of ranges of the host that the format has no place for."""
_OPERATOR = (
    "slice",
    "start_ns",
    "duration_ns",
    "name",
    "thread",
    "input_shapes",
    "input_types",
    "sequence",
    "forward_thread",
    "external_id",
    "stack",
)


def write_host(rank: RankDatabase, free: int) -> None:
    """Write all ranges of the host, and what else the device did; `free` is the next free number of a task."""
    _write_operators(rank)
    marks = count()
    has_operators = rank.has("operators")
    unwanted = [*_OWN_TABLES[:-1], *(["operator"] if has_operators else [])]
    rows = rank.lazy("slices").filter(~pl.col("category").is_in(unwanted))
    for batch in rank.parts(rows):
        free = write_other_tasks(rank, batch, free)
        host = batch.filter(
            pl.col("category") != "device_annotation",
            ~((pl.col("category") == "other") & (pl.col("device").is_not_null() | pl.col("stream").is_not_null())),
        )
        host = rank.ranges(host.with_columns(rank.global_threads(host)))
        category, process = pl.col("category"), pl.col("process")
        is_marked = process.is_in([MARKS, MODULE_MARKS]).fill_null(value=False)
        is_mark = (category == "mark") | ((category == "annotation") & is_marked)
        _write_marks(rank, host.filter(is_mark), marks)
        _write_ranges(rank, host.filter(category.is_in(list(_TYPES)), ~is_mark))
        _write_api(rank, host.filter(category == "runtime"))
        rank.out.add("GC_RECORD", host.filter(category == "gc").select("startNs", "endNs", "globalTid"))
        for (kind,), others in host.filter(category.is_in(_UNPLACED)).group_by("category", maintain_order=True):
            rank.lose(f"host ranges of the category {kind}", others.height)
    # Rows of other tables join with these, so none may stand there twice.
    rank.out.execute(
        "DELETE FROM CONNECTION_IDS WHERE rowid NOT IN "
        "(SELECT min(rowid) FROM CONNECTION_IDS GROUP BY id, connectionId)"
    )


def _write_operators(rank: RankDatabase) -> None:
    """Operators with shapes, stack, and the number of their connections: those of the kernels they launched."""
    is_operator = pl.col("category") == "operator"
    slices = rank.lazy("slices").filter(is_operator).select("slice", "process", "correlation")
    for batch in rank.parts(rank.lazy("operators").select(_OPERATOR)):
        first, last = batch["slice"].min(), batch["slice"].max()
        known = slices.filter(pl.col("slice").is_between(first, last)).collect()
        rows = batch.join(known, on="slice", how="left", maintain_order="left")
        rows = rows.with_columns(rank.global_threads(rows), category=pl.lit("operator"))
        _write_ranges(rank, rank.ranges(rows))
    frames = rank.lazy("stacks").select("stack", "text")
    for batch in rank.parts(frames):
        lines = batch.select(id="stack", stack=pl.col("text").str.split("\n")).explode("stack")
        lines = lines.with_columns(stackDepth=pl.int_range(pl.len(), dtype=pl.Int64).over("id"))
        rank.out.add("PYTORCH_CALLCHAINS", rank.out.numbered(lines, "stack"))


def _write_ranges(rank: RankDatabase, rows: pl.DataFrame) -> None:
    """Rows of PYTORCH_API, from columns of `slices` or `operators`; operators have more."""
    for name, dtype in (
        ("input_types", pl.String),
        ("input_shapes", pl.String),
        ("sequence", pl.Int64),
        ("forward_thread", pl.Int64),
        ("external_id", pl.Int64),
        ("stack", pl.Int64),
    ):
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(None, dtype).alias(name))
    is_known = pl.any_horizontal(*(pl.col("name").str.starts_with(word) for word in ANNOTATIONS))
    kind = pl.col("category").replace_strict(_TYPES, default=_MSTX, return_dtype=pl.Int64)
    by_correlation = pl.col("correlation") + _BY_CORRELATION
    own = pl.col("external_id") if rank.has("kernels") else pl.lit(None, pl.Int64)
    linked = rows.with_columns(connectionId=pl.coalesce(own, by_correlation))
    shared = linked.filter(pl.col("connectionId") == by_correlation)
    rank.out.add("CONNECTION_IDS", shared.select(id="connectionId", connectionId="correlation"))
    api = linked.select(
        "startNs",
        "endNs",
        "globalTid",
        "connectionId",
        "name",
        sequenceNumber=pl.col("sequence").fill_null(-1),
        fwdThreadId=pl.col("forward_thread").fill_null(0),
        inputDtypes="input_types",
        inputShapes="input_shapes",
        callchainId="stack",
        type=pl.when((pl.col("category") == "annotation") & is_known).then(_OP).otherwise(kind),
    )
    rank.out.add("PYTORCH_API", rank.out.numbered(api, "name", "inputDtypes", "inputShapes"))


def _write_api(rank: RankDatabase, rows: pl.DataFrame) -> None:
    """Rows of CANN_API. Calls of a GPU's driver are of the runtime's level, those that launch of that of nodes."""
    parts = pl.col("name").str.splitn("@", 2).struct
    level = parts.field("field_0").replace_strict(_API, default=None, return_dtype=pl.Int64)
    level = pl.when(parts.field("field_1").is_not_null()).then(level)
    made = pl.when(pl.col("name").str.contains(_LAUNCH)).then(_NODE).otherwise(_RUNTIME)
    is_alias = pl.col("slice").is_in(rank.aliased.implode())
    number = pl.when(is_alias).then(pl.col("correlation") + ALIAS).otherwise("correlation")
    calls = rows.with_columns(correlation=number).select(
        "startNs",
        "endNs",
        "globalTid",
        connection(),
        type=pl.coalesce(level, made),
        name=pl.when(level.is_not_null()).then(parts.field("field_1")).otherwise("name"),
    )
    rank.out.add("CANN_API", rank.out.numbered(calls, "name"))


def _write_marks(rank: RankDatabase, rows: pl.DataFrame, numbers: count[int]) -> None:
    """Rows of MSTX_EVENTS: what was marked in the script, ranges and points."""
    ids = pl.Series("rangeId", [next(numbers) for _ in range(rows.height)], dtype=pl.Int64)
    is_module = pl.col("process") == MODULE_MARKS
    events = rows.with_columns(ids).select(
        "startNs",
        "endNs",
        "rangeId",
        "globalTid",
        connection(),
        eventType=pl.when(pl.col("category") == "mark").then(MARKER).otherwise(RANGE),
        message="name",
        endGlobalTid="globalTid",
        domainId=pl.when(is_module).then(pl.lit("Module")).otherwise(pl.lit("default")),
    )
    rank.out.add("MSTX_EVENTS", rank.out.numbered(events, "message", "domainId"))
