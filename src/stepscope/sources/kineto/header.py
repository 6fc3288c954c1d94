"""The header of a trace: rank, groups, devices, options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.json_files import value_in
from stepscope.json_values import json_text, list_of, object_of, small_number, whole_number
from stepscope.sources.base import Report

_RANK_IN_NAME = re.compile(
    r"(?<![a-z0-9])(?:(?:rank|worker)[-_]?(\d{1,6})(?!\d)|r[-_]?(\d{1,6})(?![a-z0-9]))", re.IGNORECASE
)
_LOCAL = re.compile(r"local[-_]?rank[-_]?\d+", re.IGNORECASE)
BASE = "baseTimeNanoseconds"
_OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_VERSIONS = (
    *("cuda_runtime_version", "cuda_driver_version", "cupti_version"),
    *("hip_runtime_version", "hip_driver_version", "roctracer_version", "rocprofiler-sdk_version"),
)
_AMD_WORDS = ("amd", "instinct", "radeon")


def distributed(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `distributedInfo` object; empty if it is missing or has another form."""
    return object_of(header, "distributedInfo")


def base_ns(header: Mapping[str, Any], path: Path, report: Report, otherwise: str = "0 is used") -> int:
    """What is added to all times of the trace; if it is not a whole number, 0, and an issue with what follows."""
    stated = header.get(BASE)
    base = whole_number(stated)
    if base is None and stated is not None:
        problem = f"the time base of the trace, {stated!r:.40}, is not a whole number of ns in 64 bits; {otherwise}"
        remedy = "Record again: times of this file cannot be compared with those of other files."
        report("warning", path, problem, remedy, place=BASE)
    return base or 0


def rank_of(header: Mapping[str, Any], path: Path) -> tuple[int | None, str | None]:
    """The rank and where it comes from; (None, None) if neither the trace nor its name has it."""
    rank = small_number(distributed(header).get("rank"))
    if rank is not None and rank >= 0:
        return rank, "content"
    for name in (path.name, path.parent.name):
        found = _RANK_IN_NAME.search(_LOCAL.sub("", name))
        if found:
            return int(found[1] or found[2]), "file name"
    return None, None


def groups_of(header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of `groups` that the header lists."""
    rows = []
    for entry in list_of(distributed(header), "pg_config"):
        if isinstance(entry, dict) and entry.get("pg_name") is not None:
            description = entry.get("pg_desc")
            name = None if description in (None, "", "undefined") else str(description)
            rows.append({"group": str(entry["pg_name"]), "name": name, "members": member_list(entry.get("ranks"))})
    return rows


def member_list(value: Any) -> list[int] | None:
    """Global ranks from a list or its text; None if the text is shortened (`[0, 1, ..., 63]`) or no list."""
    if isinstance(value, str):
        value = value_in(value)
    if not isinstance(value, list) or not value:
        return None
    members = [small_number(v) for v in value]
    return [m for m in members if m is not None] if None not in members else None


def device_kind(header: Mapping[str, Any], has_device_work: bool) -> str:
    """`cpu`, `cuda` or `rocm`."""
    if not has_device_work:
        return "cpu"
    if any(key.startswith(("hip_", "roc")) for key in header):
        return "rocm"
    names = " ".join(str(d.get("name")) for d in _devices(header)).lower()
    return "rocm" if any(word in names for word in _AMD_WORDS) else "cuda"


def device_name(header: Mapping[str, Any], device: int | None) -> str | None:
    """Model of one device, from `deviceProperties`."""
    for properties in _devices(header):
        if properties.get("id") == device and isinstance(properties.get("name"), str):
            return str(properties["name"])
    return None


def device_memory_bytes(header: Mapping[str, Any], device: int | None) -> int | None:
    """Memory size of one device, from `deviceProperties`."""
    for properties in _devices(header):
        size = properties.get("totalGlobalMem")
        if properties.get("id") == device and type(size) is int and size > 0:
            return size
    return None


def options_json(header: Mapping[str, Any]) -> str | None:
    """Profiler options and the versions of the device tools, as JSON."""
    options: dict[str, Any] = {key: bool(header[key]) for key in _OPTIONS if key in header}
    options |= {key: header[key] for key in _VERSIONS if key in header}
    if "nccl_version" in distributed(header):
        options["nccl_version"] = distributed(header)["nccl_version"]
    return json_text(options)


def _devices(header: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in list_of(header, "deviceProperties") if isinstance(entry, dict)]
