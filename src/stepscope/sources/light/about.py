"""What is known of a rank beside its records, in the form of a recording's header."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.errors import UnreadableInput
from stepscope.json_files import SMALL_BYTES, read_object
from stepscope.json_values import as_index, as_text, list_of, small_number, whole_number
from stepscope.recording_format.about import About
from stepscope.recording_format.layout import rank_in_name
from stepscope.recording_format.light import DEFAULT_GROUP, GROUP_FILE, WORKER_FILE, groups_in
from stepscope.sources.base import Input, Sink

_REMEDY = "The rest is complete; what it says of the rank is unknown"
DEFAULT_NAME = "default_pg"
"""What PyTorch calls the group of all ranks."""


def about_of(item: Input, process: int | None, sink: Sink) -> About:
    """The rank, its process and its groups, from the files beside its records."""
    directory = item.path if item.path.is_dir() else item.path.parent
    worker = _read(item, WORKER_FILE, sink)
    groups = _groups(_read(item, GROUP_FILE, sink))
    if not groups:
        groups = [
            {"group": as_text(one.get("key")), "name": as_text(one.get("name")), "members": list_of(one, "members")}
            for one in list_of(worker, "groups")
            if isinstance(one, dict)
        ]
    same = process is None or whole_number(worker.get("pid")) == process
    rank = as_index(directory.name)
    stated = small_number(worker.get("rank"))
    device = as_text(worker.get("device"))
    return About(
        directory,
        rank=rank if rank is not None else stated if stated is not None else rank_in_name(directory.name),
        world_size=small_number(worker.get("world_size")) or _world(groups),
        local_rank=small_number(worker.get("local_rank")),
        host=as_text(worker.get("host")),
        pid=process,
        framework=as_text(worker.get("framework")),
        device_kind=device,
        groups=groups,
        started_ns=whole_number(worker.get("started_at_ns")) if same else None,
    )


def _groups(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of `groups` as in a recording's header, from `parallel_group.json`."""
    return [
        {
            "group": key,
            "name": DEFAULT_NAME if name == DEFAULT_GROUP else name if name not in ("", key) else None,
            "members": members,
        }
        for key, name, members in groups_in(content)
    ]


def _world(groups: list[dict[str, Any]]) -> int | None:
    """The number of ranks, if the group of all ranks is known."""
    return next((len(one["members"]) for one in groups if one["name"] == DEFAULT_NAME), None)


def _read(item: Input, name: str, sink: Sink) -> Mapping[str, Any]:
    file = next((file for file in item.files if file.name == name), None)
    if file is None or not _has_content(file):
        return {}
    try:
        return read_object(file, _REMEDY, most_bytes=SMALL_BYTES)
    except UnreadableInput as error:
        sink.issue("warning", file, error.problem, error.remedy)
        return {}


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
