"""Host time and memory by module, event and stage."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import HOST_USAGE
from tests.analysis.inputs import MS, events


def ask(tables: dict[str, pl.DataFrame], question: str) -> pl.DataFrame:
    return Run.from_frames({0: tables}).analyse(question)


def test_time_within_another_event_is_not_that_events_own() -> None:
    marked = events([("graph", "compile", 0, 10), ("graph", "optimize", 2, 3), ("graph", "optimize", 6, 1)])

    rows = {row["event"]: row for row in ask({"host_events": marked}, "host_time").to_dicts()}

    assert (rows["compile"]["count"], rows["compile"]["total_ns"], rows["compile"]["self_ns"]) == (1, 10 * MS, 6 * MS)
    assert (rows["optimize"]["count"], rows["optimize"]["self_ns"]) == (2, 4 * MS)
    assert rows["compile"]["share_ratio"] == pytest.approx(0.6)


def test_of_events_that_follow_each_other_both_are_taken_from_the_one_around() -> None:
    rows = ask({"host_events": events([("a", "x", 0, 10), ("a", "y", 2, 3), ("a", "z", 5, 3)])}, "host_time")

    assert dict(rows.select("event", "self_ns").rows()) == {"x": 4 * MS, "y": 3 * MS, "z": 3 * MS}


def test_events_of_other_threads_take_nothing_away() -> None:
    both = pl.concat([events([("a", "x", 0, 10)]), events([("a", "y", 2, 3)]).with_columns(thread=pl.lit(2, pl.Int64))])

    rows = {row["event"]: row["self_ns"] for row in ask({"host_events": both}, "host_time").to_dicts()}

    assert rows == {"x": 10 * MS, "y": 3 * MS}


def test_points_and_starts_without_an_end_are_counted_and_take_no_time() -> None:
    marked = events([("graph", "mark", 1, None), ("graph", "mark", 2, None), ("data", "next", 3, 2)])

    rows = {row["event"]: row for row in ask({"host_events": marked}, "host_time").to_dicts()}

    assert (rows["mark"]["points"], rows["mark"]["count"], rows["mark"]["total_ns"]) == (2, 0, 0)
    assert (rows["next"]["points"], rows["next"]["count"], rows["next"]["share_ratio"]) == (0, 1, 1.0)


def test_an_event_that_outlives_its_parent_takes_only_its_part_of_it() -> None:
    rows = ask({"host_events": events([("a", "x", 0, 5), ("a", "y", 4, 5)])}, "host_time")

    assert dict(rows.select("event", "self_ns").rows()) == {"x": 4 * MS, "y": 5 * MS}


def test_memory_grows_from_the_start_to_the_end_of_an_event() -> None:
    marked = events([("graph", "compile", 0, 10), ("graph", "compile", 20, 10)])

    row = ask({"host_events": marked}, "host_memory").row(0, named=True)

    assert (row["points"], row["first_bytes"], row["last_bytes"], row["max_bytes"]) == (4, 1000, 1500, 1500)
    assert (row["growth_bytes"], row["mean_growth_bytes"]) == (1000, 500.0)


def test_between_moments_memory_may_grow_for_any_reason() -> None:
    moments = events([("a", "mark", 0, None), ("a", "mark", 2, None)])
    rising = moments.with_columns(memory_start_bytes=pl.Series([1000, 1400], dtype=pl.Int64))

    row = ask({"host_events": rising}, "host_memory").row(0, named=True)

    assert (row["first_bytes"], row["last_bytes"], row["growth_bytes"]) == (1000, 1400, None)


def test_the_curve_has_both_ends_of_events_and_samples_of_the_process() -> None:
    sampled = HOST_USAGE.frame(time_ns=[5 * MS, 6 * MS], scope=["process", "host"], rss_bytes=[1200, None])

    curve = ask({"host_events": events([("graph", "compile", 0, 10)]), "host_usage": sampled}, "host_memory_curve")

    assert curve.select("time_ns", "module", "memory_bytes").rows() == [
        (0, "graph", 1000),
        (5 * MS, "process", 1200),
        (10 * MS, "graph", 1500),
    ]


def test_samples_of_the_process_alone_tell_its_growth() -> None:
    sampled = HOST_USAGE.frame(time_ns=[1, 2, 3], scope=["process"] * 3, rss_bytes=[100, 150, 130])

    row = ask({"host_usage": sampled}, "host_memory").row(0, named=True)

    assert (row["module"], row["first_bytes"], row["max_bytes"], row["growth_bytes"]) == ("process", 100, 150, 30)


def test_without_memory_there_is_no_answer() -> None:
    bare = events([("a", "x", 0, 5)]).with_columns(
        memory_start_bytes=pl.lit(None, pl.Int64), memory_end_bytes=pl.lit(None, pl.Int64)
    )
    with pytest.raises(Unavailable, match="memory of the host"):
        ask({"host_events": bare}, "host_memory_curve")
