"""Kernels by length, short kernels by name, and how much of the peak operators reach."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, RANKS


def run(*kernels: tuple[str, int], kind: str = "compute") -> Run:
    rows = [{"name": name, "duration_ns": length, "kind": kind} for name, length in kernels]
    frame = pl.DataFrame(rows).with_row_index("kernel").with_columns(start_ns=pl.col("kernel").cast(pl.Int64) * 10**7)
    return Run.from_frames({0: {"kernels": KERNELS.conform(frame)}})


WORK = (("a", 500), ("a", 999), ("a", 20_000), ("b", 1_000), ("b", 9_999), ("c", 10_000), ("c", 2_000_000))


def test_kernels_are_counted_by_length() -> None:
    found = run(*WORK).analyse("kernel_lengths")

    assert found.select("from_ns", "to_ns", "count", "total_ns").rows() == [
        (0, 1_000, 2, 1_499),
        (1_000, 2_000, 1, 1_000),
        (5_000, 10_000, 1, 9_999),
        (10_000, 20_000, 1, 10_000),
        (20_000, 50_000, 1, 20_000),
        (1_000_000, None, 1, 2_000_000),
    ]
    assert found["count_ratio"].sum() == pytest.approx(1) == found["share_ratio"].sum()


def test_short_kernels_are_listed_by_name() -> None:
    found = run(*WORK).analyse("short_kernels")

    assert found.select("name", "short", "short_ns", "mean_ns").rows() == [
        ("b", 2, 10_999, 5_500),
        ("a", 2, 1_499, 750),
    ]
    assert found["short_ratio"].to_list() == [1.0, pytest.approx(2 / 3)]
    assert found["count_ratio"].to_list() == [pytest.approx(2 / 7)] * 2
    assert run(*WORK).analyse("short_kernels", below_ns=600)["name"].to_list() == ["a"]


def test_communication_and_copies_are_no_short_kernels() -> None:
    with pytest.raises(Unavailable, match="no kernel shorter"):
        run(*WORK, kind="memory").analyse("short_kernels")


def test_operators_are_compared_with_the_peak_of_their_data_type() -> None:
    """One product of each type, 2 x 100^3 operations in 1 us each: 2 TFLOP/s."""
    rows = pl.DataFrame(
        {
            "slice": [0, 1, 2],
            "start_ns": [0, 2_000, 4_000],
            "duration_ns": [1_000] * 3,
            "name": ["aten::mm"] * 3,
            "thread": ["1"] * 3,
            "input_shapes": ["[[100, 100], [100, 100]]"] * 3,
            "input_types": ['["c10::BFloat16", "c10::BFloat16"]', '["float", "float"]', '["double", "double"]'],
        }
    )
    device = RANKS.conform(pl.DataFrame({"device_name": ["NVIDIA A100-SXM4-80GB"], "device_kind": ["cuda"]}))
    job = Run.from_frames({0: {"operators": OPERATORS.conform(rows), "ranks": device}})

    found = {row["data_type"]: row for row in job.analyse("operator_utilization").iter_rows(named=True)}

    assert found["c10::BFloat16"]["utilization_ratio"] == pytest.approx(2 / 312)
    assert found["float"]["utilization_ratio"] == pytest.approx(2 / 19.5)
    assert found["double"]["utilization_ratio"] is None
    given = job.analyse("operator_utilization", peak_flops_per_s=4e12)
    assert given["utilization_ratio"].to_list() == [0.5] * 3
