"""Counters of a GPU, through a stand-in for NVML."""

from __future__ import annotations

import csv
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.record.device_sampler import DeviceSampler, visible_device


class NVMLError(Exception):
    """As NVML's."""


def nvml(**answers: Any) -> SimpleNamespace:
    """A module that answers like NVML's."""

    def refuse(*_: Any) -> Any:
        raise NVMLError("not supported")

    names = {
        "nvmlDeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=71, memory=12),
        "nvmlDeviceGetMemoryInfo": lambda gpu: SimpleNamespace(used=5, total=9),
        "nvmlDeviceGetClockInfo": lambda gpu, which: 1000 + which,
        "nvmlDeviceGetPowerUsage": lambda gpu: 250_500,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda gpu: 0x44,
        "nvmlDeviceGetTemperature": refuse,
        "nvmlDeviceGetPcieThroughput": lambda gpu, which: 3,
    }
    constants = dict.fromkeys(
        (
            "NVML_CLOCK_SM",
            "NVML_CLOCK_MEM",
            "NVML_TEMPERATURE_GPU",
            "NVML_PCIE_UTIL_TX_BYTES",
            "NVML_PCIE_UTIL_RX_BYTES",
        ),
        1,
    )
    basics = {
        "NVMLError": NVMLError,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda index: f"gpu {index}",
        "nvmlDeviceGetHandleByUUID": lambda uuid: f"gpu {uuid}",
    }
    return SimpleNamespace(**{**basics, **constants, **names, **answers})


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), fieldnames=list(DeviceSampler.file.columns)))


def test_counters_and_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    sampler = DeviceSampler(0, pcie=True)
    found = rows(sampler.read(1) + sampler.read(2))
    first = {row["name"]: float(row["value"]) for row in found if row["time_ns"] == "1"}
    assert first == {
        "gpu_utilization_percent": 71,
        "memory_utilization_percent": 12,
        "memory_used_bytes": 5,
        "memory_total_bytes": 9,
        "sm_clock_mhz": 1001,
        "memory_clock_mhz": 1001,
        "power_w": 250.5,
        "clock_event_reasons": 0x44,
        "pcie_sent_bytes_per_s": 3072,
        "pcie_received_bytes_per_s": 3072,
    }
    assert len(found) == 2 * len(first)


def test_a_module_that_knows_no_reasons_for_lower_clocks_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nvml()
    del module.nvmlDeviceGetCurrentClocksThrottleReasons
    monkeypatch.setitem(sys.modules, "pynvml", module)

    assert "clock_event_reasons" not in [row["name"] for row in rows(DeviceSampler(0, pcie=False).read(1))]


def test_pcie_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    found = rows(DeviceSampler(0, pcie=False).read(1))
    assert not [row for row in found if row["name"].startswith("pcie")]


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> None:
        raise NVMLError("driver not loaded")

    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=no_driver))
    with pytest.raises(RuntimeError, match="driver not loaded"):
        DeviceSampler(0, pcie=False)


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [(0, None, 0), (1, "4,6", 6), (0, "GPU-1, GPU-2", "GPU-1"), (3, "4,6", 3), (0, "", 0)],
)
def test_devices_among_the_visible(device: int, visible: str | None, expected: int | str) -> None:
    assert visible_device(device, visible) == expected
