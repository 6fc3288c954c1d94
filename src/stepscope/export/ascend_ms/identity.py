"""profiler_info_<R>.json and profiler_metadata.json: who recorded, with what options, and the process groups."""

from __future__ import annotations

from typing import Any

from stepscope import __version__
from stepscope.export.rank_export import RankExport
from stepscope.json_files import value_in

_RECORDED = ("framework", "framework_version", "mode", "device_kind", "device_name", "host", "backend")
_MINDSPORE = "mindspore"


def profiler_info(export: RankExport) -> str:
    """What the format calls profiler information: options, rank, and versions.

    What its own keys cannot express (a device that is no Ascend device, a framework that is neither torch_npu nor
    MindSpore) stands below `stepscope`, which other tools ignore and our own reader uses.
    """
    facts = export.facts
    options = dict(export.about.get("options") or value_in(facts.get("options")) or {})
    content: dict[str, Any] = {
        "config": {"common_config": {"activities": _activities(facts), **options}, "experimental_config": {}},
        "rank_id": export.rank,
        "rank_size": facts.get("world_size"),
        "stepscope": {
            "version": __version__,
            "process": facts.get("process"),
            "device": facts.get("device"),
            **{key: facts.get(key) for key in _RECORDED},
        },
    }
    if facts.get("framework") == _MINDSPORE:
        content |= {"ms_version": facts.get("framework_version"), "context_mode": export.about.get("mode")}
    return export.json_text(content)


def profiler_metadata(export: RankExport) -> str:
    """Environment variables and process groups. Parallel sizes are not recorded, so none are stated."""
    facts = export.facts
    environment = export.about.get("environment") or value_in(facts.get("environment")) or {}
    groups = {}
    for group, name, members in export.rows("groups").select("group", "name", "members").iter_rows():
        ranks = list(members) if members is not None else None
        place = ranks.index(export.rank) if ranks and export.rank in ranks else None
        groups[group] = {"group_name": name or group, "group_rank": place, "global_ranks": ranks}
    return export.json_text({"ENV_VARIABLES": environment, "parallel_group_info": groups})


def _activities(facts: dict[str, Any]) -> list[str]:
    device = facts.get("device_kind")
    return ["CPU"] if device in (None, "cpu") else ["CPU", str(device).upper()]
