"""All ranges of any run come back from the files of its timeline, with their names, arguments and threads."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import Timeline
from runs import both, host_run

from stepscope.timeline import TimelineOptions, asking, building
from stepscope.timeline.tracks import host

NAMES = st.sampled_from(["aten::mm", "", "näme", "a\nb", "step 1", 'quo"te', "\\", "逐", "(1)"])
RANGE = st.fixed_dictionaries(
    {
        "start": st.integers(0, 40),
        "length": st.sampled_from([0, 0, 1, 5, 5, 20, 100]),
        "name": NAMES,
        "category": st.sampled_from(["operator", "runtime", "python"]),
        "thread": st.sampled_from(["1", "2"]),
        "correlation": st.sampled_from([None, 7, -(1 << 63), (1 << 63) - 1]),
    }
)
RANKS = st.lists(st.lists(RANGE, min_size=1, max_size=25), min_size=1, max_size=3)
PLAIN = TimelineOptions(explain=False, align=False)


def drawn(timeline: Timeline) -> Counter[Any]:
    """Rank, thread, start, end, name, category and correlation of all ranges."""
    return Counter(
        (
            int(re.findall(r"rank +(\d+)", each.place.process)[0]),
            re.findall(r"thread (\d)", each.place.track)[0],
            each.start,
            each.end,
            each.name,
            each.category,
            dict(each.args).get("correlation"),
        )
        for each in timeline.ranges
    )


def recorded(ranks: list[list[dict[str, Any]]]) -> Counter[Any]:
    """The same of the rows that a run is made of."""
    first = min(each["start"] for ranges in ranks for each in ranges)
    return Counter(
        (
            rank,
            each["thread"],
            each["start"] - first,
            each["start"] - first + each["length"],
            each["name"],
            each["category"],
            None if each["correlation"] is None else str(each["correlation"]),
        )
        for rank, ranges in enumerate(ranks)
        for each in ranges
    )


@given(RANKS)
@settings(max_examples=20)
def test_all_ranges_come_back(ranks: list[list[dict[str, Any]]]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(building, "FAMILIES", (host.FAMILY,))
        assert drawn(both(host_run(*ranks), Path(folder), PLAIN)) == recorded(ranks)


@given(RANKS, st.integers(4, 12))
@settings(max_examples=12)
def test_all_ranges_come_back_from_many_windows(ranks: list[list[dict[str, Any]]], rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(building, "FAMILIES", (host.FAMILY,))
        patch.setattr(asking, "WINDOW_ROWS", rows)
        patch.setattr(asking, "ROWS_AT_ONCE", rows)
        assert drawn(both(host_run(*ranks), Path(folder), PLAIN)) == recorded(ranks)
