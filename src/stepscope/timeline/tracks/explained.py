"""Where time was lost: idle time by cause, the critical path, and findings."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.replay.critical_path import recorded_path
from stepscope.timeline.options import TimelineOptions
from stepscope.timeline.tracks.base import JOB, Family, Part

_GAP = ("before_name", "next_name", "next_stream", "launched", "ahead_ns")


def _idle(part: Part) -> pl.LazyFrame | None:
    """The long gaps in the work of each rank, cut where their cause changes: sums by cause are those of `idle`."""
    gaps = part.answer("gap_ends")
    if gaps is None or gaps.is_empty():
        return None
    pieces = part.answer("idle_pieces")
    if pieces is None:  # it was what `gap_ends` is made of
        return None
    end = pl.col("start_ns") + pl.col("duration_ns")
    known = gaps.select("rank", *_GAP, gap_start_ns="start_ns", gap_end_ns=end, gap_ns="duration_ns")
    placed = pieces.sort("start_ns", "rank").join_asof(
        known.sort("gap_start_ns"), left_on="start_ns", right_on="gap_start_ns", by="rank", check_sortedness=False
    )
    placed = placed.filter(pl.col("start_ns") < pl.col("gap_end_ns")).sort("rank", "start_ns")
    # A piece also ends where something else happens on the host that is not its cause.
    another = pl.struct("rank", "step", "cause", "gap_start_ns")
    placed = placed.with_columns(piece=(another != another.shift(1)).fill_null(True).cum_sum())
    return (
        placed.lazy()
        .group_by("piece", maintain_order=True)
        .agg(pl.col("rank", "cause", "start_ns", *_GAP, "gap_ns", "step").first(), pl.col("duration_ns").sum())
        .select(
            "rank", "start_ns", "duration_ns", *_GAP, "gap_ns", "step",
            track=pl.lit("Idle, by cause"), order=pl.lit(0, pl.Int64), name="cause", category=pl.lit("idle"),
        )
    )  # fmt: skip


def _critical_path(part: Part) -> pl.LazyFrame | None:
    """What decided how long each step took, over all ranks, where it was recorded."""
    if not part.is_first:
        return None
    path = part.whole.answer(recorded_path)
    if path is None or path.is_empty():
        return None
    name = pl.coalesce("name", "kind")
    return path.lazy().select(
        rank=pl.lit(JOB, pl.Int32),
        track=pl.lit("Critical path"),
        order=pl.lit(0, pl.Int64),
        start_ns="start_ns",
        duration_ns=pl.col("end_ns") - pl.col("start_ns"),
        name=pl.concat_str(pl.lit("rank "), "rank", pl.lit(": "), name),
        category=pl.lit("critical_path"),
        of_rank="rank",
        kind="kind",
        lane="lane",
        why="why",
        pieces="pieces",
        step="step",
    )


def _findings(part: Part) -> pl.LazyFrame | None:
    """Findings, where and when they cost most."""
    from stepscope.advice.advise import advise, worded  # noqa: PLC0415 - only if findings are shown

    if not part.is_first:  # they are about the whole job
        return None
    rows = []
    shown = set(part.whole.ranks)
    for finding in advise(part.whole.run):
        if finding.span_ns is None or finding.span_rank not in shown:
            continue
        words = worded(finding)
        start, end = finding.span_ns
        rows.append(
            {
                "rank": finding.span_rank,
                "start_ns": start,
                "duration_ns": max(end - start, 0),
                "name": words.summary,
                "rule": finding.rule,
                "severity": finding.severity,
                "cause": words.cause,
                "action": words.action,
                "saving": words.saving,
            }
        )
    if not rows:
        return None
    return pl.LazyFrame(rows).with_columns(
        pl.col("rank").cast(pl.Int32), track=pl.lit("Findings"), order=pl.lit(0, pl.Int64), category=pl.lit("finding")
    )


def _is_asked_for(options: TimelineOptions) -> bool:
    return bool(options.explain)


FINDINGS = Family(
    "findings",
    "Findings",
    "What stepscope found, where it costs most time, with cause, action and saving.",
    "detail",
    _findings,
    tables=("steps",),
    priority=1,
    single=True,
    wanted=_is_asked_for,
)
CRITICAL_PATH = Family(
    "critical_path",
    "Critical path",
    "The chain of work, over all ranks, that decides how long each step takes.",
    "detail",
    _critical_path,
    tables=("steps",),
    priority=1,
    single=True,
    wanted=_is_asked_for,
)
IDLE = Family(
    "idle",
    "Idle, by cause",
    "When the rank did no work, and why: the 20 longest gaps of a rank, and all that take at least 1% of a step.",
    "detail",
    _idle,
    tables=("steps", "kernels"),
    priority=1,
    single=True,
    wanted=_is_asked_for,
)
