"""Rows of `ranks` and `groups` from `recording.json`."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.json_values import as_text, json_text, whole_number
from stepscope.recording_format.about import About
from stepscope.sources.kineto.header import member_list
from stepscope.tables import RANKS

_FRAMEWORKS = {"torch": "pytorch"}
"""Name of a framework in `ranks`, if it is not that of its module."""


def rank_row(about: About, span: tuple[int, int] | None) -> pl.DataFrame:
    """The row of `ranks`; `span` is first and last time of what was recorded."""
    rank, origin = about.named_rank
    clock = about.clock or {}
    row: dict[str, Any] = {
        "rank": rank,
        "rank_origin": origin,
        "process": about.pid,
        "device": about.device_id,
        "format": "recording",
        "framework": _FRAMEWORKS.get(about.framework or "", about.framework),
        "clock_offset_ns": whole_number(clock.get("offset_ns")),
        "clock_error_ns": whole_number(clock.get("error_ns")),
        "start_ns": span[0] if span else None,
        "end_ns": span[1] if span else None,
        "options": json_text(about.options),
        "environment": json_text(about.environment),
        "parallelism": json_text(about.parallel),
    }
    same = ("world_size", "host", "device_kind", "device_name", "framework_version", "mode", "backend")
    row |= {name: getattr(about, name) for name in same}
    return RANKS.unchecked(**{name: [value] for name, value in row.items()})


def group_rows(about: About) -> list[dict[str, Any]]:
    """Rows of `groups`."""
    named = [entry for entry in about.groups if entry.get("group") is not None]
    return [
        {"group": str(one["group"]), "name": as_text(one.get("name")), "members": member_list(one.get("members"))}
        for one in named
    ]
