"""Kernels with fewer blocks than multiprocessors, and what the rule says of them."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.advice.rules.low_occupancy import low_occupancy
from stepscope.run import Run
from stepscope.tables import KERNEL_RESOURCES, RANKS
from tests.analysis.device.launched import US, Work, tables_of

KERNELS = [Work("small", 0, 30), Work("small", 40, 50), Work("large", 60, 70), Work("small", 80, 90)]


def run(blocks: list[float], kind: str = "cuda") -> Run:
    resources = KERNEL_RESOURCES.frame(kernel=[0, 1, 2, 3], blocks_per_sm=blocks)
    return Run.from_frames({0: {**tables_of(KERNELS, [], kind), "kernel_resources": resources}})


def test_calls_with_few_blocks_are_summed_by_kernel() -> None:
    (row,) = run([0.5, 0.1, 4.0, 2.0]).analyse("few_blocks").to_dicts()

    assert (row["name"], row["few"], row["count"], row["few_ns"]) == ("small", 2, 3, 40 * US)
    assert row["blocks_per_sm"] == pytest.approx(0.3)
    assert row["share_ratio"] == pytest.approx(40 / 60)
    assert row["idle_ratio"] == pytest.approx(1 - (0.5 * 30 + 0.1 * 10) / 40)


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), 1e300])
def test_figures_that_no_launch_has_are_not_few_blocks(odd: float) -> None:
    (row,) = run([0.5, 0.1, odd, 2.0]).analyse("few_blocks").to_dicts()

    assert (row["name"], row["few"], row["blocks_per_sm"]) == ("small", 2, pytest.approx(0.3))


def test_a_rank_without_small_kernels_has_a_row_that_says_so() -> None:
    rows = run([1.0, 2.0, 3.0, 4.0]).analyse("few_blocks")

    assert rows.select("name", "few", "few_ns", "share_ratio").rows() == [("small", 0, 0, 0.0)]


@pytest.mark.parametrize(("blocks", "kind", "told"), [([0.5, 0.1, 4.0, 2.0], "cuda", True),
                                                     ([0.5, 0.1, 4.0, 2.0], "npu", False),
                                                     ([5.0, 0.1, 4.0, 2.0], "cuda", False)])  # fmt: skip
def test_most_of_the_time_with_few_blocks_is_a_low_finding(blocks: list[float], kind: str, told: bool) -> None:
    found = [one for one in advise(run(blocks, kind), strict=True) if one.rule == "low-occupancy"]

    assert [one.severity for one in found] == ["low"] * told
    assert all("67% of their time, 60% of its multiprocessors have no block" in worded(one).summary for one in found)


def test_shares_add_up_alike_in_whatever_order_they_come() -> None:
    rows = {"rank": [0] * 10, "name": list("abcdefghij"), "few_ns": [10] * 10, "share_ratio": [0.1] * 10}
    few = pl.DataFrame({**rows, "idle_ratio": [0.7] * 10}, schema_overrides={"rank": pl.Int32})
    ranks = RANKS.frame(rank=[0], device_kind=["cuda"], framework=["pytorch"]).lazy()

    (finding,) = low_occupancy(few, ranks)

    assert (finding.evidence["share_ratio"], finding.evidence["idle_ratio"]) == (1.0, 0.7)
