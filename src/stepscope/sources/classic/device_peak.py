"""What the device could do at most, from `PROF_*/device_<d>/info.json`."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.json_values import as_index, list_of
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.side_files import read_object
from stepscope.tables import RANK_FIGURES

FLOPS_PER_CYCLE = 4096 * 2
"""Of the cube of an AI core: 16 x 16 x 16 multiplications of half precision and as many additions, the figure by which
MindSpore computes its FLOPS utilisation."""
_MHZ = 1_000_000


def write_device_peak(files: RankFiles, sink: Sink) -> None:
    """Write `device_peak_flops_per_s`: cores times their frequency times `FLOPS_PER_CYCLE`."""
    path = files.one("device_info")
    info = read_object(path, sink)
    if info is None or path is None:
        return
    devices = [device for device in list_of(info, "DeviceInfo") if isinstance(device, Mapping)]
    device: Mapping[str, object] = next(iter(devices), {})
    cores, frequency = as_index(device.get("ai_core_num")), as_index(device.get("aic_frequency"))
    if cores and frequency:
        peak = float(cores * frequency * _MHZ * FLOPS_PER_CYCLE)
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=["device_peak_flops_per_s"], value=[peak]))
    else:
        problem = "does not give the number and frequency of the device's AI cores, so its peak is unknown"
        sink.issue("note", path, problem, "Pass the peak of the device to get shares of it.")
