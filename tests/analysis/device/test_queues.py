"""Launched work that waits, over time and as sums, and why streams stand still."""

from __future__ import annotations

import pytest

from stepscope.analysis.device.queues import Limits
from tests.analysis.device.launched import US, Work, run_of

QUEUED = [
    Work("a", 10, 30, (0, 2)),
    Work("b", 30, 40, (2, 4)),
    Work("c", 45, 50, (4, 6)),
    Work("d", 100, 110, (96, 98)),
    Work("e", 5, 9, (0, 1), stream=8),
]
"""Launched at 0, 2, 4 and 96 us, begun at 10, 30, 45 and 100: of 100 us, 1 waits for 2+15+4, 2 for 2+20, 3 for 6."""


def test_a_queue_is_summed_over_time() -> None:
    first, second = run_of(QUEUED).analyse("queues").to_dicts()

    assert (first["stream"], first["launches"], first["max_length"]) == (7, 4, 3)
    assert first["mean_length"] == pytest.approx((21 + 2 * 22 + 3 * 6) / 100)
    assert (first["waiting_ns"], first["full_ns"]) == (49 * US, 0)
    assert first["waiting_ratio"] == pytest.approx(0.49)
    assert (second["stream"], second["launches"], second["mean_length"]) == (8, 1, 1.0)


def test_a_queue_is_full_at_its_limit() -> None:
    (row, _) = run_of(QUEUED).analyse("queues", limits=Limits(full=3)).to_dicts()

    assert (row["full_ns"], row["full_ratio"]) == (6 * US, 0.06)


@pytest.mark.parametrize(("full", "device_kind"), [(2, "cuda"), (3, "rocm")])
def test_it_is_unknown_when_a_queue_is_full_that_holds_more_or_is_not_of_cuda(full: int, device_kind: str) -> None:
    (row, _) = run_of(QUEUED, device_kind=device_kind).analyse("queues", limits=Limits(full=full)).to_dicts()

    assert (row["full_ns"], row["full_ratio"]) == (None, None)


def test_every_change_of_a_queue_is_given() -> None:
    rows = run_of(QUEUED).analyse("queue_lengths", points=0)

    found = rows.select("stream", "start_ns", "max_length").rows()
    assert found[:4] == [(7, 0, 1), (7, 2 * US, 2), (7, 4 * US, 3), (7, 10 * US, 2)]
    assert found[-2:] == [(8, 0, 1), (8, 5 * US, 0)]


def test_a_queue_over_time_is_cut_into_parts() -> None:
    rows = run_of(QUEUED[:4]).analyse("queue_lengths", points=4)

    assert rows.select("start_ns", "duration_ns", "max_length").rows() == [
        (0, 25 * US, 3), (25 * US, 25 * US, 2), (50 * US, 25 * US, 0), (75 * US, 25 * US, 1)
    ]  # fmt: skip
    means = [(2 * 1 + 2 * 2 + 6 * 3 + 15 * 2) / 25, (5 * 2 + 15) / 25, 0, 4 / 25]
    assert rows["mean_length"].to_list() == pytest.approx(means)


def test_gaps_of_a_stream_have_a_cause() -> None:
    work = [
        Work("a", 0, 10, (0, 0)),
        Work("b", 12, 20, (1, 2)),  # launched before: from one kernel to the next
        Work("c", 100, 110, (90, 95)),  # launched late
        Work("d", 200, 210, (100, 105)),  # launched early, but it waits
        Work("e", 300, 310),
        Work("f", 305, 306, (1, 2)),  # inside another one
        Work("g", 312, 313, (1, 2)),
    ]

    rows = run_of(work).analyse("stream_idle").select("cause", "count", "total_ns").rows()

    assert rows == [("host", 1, 80 * US), ("kernel", 2, 4 * US), ("other", 1, 90 * US), ("unknown", 1, 90 * US)]
