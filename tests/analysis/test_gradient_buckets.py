"""The buckets of DistributedDataParallel, as PyTorch records them on GPUs, and what is advised about their size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.advice import Finding, worded
from stepscope.errors import Unavailable
from stepscope.run import open_run
from tests.analysis.bucketed import MIB, rank_of
from tests.kineto_job import Device, RankTrace, advised, by_rule


def job(sizes: list[int], **options: Any) -> list[RankTrace]:
    return [rank_of(number, sizes, **options) for number in range(2)]


def told(directory: Path, sizes: list[int], **options: Any) -> dict[str, Finding]:
    found = by_rule(advised(directory, *job(sizes, **options)))
    return {message: one for (rule, message), one in found.items() if rule == "data-parallel"}


def test_buckets_are_told_with_what_is_left_of_the_backward_pass(tmp_path: Path) -> None:
    for trace in job([MIB, 8 * MIB]):
        trace.write(tmp_path)

    rows = open_run(tmp_path).analyse("gradient_buckets").filter(rank=1)

    shown = rows.select("bucket", "calls", "size_bytes", "sent_ns", "left_ns", "backward_ns").rows()
    assert shown == [
        (0, 3, MIB, 200_000, 9_999_000, 19_998_000),
        (1, 3, 8 * MIB, 900_000, 0, 19_998_000),
    ]


def test_all_reduces_of_the_forward_thread_are_no_buckets(tmp_path: Path) -> None:
    for trace in job([4, 4], thread=1):
        trace.write(tmp_path)

    with pytest.raises(Unavailable, match="DistributedDataParallel"):
        open_run(tmp_path).analyse("gradient_buckets")


SMALL = [MIB // 4] * 40 + [2 * MIB] * 2


@pytest.mark.parametrize("device", ["cuda", "rocm"])
def test_many_buckets_of_latency_ask_for_larger_ones(tmp_path: Path, device: Device) -> None:
    finding = told(tmp_path, SMALL, device=device, backward_us=2000)["small_buckets"]

    words = worded(finding)
    assert words.summary.startswith("DDP sums gradients in 42 small buckets (262.14 kB in the median)")
    assert "125.0 us, though its bytes take only 25.0 us" in words.cause
    assert "`bucket_cap_mb` of DistributedDataParallel, to 4 or more" in words.action
    assert 0 < finding.saving_ns <= finding.parameters["exposed_ns"]
    assert finding.saving_low_ns == 0


def test_the_same_calls_are_not_told_as_small_packets_too(tmp_path: Path) -> None:
    found = by_rule(advised(tmp_path, *job(SMALL, backward_us=2000)))

    assert ("data-parallel", "small_buckets") in found
    assert not any(rule == "small-packets" for rule, _ in found)


def test_one_large_bucket_that_begins_after_the_backward_pass_asks_for_smaller_ones(tmp_path: Path) -> None:
    finding = told(tmp_path, [MIB, 64 * MIB])["late_bucket"]

    # 6.5 ms bare; of five buckets of 16.25 MiB or less, only the last is: 0.1 + 1.3 ms
    assert finding.parameters["share"] == pytest.approx(64 / 65)
    assert "`bucket_cap_mb=17`" in worded(finding).action
    assert finding.saving_ns == pytest.approx(6_500_000 - (100_000 + 65 / 4 * 100_000), rel=0.01)
    assert finding.severity == "medium"


def test_buckets_that_computing_covers_are_no_finding(tmp_path: Path) -> None:
    assert told(tmp_path / "usual", [MIB] + [8 * MIB] * 6) == {}
    assert told(tmp_path / "small", SMALL) == {}


def test_without_the_other_ranks_the_saving_is_unknown(tmp_path: Path) -> None:
    found = by_rule(advised(tmp_path, rank_of(0, [MIB, 64 * MIB])))

    assert found["data-parallel", "late_bucket"].saving_ns == 0
