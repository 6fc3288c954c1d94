"""What the Ascend tool wrote about a cluster, as figures: each with what it is about, in the tool's words and units."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEYS = {
    "ClusterStepTraceTime": ("step", "index"),
    "ClusterCommunicationTime": ("step", "rank_id", "hccl_op_name", "group_name"),
    "ClusterCommunicationBandwidth": ("step", "rank_id", "hccl_op_name", "group_name", "band_type", "package_size"),
    "ClusterCommunicationMatrix": ("step", "hccl_op_name", "group_name", "op_name", "src_rank", "dst_rank"),
    "CommunicationGroupMapping": ("group_name",),
    "HostInfo": ("hostUid",),
    "RankDeviceMap": ("rankId",),
    "ClusterBaseInfo": ("key",),
}
"""Tables of the database, and the columns that say what a row is about; all others are figures."""

_TIME = {
    "Start Timestamp(us)": "start_timestamp",
    "Elapse Time(ms)": "elapsed_time",
    "Transit Time(ms)": "transit_time",
    "Wait Time(ms)": "wait_time",
    "Synchronization Time(ms)": "synchronization_time",
    "Idle Time(ms)": "idle_time",
    "Wait Time Ratio": "wait_time_ratio",
    "Synchronization Time Ratio": "synchronization_time_ratio",
}
_BAND = {
    "Transit Size(MB)": "transit_size",
    "Transit Time(ms)": "transit_time",
    "Bandwidth(GB/s)": "bandwidth",
    "Large Packet Ratio": "large_packet_ratio",
}
_LINK = {
    "Transport Type": "transport_type",
    "Transit Size(MB)": "transit_size",
    "Transit Time(ms)": "transit_time",
    "Bandwidth(GB/s)": "bandwidth",
}


@dataclass(frozen=True)
class Figure:
    """One figure.

    Args:
        table: The table that has it; files of the text mode count as the table with the same content.
        about: What the row is about.
        column: Which figure it is.
    """

    table: str
    about: tuple[Any, ...]
    column: str
    value: Any


def figures(folder: Path) -> Iterator[Figure]:
    """All figures of a folder of results, of either mode."""
    database = folder / "cluster_analysis.db"
    yield from _of_database(database) if database.exists() else _of_texts(folder)
    for name, table in json.loads((folder / "advisor.json").read_text())["tables"].items():
        for row in table["data"]:
            for column, value in zip(table["headers"][2:], row[2:], strict=True):
                yield Figure(name, tuple(row[:2]), column, value)


def _of_database(file: Path) -> Iterator[Figure]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
        opened.row_factory = sqlite3.Row
        for table, keys in KEYS.items():
            for row in opened.execute(f"SELECT * FROM {table}"):
                about = tuple(row[key] for key in keys)
                for column in row.keys():  # noqa: SIM118 - a row is no mapping
                    if column not in (*keys, "type"):
                        yield Figure(table, about, column, _in_order(row[column]))


def _in_order(value: Any) -> Any:
    """A value; of an object of JSON, its text with the keys in order."""
    is_object = isinstance(value, str) and value.startswith("{")
    return json.dumps(json.loads(value), sort_keys=True) if is_object else value


def _of_texts(folder: Path) -> Iterator[Figure]:
    with (folder / "cluster_step_trace_time.csv").open() as opened:
        for row in csv.DictReader(opened):
            for column, value in list(row.items())[3:]:
                name = column.lower().replace(" ", "_").replace("(", "_").replace(")", "").replace("__", "_")
                yield Figure("ClusterStepTraceTime", (row["Step"], row["Index"]), name, float(value))
    for group in json.loads((folder / "communication_group.json").read_text())["comm_group_parallel_info"]:
        ranks = f"({','.join(map(str, group['rank_set']))})"
        for column, value in (("rank_set", ranks), ("group_id", group["group_id"]), ("pg_name", group["pg_name"])):
            yield Figure("CommunicationGroupMapping", (group["group_name"],), column, value)
    for steps in json.loads((folder / "cluster_communication.json").read_text()).values():
        for step, operators in steps.items():
            for operator, ranks in operators.items():
                yield from _of_operator(step, *operator.split("@"), ranks)
    for steps in json.loads((folder / "cluster_communication_matrix.json").read_text()).values():
        for step, operators in steps.items():
            for operator, links in operators.items():
                name, group = operator.split("@")
                for ends, link in links.items():
                    about = (step, name, group, link["Op Name"], *map(float, ends.split("-")))
                    for key, column in _LINK.items():
                        yield Figure("ClusterCommunicationMatrix", about, column, link[key])


def _of_operator(step: str, name: str, group: str, ranks: dict[str, Any]) -> Iterator[Figure]:
    for rank, parts in ranks.items():
        about = (step, int(rank), name, group)
        for key, value in parts["Communication Time Info"].items():
            yield Figure("ClusterCommunicationTime", about, _TIME[key], value)
        for band, info in parts["Communication Bandwidth Info"].items():
            packets = info["Size Distribution"] or {"0": [0, 0]}
            for size, (count, length) in packets.items():
                row = {column: info[key] for key, column in _BAND.items() if key in info} | {
                    "count": count,
                    "total_duration": length,
                }
                for column, value in row.items():
                    yield Figure("ClusterCommunicationBandwidth", (*about, band, float(size)), column, value)
