"""Which counters of a rank's device differ from its peers', and since when."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COUNTERS, KERNELS, STEPS

MS = 1_000_000
CLOCK = "ai_core_frequency_mhz"


def device(samples: Mapping[int, float], steps: int = 4) -> dict[str, pl.DataFrame]:
    """A rank with steps of 10 ms, of which it computes in the first half; samples by ms."""
    times = {"start_ns": [k * 10 * MS for k in range(steps)], "end_ns": [(k + 1) * 10 * MS for k in range(steps)]}
    windows = {f"window_{name}": values for name, values in times.items()}
    work = {"kernel": list(range(steps)), "start_ns": times["start_ns"], "duration_ns": [5 * MS] * steps}
    return {
        "counters": COUNTERS.frame(
            time_ns=[ms * MS for ms in samples], name=[CLOCK] * len(samples), value=list(samples.values())
        ),
        "kernels": KERNELS.frame(**work, kind=["compute"] * steps, name=["gemm"] * steps, step=list(range(steps))),
        "steps": STEPS.frame(step=list(range(steps)), **times, **windows, window=["device"] * steps),
    }


def clocks(slow: dict[str, pl.DataFrame]) -> dict[str, object]:
    """The clock of rank 1, while three others run at 1800 MHz."""
    run = Run.from_frames({rank: slow if rank == 1 else device({-5: 1800.0}) for rank in range(4)})
    found = run.analyse("rank_counters")
    assert found.filter(pl.col("rank") != 1)["differs"].to_list() == [False] * 3
    return found.row(1, named=True)


def test_a_lower_clock_is_told_with_that_of_the_peers() -> None:
    found = clocks(device({-5: 1450.0}))

    assert (found["role"], found["busy_mean"], found["typical"], found["differs"]) == ("clock", 1450, 1800, True)
    assert found["since_step"] is None


def test_a_clock_that_falls_has_a_step() -> None:
    found = clocks(device({-5: 1800.0, 20: 1450.0}))

    assert (found["since_step"], found["before"], found["after"], found["least"]) == (2, 1800, 1450, 1450)
    assert found["mean"] == (1800 + 1450) / 2


def test_levels_are_weighted_by_time_and_by_computing() -> None:
    found = clocks(device({-5: 1800.0, **{k * 10 + 5: 900.0 for k in range(4)}, **{k * 10: 1800.0 for k in range(4)}}))

    assert (found["mean"], found["busy_mean"], found["differs"]) == (1350, 1800, False)
    assert found["since_step"] is None


def test_nothing_sampled_is_no_answer() -> None:
    with pytest.raises(Unavailable):
        Run.from_frames({rank: {**device({}), "counters": COUNTERS.frame()} for rank in range(2)}).analyse(
            "rank_counters"
        )
