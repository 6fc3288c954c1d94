"""One `*_ascend_ms` or `*_ascend_pt` directory: its name, who recorded it, its files, and what becomes of one that
cannot be made."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stepscope import __version__
from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.communication import communication, communication_matrix, communicator_of
from stepscope.export.ascend_ms.memory import memory_record, module_memory, operator_memory
from stepscope.export.ascend_ms.times import (
    api_statistic,
    kernel_details,
    op_statistic,
    operator_details,
    step_trace_time,
)
from stepscope.export.ascend_ms.trace_view import trace_view
from stepscope.export.formatting import local_time
from stepscope.export.rank_export import RankExport
from stepscope.json_files import value_in
from stepscope.run import Run
from stepscope.sources.ascend.rank_files import OUTPUT

FILES: dict[str, Callable[[RankExport], str | Iterable[str]]] = {
    "step_trace_time.csv": step_trace_time,
    "trace_view.json": trace_view,
    "kernel_details.csv": kernel_details,
    "op_statistic.csv": op_statistic,
    "api_statistic.csv": api_statistic,
    "operator_details.csv": operator_details,
    "operator_memory.csv": operator_memory,
    "memory_record.csv": memory_record,
    "communication.json": communication,
    "communication_matrix.json": communication_matrix,
}
"""Files of the output folder; each function raises `Unavailable` if the recording has nothing for it."""

DEVICE_FILES: dict[str, Callable[[RankExport], str | Iterable[str]]] = {"npu_module_mem.csv": module_memory}
"""Further files of the output folder, which only Ascend devices can have."""

COPIES = {
    "dataset.csv": "host_info/dataset_{rank}.csv",
    "minddata_pipeline_raw_{rank}.csv": "minddata_pipeline_raw_{rank}.csv",
    "minddata_pipeline_summary_{rank}.csv": "minddata_pipeline_summary_{rank}.csv",
    "minddata_pipeline_summary_{rank}.json": "minddata_pipeline_summary_{rank}.json",
}
"""Files of the data pipeline that stand in the output folder, too: name there to name in the `profiler` directory."""
_SIZES = frozenset(
    {
        *(f"{kind}_model_parallel_size" for kind in ("tensor", "pipeline", "expert")),
        *("world_size", "data_parallel_size", "context_parallel_size", "sequence_parallel", "rank", "pp_info"),
    }
)
"""Parallel sizes as the format names them. Under names of other tools readers would miss them, and take them for 1."""
_RECORDED = ("framework", "framework_version", "mode", "device_kind", "device_name", "host", "backend")


_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)
"""What the name of a host in a directory's name is without."""
_LONGEST_NAME = 64


def write_ascend_ms(export: RankExport) -> None:
    """Write the directory of one rank. A file that cannot be made is named in `export.left_out`, with the reason.

    The format was made for Ascend devices; the modules of the files describe how a host or a GPU is put into it.

    Args:
        export: The recorded rank, and where to write.

    Raises:
        OSError: If a file cannot be written.
    """
    write_rank(export, directory_name(export))


def write_rank(export: RankExport, root: str) -> None:
    """Write the directory of one rank under a name; see `write_ascend_ms`."""
    export.write(f"{root}/profiler_info_{export.rank}.json", profiler_info(export))
    export.write(f"{root}/profiler_metadata.json", profiler_metadata(export))
    if not export.is_own and (device := device_info(export)):
        number = device["DeviceInfo"][0]["id"]
        raw = f"PROF_000001_{_stamp(export.facts, 17)}_{'A' * 16}"
        export.write(f"{root}/{raw}/device_{number}/info.json.{number}", export.json_text(device))
    for name, make in (FILES | (DEVICE_FILES if export.facts["device_kind"] == "npu" else {})).items():
        try:
            export.write(f"{root}/{OUTPUT}/{name}", make(export))
        except Unavailable as reason:
            export.leave_out(name, str(reason))
        except OSError:
            raise
        except Exception as error:  # one file that fails must not take the others with it
            export.on_fault(name, error)
            export.leave_out(name, f"{type(error).__name__}: {error}")
    for name, source in COPIES.items():
        made = source.format(rank=export.rank)
        if made in export.written:  # files of earlier exports are left alone
            export.copy(f"{root}/{OUTPUT}/{name.format(rank=export.rank)}", export.directory / made)


def directory_name(export: RankExport) -> str:
    """`rank-<R>_<YYYYmmddHHMMSS>_ascend_ms`, with the local time at which the recording began."""
    return f"rank-{export.rank}_{_stamp({**export.facts, **_began(export)}, 14)}_ascend_ms"


def _began(export: RankExport) -> dict[str, Any]:
    started_ns = export.about.get("started_ns")
    return {"start_ns": started_ns} if started_ns else {}


def directory_names(run: Run) -> dict[int, str]:
    """The directory of each rank, as the profilers of Ascend devices name them.

    `<host>_<process>_<stamp>_ascend_pt`, or `_ms` for MindSpore. If host or process of a rank are unknown, or two ranks
    had the same, all have their rank instead: `rank-<R>_<stamp>_ascend_pt`. The stamp is the local time at which the
    recording began, to the millisecond.
    """
    facts = {rank.rank: rank.facts for rank in run.ranks}
    ending = "ms" if run.ranks[0].facts["framework"] == "mindspore" else "pt"
    workers = {rank: _worker(known) for rank, known in facts.items()}
    if None in workers.values() or max(Counter(workers.values()).values()) > 1:
        workers = {rank: f"rank-{rank}" for rank in facts}
    return {rank: f"{workers[rank]}_{_stamp(known, 17)}_ascend_{ending}" for rank, known in facts.items()}


def _worker(facts: Mapping[str, Any]) -> str | None:
    host = _NO_NAME.sub("-", str(facts["host"] or "")).strip("-_.")[:_LONGEST_NAME]
    process = facts["process"]
    return f"{host}_{process}" if host and process is not None and process >= 0 else None


def _stamp(facts: Mapping[str, Any], digits: int) -> str:
    """When a recording began, in local time; recordings without times begin in 1970."""
    start_ns = facts.get("start_ns") or 0
    return f"{local_time(start_ns):%Y%m%d%H%M%S}{start_ns // 1_000_000 % 1000:03d}"[:digits]


def device_info(export: RankExport) -> dict[str, Any]:
    """What the format says of an Ascend device: its cores and their clock; empty if none of it is known."""
    facts = export.facts
    figures = {
        "ai_core_num": facts.get("ai_cores"),
        "aiv_num": facts.get("vector_cores"),
        "aic_frequency": None if facts.get("nominal_clock_mhz") is None else f"{facts['nominal_clock_mhz']:.0f}",
    }
    known = {name: value for name, value in figures.items() if value is not None}
    return {"DeviceInfo": [{"id": facts.get("device") or 0, **known}], "rank_id": export.rank} if known else {}


def profiler_info(export: RankExport) -> str:
    """What the format calls profiler information: options, rank, and versions.

    What its own keys cannot express (a device that is no Ascend device, a framework that is neither torch_npu nor
    MindSpore) stands below `stepscope`, which other tools ignore and our own reader uses.
    """
    facts = export.facts
    stated = export.about.get("options") or value_in(facts.get("options"))
    options = dict(stated) if isinstance(stated, dict) else {}
    apart = {name: options.pop(name) for name in ("cann_version", "device_info") if name in options}
    device = facts.get("device_kind")
    activities = ["CPU"] if device in (None, "cpu") else ["CPU", str(device).upper()]
    special = {name: options.pop(name) for name in list(options) if name.startswith("_")}
    content: dict[str, Any] = {
        "config": {"common_config": {"activities": activities, **options}, "experimental_config": special},
        "rank_id": export.rank,
        "rank_size": facts.get("world_size"),
        "stepscope": {
            "version": __version__,
            "process": facts.get("process"),
            "device": facts.get("device"),
            **{key: facts.get(key) for key in _RECORDED},
        },
    }
    if "cann_version" in apart:
        content["cann_version"] = apart["cann_version"]
    if export.is_mindspore:
        content |= {"ms_version": facts.get("framework_version"), "context_mode": export.about.get("mode")}
    return export.json_text(content)


def profiler_metadata(export: RankExport) -> str:
    """Environment variables and process groups; parallel sizes if they are known, which our recorder does not ask."""
    facts = export.facts
    is_told = str(facts.get("format")).startswith("ascend_") or export.parallel.keys() <= _SIZES
    sizes = dict(export.parallel) if is_told and not export.is_own else {}
    pipeline = sizes.pop("pp_info", None)
    parallel = ({"distributed_args": sizes} if sizes else {}) | ({"pp_info": pipeline} if pipeline else {})
    environment = export.about.get("environment") or value_in(facts.get("environment")) or {}
    groups = {}
    for group, name, members in export.rows("groups").select("group", "name", "members").iter_rows():
        ranks = list(members) if members is not None else None
        place = ranks.index(export.rank) if ranks and export.rank in ranks else None
        groups[communicator_of(group)] = {"group_name": name or group, "group_rank": place, "global_ranks": ranks}
    return export.json_text({"ENV_VARIABLES": environment, "parallel_group_info": groups, **parallel})
