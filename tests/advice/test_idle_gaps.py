"""Gaps that recur in each step are named, also those that nothing on the host explains."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import Finding, advise, worded
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, RANKS, SLICES, STEPS, SYNCHRONIZATIONS

MS = 1_000_000
FIRST, HOLE, SECOND = 20 * MS, 64 * MS, 17 * MS
STEP = FIRST + HOLE + SECOND


def rank(
    *, hole_ns: int = HOLE, ahead_ns: int = 70 * MS, steps: int = 6, waits: bool = False, host: str | None = None
) -> dict[str, pl.DataFrame]:
    """A rank whose steps have a hole between two kernels.

    Args:
        hole_ns: Its length.
        ahead_ns: How long before it begins the second kernel is launched.
        steps: How many.
        waits: The wait of its stream was recorded.
        host: Operator of the host during the hole.
    """
    starts = [number * (FIRST + hole_ns + SECOND) for number in range(steps)]
    seconds = [start + FIRST + hole_ns for start in starts]
    ends = [*starts[1:], starts[-1] + FIRST + hole_ns + SECOND]
    holes = [start + FIRST for start in starts]
    launches = [[start - 80 * MS, second - ahead_ns] for start, second in zip(starts, seconds, strict=True)]
    frames = {
        "ranks": RANKS.frame(device_kind=["cuda"], framework=["pytorch"]),
        "steps": STEPS.frame(
            step=range(1, steps + 1), start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
            window=["device"] * steps,
        ),
        "kernels": KERNELS.frame(
            kernel=range(2 * steps), kind=["compute"] * 2 * steps, name=["gemm", "void attention<float>(int)"] * steps,
            start_ns=[at for pair in zip(starts, seconds, strict=True) for at in pair],
            duration_ns=[FIRST, SECOND] * steps, stream=[7, 9] * steps,
            step=[number for number in range(1, steps + 1) for _ in "ab"],
            launch_start_ns=[at - 1000 for pair in launches for at in pair],
            launch_end_ns=[at for pair in launches for at in pair],
        ),
    }  # fmt: skip
    if waits:
        frames["synchronizations"] = SYNCHRONIZATIONS.frame(
            slice=range(steps), start_ns=holes, duration_ns=[hole_ns] * steps, name=["Stream Wait Event"] * steps,
            stream=[9] * steps, waited_stream=[13] * steps,
        )  # fmt: skip
    if host is not None:
        frames["slices"] = SLICES.frame(
            slice=range(steps), start_ns=holes, duration_ns=[hole_ns - MS] * steps, category=["operator"] * steps,
            name=[host] * steps, thread=["1"] * steps, depth=[2] * steps, step=range(1, steps + 1),
        )  # fmt: skip
        frames["operators"] = OPERATORS.conform(
            frames["slices"].select("slice", "start_ns", "duration_ns", "name", "thread", "step")
        )
    return frames


def idle(*ranks: dict[str, pl.DataFrame]) -> list[Finding]:
    run = Run.from_frames(dict(enumerate(ranks)))
    return [one for one in advise(run, strict=True) if one.rule == "idle-time"]


def test_a_hole_in_each_step_that_only_a_dependency_explains_is_a_finding() -> None:
    (finding,) = idle(rank())

    assert worded(finding).summary == (
        "The device is idle for 64.0 ms of a 101 ms step (63%) although its next work was launched in time, mostly "
        "between `gemm` and `attention`."
    )
    assert "64.0 ms per step; the work after it was launched 70.0 ms before it began." in worded(finding).cause
    assert (finding.saving_low_ns, finding.saving_high_ns, finding.severity, finding.ranks) == (0, HOLE, "high", [])
    assert finding.saving_ns < HOLE / 5  # the next launches come as late as they did
    assert "between 0 us and 64.00 ms: what ends these gaps is not known" in worded(finding).saving
    assert worded(finding).summary in verdict(answers(Run.from_frames({0: rank()})))


def test_the_wait_of_the_stream_is_named_if_it_was_recorded() -> None:
    (finding,) = idle(rank(waits=True))

    assert "`Stream Wait Event (stream 13)`" in worded(finding).cause


def test_ranks_with_such_holes_are_named_if_others_have_none() -> None:
    (finding,) = idle(rank(), rank(hole_ns=0), rank())

    assert finding.ranks == [0, 2]
    assert "on ranks 0,2 although" in worded(finding).summary


@pytest.mark.parametrize(("hole_ns", "count"), [(1_000_000, 0), (2_500_000, 1)])
def test_short_holes_are_ordinary(hole_ns: int, count: int) -> None:
    assert len(idle(rank(hole_ns=hole_ns))) == count


def test_a_hole_in_one_step_is_left_to_that_step() -> None:
    usual = rank(hole_ns=0, steps=10)
    late = [pl.when(pl.col("kernel") >= 9).then(pl.col("start_ns") + HOLE).otherwise("start_ns").alias("start_ns")]
    moved = (("window_start_ns", 6), ("window_end_ns", 5))
    end = [pl.col(name) + HOLE * (pl.col("step") >= first) for name, first in moved]
    run = Run.from_frames(
        {0: {**usual, "kernels": usual["kernels"].with_columns(late), "steps": usual["steps"].with_columns(end)}}
    )

    assert [(one.rule, one.message) for one in advise(run, strict=True)] == [("long-step", "dependency")]


def test_the_greatest_gap_of_another_cause_is_named_with_what_the_host_did() -> None:
    (finding,) = idle(rank(ahead_ns=MS // 2, host="aten::nonzero"))

    assert finding.evidence["cause"] == "dispatch"
    assert worded(finding).cause.endswith(
        "Its greatest gap takes 64.0 ms per step, before `attention`. In that gap, the host is in `aten::nonzero`."
    )
