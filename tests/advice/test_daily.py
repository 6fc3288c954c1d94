"""Savings of a day: hours of devices, and money."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.advice import Finding
from stepscope.advice.daily import Daily, Prices, daily, daily_words, prices_of
from stepscope.errors import StepscopeError


def finding(saving_ns: int = 50, ratio: float = 0.05, *, replayed: bool = True, **more: Any) -> Finding:
    return Finding("slow-rank", "computing", {}, saving_ns, ratio, replayed=replayed, **more)


def test_the_share_of_the_steps_is_that_of_all_devices_for_a_day() -> None:
    saved = daily(finding(saving_low_ns=40, saving_high_ns=100), Prices(64, "GPU", 2.5, "EUR"))

    assert saved is not None
    assert (saved.devices, saved.device, saved.currency) == (64, "GPU", "EUR")
    hours = (saved.device_hours, saved.low_device_hours, saved.high_device_hours)
    assert hours == pytest.approx((76.8, 61.44, 153.6))
    assert (saved.money, saved.low_money, saved.high_money) == pytest.approx((192, 153.6, 384))


def test_without_a_price_there_is_no_money() -> None:
    assert daily(finding(), Prices(10, "NPU")) == Daily(10, "NPU", 12.0, 12.0, 12.0)


@pytest.mark.parametrize(
    "unknown",
    [
        finding(0, 0.0),
        finding(0, 0.0, saving_high_ns=100),
        finding(replayed=False),
        finding(per="recording"),
        finding(per="batch"),
        finding(where={"steps": [3]}),
    ],
)
def test_a_saving_that_is_unknown_or_no_share_of_the_steps_has_none(unknown: Finding) -> None:
    assert daily(unknown, Prices(8)) is None
    assert daily(finding(), None) is None


def test_no_more_than_all_time_is_saved() -> None:
    saved = daily(finding(900, 0.9, saving_high_ns=2000), Prices(1))

    assert saved is not None
    assert saved.high_device_hours == 24


@pytest.mark.parametrize(
    ("device", "world", "expected"),
    [("cuda", 64, Prices(64, "GPU")), ("npu", None, Prices(2, "NPU")), ("cpu", 1, Prices(2, "device"))],
)
def test_a_job_has_as_many_devices_as_ranks(device: str, world: int | None, expected: Prices) -> None:
    facts = {"rank": [0, 1], "framework": ["pytorch"] * 2, "device_kind": [device] * 2, "world_size": [world] * 2}
    ranks = pl.LazyFrame(facts, schema_overrides={"world_size": pl.Int64})

    assert prices_of(ranks) == expected
    assert prices_of(ranks, 5).devices == 5


@pytest.mark.parametrize(("devices", "price"), [(0, None), (None, -1.0), (None, float("nan"))])
def test_impossible_figures_are_refused(devices: int | None, price: float | None) -> None:
    with pytest.raises(StepscopeError, match="give a"):
        prices_of(pl.LazyFrame({"rank": [0]}), devices, price)


def test_words() -> None:
    saved = Daily(64, "GPU", 76.8, 61.44, 153.6, 192, 153.6, 384, "EUR")

    assert daily_words(saved) == "76.8 GPU-hours (61.4 to 154), 192 EUR (154 to 384) a day"
    assert daily_words(saved, "zh") == "每天 76.8 GPU 小时（61.4 到 154），192 EUR（154 到 384）"
    assert daily_words(Daily(1, "device", 1.2, 1.2, 1.2)) == "1.20 device-hours a day"
    assert daily_words(Daily(1, "device", 1.2, 1.2, 1.2), "zh") == "每天 1.20 设备小时"
