"""Clock rates of devices: which are usual, and which are low."""

from __future__ import annotations

import pytest

from stepscope.analysis.job.frequencies import Limits
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COUNTERS, RANKS

CLOCK = "ai_core_frequency_mhz"


def _run(samples: list[tuple[int, float]], name: str = CLOCK, stated: bool = True) -> Run:
    options = '{"device_info": {"aic_frequency": 1800}}' if stated else None
    return Run.from_frames(
        {
            0: {
                "ranks": RANKS.frame(options=[options], start_ns=[0], end_ns=[100], device=[0]),
                "counters": COUNTERS.frame(
                    time_ns=[time for time, _ in samples],
                    name=[name] * len(samples),
                    device=[0] * len(samples),
                    value=[value for _, value in samples],
                ),
            }
        }
    )


@pytest.mark.parametrize(
    ("samples", "state", "below", "rates"),
    [
        ([(0, 1800.0)], "normal", 0.0, "1800"),
        ([(0, 1800.0), (75, 800.0)], "idle", 0.25, "800, 1800"),
        ([(0, 1800.0), (25, 1450.0), (75, 1800.0)], "low", 0.5, "1450, 1800"),
        ([(0, 1800.0), (50, 800.0), (60, 1200.0)], "low", 0.5, "800, 1200, 1800"),
    ],
)
def test_what_a_device_ran_at(samples: list[tuple[int, float]], state: str, below: float, rates: str) -> None:
    (row,) = _run(samples).analyse("frequencies").to_dicts()

    assert (row["state"], row["below_ratio"], row["rates_mhz"], row["nominal_mhz"]) == (state, below, rates, 1800)


def test_the_mean_is_over_time() -> None:
    (row,) = _run([(0, 1000.0), (90, 2000.0)]).analyse("frequencies").to_dicts()

    assert (row["lowest_mhz"], row["mean_mhz"], row["highest_mhz"]) == (1000, 1100, 2000)


def test_what_a_device_is_made_for_is_unknown_unless_recorded_or_given() -> None:
    run = _run([(0, 1000.0)], stated=False)
    (row,) = run.analyse("frequencies").to_dicts()

    assert (row["state"], row["below_ratio"], row["nominal_mhz"]) == (None, None, None)
    assert run.analyse("frequencies", limits=Limits(nominal_mhz=1000.0))["state"].to_list() == ["normal"]
    (other,) = _run([(0, 1000.0)], name="sm_clock_mhz").analyse("frequencies").to_dicts()
    assert other["state"] is None


def test_many_rates_are_a_range() -> None:
    (row,) = _run([(k, 1000.0 + k) for k in range(20)]).analyse("frequencies").to_dicts()

    assert row["rates_mhz"] == "1000 to 1019"


def test_without_clock_rates_there_is_a_reason() -> None:
    with pytest.raises(Unavailable, match="no clock rates"):
        _run([(0, 1.0)], name="power_w").analyse("frequencies")
