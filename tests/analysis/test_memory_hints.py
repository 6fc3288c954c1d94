"""Leaks, fragmentation and little room, and no alarm where there is none."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.memory.memory_hints import Limits, trend
from stepscope.run import Run
from stepscope.tables import ALLOCATIONS, MEMORY_CURVE, RANK_FIGURES
from tests.analysis.inputs import MS, steps

CAPACITY_AND_PEAK = ["memory_capacity_bytes", "memory_peak_bytes"]

MB = 1_000_000


def stepping(
    lows: list[int], *, rise: int = 50 * MB, reserved: int = 0, pool: bool = False, stray: bool = False
) -> pl.DataFrame:
    """A curve that goes up by `rise` and down again in each step, from its low level.

    Up to `reserved` is reserved: all at once, before anything is asked for (`pool`), or in the second half of the
    steps, where a block is asked for that would fit into what lies free.
    """
    rows = []
    pieces = [0 if pool or not 2 * step >= len(lows) else 1 for step in range(len(lows))]
    held = 0 if pool else max(lows, default=0) + rise
    for step, low in enumerate(lows):
        values = [low, low + rise, low + rise // 2, low, low, low]
        if stray:  # an event of another allocator, which counts by itself
            values[1:1] = [0]
        for k, value in enumerate(values):
            if k == 1 and pieces[step] and reserved > held:
                held += (reserved - held) // sum(pieces[step:])
            rows.append((step * 10 * MS + k * MS, value, max(value, reserved if pool else min(held, reserved))))
    return MEMORY_CURVE.frame(
        time_ns=[time for time, _, _ in rows],
        device=[0] * len(rows),
        allocated_bytes=[value for _, value, _ in rows],
        reserved_bytes=[held for _, _, held in rows],
    )


def hints(tables: dict[str, pl.DataFrame], **options: object) -> list[dict[str, object]]:
    run = Run.from_frames({0: {"steps": steps(10), **tables}})
    return run.analyse("memory_hints", **options).to_dicts()


@pytest.mark.parametrize("stray", [False, True])
def test_memory_that_grows_in_each_step_is_a_leak(stray: bool) -> None:
    (found,) = hints({"memory_curve": stepping([100 * MB + k * 4 * MB for k in range(10)], stray=stray)})

    assert (found["kind"], found["device"], found["steps"]) == ("growth", 0, 9)
    assert (found["per_step_bytes"], found["bytes"]) == (4 * MB, 32 * MB)


@pytest.mark.parametrize(
    "lows",
    [
        [100 * MB] * 10,
        [10 * MB, *[100 * MB] * 9],  # the first step allocates what stays
        [100 * MB, 104 * MB] * 5,  # up and down
        [100 * MB + k * 1000 for k in range(10)],  # a kilobyte a step is no leak worth a word
    ],
)
def test_what_settles_is_no_leak(lows: list[int]) -> None:
    assert hints({"memory_curve": stepping(lows)}) == []


def test_three_steps_show_no_trend() -> None:
    few = {"memory_curve": stepping([100 * MB, 110 * MB, 120 * MB, 130 * MB]), "steps": steps(4)}

    assert hints(few) == []
    assert [h["kind"] for h in hints(few, limits=Limits(growth_steps=3))] == ["growth"]


def blocks(released: bool, *, only_first: bool = False) -> pl.DataFrame:
    """A block of 1 MB in each of ten steps, or ten in the first."""
    starts = [(0 if only_first else k) * 10 * MS + k for k in range(10)]
    return ALLOCATIONS.frame(
        name=["aten::empty"] * 10,
        device=[0] * 10,
        size_bytes=[MB] * 10,
        allocation_ns=starts,
        release_ns=[start + 5 * MS if released else None for start in starts],
    )


def test_blocks_left_behind_by_step_after_step_are_told_with_their_operator() -> None:
    (left,) = hints({"memory_curve": stepping([MB] * 10), "allocations": blocks(released=False)})

    assert (left["kind"], left["name"], left["blocks"], left["steps"]) == ("unreleased", "aten::empty", 7, 7)
    assert left["per_step_bytes"] == MB  # those of the last three steps may still be released


@pytest.mark.parametrize("kept", [blocks(released=True), blocks(released=False, only_first=True)])
def test_blocks_that_are_released_or_were_made_once_are_none(kept: pl.DataFrame) -> None:
    assert hints({"memory_curve": stepping([MB] * 10), "allocations": kept}) == []


def test_small_blocks_that_are_left_behind_are_none() -> None:
    small = blocks(released=False).with_columns(size_bytes=pl.lit(1000, pl.Int64))

    assert hints({"memory_curve": stepping([MB] * 10), "allocations": small}) == []


def test_memory_that_is_reserved_and_never_in_use_is_fragmented() -> None:
    (found,) = hints({"memory_curve": stepping([950 * MB] * 10, reserved=2000 * MB)})

    assert (found["kind"], found["bytes"], found["ratio"]) == ("fragmentation", 1000 * MB, 0.5)


def test_a_pool_that_is_as_large_from_the_beginning_is_not_fragmented() -> None:
    assert hints({"memory_curve": stepping([950 * MB] * 10, reserved=2000 * MB, pool=True)}) == []
    assert hints({"memory_curve": stepping([MB] * 10, reserved=1 << 30, pool=True)}) == []


def test_a_pool_that_grows_because_it_is_full_is_not_fragmented() -> None:
    blocks_of = 1000 * MB  # the pool grows by so much whenever a block does not fit
    asked = [0, 900 * MB, 1100 * MB, 1200 * MB]
    curve = MEMORY_CURVE.frame(
        time_ns=list(range(4)),
        allocated_bytes=asked,
        reserved_bytes=[0, blocks_of, 2 * blocks_of, 2 * blocks_of],
    )

    assert hints({"memory_curve": curve}) == []


def test_memory_that_is_only_reserved_does_not_run_short() -> None:
    pool = stepping([100 * MB] * 10, reserved=950 * MB, pool=True)
    stated = RANK_FIGURES.frame(name=["memory_capacity_bytes"], value=[1000.0 * MB])

    assert hints({"memory_curve": pool, "rank_figures": stated}) == []


def test_a_pool_that_is_small_beside_the_memory_there_is_is_not() -> None:
    pool = stepping([950 * MB] * 10, reserved=2000 * MB)

    for capacity, kinds in ((30_000 * MB, []), (3000 * MB, ["fragmentation"])):
        stated = RANK_FIGURES.frame(name=["memory_capacity_bytes"], value=[float(capacity)])
        assert [hint["kind"] for hint in hints({"memory_curve": pool, "rank_figures": stated})] == kinds


def test_a_small_cache_is_not() -> None:
    assert hints({"memory_curve": stepping([950 * MB] * 10, reserved=1300 * MB)}) == []
    assert hints({"memory_curve": stepping([MB] * 10, reserved=200 * MB)}) == []


def test_little_room_at_the_peak_is_told() -> None:
    def stated(peak: float) -> dict[str, pl.DataFrame]:
        return {"rank_figures": RANK_FIGURES.frame(name=CAPACITY_AND_PEAK, value=[100.0, peak])}

    (found,) = hints(stated(95.0))

    assert (found["kind"], found["ratio"], found["bytes"]) == ("near capacity", 0.95, 5)
    assert hints(stated(90.0)) == []


def test_the_slope_does_not_follow_one_outlier() -> None:
    slope, rising = trend(list(range(9)), [0, 1, 2, 3, 1000, 5, 6, 7, 8])

    assert slope == 1
    assert rising == pytest.approx(32 / 36)


def test_thousands_of_steps_are_no_matter() -> None:
    assert trend(range(20_000), range(20_000)) == (1.0, 1.0)


def test_of_many_steps_some_are_taken_from_the_whole_recording() -> None:
    _, rising = trend(range(400), [*[0] * 200, *range(200)])

    assert rising == pytest.approx(0.75, abs=0.01)
