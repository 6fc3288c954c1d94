"""Timelines: what ran when on all ranks, as files that Perfetto and other viewers open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.timeline.options import FORMATS, KINDS, Format, Kind, TimelineOptions, Written

if TYPE_CHECKING:
    from stepscope.timeline.building import write_timeline

__all__ = ["FORMATS", "KINDS", "Format", "Kind", "TimelineOptions", "Written", "write_timeline"]


def __getattr__(name: str) -> Any:
    if name != "write_timeline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stepscope.timeline.building import write_timeline  # noqa: PLC0415 - commands name options without Polars

    return write_timeline
