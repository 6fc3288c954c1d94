"""The rules about memory speak where there is a fault."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import worded
from stepscope.advice.rules.memory_copies import memory_copies
from stepscope.tables import RANK_FIGURES
from tests.advice.examples import Tables, found
from tests.analysis.inputs import steps
from tests.analysis.test_memory_hints import blocks, stepping

CAPACITY_AND_PEAK = ["memory_capacity_bytes", "memory_peak_bytes"]


def test_memory_that_grows_is_at_least_of_medium_severity() -> None:
    curve = stepping([100_000_000 + k * 4_000_000 for k in range(10)])
    kept = blocks(released=False)

    (finding,) = found({"memory_curve": curve, "steps": steps(10), "allocations": kept}, "memory-leak")

    assert finding.evidence["per_step_bytes"] == 4_000_000
    assert "aten::empty" in worded(finding).cause
    assert (finding.saving_ns, finding.severity) == (0, "medium")


def test_fragmentation_and_little_room_are_findings() -> None:
    curve = {"memory_curve": stepping([950_000_000] * 10, reserved=2_000_000_000), "steps": steps(10)}
    full = {"rank_figures": RANK_FIGURES.frame(name=CAPACITY_AND_PEAK, value=[100.0, 95.0])}

    assert "1.00 GB" in worded(found(curve, "memory-fragmentation")[0]).summary
    assert "95 B of 100 B (95%)" in worded(found({0: full, 3: full}, "memory-capacity")[0]).summary


def test_of_several_ranks_short_of_memory_the_worst_is_told() -> None:
    def stated(peak: float) -> Tables:
        return {"rank_figures": RANK_FIGURES.frame(name=CAPACITY_AND_PEAK, value=[100.0, peak])}

    def curve(growth: int, reserved: int) -> Tables:
        lows = [700_000_000 + k * growth for k in range(10)]
        return {"memory_curve": stepping(lows, reserved=reserved), "steps": steps(10)}

    ranks = {0: curve(4_000_000, 2_000_000_000), 1: curve(8_000_000, 3_000_000_000)}

    assert "(99%) on rank 1" in worded(found({0: stated(95.0), 1: stated(99.0)}, "memory-capacity")[0]).summary
    assert "8.00 MB more memory of device 0 in each step on rank 1" in worded(found(ranks, "memory-leak")[0]).summary
    assert "of what is reserved on rank 1" in worded(found(ranks, "memory-fragmentation")[0]).summary


@pytest.mark.parametrize(("exposed", "findings"), [(49, 0), (50, 1)])
def test_copies_that_nothing_covers_are_a_finding_from_a_twentieth_of_the_step(exposed: int, findings: int) -> None:
    breakdown = pl.DataFrame({"window_ns": [1000] * 2, "memory_not_overlapped_ns": [exposed] * 2})

    told = list(memory_copies(breakdown))

    assert [finding.saving_ns for finding in told] == [exposed] * findings


@pytest.mark.parametrize(
    ("copies", "message", "text"),
    [
        ([("host to device", "pageable", 60, 120)], "pageable", "is host to device (pageable memory), 2.0 GB/s."),
        ([("host to device", "pinned", 60, None)], "host", "is host to device (pinned memory)."),
        ([("device to device", None, 60, 60), ("host to device", "pageable", 40, 9)], "device", "; 60% of the time"),
        ([("fill", None, 60, None), ("host to device", "pageable", 40, 9)], "fill", "is fill."),
        ([("fill", None, 40, None), ("device to device", None, 40, 4), ("unknown", None, 41, 4)], "exposed", "(10%)."),
    ],
)
def test_the_advice_about_copies_is_for_the_kind_that_takes_most_time(
    copies: list[tuple[str, str | None, int, int | None]], message: str, text: str
) -> None:
    breakdown = pl.DataFrame({"window_ns": [1000] * 2, "memory_not_overlapped_ns": [100] * 2})
    schema = {"direction": pl.String, "host_memory": pl.String, "total_ns": pl.Int64, "size_bytes": pl.Int64}

    (told,) = memory_copies(breakdown, copies=pl.DataFrame(copies, schema=schema, orient="row"))

    assert told.message == message
    assert text in worded(told).summary
