"""One `*_ascend_ms` directory: its name, who recorded it, its files, and what becomes of one that cannot be made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from stepscope import __version__
from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.communication import communication, communication_matrix
from stepscope.export.ascend_ms.memory import memory_record, operator_memory
from stepscope.export.ascend_ms.times import (
    api_statistic,
    kernel_details,
    op_statistic,
    operator_details,
    step_trace_time,
)
from stepscope.export.ascend_ms.trace_view import trace_view
from stepscope.export.rank_export import RankExport
from stepscope.json_files import value_in
from stepscope.sources.ascend.rank_files import OUTPUT

_log = logging.getLogger("stepscope")

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

COPIES = {
    "dataset.csv": "host_info/dataset_{rank}.csv",
    "minddata_pipeline_raw_{rank}.csv": "minddata_pipeline_raw_{rank}.csv",
    "minddata_pipeline_summary_{rank}.csv": "minddata_pipeline_summary_{rank}.csv",
    "minddata_pipeline_summary_{rank}.json": "minddata_pipeline_summary_{rank}.json",
}
"""Files of the data pipeline that stand in the output folder, too: name there to name in the `profiler` directory."""
_RECORDED = ("framework", "framework_version", "mode", "device_kind", "device_name", "host", "backend")


def write_ascend_ms(export: RankExport) -> None:
    """Write the directory of one rank. A file that cannot be made is named in `export.left_out`, with the reason.

    The format was made for Ascend devices; the modules of the files describe how a host or a GPU is put into it.

    Args:
        export: The recorded rank, and where to write.

    Raises:
        OSError: If a file cannot be written.
    """
    root = directory_name(export)
    export.write(f"{root}/profiler_info_{export.rank}.json", _profiler_info(export))
    export.write(f"{root}/profiler_metadata.json", _profiler_metadata(export))
    for name, make in FILES.items():
        try:
            export.write(f"{root}/{OUTPUT}/{name}", make(export))
        except Unavailable as reason:
            export.leave_out(name, str(reason))
        except OSError:
            raise
        except Exception as error:  # one file that fails must not take the others with it
            _log.warning("%s could not be made", name, exc_info=True)
            export.leave_out(name, f"{type(error).__name__}: {error}")
    for name, source in COPIES.items():
        made = source.format(rank=export.rank)
        if made in export.written:  # files of earlier exports are left alone
            export.copy(f"{root}/{OUTPUT}/{name.format(rank=export.rank)}", export.directory / made)


def directory_name(export: RankExport) -> str:
    """`rank-<R>_<YYYYmmddHHMMSS>_ascend_ms`, with the local time at which the recording began."""
    started_ns = export.about.get("started_ns") or export.facts.get("start_ns") or 0
    return f"rank-{export.rank}_{datetime.fromtimestamp(started_ns / 1e9):%Y%m%d%H%M%S}_ascend_ms"


def _profiler_info(export: RankExport) -> str:
    """What the format calls profiler information: options, rank, and versions.

    What its own keys cannot express (a device that is no Ascend device, a framework that is neither torch_npu nor
    MindSpore) stands below `stepscope`, which other tools ignore and our own reader uses.
    """
    facts = export.facts
    options = dict(export.about.get("options") or value_in(facts.get("options")) or {})
    device = facts.get("device_kind")
    activities = ["CPU"] if device in (None, "cpu") else ["CPU", str(device).upper()]
    content: dict[str, Any] = {
        "config": {"common_config": {"activities": activities, **options}, "experimental_config": {}},
        "rank_id": export.rank,
        "rank_size": facts.get("world_size"),
        "stepscope": {
            "version": __version__,
            "process": facts.get("process"),
            "device": facts.get("device"),
            **{key: facts.get(key) for key in _RECORDED},
        },
    }
    if export.is_mindspore:
        content |= {"ms_version": facts.get("framework_version"), "context_mode": export.about.get("mode")}
    return export.json_text(content)


def _profiler_metadata(export: RankExport) -> str:
    """Environment variables and process groups. Parallel sizes are not recorded, so none are stated."""
    facts = export.facts
    environment = export.about.get("environment") or value_in(facts.get("environment")) or {}
    groups = {}
    for group, name, members in export.rows("groups").select("group", "name", "members").iter_rows():
        ranks = list(members) if members is not None else None
        place = ranks.index(export.rank) if ranks and export.rank in ranks else None
        groups[group] = {"group_name": name or group, "group_rank": place, "global_ranks": ranks}
    return export.json_text({"ENV_VARIABLES": environment, "parallel_group_info": groups})
