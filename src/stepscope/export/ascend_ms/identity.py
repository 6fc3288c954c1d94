"""profiler_info_<R>.json and profiler_metadata.json: who recorded, with what options, and the process groups."""

from __future__ import annotations

import json
from typing import Any

from stepscope import __version__
from stepscope.export.job import Job

_TOLD = ("framework", "framework_version", "mode", "device_kind", "device_name", "host", "backend")
_MINDSPORE = "mindspore"


def profiler_info(job: Job) -> str:
    """What the format calls profiler information: options, rank, and versions.

    What its own keys cannot say (a device that is no Ascend device, a framework that is neither torch_npu nor
    MindSpore) stands below `stepscope`, which other tools pass by and our own reader takes.
    """
    facts = rank_facts(job)
    options = dict(job.about.get("options") or json.loads(facts.get("options") or "{}"))
    content: dict[str, Any] = {
        "config": {"common_config": {"activities": _activities(facts), **options}, "experimental_config": {}},
        "rank_id": job.rank,
        "rank_size": facts.get("world_size"),
        "stepscope": {
            "version": __version__,
            "process": facts.get("process"),
            "device": facts.get("device"),
            **{key: facts.get(key) for key in _TOLD},
        },
    }
    if facts.get("framework") == _MINDSPORE:
        content |= {"ms_version": facts.get("framework_version"), "context_mode": job.about.get("mode")}
    return json_text(job, content)


def profiler_metadata(job: Job) -> str:
    """Environment variables and process groups. Parallel sizes are not recorded, so none are stated."""
    facts = rank_facts(job)
    environment = job.about.get("environment") or json.loads(facts.get("environment") or "{}")
    groups = {}
    for group, name, members in job.rows("groups").select("group", "name", "members").iter_rows():
        ranks = list(members) if members is not None else None
        place = ranks.index(job.rank) if ranks and job.rank in ranks else None
        groups[group] = {"group_name": name or group, "group_rank": place, "global_ranks": ranks}
    return json_text(job, {"ENV_VARIABLES": environment, "parallel_group_info": groups})


def rank_facts(job: Job) -> dict[str, Any]:
    """The rank's row of `ranks`, filled up with what the recording says of itself."""
    facts = job.facts
    known = {**job.about, "process": job.about.get("pid"), "device": job.about.get("device_id")}
    return {key: known.get(key) if value is None else value for key, value in facts.items()}


def on_device(job: Job) -> bool:
    """Whether anything that a device ran was recorded."""
    return job.run.has("kernels")


def json_text(job: Job, content: dict[str, Any]) -> str:
    """JSON, indented if the user wants it so."""
    return json.dumps(content, indent=4 if job.pretty else None, default=str)


def _activities(facts: dict[str, Any]) -> list[str]:
    device = facts.get("device_kind")
    return ["CPU"] if device in (None, "cpu") else ["CPU", str(device).upper()]
