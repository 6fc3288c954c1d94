"""Calls that launch, delays, short kernels, and which operator launched what."""

from __future__ import annotations

import pytest

from stepscope.analysis.device.launches import Limits
from stepscope.errors import Unavailable
from tests.analysis.device.launched import US, Range, Work, run_of

WORK = [
    Work("a", 20, 24, (0, 10)),  # short: 4 us, launched in 10
    Work("a", 30, 90, (11, 21)),
    Work("b", 300, 400, (100, 180)),  # a long call and a long delay
    Work("c", 500, 510),
]


def test_launches_are_summed_by_kind_of_work() -> None:
    (row,) = run_of(WORK).analyse("launch_summary").to_dicts()

    assert (row["kind"], row["count"], row["short"]) == ("compute", 3, 1)
    assert (row["call_mean_ns"], row["call_max_ns"]) == (round(100 * US / 3), 80 * US)
    assert (row["delay_median_ns"], row["delay_max_ns"]) == (10 * US, 120 * US)
    assert (row["long_calls"], row["long_delays"]) == (1, 1)


def test_launches_are_summed_by_kernel() -> None:
    rows = run_of(WORK).analyse("kernel_launches").select("name", "count", "call_ns", "short_ratio", "total_ns")

    assert rows.rows() == [("b", 1, 80 * US, 0.0, 100 * US), ("a", 2, 20 * US, 0.5, 64 * US)]


def test_work_of_a_graph_shares_its_launch() -> None:
    rows = [Work("a", 20 + 5 * k, 24 + 5 * k, (0, 12), graph=1) for k in range(3)]

    (row,) = run_of(rows).analyse("kernel_launches").to_dicts()

    assert (row["call_ns"], row["call_max_ns"], row["short"]) == (12 * US, 4 * US, 0)


def test_work_that_starts_before_its_call_ends_has_no_delay() -> None:
    (row,) = run_of([Work("a", 5, 9, (0, 8))]).analyse("launch_summary").to_dicts()

    assert row["delay_max_ns"] == 0


def test_the_longest_calls_and_delays_are_listed_with_their_operator() -> None:
    ranges = [Range("aten::mm", 95, 190)]
    run = run_of([*WORK[:2], Work("b", 300, 400, (100, 180), operator=0)], ranges)

    rows = run.analyse("launch_outliers").select("what", "name", "operator", "call_ns", "delay_ns").rows()

    assert rows == [("call", "b", "aten::mm", 80 * US, 120 * US), ("delay", "b", "aten::mm", 80 * US, 120 * US)]


def test_so_many_are_listed_as_asked_for() -> None:
    limits = Limits(call_ns=1, delay_ns=1e9)

    rows = run_of(WORK).analyse("launch_outliers", limits=limits, limit=2).select("what", "call_ns").rows()

    assert rows == [("call", 80 * US), ("call", 10 * US)]


def test_nothing_is_said_of_launches_that_were_not_recorded() -> None:
    with pytest.raises(Unavailable, match="no launches of device work were recorded"):
        run_of([Work("c", 500, 510)]).analyse("launch_summary")
