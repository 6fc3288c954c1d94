"""The rest of a database: who recorded it, memory, clocks, and the communication database next to it."""

from __future__ import annotations

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import as_index
from stepscope.sources.ascend.communication_files import CALLS, LINKS, PACKETS, step_number, timed_calls
from stepscope.sources.ascend.database import Database
from stepscope.sources.ascend.exported_rank import shaped
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_info import RankInfo, read_metadata
from stepscope.sources.csv_files.values import whole
from stepscope.tables import ALLOCATIONS, COUNTERS, MEMORY_CURVE, STEP_TOTALS

MODULES = {0: "SLOG", 3: "HCCL", 4: "FMK", 6: "DVPP", 7: "RUNTIME", 8: "CCE", 9: "HDC", 33: "APP"}
"""Number of a module of `NPU_MODULE_MEM` if the database has no `ENUM_MODULE`."""


def read_identity(database: Database, identity: RankInfo) -> Groups | None:
    """Add what the database knows of its rank; returns its groups if it lists any."""
    rows = database.read("META_DATA", {"name": "name", "value": "value"}, {"name": pl.String, "value": pl.String})
    metadata: dict[str, object] = {}
    for name, text in rows.drop_nulls().iter_rows():
        metadata[name] = value_in(text)
    groups = read_metadata(identity, metadata)
    ranks = database.read("RANK_DEVICE_MAP", {"rank": "rankId", "device": "deviceId"})
    if ranks.height == 1:
        identity.settle_rank(ranks["rank"][0], None)
        identity.device = as_index(ranks["device"][0]) if identity.device is None else identity.device
    identity.settle_rank(None, database.path)
    hosts = database.read("HOST_INFO", {"host": "hostName"}, {"host": pl.String}).drop_nulls()
    identity.host = hosts["host"][0] if hosts.height else identity.host
    devices = database.read("NPU_INFO", {"device": "id", "name": "name"}, {"name": pl.String}).drop_nulls("name")
    identity.device_name = devices["name"][0] if devices.height else None
    if identity.process is None:
        processes = database.read("TASK", {"process": "globalPid"}, where="globalPid IS NOT NULL LIMIT 1")
        identity.process = as_index(processes["process"][0]) if processes.height else None
    if identity.framework is None:
        identity.framework = "mindspore" if "mindspore" in database.path.name else "pytorch"
    return groups if groups.names else None


def read_memory_curve(database: Database) -> pl.DataFrame:
    """Rows of `memory_curve` from the framework's and the modules' records."""
    totals = database.with_texts(
        database.read(
            "MEMORY_RECORD",
            {
                "component": "component",
                "time_ns": ("timestamp", "timestampNs"),
                "allocated_bytes": "totalAllocated",
                "reserved_bytes": "totalReserved",
                "active_bytes": "totalActive",
                "device": "deviceId",
            },
        ),
        ["component"],
    )
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
    rows = database.read(
        "OP_MEMORY",
        {
            "name": "name",
            "size_bytes": "size",
            "allocation_ns": "allocationTime",
            "release_ns": "releaseTime",
            "active_release_ns": "activeReleaseTime",
            "device": "deviceId",
        },
        needed=("size_bytes", "allocation_ns"),
    )
    rows = database.timed("OP_MEMORY", database.with_texts(rows, ["name"]).drop_nulls("size_bytes"), "allocation_ns")
    return shaped(rows, ALLOCATIONS.stored_schema)


def read_counters(database: Database) -> pl.DataFrame:
    """Rows of `counters`: the clock of the AI core."""
    rows = database.read(
        "AICORE_FREQ",
        {"time_ns": "timestampNs", "value": "freq", "device": "deviceId"},
        {"value": pl.Float64},
    )
    timed = database.timed("AICORE_FREQ", rows.drop_nulls("value"), "time_ns")
    named = timed.with_columns(name=pl.lit("ai_core_frequency_mhz"))
    return shaped(named, COUNTERS.stored_schema)


def read_analysis(database: Database) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Calls, packets, links and `step_totals` from the analysis database."""
    texts: dict[str, type[pl.DataType]] = {"group": pl.String, "name": pl.String, "step_text": pl.String}
    call = {"step_text": "step", "group": "group_name", "name": "hccl_op_name"}
    calls = _numbered(
        database.read(
            "CommAnalyzerTime",
            {
                **call,
                "start_us": "start_timestamp",
                "elapse_ms": "elapse_time",
                "transit_ms": "transit_time",
                "wait_ms": "wait_time",
                "synchronization_ms": "synchronization_time",
            },
            {**texts, **{name: dtype for name, dtype in CALLS.items() if dtype == pl.Float64}},
        )
    )
    packets = _numbered(
        database.read(
            "CommAnalyzerBandwidth",
            {
                **call,
                "transport": "transport_type",
                "size_mb": "transit_size",
                "time_ms": "transit_time",
                "bandwidth": "bandwidth",
                "packet_mb": "package_size",
                "packets": "count",
                "packets_ms": "total_duration",
            },
            {**texts, **{name: dtype for name, dtype in PACKETS.items() if dtype != pl.Int64}},
        )
    )
    links = _numbered(
        database.read(
            "CommAnalyzerMatrix",
            {
                "step_text": "step",
                "group": "group_name",
                "class": "hccl_op_name",
                "name": "op_name",
                "source": "src_rank",
                "destination": "dst_rank",
                "transport": "transport_type",
                "size_mb": "transit_size",
                "time_ms": "transit_time",
                "bandwidth": "bandwidth",
            },
            {**texts, **{name: dtype for name, dtype in LINKS.items() if dtype != pl.Int64}},
        )
    )
    no_totals = pl.col("name").str.starts_with("Total Op Info")
    links = links.with_columns(pl.col("name").replace("", None))
    return (
        timed_calls(shaped(calls.filter(~no_totals), CALLS), database.path, database.sink, table="CommAnalyzerTime"),
        shaped(packets.filter(~no_totals), PACKETS),
        shaped(links, LINKS),
        _step_totals(database),
    )


def _step_totals(database: Database) -> pl.DataFrame:
    """Rows of `step_totals`; the database has microseconds, although its documentation differs."""
    names = [name for name in STEP_TOTALS.stored_schema if name != "step"]
    recorded = {name: name.removesuffix("_ns") for name in names}
    recorded["communication_not_overlapped_exclude_receive_ns"] = "communication_not_overlapped_and_exclude_receive"
    rows = database.read(
        "StepTraceTime",
        {"step_text": "step", **recorded},
        {"step_text": pl.String, **dict.fromkeys(names, pl.Float64)},
    )
    rows = _numbered(rows).with_columns(whole(pl.col(name) * 1000) for name in names)
    return shaped(rows, STEP_TOTALS.stored_schema)


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """Turn `step10` into 10."""
    numbers = {text: step_number(text) for text in rows["step_text"].drop_nulls().unique().to_list()}
    step = pl.col("step_text").replace_strict(numbers, default=None, return_dtype=pl.Int64)
    return rows.with_columns(step=step)
