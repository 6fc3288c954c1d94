"""Clock rates of devices: which are usual, and which are low."""

from __future__ import annotations

import polars as pl
import pytest

from builders import EPOCH_NS, MS, make_run
from stepscope.advice import advise
from stepscope.advice.rules.low_clock import low_clock
from stepscope.analysis.job.frequencies import Limits
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COUNTERS, RANKS

CLOCK = "ai_core_frequency_mhz"


def _run(samples: list[tuple[int, float]], name: str = CLOCK, stated: bool = True) -> Run:
    nominal = 1800.0 if stated else None
    return Run.from_frames(
        {
            0: {
                "ranks": RANKS.frame(nominal_clock_mhz=[nominal], start_ns=[0], end_ns=[100], device=[0]),
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


def _computing_at(rates: list[float]) -> Run:
    """Two steps of 100 ms, of which each rank computes at one rate, and idles at the rate of idle cores."""
    whole = make_run(len(rates), 2, compute_ns=60 * MS, collective_ns=20 * MS)
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in whole.ranks}
    times = [EPOCH_NS, EPOCH_NS + 60 * MS, EPOCH_NS + 100 * MS, EPOCH_NS + 160 * MS]
    for rank, rate in enumerate(rates):
        frames[rank]["ranks"] = RANKS.frame(
            nominal_clock_mhz=[1800.0], device=[0], device_kind=["npu"], start_ns=[EPOCH_NS]
        )
        frames[rank]["counters"] = COUNTERS.frame(
            time_ns=times, name=[CLOCK] * 4, device=[0] * 4, value=[rate, 800.0] * 2
        )
    return Run.from_frames(frames)


def test_ranks_that_compute_at_a_low_rate_are_reported_whatever_they_idle_at() -> None:
    run = _computing_at([1800.0, 1500.0, 1750.0, 1600.0])
    (finding,) = [one for one in advise(run, strict=True) if one.rule == "low-clock"]

    assert finding.ranks == [1, 3]
    assert {name: finding.parameters[name] for name in ("worst_rank", "mean_mhz", "nominal_mhz", "lowest_mhz")} == {
        "worst_rank": 1, "mean_mhz": 1500, "nominal_mhz": 1800, "lowest_mhz": 1500
    }  # fmt: skip
    assert finding.parameters["below_ratio"] == pytest.approx(1 / 6)
    assert finding.saving_high_ns == 0


def test_a_rank_that_is_slow_for_that_is_reported_once() -> None:
    run = _computing_at([1500.0, 1500.0])
    slow = pl.DataFrame({"ranks": ["1"]})

    (finding,) = low_clock(run.analyse("frequencies"), run.analyse("rank_counters"), slow)
    assert finding.ranks == [0]
