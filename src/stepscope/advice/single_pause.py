"""Most of a recording without steps is one pause: start-up, which no step pays for."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.platforms import PYTORCH, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.present import duration

ACTION: Choices = {
    (PYTORCH, None): (
        "Mark steps with the profiler's step() and leave the first ones out of the recording (schedule(skip_first=2, "
        "wait=1, warmup=1, active=5)), so that it shows training alone."
    ),
    (None, None): "Record some steps later, with steps marked, so that the recording shows training alone.",
}


@rule("single-pause")
def single_pause(single_pauses: pl.DataFrame, ranks: pl.LazyFrame | None = None) -> Iterator[Finding]:
    """Report pauses of a recording without steps that do not come back; they claim no saving."""
    if single_pauses.is_empty():
        return
    rows = single_pauses.group_by("rank", maintain_order=True).agg(
        pl.col("duration_ns").sum(), pl.col("recorded_ns").first(), pauses=pl.len()
    )
    worst = rows.sort("duration_ns", "rank", descending=[True, False]).row(0, named=True)
    who = rows["rank"].to_list()
    ratio = worst["duration_ns"] / worst["recorded_ns"]
    yield Finding(
        rule="single-pause",
        summary=(
            f"{named(who, 'stands', 'stand')} idle once for {duration(worst['duration_ns'])}"
            f"{on_rank(worst['rank'], who)}: {ratio:.0%} of the recording."
        ),
        cause=(
            "No other pause comes near it, so it is most likely start-up: initialisation, the first batch, choosing "
            "algorithms. It is not counted as time that training loses."
        ),
        action=platform_of(ranks, who).pick(ACTION),
        saving_ns=0,
        saving_ratio=0.0,
        where=place(who),
        evidence={name: worst[name] for name in ("duration_ns", "recorded_ns", "pauses")},
    )
