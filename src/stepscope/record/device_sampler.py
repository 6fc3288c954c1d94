"""Samples of NVIDIA GPUs: utilisation, clocks, power, PCIe throughput and memory, through NVML."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from stepscope.recording_format.rows import DEVICE, row_lines

_REASONS = "nvmlDeviceGetCurrentClocksThrottleReasons"


class DeviceSampler:
    """Reads the counters of one GPU at every call. Counters that the GPU does not support are left out.

    Args:
        device: Index among the visible devices, as in the framework.
        pcie: Also sample PCIe throughput; NVML measures it for 20 ms each way.

    Raises:
        ImportError: If `nvidia-ml-py` is not installed.
        RuntimeError: If the driver or the device is missing.
    """

    file = DEVICE

    def __init__(self, device: int, *, pcie: bool) -> None:
        import pynvml  # noqa: PLC0415 - needed only with a GPU

        self._nvml = pynvml
        self._device = device
        try:
            pynvml.nvmlInit()
            chosen = visible_device(device, os.environ.get("CUDA_VISIBLE_DEVICES"))
            find = pynvml.nvmlDeviceGetHandleByIndex if isinstance(chosen, int) else pynvml.nvmlDeviceGetHandleByUUID
            self._handle = find(chosen)
        except pynvml.NVMLError as error:
            raise RuntimeError(f"NVML cannot open GPU {device} ({error})") from error
        self._readings = {
            name: read for name, read in self._all_readings().items() if pcie or not name.startswith("pcie")
        }
        if not hasattr(pynvml, _REASONS):  # older versions of the module
            del self._readings["clock_event_reasons"]

    def read(self, time_ns: int) -> str:
        """One sample, as lines of `file`."""
        rows = []
        for name, read in list(self._readings.items()):
            try:
                rows.append((time_ns, self._device, name, read()))
            except self._nvml.NVMLError:
                del self._readings[name]
        return row_lines(rows)

    def _all_readings(self) -> dict[str, Callable[[], Any]]:
        nvml, gpu = self._nvml, self._handle
        return {
            "gpu_utilization_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "memory_utilization_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).memory,
            "memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
            "memory_total_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
            "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),
            "clock_event_reasons": lambda: getattr(nvml, _REASONS)(gpu),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
            "pcie_sent_bytes_per_s": lambda: 1024 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_TX_BYTES),
            "pcie_received_bytes_per_s": lambda: (
                1024 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_RX_BYTES)
            ),
        }


def visible_device(device: int, visible: str | None) -> int | str:
    """Machine-wide index or UUID of the device with this index among the visible ones.

    Examples:
        >>> visible_device(1, "4,6"), visible_device(0, "GPU-8932f937"), visible_device(2, None)
        (6, 'GPU-8932f937', 2)
    """
    named = [name.strip() for name in (visible or "").split(",") if name.strip()]
    if device >= len(named):
        return device
    return int(named[device]) if named[device].isdecimal() else named[device]
