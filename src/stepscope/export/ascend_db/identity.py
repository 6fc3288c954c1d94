"""Who recorded what: the JSON files beside the databases, and the tables of ranks, hosts, devices and steps."""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import polars as pl

from stepscope.export.ascend_db.rank import RankDatabase
from stepscope.export.ascend_db.schema import ENUMERATIONS
from stepscope.export.ascend_ms.directory import device_info, profiler_info, profiler_metadata
from stepscope.export.communicators import communicator
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.db_extras import OWN_STEPS
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING


def side_files(export: RankExport) -> dict[str, str]:
    """The JSON files of a rank's directory, by name."""
    files = {
        f"profiler_info_{export.rank}.json": profiler_info(export),
        "profiler_metadata.json": export.json_text(metadata(export)),
    }
    if device := device_info(export):
        number = device["DeviceInfo"][0]["id"]
        files[f"PROF_000001_{'0' * 17}_{'A' * 16}/device_{number}/info.json.{number}"] = export.json_text(device)
    return files


def metadata(export: RankExport) -> dict[str, Any]:
    """Environment, parallel sizes, and groups by communicator."""
    content: dict[str, Any] = json.loads(profiler_metadata(export))
    groups = content["parallel_group_info"]
    content["parallel_group_info"] = {communicator(group): entry for group, entry in groups.items()}
    return content


def write_identity(rank: RankDatabase) -> None:
    """Write who recorded, and the words that numbers stand for."""
    export, out = rank.export, rank.out
    facts = export.facts
    host = facts.get("host")
    out.add_rows("RANK_DEVICE_MAP", ("rankId", "deviceId"), [(rank.rank, rank.device)])
    out.add_rows("HOST_INFO", ("hostUid", "hostName"), [(str(crc32((host or "").encode())), host)])
    if facts.get("device_name") is not None:
        out.add_rows("NPU_INFO", ("id", "name"), [(rank.device, facts["device_name"])])
    texts = [(name, json.dumps(value)) for name, value in metadata(export).items()]
    out.add_rows("META_DATA", ("name", "value"), texts)
    start, end = facts.get("start_ns"), facts.get("end_ns")
    if start is not None and end is not None:
        out.add_rows("SESSION_TIME_INFO", ("startTimeNs", "endTimeNs"), [(start, end)])
    for table, words in ENUMERATIONS.items():
        out.create(table, "id INTEGER, name TEXT")
        out.add_rows(table, ("id", "name"), words.items())


def write_steps(rank: RankDatabase) -> None:
    """Write STEP_TIME: the steps on the host. A recording that marks none has none there either.

    The format has no place for the windows of steps, so they are in a table of our own as well.
    """
    rows = rank.export.rows("steps").drop("rank").sort("start_ns", maintain_order=True)
    marked = rows.filter(pl.col("window") != WHOLE_RECORDING)
    rank.out.add("STEP_TIME", marked.select(id="step", startNs="start_ns", endNs="end_ns"))
    columns = (f"{name} {'TEXT' if dtype == pl.String else 'INTEGER'}" for name, dtype in rows.schema.items())
    # iterations that were found are steps that are stated from here on
    rows = rows.with_columns(window=pl.col("window").replace(REPETITION, "stated"))
    rank.out.create(OWN_STEPS, ", ".join(columns))
    rank.out.add(OWN_STEPS, rows)
