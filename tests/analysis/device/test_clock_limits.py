"""GPUs that state why they lower their clocks."""

from __future__ import annotations

import pytest

from stepscope.advice import advise, worded
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COUNTERS, KERNELS, RANKS, STEPS

MS = 1_000_000
IDLE, POWER, HEAT, BRAKE = 0x1, 0x4, 0x20, 0x80


def run(reasons: list[int], clocks: list[float] | None = None) -> Run:
    """A step of 100 ms with as many samples, and one before it."""
    count = len(reasons)
    times = [(at + 1) * 100 * MS // (count + 1) for at in range(count)]
    rows = [(time, "clock_event_reasons", float(bits)) for time, bits in zip(times, reasons, strict=True)]
    rows += [(time, "sm_clock_mhz", mhz) for time, mhz in zip(times, clocks or [], strict=False)]
    rows.append((-5, "clock_event_reasons", float(HEAT)))
    window = {"window_start_ns": [0], "window_end_ns": [100 * MS], "window": ["device"]}
    return Run.from_frames(
        {
            0: {
                "ranks": RANKS.frame(framework=["pytorch"], device_kind=["cuda"], device=[0]),
                "steps": STEPS.frame(step=[1], start_ns=[0], end_ns=[100 * MS], **window),
                "kernels": KERNELS.frame(
                    kernel=[0], start_ns=[0], duration_ns=[100 * MS], kind=["compute"], name=["gemm"], step=[1]
                ),
                "counters": COUNTERS.frame(
                    time_ns=[time for time, _, _ in rows],
                    name=[name for _, name, _ in rows],
                    value=[value for _, _, value in rows],
                    device=[0] * len(rows),
                ),
            }
        }
    )


def told(job: Run) -> dict[str, str]:
    return {one.message: one.severity for one in advise(job, strict=True) if one.rule == "clock-throttling"}


def test_samples_in_steps_are_counted_by_reason_with_their_clocks() -> None:
    job = run([0, HEAT, HEAT | POWER, 0], [1900.0, 1200.0, 1000.0, 1940.0])

    rows = job.analyse("clock_limits").select("reason", "samples", "limited", "mean_mhz", "free_mhz").rows()

    assert rows == [("heat", 4, 2, 1100.0, 1920.0), ("power limit", 4, 1, 1000.0, 1920.0)]


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), 1e300])
def test_samples_that_are_no_bits_do_not_count(odd: float) -> None:
    job = run([HEAT, odd, 0], [1200.0, 1500.0, 1900.0])  # type: ignore[list-item]

    rows = job.analyse("clock_limits").select("reason", "samples", "limited", "free_mhz").rows()

    assert rows == [("heat", 2, 1, 1900.0)]


def test_heat_is_a_finding_with_what_the_clock_is_otherwise() -> None:
    job = run([0, HEAT, HEAT, 0], [1900.0, 1200.0, 1200.0, 1900.0])

    (finding,) = [one for one in advise(job, strict=True) if one.rule == "clock-throttling"]

    words = worded(finding)
    assert words.summary == (
        "Rank 0 computes with a clock that is lowered for heat: in 50% of the samples, at 1200 MHz instead of 1900 MHz "
        "otherwise."
    )
    assert "nvidia-smi" in words.action
    assert finding.severity == "medium"


def test_a_power_limit_is_a_remark_and_a_moment_is_nothing() -> None:
    assert told(run([POWER] * 10)) == {"power limit": "low"}
    assert told(run([BRAKE] * 2 + [0] * 8)) == {"host power": "medium"}
    assert told(run([HEAT] + [IDLE] * 19)) == {}


def test_without_samples_there_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="was not sampled"):
        run([]).analyse("clock_limits")
