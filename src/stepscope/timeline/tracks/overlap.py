"""When a rank was computing, communicating, both, or neither."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.step_windows import known_steps, step_windows
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
    """What each rank was doing in its steps: where nothing but its calls was recorded, when it communicated."""
    activity = part.answer("activity")
    if activity is None or activity.is_empty():
        return None
    steps = part.table("steps")
    every, known = step_windows(steps), step_windows(known_steps(steps))
    found = overlaps(activity, known.lazy())
    if known.height < every.height:
        found["communication"] = overlaps(activity, every.lazy())["communication"]
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
    "When the rank was computing, communicating, communicating without computing, and neither, in its steps; in those "
    "of which no computation was recorded, only when it communicated.",
    "summary",
    _overlap,
    tables=("steps",),
    priority=1,
)
