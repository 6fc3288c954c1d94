"""The row of `ranks`: who was profiled and how, from `profiler_info`, names of files and the cluster's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stepscope.json_values import as_index, json_text
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.raw_profiles import device_number
from stepscope.sources.side_files import peek_object, read_object
from stepscope.tables import RANKS

_CLUSTER_FILE = re.compile(r"(ascend|gpu)_cluster_analyse_([a-z-]+)_(\d+)_(\d+)_\d+\.csv")
_FRAMEWORKS = ("mindspore", "pytorch")
_OF_NPU = {"device_types", "device_operators", "pynative_types", "pynative_operators", "ai_cpu", "framework"}
_OF_NPU |= {"timeline", "ai_cpu_queue", "recommendation"}
_OF_RAW = {"device_info", "device_steps", "device_step_events", "iterations", "device_trace", "device_summary"}
_OF_NPU |= _OF_RAW
_FIRST_OF_NPU = {"flops", "flops_summary", "flops_scope", "calls", "operator_memory"}
"""Kinds that MindSpore writes of Ascend devices only, and exports of other recordings of any device."""
_OF_CUDA = {"gpu_types", "gpu_operators", "gpu_activities", "get_next"}
_OF_CPU = {"cpu_types", "cpu_operators", "cpu_times", "cpu_framework", "cpu_memory"}


def write_ranks(files: RankFiles, sink: Sink) -> None:
    """Write the row of `ranks`. A profile without `profiler_info` is whole: older ones have none.

    No time is given: step trace, host and dataset each have their own clock.
    """
    info = read_object(files.one("profiler_info"), sink) or {}
    cluster = cluster_sizes(files)
    framework = info.get("framework")
    of_mindspore = "mindspore" if files.kinds.keys() - _OF_RAW else None  # the device's profiler serves others, too
    framework = framework if framework in _FRAMEWORKS else of_mindspore
    stated = as_index(info.get("rank_id"))
    if stated is not None and stated != files.rank and files.seat is None:
        problem = f"gives rank {stated} in a file named for rank {files.rank}; the name is used"
        sink.issue("note", files.one("profiler_info") or files.path, problem, "Check that files were not renamed")
    seat = files.seat
    if seat is not None and seat.problem:
        problem = f"{seat.problem}: device {seat.device} of host {seat.host} becomes rank {files.rank} by position"
        remedy = "Put the rank table and host_ips_mapping.txt of the job next to cluster_profiler"
        sink.issue("note", files.path, problem, remedy)
    mode = info.get("context_mode")
    pynative = files.all("pynative_types") or files.all("pynative_operators")
    row = {
        "rank": files.rank,
        "rank_origin": _origin(files, stated),
        "world_size": as_index(info.get("rank_size")) or cluster.get("ranks") or (seat.world_size if seat else None),
        "host": seat.host if seat else None,
        "device": seat.device if seat else _raw_device(files),
        "device_kind": device_kind(files),
        "framework": framework,
        "framework_version": _text(info.get("ms_version")),
        # Exports of eager PyTorch have `graph`: readers know no other mode with steps.
        "mode": (_text(mode) or ("pynative" if pynative else None)) if framework == "mindspore" else None,
        "format": "classic",
        "parallelism": json_text(_parallelism(info, cluster)),
    }
    sink.write(RANKS, RANKS.unchecked(**{name: [value] for name, value in row.items()}))


def read_info(files: RankFiles) -> Mapping[str, Any]:
    """Content of `profiler_info`; empty if it is missing or unreadable (`write_ranks` reports that)."""
    return peek_object(files.one("profiler_info"))


def device_kind(files: RankFiles) -> str | None:
    """`npu`, `cuda` or `cpu`, by the kinds of files that there are; the device of a job that also uses the host.

    Null where only files exist that all devices have: dataset profiling, host, step trace.
    """
    names = [file.name for kind in files.kinds.values() for file in kind]
    if files.kinds.keys() & _OF_NPU or any(name.startswith("ascend_") for name in names):
        return "npu"
    if files.kinds.keys() & _OF_CUDA or any(name.startswith("gpu_") for name in names):
        return "cuda"
    if files.kinds.keys() & _OF_CPU or any(name.startswith("cpu_") for name in names):
        return "cpu"
    return "npu" if files.kinds.keys() & _FIRST_OF_NPU else None


def _raw_device(files: RankFiles) -> int | None:
    """The number of the device whose raw profile is there."""
    info = files.one("device_info")
    return None if info is None else device_number(info.parent)


def _origin(files: RankFiles, stated: int | None) -> str:
    if files.seat is not None:
        return "numbered" if files.seat.problem else "content"
    return "content" if stated == files.rank else "file name"


def cluster_sizes(files: RankFiles) -> dict[str, Any]:
    """From the name of the file of cluster steps: parallel mode, pipeline stages, ranks."""
    path = files.one("cluster_steps")
    match = _CLUSTER_FILE.fullmatch(path.name) if path is not None else None
    if match is None:
        return {}
    return {"mode": match[2].replace("-", "_"), "stages": int(match[3]), "ranks": int(match[4])}


def _parallelism(info: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    stages = as_index(info.get("stage_num")) or as_index(info.get("pipeline_stage_num")) or cluster.get("stages")
    mode = _text(info.get("parallel_mode")) or cluster.get("mode")
    heterogeneous = info.get("is_heterogeneous")
    told = {
        "parallel_mode": mode,
        "stage_num": stages,
        "is_heterogeneous": heterogeneous if heterogeneous is True else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
