"""Times that cannot belong to a recording are found, whatever parts it comes in."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.sources.plausible import WEEK_NS, Times, sort_out
from stepscope.sources.spool import EventSpool

NOW_NS = 1_760_000_000 * 10**9


def times_of(*parts: list[int | None]) -> Times:
    times = Times()
    for part in parts:
        times.add(pl.Series(part, dtype=pl.Int64))
    return times


def test_the_middle_is_where_most_starts_are_not_most_parts() -> None:
    times = times_of([0], [-5], [NOW_NS + i for i in range(100)])

    assert times.middle_ns is not None
    assert abs(times.middle_ns - NOW_NS) < 1000
    assert times.has_strays


@pytest.mark.parametrize("parts", [[], [[]], [[None]], [[NOW_NS]], [[NOW_NS - WEEK_NS, NOW_NS, NOW_NS + WEEK_NS]]])
def test_what_lies_within_a_week_is_no_stray(parts: list[list[int | None]]) -> None:
    assert not times_of(*parts).has_strays


def test_strays_go_and_rows_without_a_time_stay(tmp_path: Path) -> None:
    frames = {
        "ranges": pl.DataFrame({"start_ns": [0, NOW_NS, -(10**18), NOW_NS + 5, NOW_NS + 9]}),
        "labels": pl.DataFrame({"start_ns": [None, None]}, schema={"start_ns": pl.Int64}),
    }

    kept = EventSpool(lambda: tmp_path)
    for name, frame in frames.items():
        kept.add(name, frame)
    lost = kept.drop_strays()

    assert lost == 2
    assert pl.concat(kept.frames("ranges"))["start_ns"].to_list() == [NOW_NS, NOW_NS + 5, NOW_NS + 9]
    assert pl.concat(kept.frames("labels")).height == 2


def test_each_bad_row_counts_once_and_extremes_do_not_overflow() -> None:
    rows = pl.DataFrame(
        [
            (NOW_NS, NOW_NS + 5),
            (None, NOW_NS),
            (NOW_NS, None),
            (NOW_NS, NOW_NS - 1),
            (NOW_NS, 2**63 - 1),
            (2**63 - 1, 2**63 - 1),
            (-(2**63), 2**63 - 1),
        ],
        schema={"start": pl.Int64, "end": pl.Int64},
        orient="row",
    )

    checked = sort_out(rows, NOW_NS, start=pl.col("start"), end=pl.col("end"))

    assert checked.rows.rows() == [(NOW_NS, NOW_NS + 5)]
    assert list(checked.wrong.values()) == [2, 2, 1, 1]
    assert checked.problem().startswith("6 of 7 rows are left out: 2 have no readable time, 2 start more than a week")


def test_without_a_middle_only_the_rows_themselves_are_judged() -> None:
    checked = sort_out(pl.DataFrame({"start": [1, None]}), None, start=pl.col("start"))

    assert checked.rows["start"].to_list() == [1]
    assert checked.problem() == "1 of 2 rows have no readable time and are left out"
