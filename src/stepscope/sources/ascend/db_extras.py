"""The rest of a database: who recorded it, memory, and the communication database next to it."""

from __future__ import annotations

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import as_index
from stepscope.sources.ascend.communication_files import (
    CALLS,
    LINKS,
    MOVED,
    PACKETS,
    TIMES,
    step_number,
    timed_calls,
)
from stepscope.sources.ascend.database import TEXT_ID, Columns, Database, Types, columns_of
from stepscope.sources.ascend.exported_rank import shaped
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.headers import MEMORY_RECORD, OPERATOR_MEMORY, STEP_TRACE_TIME
from stepscope.sources.ascend.rank_info import RankInfo, read_metadata
from stepscope.sources.csv_files.values import whole
from stepscope.sources.plausible import WEEK_NS
from stepscope.tables import ALLOCATIONS, MEMORY_CURVE, STEP_TOTALS, STEPS
from stepscope.tables.steps import REPETITION, WINDOWS

MODULES = {0: "SLOG", 3: "HCCL", 4: "FMK", 6: "DVPP", 7: "RUNTIME", 8: "CCE", 9: "HDC", 33: "APP"}
"""Number of a module of `NPU_MODULE_MEM` if the database has no `ENUM_MODULE`."""


def read_identity(database: Database, identity: RankInfo) -> Groups | None:
    """Add what the database knows of its rank; returns its groups if it lists any."""
    rows = database.read("META_DATA", {"name": "name", "value": "value"}, {"name": pl.String, "value": pl.String})
    groups = read_metadata(identity, {name: value_in(text) for name, text in rows.drop_nulls().iter_rows()})
    ranks = database.read("RANK_DEVICE_MAP", {"rank": "rankId", "device": "deviceId"})
    if ranks.height == 1:
        identity.settle_rank(ranks["rank"][0], None)
        if identity.device is None and identity.device_kind != "cpu":
            identity.device = as_index(ranks["device"][0])
    identity.settle_rank(None, database.path)
    hosts = database.read("HOST_INFO", {"host": "hostName"}, {"host": pl.String}).drop_nulls()
    identity.host = hosts["host"][0] if hosts.height else identity.host
    devices = database.read("NPU_INFO", {"device": "id", "name": "name"}, {"name": pl.String}).drop_nulls("name")
    identity.device_name = devices["name"][0] if devices.height else None
    if identity.process is None:
        identity.process = as_index(database.first_number("TASK", "globalPid"))
    if identity.framework is None:
        identity.framework = "mindspore" if "mindspore" in database.path.name else "pytorch"
    return groups if groups.names else None


OWN_STEPS = "STEPSCOPE_STEPS"
"""Table of our own export: `steps` as they are, since the format has no place for the windows of steps."""


def read_own_steps(database: Database) -> pl.DataFrame | None:
    """Rows of `steps` as our own export states them; None if it has not made the database."""
    if not database.has(OWN_STEPS, "step", "window"):
        return None
    schema = STEPS.stored_schema
    numbers = {name: pl.Int64 for name in schema if name != "window"}
    rows = database.read(OWN_STEPS, {name: name for name in schema}, {**numbers, "window": pl.String})
    needed = ("step", "start_ns", "end_ns", "window_start_ns", "window_end_ns", "window")
    known = shaped(rows.with_columns(pl.col("recorded") != 0), schema).drop_nulls(needed)
    lengths = (pl.col(f"{each}end_ns") - pl.col(f"{each}start_ns") for each in ("", "window_"))
    is_possible = pl.all_horizontal(*(length.is_between(0, WEEK_NS) for length in lengths), pl.col("step") >= 0)
    known = known.filter(is_possible, pl.col("window").is_in(WINDOWS), pl.col("window") != REPETITION)
    timed = database.timed(OWN_STEPS, database.timed(OWN_STEPS, known, "start_ns"), "window_start_ns")
    if timed.height < rows.height or timed["step"].n_unique() < rows.height:
        database.report(OWN_STEPS, "is damaged; windows of steps are taken from the device's work instead")
        return None
    return timed if timed.height else None


def read_memory_curve(database: Database) -> pl.DataFrame:
    """Rows of `memory_curve` from the framework's and the modules' records."""
    wanted = {**columns_of(MEMORY_RECORD.fields), "time_ns": ("timestamp", "timestampNs")}
    totals = database.read("MEMORY_RECORD", wanted, {"component": TEXT_ID})
    modules = database.read(
        "NPU_MODULE_MEM",
        {"module": "moduleId", "time_ns": "timestampNs", "reserved_bytes": "totalReserved", "device": "deviceId"},
        {"reserved_bytes": pl.Float64},
    )
    names = {**MODULES, **database.enumeration("ENUM_MODULE")}
    name = pl.col("module").replace_strict(names, default=None, return_dtype=pl.String)
    modules = modules.with_columns(component=pl.coalesce(name, pl.col("module").cast(pl.String)))
    parts = {"MEMORY_RECORD": totals, "NPU_MODULE_MEM": modules}
    timed = [database.timed(table, frame, "time_ns") for table, frame in parts.items()]
    rows = pl.concat([shaped(frame, MEMORY_CURVE.stored_schema) for frame in timed])
    return rows.sort("time_ns", "component", nulls_last=True)


def read_allocations(database: Database) -> pl.DataFrame:
    """Rows of `allocations`."""
    needed = ("size_bytes", "allocation_ns")
    rows = database.read("OP_MEMORY", columns_of(OPERATOR_MEMORY.fields), {"name": TEXT_ID}, needed=needed)
    timed = database.timed("OP_MEMORY", rows.drop_nulls("size_bytes"), "allocation_ns")
    return shaped(timed, ALLOCATIONS.stored_schema)


_CALL = {"step": "step", "group": "group_name", "name": "hccl_op_name"}
_BAND = {"transport": "transport_type", **MOVED}
_PACKETS = {**_CALL, **_BAND, "packet_mb": "package_size", "packets": "count", "packets_ms": "total_duration"}
_LINKS = {**_CALL, **_BAND, "class": "hccl_op_name", "name": "op_name", "source": "src_rank", "destination": "dst_rank"}


def read_analysis(database: Database) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Calls, packets, links and `step_totals` from the analysis database."""
    one_call = ~pl.col("name").str.starts_with("Total Op Info")
    calls = _analysed(database, "CommAnalyzerTime", {**_CALL, **TIMES}, CALLS).filter(one_call)
    packets = _analysed(database, "CommAnalyzerBandwidth", _PACKETS, PACKETS).filter(one_call)
    links = _analysed(database, "CommAnalyzerMatrix", _LINKS, LINKS).with_columns(pl.col("name").replace("", None))
    timed = timed_calls(calls, database.path, database.sink, table="CommAnalyzerTime")
    return timed, packets, links, _step_totals(database)


def _step_totals(database: Database) -> pl.DataFrame:
    """Rows of `step_totals`; the database has microseconds, although its documentation differs."""
    names = [name for name in STEP_TOTALS.stored_schema if name != "step"]
    types = {"step": pl.Int64, **dict.fromkeys(names, pl.Float64)}
    rows = _analysed(database, "StepTraceTime", columns_of(STEP_TRACE_TIME.fields), types)
    return shaped(rows.with_columns(whole(pl.col(name) * 1000) for name in names), STEP_TOTALS.stored_schema)


def _analysed(database: Database, table: str, wanted: Columns, schema: Types) -> pl.DataFrame:
    """The columns of `schema` of a table whose steps are texts like `step10`."""
    rows = database.read(table, wanted, {**schema, "step": pl.String})
    numbers = {text: step_number(text) for text in rows["step"].drop_nulls().unique().to_list()}
    step = pl.col("step").replace_strict(numbers, default=None, return_dtype=pl.Int64)
    return shaped(rows.with_columns(step), schema)
