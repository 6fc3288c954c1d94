"""Copies and fills of memory: by direction, and over time."""

from __future__ import annotations

import pytest

from stepscope.errors import Unavailable
from tests.analysis.device.launched import US, Work, run_of

TO_DEVICE = "Memcpy HtoD (Pinned -> Device)"


def copy(name: str, start: int, end: int, size: int | None) -> Work:
    return Work(name, start, end, kind="memory", size=size)


COPIES = [
    copy(TO_DEVICE, 0, 10, 10_000),
    copy(TO_DEVICE, 20, 30, 30_000),
    copy(TO_DEVICE, 40, 40, 8),
    copy("Memset (Device)", 50, 60, None),
    Work("mm", 60, 80),
]


def test_copies_are_summed_by_direction() -> None:
    filled, moved = run_of(COPIES).analyse("copies").to_dicts()

    assert (filled["direction"], filled["count"], filled["size_bytes"], filled["without_size"]) == ("fill", 1, None, 1)
    assert filled["bandwidth_bytes_per_s"] is None
    assert (moved["direction"], moved["host_memory"], moved["count"]) == ("host to device", "pinned", 3)
    assert (moved["size_bytes"], moved["total_ns"], moved["without_time"]) == (40_008, 20 * US, 1)
    assert moved["bandwidth_bytes_per_s"] == pytest.approx(40_008 / 20e-6)
    assert (moved["min_bytes_per_s"], moved["max_bytes_per_s"], moved["mean_bytes_per_s"]) == (1e9, 3e9, 2e9)


def test_times_in_whole_microseconds_leave_rates_uncertain() -> None:
    (_, moved) = run_of(COPIES).analyse("copies").to_dicts()

    assert moved["tick_ns"] == 1000
    assert moved["least_bytes_per_s"] == pytest.approx(40_008 / 23e-6)


@pytest.mark.parametrize(
    ("name", "direction", "host_memory"),
    [
        ("Memcpy DtoH (Device -> Pageable)", "device to host", "pageable"),
        ("Memcpy DtoD (Device -> Device)", "device to device", None),
        ("Memcpy PtoP (Device -> Device)", "peer to peer", None),
        ("CopyHostToDevice", "host to device", None),
        ("hipMemcpyDtoH", "device to host", None),
        ("MEMCPY_ASYNC host to host", "host to host", None),
        ("Memset (Device)", "fill", None),
        ("MEMCPY_ASYNC", "unknown", None),
    ],
)
def test_the_direction_comes_from_the_name(name: str, direction: str, host_memory: str | None) -> None:
    rows = run_of([copy(name, 0, 10, 1)]).analyse("copies")

    assert rows.select("direction", "host_memory").rows() == [(direction, host_memory)]


def test_copies_over_time_are_cut_into_parts() -> None:
    rows = run_of(COPIES).analyse("copy_rates", points=3)

    assert rows.select("direction", "start_ns", "mean_bytes_per_s", "max_bytes_per_s").rows() == [
        ("host to device", 0, 1e9, 1e9),
        ("host to device", 10 * US, 0.0, 0.0),
        ("host to device", 20 * US, 3e9, 3e9),
    ]


def test_copies_that_overlap_add_up() -> None:
    both = [copy(TO_DEVICE, 0, 10, 10_000), copy(TO_DEVICE, 5, 15, 10_000)]

    rows = run_of(both).analyse("copy_rates", points=0)

    assert rows.select("duration_ns", "max_bytes_per_s").rows() == [(5000, 1e9), (5000, 2e9), (5000, 1e9), (0, 0.0)]


@pytest.mark.parametrize("points", [0, 1])
def test_copies_that_touch_do_not_add_up(points: int) -> None:
    both = [copy(TO_DEVICE, 0, 5, 5_000), copy(TO_DEVICE, 5, 10, 5_000)]

    rows = run_of(both).analyse("copy_rates", points=points)

    assert rows["max_bytes_per_s"].max() == 1e9


def test_there_is_no_answer_without_copies() -> None:
    with pytest.raises(Unavailable, match="no copies or fills"):
        run_of([Work("mm", 60, 80)]).analyse("copies")
