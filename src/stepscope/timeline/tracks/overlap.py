"""When a rank was computing, communicating, both, or neither."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.step_windows import step_windows
from stepscope.timeline.overlaps import overlaps
from stepscope.timeline.tracks.base import Family, Part

TITLES = {
    "computing": "Computing",
    "communication": "Communication",
    "communication_alone": "Communication (not overlapped)",
    "free": "Free",
}
"""Tracks in the order in which they are shown, by the parts of `overlaps`."""


def _overlap(part: Part) -> pl.LazyFrame | None:
    """What each rank was doing in its steps."""
    activity = part.answer("activity")
    if activity is None or activity.is_empty():
        return None
    found = overlaps(activity, step_windows(part.table("steps")).lazy())
    return pl.concat(
        found[name].select(
            "rank",
            track=pl.lit(title),
            order=pl.lit(order, pl.Int64),
            start_ns="start_ns",
            duration_ns=pl.col("end_ns") - pl.col("start_ns"),
            name=pl.lit(title),
            category=pl.lit("overlap"),
        )
        for order, (name, title) in enumerate(TITLES.items())
    ).lazy()


FAMILY = Family(
    "overlap",
    "Overlap analysis",
    "When the rank was computing, communicating, communicating without computing, and neither, in its steps.",
    "summary",
    _overlap,
    tables=("steps",),
    priority=1,
)
