"""Whether the times of `hccl_raw` are ms, as MindSpore wrote until 2.0, or us, as from 2.1 under the same headers."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.ranks import read_info
from stepscope.sources.classic.step_trace import read_step_trace
from stepscope.sources.sinks import SilentSink

MS, US = 1_000_000, 1_000
"""Units in ns."""
_NAMES = {MS: "ms", US: "us"}
_MOST_STEPS = 20.0
"""No more communication and waiting than this many times the step; streams do overlap."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


def unit_of(files: RankFiles, steps: pl.DataFrame, links: pl.DataFrame, sink: Sink) -> int:
    """The unit of the times of a file, in ns; reported if the version differs or nothing gives it.

    The file itself goes first: a call's recorded bandwidth is KB/s, or KB/us for SDMA where times are us, so it
    is 1000 times size over time for ms and once (or a million times) that for us. Then the version counts, unless the
    communication of a step would then take many times as long as the step.

    Args:
        files: The rank.
        steps: `cost` and `wait` of each step.
        links: What went over links, as `call_cells.LINKS`.
        sink: Takes a note if the unit was in doubt.
    """
    path = files.one("calls") or files.path
    versions, own = _by_version(files), _by_bandwidth(links)
    unit = own or versions or MS
    ratio = _steps_long(files, steps, unit)
    if own is None and ratio is not None and ratio > _MOST_STEPS and unit == MS:
        unit = US
    if unit == versions or (versions is None and own is not None):
        return unit
    _report_unit(path, unit, versions, own, ratio, sink)
    return unit


def _report_unit(path: Path, unit: int, versions: int | None, own: int | None, ratio: float | None, sink: Sink) -> None:
    if own and versions is not None:
        problem = f"its times are read as {_NAMES[unit]} to match its bandwidths; its version writes {_NAMES[versions]}"
    elif versions is not None:
        problem = f"its times are read as {_NAMES[unit]}: in {_NAMES[versions]}, they would be {ratio:.0f} steps long"
    elif unit == US:
        problem = f"its times are read as us: in ms, they would be {ratio:.0f} steps long"
    else:
        problem = "its times are read as ms; without a version, they could be us"
    sink.issue("note", path, problem, "Keep profiler_info with the file: it has the version that wrote it")


def _by_version(files: RankFiles) -> int | None:
    """ms until 2.0, us from 2.1; ms in what this tool exports, which names the framework."""
    info = read_info(files)
    if info.get("framework"):
        return MS
    match = _VERSION.match(str(info.get("ms_version") or ""))
    if match is None:
        return None
    return US if (int(match[1][:6]), int(match[2][:6])) >= (2, 1) else MS


def _by_bandwidth(links: pl.DataFrame) -> int | None:
    """The unit that the bandwidths of calls imply; those of whole steps are sums and imply none."""
    of_calls = links.filter(pl.col("name").is_not_null() & (pl.col("time") > 0) & (pl.col("size") > 0))
    factor = of_calls.select((pl.col("stated") * pl.col("time") / pl.col("size")).median()).item()
    if factor is None:
        return None
    units = {1000.0: MS, 1.0: US, 1e6: US}
    return next((unit for value, unit in units.items() if abs(factor - value) < 0.01 * value), None)


def _steps_long(files: RankFiles, steps: pl.DataFrame, unit: int) -> float | None:
    """Median communication of a step in lengths of a step; null if no step is known."""
    path = files.one("step_trace")
    trace = None if path is None else read_step_trace(path, files.rank, SilentSink())
    length = None if trace is None else trace.steps.select((pl.col("end_ns") - pl.col("start_ns")).median()).item()
    spent = steps.select((pl.col("cost") + pl.col("wait").fill_null(0)).median()).item()
    if length is None or length <= 0 or spent is None:
        return None
    return float(spent) * unit / float(length)
