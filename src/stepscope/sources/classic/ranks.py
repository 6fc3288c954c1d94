"""Who was profiled and how, from `profiler_info`, names of files and the cluster's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_index, as_text, json_text
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles, Seat
from stepscope.sources.classic.raw_profiles import device_number
from stepscope.sources.rank_tables import differences, place_of, places
from stepscope.sources.side_files import peek_object, read_object
from stepscope.tables import RANKS

_CLUSTER_FILE = re.compile(r"(ascend|gpu)_cluster_analyse_([a-z-]+)_(\d+)_(\d+)_\d+\.csv")
_FRAMEWORKS = ("mindspore", "pytorch")
_OF_RAW = {"device_info", "device_steps", "device_step_events", "iterations", "device_trace", "device_summary"}
_OF_NPU = _OF_RAW | {"device_types", "device_operators", "pynative_types", "pynative_operators", "ai_cpu", "framework"}
_OF_NPU |= {"timeline", "ai_cpu_queue", "recommendation"}
_FIRST_OF_NPU = {"flops", "flops_summary", "flops_scope", "calls", "operator_memory"}
"""Kinds that MindSpore writes of Ascend devices only, and exports of other recordings of any device."""
_DEVICES = (
    ("npu", "ascend_", _OF_NPU),
    ("cuda", "gpu_", {"gpu_types", "gpu_operators", "gpu_activities", "get_next"}),
    ("cpu", "cpu_", {"cpu_types", "cpu_operators", "cpu_times", "cpu_framework", "cpu_memory"}),
)
"""Kind of device, what names of its files begin with, and kinds of files that only it has; the first that fits."""


def write_ranks(files: RankFiles, sink: Sink) -> None:
    """Write the row of `ranks`. A profile without `profiler_info` is whole: older ones have none.

    No time is given: step trace, host and dataset each have their own clock.
    """
    info = read_object(files.one("profiler_info"), sink) or {}
    cluster = _cluster_sizes(files)
    framework = info.get("framework")
    of_mindspore = "mindspore" if files.kinds.keys() - _OF_RAW else None  # the device's profiler serves others, too
    framework = framework if framework in _FRAMEWORKS else of_mindspore
    stated = as_index(info.get("rank_id"))
    seat = files.seat
    if stated is not None and stated != files.rank and seat is None:
        problem = f"gives rank {stated} in a file named for rank {files.rank}; the name is used"
        sink.issue("note", files.one("profiler_info") or files.path, problem, "Check that files were not renamed")
    elif stated is not None and stated != files.rank and seat is not None and not seat.problem:
        problem = (
            f"gives rank {stated}, but the rank table gives rank {files.rank} to device {seat.device} of host "
            f"{seat.host}; the table is used"
        )
        remedy = "Check that the rank table is that of this job, and that files lie in the folder of their host"
        sink.issue("warning", files.one("profiler_info") or files.path, problem, remedy)
    if seat is not None and seat.problem:
        problem = f"{seat.problem}: device {seat.device} of host {seat.host} becomes rank {files.rank} by position"
        remedy = "Put the rank table and host_ips_mapping.txt of the job next to cluster_profiler"
        sink.issue("warning" if seat.contradicted else "note", files.path, problem, remedy)
    world = as_index(info.get("rank_size")) or cluster.get("ranks")
    listed = None if seat is not None else _listed(files, world, sink)
    place = seat or listed
    device_info = files.one("device_info")  # of a raw profile
    pynative = "pynative" if files.all("pynative_types") or files.all("pynative_operators") else None
    row = {
        "rank": files.rank,
        "rank_origin": _origin(files, stated) if listed is None else "rank table",
        "world_size": world or (place.world_size if place else None),
        "host": place.host if place else None,
        "device": place.device if place else device_number(device_info.parent) if device_info else None,
        "nic": place.nic if place else None,
        "device_kind": device_kind(files),
        "framework": framework,
        "framework_version": as_text(info.get("ms_version")),
        # Exports of eager PyTorch have `graph`: readers know no other mode with steps.
        "mode": as_text(info.get("context_mode")) or pynative if framework == "mindspore" else None,
        "format": "classic",
        "takes_functions": False if framework == "mindspore" else None,
        "parallelism": json_text(_parallelism(info, cluster)),
    }
    sink.write(RANKS, RANKS.unchecked(**{name: [value] for name, value in row.items()}))


def _listed(files: RankFiles, world: int | None, sink: Sink) -> Seat | None:
    """Host and device of a rank in the table beside a flat profile, unless that is a table of another job."""
    if files.table is None or (place := place_of(files.table, files.rank, world, sink)) is None:
        return None
    device_info = files.one("device_info")
    of_device = None if device_info is None else device_number(device_info.parent)
    for problem in differences(files.table, place, None, of_device):
        sink.issue("warning", files.table, problem, "Check that the rank table is that of this job")
    return Seat(files.rank, place.device, place.host, world or len(places(files.table)), None, place.nic)


def read_info(files: RankFiles) -> Mapping[str, Any]:
    """Content of `profiler_info`; empty if it is missing or unreadable (`write_ranks` reports that)."""
    return peek_object(files.one("profiler_info"))


def device_kind(files: RankFiles) -> str | None:
    """`npu`, `cuda` or `cpu`, by the kinds of files that there are; the device of a job that also uses the host.

    Null where only files exist that all devices have: dataset profiling, host, step trace.
    """
    for device, prefix, kinds in _DEVICES:
        if files.kinds.keys() & kinds or any(file.name.startswith(prefix) for file in files.every):
            return device
    return "npu" if files.kinds.keys() & _FIRST_OF_NPU else None


def _origin(files: RankFiles, stated: int | None) -> str:
    if files.seat is not None:
        return "numbered" if files.seat.problem else "rank table"
    return "content" if stated == files.rank else "file name"


def _cluster_sizes(files: RankFiles) -> dict[str, Any]:
    """From the name of the file of cluster steps: parallel mode, pipeline stages, ranks."""
    path = files.one("cluster_steps")
    match = _CLUSTER_FILE.fullmatch(path.name) if path is not None else None
    if match is None:
        return {}
    return {"mode": match[2].replace("-", "_"), "stages": int(match[3]), "ranks": int(match[4])}


def _stages(info: Mapping[str, Any], cluster: Mapping[str, Any]) -> int | None:
    return as_index(info.get("stage_num")) or as_index(info.get("pipeline_stage_num")) or cluster.get("stages")


def _parallelism(info: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    known = {
        "parallel_mode": as_text(info.get("parallel_mode")) or cluster.get("mode"),
        "stage_num": _stages(info, cluster),
        "is_heterogeneous": True if info.get("is_heterogeneous") is True else None,
    }
    return {name: value for name, value in known.items() if value is not None}


def offset_of(files: RankFiles, links: pl.DataFrame, path: Path, sink: Sink) -> int | None:
    """Offset from the numbers at the ends of links to ranks of the job; None if unknown.

    A rank's own file holds its own links, so its number is at one end of each. If it is not, but its number in its
    pipeline stage, or that of its device on its host, is, links (`source`, `destination`) count within those.
    """
    ends = [set(pair) for pair in links.select("source", "destination").unique().iter_rows()]
    common = set[int].intersection(*ends) if ends else {files.rank}
    if files.rank in common:
        return 0
    device = files.seat.device if files.seat is not None else None
    for own, what in ((_in_stage(files), "their pipeline stage"), (device, "their host")):
        if own is not None and own in common:
            problem = f"links number ranks within {what}; converted to ranks of the job"
            sink.issue("note", path, problem, "Nothing to do")
            return files.rank - own
    problem = f"no number of rank {files.rank} is in its links, so the ranks that they join are unknown"
    sink.issue("warning", path, problem, "Keep profiler_info with the file", place="links", lost=links.height)
    return None


def _in_stage(files: RankFiles) -> int | None:
    """The rank's number in its pipeline stage; stages are of equal size, in the order of ranks."""
    info, cluster = read_info(files), _cluster_sizes(files)
    stages, ranks = _stages(info, cluster), as_index(info.get("rank_size")) or cluster.get("ranks")
    if not stages or not ranks or ranks % stages:
        return None
    return int(files.rank % (ranks // stages))
