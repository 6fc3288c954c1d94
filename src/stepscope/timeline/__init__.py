"""Timelines: what ran when on all ranks, as files that Perfetto and other viewers open."""

from stepscope.timeline.building import write_timeline
from stepscope.timeline.options import FORMATS, KINDS, Format, Kind, TimelineOptions, Written

__all__ = ["FORMATS", "KINDS", "Format", "Kind", "TimelineOptions", "Written", "write_timeline"]
