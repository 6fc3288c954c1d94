"""What of communication calls no computing covers, and which calls computing awaits."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.communication.exposed_calls import gained_ns
from stepscope.analysis.communication.late_ranks import late_ranks
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, KERNELS, RANKS, STEPS


def run(computing: list[tuple[int, int]], *ranks: list[tuple[str, int, int]]) -> Run:
    """A step of ranks that compute at the same times and make calls: group, start, end."""
    gemm, call = {"kind": "compute", "name": "gemm", "step": 0}, {"operation": "all_reduce", "name": "call", "step": 0}
    call |= {"on_device": True, "size_bytes": 8}
    kernels = [{"start_ns": a, "duration_ns": b - a, **gemm} for a, b in computing]
    step = {"step": [0], "start_ns": [0], "end_ns": [1000], "window_start_ns": [0], "window_end_ns": [1000]}
    frames = {}
    for rank, calls in enumerate(ranks):
        places = [[other for other, _, _ in calls[:at]].count(group) for at, (group, _, _) in enumerate(calls)]
        rows = [
            {"group": group, "sequence": place, "start_ns": a, "duration_ns": b - a, **call}
            for (group, a, b), place in zip(calls, places, strict=True)
        ]
        frames[rank] = {
            "kernels": KERNELS.conform(pl.DataFrame(kernels).with_row_index("kernel")),
            "collectives": COLLECTIVES.conform(pl.DataFrame(rows).with_row_index("collective")),
            "steps": STEPS.conform(pl.DataFrame({**step, "window": ["device"]})),
            "ranks": RANKS.conform(pl.DataFrame({"host": ["h"], "device_kind": ["cuda"]})),
        }
    return Run.from_frames(frames)


def exposed(computing: list[tuple[int, int]], *ranks: list[tuple[str, int, int]]) -> list[tuple[int, ...]]:
    """Exposed waiting and transmission, and what is awaited, of each call of rank 0 in order of time."""
    found = run(computing, *ranks).analyse("exposed_calls").filter(rank=0).sort("start_ns", "end_ns")
    return found.select("wait_ns", "transmit_ns", "awaited_ns").rows()


def test_waiting_and_transmission_are_cut_at_the_last_arrival() -> None:
    assert exposed([(0, 100), (300, 400)], [("a", 100, 300)], [("a", 180, 300)]) == [(80, 120, 120)]


def test_what_computing_covers_is_not_exposed() -> None:
    assert exposed([(0, 150), (300, 400)], [("a", 100, 300)], [("a", 120, 300)]) == [(0, 150, 150)]
    assert exposed([(0, 400)], [("a", 100, 300)], [("a", 120, 300)]) == [(0, 0, 0)]


def test_of_calls_in_one_gap_the_last_is_awaited() -> None:
    both = [("a", 100, 250), ("b", 120, 300)]

    assert exposed([(0, 100), (300, 400)], both, both) == [(0, 150, 0), (0, 180, 180)]


def test_a_queued_call_hands_on_what_the_calls_before_it_would_gain() -> None:
    queued = [("a", 50, 150_000), ("a", 151_000, 300_000)]
    later = [("a", 50, 150_000), ("a", 200_000, 300_000)]

    for calls, awaited in ((queued, 299_900), (later, 100_000)):
        assert exposed([(0, 100), (300_000, 400_000)], calls, calls)[1][2] == awaited


def test_a_few_ranks_are_named_if_most_waiting_is_for_them() -> None:
    """Rank 2 is last by 80, then ranks 0 and 1 together by 10."""
    lasts = [[("a", 100, 300), ("a", 410, 500)]] * 2 + [[("a", 180, 300), ("a", 400, 500)]]

    waits = run([(0, 100), (300, 400)], *lasts).analyse("waits")

    assert late_ranks(waits, 3) == [2]
    assert late_ranks(waits.with_columns(root_rank="rank", mean_ns=pl.lit(5)), 3) == []
    assert late_ranks(waits.clear(), 3) == []
    little = pl.DataFrame({"root_rank": [0, 1, 2, 3], "mean_ns": [78, 7, 7, 7]})
    assert late_ranks(little, 16) == [0]  # which of the others is named would be chance
    assert late_ranks(little.with_columns(mean_ns=pl.Series([50, 40, 5, 5])), 16) == [0, 1]


def test_transmission_is_compared_with_the_best_that_recurs() -> None:
    """Twelve calls of 100, of which four take 250, and computing goes on when each ends."""
    starts = [1000 * at for at in range(12)]
    calls = [("a", at, at + (250 if at >= 8000 else 100)) for at in starts]

    found = run([(end, at + 999) for at, (_, _, end) in zip(starts, calls, strict=True)], calls, calls)

    row = found.analyse("transmission").row(0, named=True)
    assert [row[name] for name in ("calls", "transmit_ns", "best_ns")] == [12.0, 100, 100]
    assert (row["excess_ns"], row["exposed_ns"]) == (600, 600)


@pytest.mark.parametrize(("slack", "gained"), [(None, 30), (0, 30), (20, 50), (900, 70)])
def test_a_call_hands_on_what_it_gains_as_far_as_the_next_could_begin_sooner(slack: int | None, gained: int) -> None:
    known = {"rank": 0, "step": 1, "group": "a", "chain": 1}
    first = {"collective": 0, "start_ns": 0, "end_ns": 100, "awaited_ns": 0, "slack_ns": 500, "excess": 40}
    second = {"collective": 1, "start_ns": 100, "end_ns": 200, "awaited_ns": 200, "slack_ns": slack, "excess": 30}

    found = gained_ns(pl.DataFrame([{**known, **first}, {**known, **second}]), "excess")

    assert found["gained"].to_list() == [gained]
    assert gained_ns(pl.DataFrame([{**known, **second, "awaited_ns": 10}]), "excess")["gained"].to_list() == [10]


def test_calls_outside_of_steps_are_no_step_of_transmission() -> None:
    """Twelve calls of 10 ns in each of two steps, and as many of 90 before the first."""
    rows = [
        {"start_ns": 1000 * at + (1000 - length) * (step == 2), "duration_ns": length, "step": step}
        for at, (step, length) in enumerate(
            (step, 90 if step is None else 10) for step in (None, 1, 2) for _ in range(12)
        )
    ]
    call = {"operation": "all_reduce", "name": "call", "on_device": True, "size_bytes": 8, "group": "dp"}
    calls = pl.DataFrame([{**row, **call, "sequence": at} for at, row in enumerate(rows)]).with_row_index("collective")
    times = {"start_ns": [12000, 24000], "end_ns": [24000, 36000]}
    steps = {"step": [1, 2], **times, **{f"window_{side}": at for side, at in times.items()}, "window": ["device"] * 2}
    tables = {
        "collectives": COLLECTIVES.conform(calls),
        "kernels": KERNELS.frame(kernel=[0], start_ns=[12000], duration_ns=[1], kind=["compute"], name=["k"], step=[1]),
        "steps": STEPS.conform(pl.DataFrame(steps)),
        "ranks": RANKS.conform(pl.DataFrame({"host": ["h"], "device_kind": ["cuda"]})),
    }

    (row,) = Run.from_frames({0: tables, 1: tables}).analyse("transmission").to_dicts()

    assert (row["calls"], row["transmit_ns"], row["best_ns"]) == (12, 10, 10)


def test_what_small_calls_cost_is_measured_by_large_ones() -> None:
    """Twelve calls of 8 bytes take 100 ns, four of 8000 bytes 200: at their rate, 8 bytes take 0.2."""
    starts = [1000 * at for at in range(16)]
    calls = [("a", at, at + (200 if at >= 12000 else 100)) for at in starts]
    whole = run([(end, at + 999) for at, (_, _, end) in zip(starts, calls, strict=True)], calls, calls)
    frames = {rank.rank: {name: rank.table(name).collect().drop("rank") for name in rank.rows} for rank in whole.ranks}
    for tables in frames.values():
        large = pl.when(pl.col("start_ns") >= 12000).then(8000).otherwise("size_bytes")
        tables["collectives"] = tables["collectives"].with_columns(size_bytes=large.cast(pl.Int64))

    small, large_one = Run.from_frames(frames).analyse("transmission").sort("size_bytes").to_dicts()

    assert (small["large_bytes_per_s"], small["latency_ns"], small["exposed_latency_ns"]) == (4e10, 12 * 100, 12 * 100)
    assert (large_one["large_bytes_per_s"], large_one["latency_ns"]) == (None, None)
