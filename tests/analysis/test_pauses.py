"""Time between steps that belongs to no step, and steps of which operators are missing."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.pauses import pauses
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, OPERATORS, RANKS, SLICES, STEPS

MS = 1_000_000


def steps(*ranges: tuple[int, int], recorded: tuple[bool, ...] | None = None) -> pl.DataFrame:
    starts, ends = ([ms * MS for ms in side] for side in zip(*ranges, strict=True))
    numbers = list(range(1, len(ranges) + 1))
    window = {"window_start_ns": starts, "window_end_ns": ends, "window": ["host"] * len(ranges)}
    found = {"step": numbers, "start_ns": starts, "end_ns": ends, **window}
    return STEPS.conform(pl.DataFrame(found | ({} if recorded is None else {"recorded": list(recorded)})))


def paused(*ranges: tuple[int, int]) -> list[tuple[int, int, int]]:
    found = pauses(steps(*ranges).with_columns(rank=pl.lit(0)))
    return found.select("step", pl.col("start_ns", "end_ns") // MS).rows()


def test_a_gap_between_steps_that_else_follow_one_another_is_a_pause() -> None:
    assert paused((0, 10), (10, 20), (70, 80), (80, 90)) == [(3, 20, 70)]


def test_gaps_after_every_step_are_no_pauses() -> None:
    assert paused((0, 10), (15, 25), (30, 40)) == []


def test_steps_that_overlap_have_no_gap() -> None:
    assert paused((0, 30), (10, 20), (30, 40)) == []


def own(ranges: tuple[tuple[int, int], ...], recorded: tuple[bool, ...] | None = None) -> list[tuple[object, ...]]:
    """Step, kind and ms of what rank 0 does beside 1 ms of computing at the start of each step."""
    operators = [
        {"start_ns": start * MS, "duration_ns": MS, "name": "aten::mm", "thread": "1"}
        for number, (start, _) in enumerate(ranges)
        if recorded is None or recorded[number]
    ]
    frames = {
        "steps": steps(*ranges, recorded=recorded),
        "operators": OPERATORS.conform(pl.DataFrame(operators).with_row_index("slice")),
        "ranks": RANKS.conform(pl.DataFrame({"host": ["h"]})),
    }
    found = Run.from_frames(dict.fromkeys((0, 1), frames)).analyse("own_times").filter(rank=0)
    return found.select("step", "kind", pl.col("own_ns") // MS).rows()


def test_what_a_host_does_while_the_recording_pauses_is_work_of_no_step() -> None:
    assert own(((0, 10), (10, 20), (70, 80))) == [
        (1, "computing", 1), (1, "dispatch", 9), (2, "computing", 1), (2, "dispatch", 9), (3, "computing", 1),
        (3, "dispatch", 9),
    ]  # fmt: skip


def test_what_a_host_does_in_a_step_without_recorded_operators_is_unknown() -> None:
    found = own(((0, 10), (10, 20), (20, 30)), recorded=(True, False, True))

    assert [step for step, _, _ in found] == [1, 1, 3, 3]


def test_how_long_a_cpu_computes_in_phases_is_unknown_as_it_may_wait_in_them() -> None:
    """Rank 1 pauses for 60 of 100 ms outside of its phases; meanwhile the backward pass of rank 0 waits for it."""
    starts = [step * 100 for step in range(8)]
    frames = {}
    for rank, phase in ((0, 99), (1, 40)):
        slices = [
            {"start_ns": start * MS, "duration_ns": phase * MS, "name": "backward", "category": "annotation"}
            for start in starts
        ]
        frames[rank] = {
            "steps": steps(*((start, start + 100) for start in starts)),
            "slices": SLICES.conform(pl.DataFrame(slices).with_row_index("slice")),
            "ranks": RANKS.conform(pl.DataFrame({"host": ["h"], "device_kind": ["cpu"], "world_size": [2]})),
        }

    found = Run.from_frames(frames).analyse("slow_ranks")

    assert found.select("rank", "kind", "excess_ns").rows() == [(1, "dispatch", 59 * MS)]
    assert found["cost_ratio"].to_list() == [0.59]


def test_who_waits_for_a_rank_of_which_operators_are_missing_is_not_sent_to_the_network() -> None:
    """Rank 0 waits for 300 ms in step 5, of which rank 1 has no operators."""
    ends, frames = [10, 20, 30, 40, 350, 360, 370, 380], {}
    ranges = tuple(zip([0, *ends[:-1]], ends, strict=True))
    for rank in (0, 1):
        recorded = tuple(rank == 0 or number != 4 for number in range(len(ends)))
        rows = [
            {"start_ns": (start + 1) * MS, "duration_ns": (end - start - 3) * MS, "collective": number, "group": "g",
             "sequence": number, "operation": "all_reduce", "name": "gloo:all_reduce", "on_device": False,
             "step": number + 1}
            for number, (start, end) in enumerate(ranges) if recorded[number]
        ]  # fmt: skip
        operators = [
            {"start_ns": start * MS, "duration_ns": MS, "name": "aten::mm", "thread": "1"} for start, _ in ranges
        ]
        frames[rank] = {
            "steps": steps(*ranges, recorded=recorded),
            "operators": OPERATORS.conform(pl.DataFrame(operators).with_row_index("slice")),
            "collectives": COLLECTIVES.conform(pl.DataFrame(rows)),
            "ranks": RANKS.conform(pl.DataFrame({"host": ["h"], "device_kind": ["cpu"], "world_size": [2]})),
        }

    found = Run.from_frames(frames).analyse("outlier_steps")

    assert found.select("step", "rank", "kind").rows() == [(5, 0, "unknown")]
