"""Verdicts on a timeline: points over all ranks, when what they are about began and when it was over."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.live.show.event_types import AnyEvent, VerdictOpened, VerdictOver
from stepscope.selection import describe_numbers
from stepscope.timeline.tracks.base import JOB, Family, Part

NAME = "verdicts"


def verdict_marks(events: Iterable[AnyEvent]) -> Family:
    """A track with the verdicts among some events."""
    rows = [row for event in events if (row := _row(event)) is not None]

    def marks(part: Part) -> pl.LazyFrame | None:
        if not rows or not part.is_first:
            return None
        return pl.LazyFrame(rows).with_columns(
            rank=pl.lit(JOB, pl.Int32),
            track=pl.lit("Verdicts"),
            order=pl.lit(0, pl.Int64),
            duration_ns=pl.lit(None, pl.Int64),
            category=pl.lit("verdict"),
        )

    doc = "Verdicts of the manager of a running job: when what they are about began, and when it was over."
    return Family(NAME, "Verdicts", doc, "summary", marks, priority=0, single=True)


def _row(event: AnyEvent) -> dict[str, object] | None:
    if not isinstance(event, (VerdictOpened, VerdictOver)):
        return None
    is_over, verdict = isinstance(event, VerdictOver), event.verdict
    at_ns = verdict.until_at_ns if is_over else verdict.since_at_ns
    if at_ns is None:
        return None
    return {
        "start_ns": at_ns,
        "name": f"{'over: ' if is_over else ''}{event.headline}",
        "cause": verdict.cause.value,
        "ranks": describe_numbers(verdict.ranks),
        "circumstances": event.circumstances,
    }
