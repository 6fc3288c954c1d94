"""Ranges of CUPTI's range profiler: hardware counters by kernel, recorded instead of when kernels ran.

The profiler knows no times of its ranges and shares out the recording among them evenly, so they are no device work and
no host ranges. With `profiler_measure_per_kernel` there is one for each kernel, in the order of the launches.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.device import LAUNCH
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import COUNTER_COLUMNS, event_frame
from stepscope.tables import COUNTERS, KERNELS


def write_counter_ranges(events: Events, path: Path, sink: Sink) -> int:
    """Write the counters of each kernel, at the time of its launch, and report that kernel times are missing.

    Returns:
        How many ranges there are.
    """
    ranges = _sorted(events, "counter_range", [*COUNTER_COLUMNS, "device"])
    if not ranges.height:
        return 0
    launches = _sorted(events, "runtime", ["name"]).filter(pl.col("name").str.contains(LAUNCH))
    known = [name for name in COUNTER_COLUMNS if ranges[name].count()]
    if launches.height == ranges.height and known:
        at = ranges.with_columns(time_ns=launches["start_ns"])
        rows = at.unpivot(known, index=["time_ns", "device"], variable_name="name").drop_nulls("value")
        sink.write(COUNTERS, rows.with_columns(pl.col("name").replace(COUNTER_COLUMNS)).sort("time_ns", "name"))
        where = f"their counters ({len(known)}) are in the table `counters`, at the launch of each kernel"
    else:
        where = f"they are not read: they come with {launches.height} launches and {len(known)} known counters"
    problem = f"{ranges.height} counter ranges of CUPTI's range profiler were recorded, but no kernel times; {where}"
    remedy = "Record again without profiler_metrics to see when kernels ran"
    sink.issue("warning", path, problem, remedy, place=KERNELS.name)
    return ranges.height


def _sorted(events: Events, name: str, columns: list[str]) -> pl.DataFrame:
    """Events of a class in order of time."""
    columns = ["start_ns", *columns]
    empty = event_frame(name, pl.DataFrame()).select(columns)
    return pl.concat([empty, *events.frames(name, columns)]).sort("start_ns", maintain_order=True)
