"""What the device could do at most, from `PROF_*/device_<d>/info.json`."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.sources.ascend.side_files import as_index
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.json_files import list_of, read_object
from stepscope.tables import STATED

FLOPS_PER_CYCLE = 4096 * 2
"""Of the cube of an AI core: 16 x 16 x 16 multiplications of half precision and as many additions, the figure by which
MindSpore computes its FLOPS utilisation."""
_MHZ = 1_000_000


def write_device_peak(files: RankFiles, sink: Sink) -> None:
    """Write `device_peak_flops_per_s`: cores times their frequency times `FLOPS_PER_CYCLE`."""
    info = read_object(files.one("device_info"), sink)
    devices = [device for device in list_of(info, "DeviceInfo") if isinstance(device, Mapping)]
    for device in devices[:1]:
        cores, frequency = as_index(device.get("ai_core_num")), as_index(device.get("aic_frequency"))
        if cores and frequency:
            peak = float(cores * frequency * _MHZ * FLOPS_PER_CYCLE)
            sink.write(STATED, STATED.frame(name=["device_peak_flops_per_s"], value=[peak]))
