"""What a finding saves in a day, in hours of devices and in money, if the job runs all day."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import polars as pl

from stepscope.advice.finding import CUDA, NPU, ROCM, Finding, platform_of
from stepscope.advice.messages import Text, fill
from stepscope.errors import StepscopeError
from stepscope.present import Language

HOURS = 24
"""Hours of a day."""

CURRENCY = "USD"
"""What a price is in unless it is said."""

DEVICES = {CUDA: "GPU", ROCM: "GPU", NPU: "NPU"}
"""What the devices of a job are called; others are devices."""

DAILY = Text(
    "{hours} {device}-hours[ ({low_hours} to {high_hours})][, {money} {currency}][ ({low_money} to {high_money})] "
    "a day",
    "每天 {hours} {device_zh}小时[（{low_hours} 到 {high_hours}）][，{money} {currency}]"
    "[（{low_money} 到 {high_money}）]",
)
DEVICES_ZH = {"GPU": "GPU ", "NPU": "NPU ", "device": "设备"}


@dataclass(frozen=True)
class Prices:
    """What an hour of a job is.

    Args:
        devices: Number of devices that it occupies.
        device: What they are called: GPU, NPU or device.
        hour_price: Price of an hour of one device; None if unknown.
        currency: What the price is in.
    """

    devices: int
    device: str = "device"
    hour_price: float | None = None
    currency: str = CURRENCY


@dataclass(frozen=True)
class Daily:
    """What a finding saves in a day of a job that runs all day: the estimate, and its bounds.

    Args:
        devices: Number of devices of the job.
        device: What they are called.
        device_hours: Hours of a device.
        low_device_hours: Lower bound of these.
        high_device_hours: Upper bound of these.
        money: Their price; None if the price of an hour is unknown.
        low_money: Lower bound of it.
        high_money: Upper bound of it.
        currency: What the price is in; None if it is unknown.
    """

    devices: int
    device: str
    device_hours: float
    low_device_hours: float
    high_device_hours: float
    money: float | None = None
    low_money: float | None = None
    high_money: float | None = None
    currency: str | None = None


def prices_of(
    ranks: pl.LazyFrame, devices: int | None = None, hour_price: float | None = None, currency: str = CURRENCY
) -> Prices:
    """What an hour of a job is.

    Args:
        ranks: The table of that name.
        devices: Number of devices. Default: the job's world size, or the number of recorded ranks if that is more.
        hour_price: Price of an hour of one device.
        currency: What it is in.

    Raises:
        StepscopeError: If the number is below 1, or the price is not a number of at least 0.
    """
    if devices is not None and devices < 1:
        raise StepscopeError(f"--gpus {devices}: give a number of at least 1")
    if hour_price is not None and not (math.isfinite(hour_price) and hour_price >= 0):
        raise StepscopeError(f"--gpu-hour-price {hour_price}: give a price of at least 0")
    if devices is None:
        recorded, world = ranks.select(pl.len(), pl.col("world_size").max()).collect().row(0)
        devices = max(recorded, world or 0, 1)
    return Prices(devices, DEVICES.get(platform_of(ranks).device or "", "device"), hour_price, currency)


def daily(finding: Finding, prices: Prices | None) -> Daily | None:
    """What a finding saves in a day: the share of the job's time that it saves, of all devices for 24 hours.

    None without prices, if its saving is unknown or nothing, or if it is no share of the steps: of a whole recording,
    of batches, or of what happened in a single step. As no time is claimed by two findings, neither is an hour here.
    """
    if prices is None or finding.saving_ns <= 0 or not finding.replayed or finding.per not in ("step", "iteration"):
        return None
    if len(finding.where.get("steps") or ()) == 1:
        return None
    bounds = (finding.saving_ns, finding.saving_low_ns, finding.saving_high_ns)
    shares = [min(finding.saving_ratio * bound / finding.saving_ns, 1.0) for bound in bounds]
    hours = [share * prices.devices * HOURS for share in shares]
    plain = Daily(prices.devices, prices.device, hours[0], hours[1], hours[2])
    if prices.hour_price is None:
        return plain
    money = [each * prices.hour_price for each in hours]
    return replace(plain, money=money[0], low_money=money[1], high_money=money[2], currency=prices.currency)


def daily_words(saved: Daily, language: Language = "en") -> str:
    """The same in words, e.g. `38.4 GPU-hours (31.0 to 40.1), 76.8 USD (62.0 to 80.2) a day`."""
    hours = [_number(each) for each in (saved.device_hours, saved.low_device_hours, saved.high_device_hours)]
    money = [None if each is None else _number(each) for each in (saved.money, saved.low_money, saved.high_money)]
    known = {
        **_ranged("hours", hours),
        **_ranged("money", money),
        "device": saved.device,
        "device_zh": DEVICES_ZH.get(saved.device, saved.device),
        "currency": saved.currency,
    }
    return fill(DAILY, known, language)


def _ranged(name: str, texts: list[str] | list[str | None]) -> dict[str, str | None]:
    """An estimate, and its bounds if they differ from it as they are written."""
    estimate, low, high = texts
    ranged = low != high
    return {name: estimate, f"low_{name}": low if ranged else None, f"high_{name}": high if ranged else None}


def _number(value: float) -> str:
    """A figure with three digits, or whole.

    Examples:
        >>> _number(1234.5), _number(38.44), _number(0.256), _number(0)
        ('1,234', '38.4', '0.256', '0')
    """
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.9995 else f"{value:.3g}"
