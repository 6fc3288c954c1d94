"""Host time and memory by module, event and stage."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import HOST_USAGE, RANKS, STEPS
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
    with pytest.raises(Unavailable, match="host memory"):
        ask({"host_events": bare}, "host_memory_curve")


def one_clock(count: int) -> dict[str, pl.DataFrame]:
    """Steps of 10 ms each on a rank whose recording has one clock."""
    starts = [10 * MS * at for at in range(count)]
    ends = [start + 10 * MS for start in starts]
    spans = {"start_ns": starts, "end_ns": ends, "window_start_ns": starts, "window_end_ns": ends}
    steps = STEPS.frame(step=list(range(1, count + 1)), window=["host"] * count, **spans)
    return {"steps": steps, "ranks": RANKS.frame(start_ns=[0], format=["recording"])}


def test_memory_and_time_of_chosen_steps_are_those_of_their_time() -> None:
    sampled = HOST_USAGE.frame(
        time_ns=[5 * MS, 12 * MS, 18 * MS, 25 * MS, 95 * MS], scope=["process"] * 5, rss_bytes=[1, 20, 50, 300, 4000]
    )
    marked = events([("graph", "compile", 1, 2), ("graph", "compile", 11, 3), ("graph", "run", 21, 4)])
    run = Run.from_frames({0: {"host_usage": sampled, "host_events": marked, **one_clock(3)}})

    curve = run.analyse("host_memory_curve", chosen="2-3").filter(module="process")
    assert curve.select("step", "memory_bytes").rows() == [(2, 20), (2, 50), (3, 300)]
    grown = run.analyse("host_memory", chosen=2).filter(module="process").row(0, named=True)
    assert (grown["points"], grown["growth_bytes"], grown["steps"]) == (2, 30, 1)
    compiled = run.analyse("host_memory", chosen=2).filter(event="compile").row(0, named=True)
    assert (compiled["growth_bytes"], compiled["points"]) == (500, 2)  # of one of its two ranges
    times = run.analyse("host_time", chosen="2")
    assert times.select("event", "count", "total_ns", "steps").rows() == [("compile", 1, 3 * MS, 1)]
    with pytest.raises(Unavailable, match="in the chosen steps"):
        run.analyse("host_memory_curve", chosen=9)


def test_of_a_selection_of_steps_memory_and_time_are_theirs() -> None:
    sampled = HOST_USAGE.frame(time_ns=[5 * MS, 12 * MS, 25 * MS], scope=["process"] * 3, rss_bytes=[1, 20, 300])
    marked = events([("graph", "compile", 1, 2), ("graph", "compile", 11, 3), ("graph", "run", 21, 4)])
    run = Run.from_frames({0: {"host_usage": sampled, "host_events": marked, **one_clock(3)}})

    for question in ("host_memory_curve", "host_memory", "host_time"):
        assert run.select(steps="2").analyse(question).equals(run.analyse(question, chosen="2"))


def test_rows_that_say_their_step_need_no_clock() -> None:
    marked = events([("graph", "compile", 0, 10), ("graph", "run", 20, 10)])
    stepped = marked.with_columns(step=pl.Series([1, 2], dtype=pl.Int32))
    run = Run.from_frames({0: {"host_events": stepped}})

    assert run.analyse("host_time", chosen=2)["event"].to_list() == ["run"]
    assert run.analyse("host_memory", chosen=2)["event"].to_list() == ["run"]


def test_on_another_clock_than_that_of_steps_all_rows_count() -> None:
    sampled = HOST_USAGE.frame(time_ns=[5 * MS, 25 * MS], scope=["process"] * 2, rss_bytes=[1, 300])
    two_clocks = {**one_clock(3), "ranks": RANKS.frame(start_ns=[None], format=["classic"])}
    run = Run.from_frames({0: {"host_usage": sampled, **two_clocks}})

    curve = run.analyse("host_memory_curve", chosen=1)
    assert curve.select("step", "memory_bytes").rows() == [(None, 1), (None, 300)]
    assert run.analyse("host_memory", chosen=1)["steps"].to_list() == [None]
