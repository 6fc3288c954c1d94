"""Runs in memory for timelines, and what their files hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from reading import Timeline, read

from stepscope.run import Run
from stepscope.tables import SLICES
from stepscope.timeline import Format, TimelineOptions, Written, write_timeline

BASE_NS = 1_700_000_000_000_000_000
FORMS: tuple[Format, ...] = ("perfetto", "json")


def sliced(ranges: Sequence[Mapping[str, Any]], **others: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Tables of a rank with ranges on host threads: `start`, `length`, and any columns of `slices`."""
    columns = {name: [each.get(name) for each in ranges] for name in SLICES.schema if name != "rank"}
    columns |= {
        "slice": list(range(len(ranges))),
        "start_ns": [BASE_NS + each["start"] for each in ranges],
        "duration_ns": [each["length"] for each in ranges],
        "category": [each.get("category", "operator") for each in ranges],
        "name": [each.get("name", "aten::add") for each in ranges],
        "thread": [each.get("thread", "1") for each in ranges],
    }
    return {"slices": SLICES.frame(**columns), **others}


def host_run(*ranks: Sequence[Mapping[str, Any]]) -> Run:
    """A run with ranges on host threads."""
    return Run.from_frames({rank: sliced(ranges) for rank, ranges in enumerate(ranks)})


def written(run: Run, folder: Path, options: TimelineOptions | None = None, form: Format = "perfetto") -> Written:
    """A timeline of a run."""
    return write_timeline(run, folder / f"timeline.{'json' if form == 'json' else 'pftrace'}", options, format=form)


def both(run: Run, folder: Path, options: TimelineOptions | None = None) -> Timeline:
    """What is in both forms of a timeline, which must hold the same and all that was counted."""
    made = [written(run, folder, options, form) for form in FORMS]
    packed, plain = (read(each.file) for each in made)
    for each, timeline in zip(made, (packed, plain), strict=True):
        assert len(timeline) == each.total_events
        assert timeline.is_whole
    for kind in ("ranges", "points", "samples", "flows"):
        assert Counter(getattr(packed, kind)) == Counter(getattr(plain, kind)), kind
    assert packed.processes == plain.processes
    assert made[0].events == made[1].events
    counters = {each.place for each in packed.samples}
    assert [each for each in packed.tracks if each not in counters] == plain.tracks
    return packed
