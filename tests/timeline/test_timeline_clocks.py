"""One clock for all ranks and tables: what is corrected, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reading import Drawn, Timeline
from runs import BASE_NS, both, host_run, sliced, written

from builders import EPOCH_NS, MS, make_run
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, COUNTERS, KERNELS, RANKS, STEPS
from stepscope.timeline import TimelineOptions
from stepscope.timeline.clocks import FAR_NS, clocks_of

HOUR_NS = 3_600_000_000_000


def shifted(run: Run, by_rank: dict[int, int]) -> Run:
    """The run as it would be with clocks that are ahead by so many ns."""
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank in run.ranks:
        tables = {name: run.table(name).filter(pl.col("rank") == rank.rank).collect() for name in rank.rows}
        moment = [f"{part}{end}_ns" for part in ("", "window_") for end in ("start", "end")]
        frames[rank.rank] = {
            name: table.with_columns(
                pl.col(column) + by_rank.get(rank.rank, 0) for column in moment if column in table.columns
            )
            for name, table in tables.items()
        }
    return Run.from_frames(frames)


def without_calls(run: Run) -> Run:
    """The run without what says how clocks differ."""
    return Run.from_frames(
        {
            rank.rank: {"kernels": run.table("kernels").filter(pl.col("rank") == rank.rank).collect()}
            for rank in run.ranks
        }
    )


def by_rank(timeline: Timeline, category: str) -> dict[str, list[Drawn]]:
    """The ranges of a category of each rank."""
    found: dict[str, list[Drawn]] = {}
    for each in timeline.ranges:
        if each.category == category:
            found.setdefault(each.place.process.split(" (")[0], []).append(each)
    return found


@pytest.mark.parametrize("ahead", [1000 * MS, -7 * MS, 30 * HOUR_NS])
def test_clocks_of_ranks_are_aligned_by_the_ends_of_their_calls(ahead: int, tmp_path: Path) -> None:
    run = shifted(make_run(3), {1: ahead})

    timeline = both(run, tmp_path)

    calls = by_rank(timeline, "collective")
    ends = [[each.end for each in drawn] for drawn in calls.values()]
    assert len(ends) == 3
    assert ends[0] == ends[1] == ends[2]
    assert any("clock corrected by" in name for name in timeline.processes)


def test_the_times_of_a_rank_alone_are_those_that_it_has_among_others() -> None:
    """The critical path, which is on the clock of the job, lies where the rank's own work does."""
    run = shifted(make_run(3), {1: 1000 * MS})

    alone, others = (clocks_of(some, align=True) for some in (run.select(ranks="1"), run))

    assert alone.by_rank == others.by_rank == {1: 1000 * MS}
    assert len(alone.notes) == 1


def test_a_rank_alone_has_no_notes_on_others() -> None:
    assert clocks_of(without_calls(make_run(2)).select(ranks="1"), align=True).notes == []


def test_the_correction_is_said(tmp_path: Path) -> None:
    run = shifted(make_run(3), {1: 1000 * MS})

    made = written(run, tmp_path)

    assert made.offsets_ns == {1: 1000 * MS}
    assert made.notes == ["The clocks of rank 1 are corrected by the ends of their calls, by up to 1.00 s (rank 1)."]


def test_clocks_that_drift_are_said_to_stay_apart(tmp_path: Path) -> None:
    calls = [100 * MS * number for number in range(1, 11)]
    rate = {0: 1.0, 1: 1.002}
    ranks = {
        rank: {
            "ranks": RANKS.frame(host=[f"host{rank}"], start_ns=[BASE_NS]),
            "collectives": COLLECTIVES.frame(
                collective=range(len(calls)),
                sequence=range(len(calls)),
                on_device=[True] * len(calls),
                start_ns=[BASE_NS + round(end * rate[rank]) - MS for end in calls],
                duration_ns=[MS] * len(calls),
                name=["nccl:all_reduce"] * len(calls),
                operation=["all_reduce"] * len(calls),
                group=["0"] * len(calls),
            ),
        }
        for rank in rate
    }

    made = written(Run.from_frames(ranks), tmp_path)

    assert [note for note in made.notes if note.startswith("Ends of the same call still lie apart, typically by")]
    assert not written(shifted(make_run(2), {1: 1000 * MS}), tmp_path).notes[1:]


def test_without_alignment_times_stay(tmp_path: Path) -> None:
    run = shifted(make_run(2), {1: 1000 * MS})

    made = written(run, tmp_path, TimelineOptions(align=False))
    calls = by_rank(both(run, tmp_path, TimelineOptions(align=False)), "collective")

    assert made.offsets_ns == {}
    assert made.notes == []
    assert calls["rank 1"][0].start - calls["rank 0"][0].start == 1000 * MS


@pytest.mark.parametrize("ahead", [100 * HOUR_NS, -100 * HOUR_NS, -EPOCH_NS])
def test_a_rank_of_another_clock_without_calls_begins_with_the_others(ahead: int, tmp_path: Path) -> None:
    run = shifted(without_calls(make_run(4)), {2: ahead})

    made = written(run, tmp_path)
    kernels = by_rank(both(run, tmp_path), "kernel")

    assert made.offsets_ns == {2: ahead}
    assert made.base_ns == EPOCH_NS
    assert [note for note in made.notes if "another one than that of the other ranks" in note] == [
        "The clock of rank 2 is another one than that of the other ranks: what it shows is drawn from the start of the "
        "job on, and nothing says when it really ran."
    ]
    assert kernels["rank 2"][0].start == 0


def test_ranks_that_run_one_after_the_other_keep_their_times(tmp_path: Path) -> None:
    run = shifted(without_calls(make_run(2)), {1: FAR_NS // 2})

    assert written(run, tmp_path).offsets_ns == {}


def test_long_jobs_may_have_ranks_that_join_later() -> None:
    day = 24 * HOUR_NS
    run = host_run(
        [{"start": 0, "length": 1}, {"start": day, "length": 1}],
        [{"start": day + 5 * HOUR_NS, "length": 1}, {"start": 2 * day, "length": 1}],
    )

    assert clocks_of(run, align=True).by_rank == {}


def test_a_table_of_another_clock_is_drawn_from_the_start_on_and_said(tmp_path: Path) -> None:
    counters = COUNTERS.frame(time_ns=[5, 25], name=["power"] * 2, value=[1.0, 2.0])
    run = Run.from_frames({0: sliced([{"start": 0, "length": 100}], counters=counters)})

    made = written(run, tmp_path)

    assert [each.at for each in both(run, tmp_path).samples] == [0, 20]
    assert made.notes == [
        "The times of counters (rank 0) are of another clock than the rest: they are drawn from the start of the "
        "recording on, and nothing says when they really ran."
    ]


def test_the_critical_path_is_on_the_common_clock(tmp_path: Path) -> None:
    plain = [each for each in both(make_run(3), tmp_path).ranges if each.category == "critical_path"]

    moved = both(shifted(make_run(3), {1: -HOUR_NS, 2: 7 * MS}), tmp_path)

    path = [each for each in moved.ranges if each.category == "critical_path"]
    assert plain
    assert [(each.start, each.end) for each in path] == [(each.start, each.end) for each in plain]


def test_nothing_is_said_of_a_single_rank(tmp_path: Path) -> None:
    assert written(make_run(1), tmp_path).notes == []


def test_ranks_without_calls_are_named(tmp_path: Path) -> None:
    run = make_run(3)
    frames: dict[int, dict[str, Any]] = {
        rank.rank: {name: run.table(name).filter(pl.col("rank") == rank.rank).collect() for name in rank.rows}
        for rank in run.ranks
    }
    del frames[1]["collectives"]

    assert written(Run.from_frames(frames), tmp_path).notes == [
        "The clocks of rank 1 are not corrected: they share no calls with other ranks."
    ]


def test_the_first_moment_may_be_the_start_of_a_window() -> None:
    steps = STEPS.frame(
        step=[1],
        start_ns=[BASE_NS],
        end_ns=[BASE_NS + 5],
        window_start_ns=[BASE_NS - 3],
        window_end_ns=[BASE_NS + 5],
        window=["host"],
    )
    kernels = KERNELS.frame(kernel=[0], start_ns=[BASE_NS], duration_ns=[1], kind=["compute"], name=["k"])

    found = clocks_of(Run.from_frames({0: {"steps": steps, "kernels": kernels}}), align=True)

    assert found.first_ns == BASE_NS - 3
