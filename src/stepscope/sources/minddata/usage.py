"""`minddata_cpu_utilization_N.json`: CPU use of the host, the process and the dataset operators' threads.

Percentages are whole numbers, of the machine for the host, of one processor for all else; so they reach 100 times the
number of processors. Times are ms of the host's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_amount, list_of, small_number, whole_number
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.values import whole
from stepscope.sources.minddata.files import Clock
from stepscope.sources.minddata.pipeline import Pipeline
from stepscope.sources.side_files import AGAIN, peek_object, read_object
from stepscope.tables import HOST_USAGE

_MS = 1_000_000
_LATEST_MS = 9_000_000_000_000
_MIB = 1 << 20
Keys = Mapping[str, tuple[str, ...]]
"""Column to the names that its list may have."""
_CPU: Keys = {"user_ratio": ("user_utilization",), "system_ratio": ("sys_utilization",)}
_HOST_CPU: Keys = {**_CPU, "io_ratio": ("io_utilization",), "idle_ratio": ("idle_utilization",)}
_HOST_COUNTS: Keys = {
    "runnable": ("runnable_process", "runable_processes"),
    "context_switches": ("context_switch_count",),
}
_HOST_MEMORY: Keys = {"available_bytes": ("available_sys_memory_mbytes",), "total_bytes": ("total_sys_memory_mbytes",)}
_PROCESS_MEMORY: Keys = {"rss_bytes": ("rss_mbytes",)}


@dataclass(frozen=True)
class Usage:
    """The content of the file.

    Args:
        path: The file; None if there is none that can be read.
        content: Its JSON object.
        times_ns: When samples were taken, by the monotonic clock.
    """

    path: Path | None = None
    content: Mapping[str, Any] = field(default_factory=dict)
    times_ns: list[int] = field(default_factory=list)


def read_usage(file: Path | None, sink: Sink) -> Usage:
    """Read the file."""
    content = read_object(file, sink)
    if content is None:
        return Usage()
    stamps = list_of(content, "time_stamp")
    times = [time for time in map(whole_number, stamps) if time is not None and 0 <= time < _LATEST_MS]
    if file is not None and content.get("time_stamp") == []:
        problem = "holds no samples: the recording was shorter than the sampling interval"
        sink.issue("note", file, problem, "Nothing to do. Record for longer if you need them.", place="time_stamp")
        return Usage(file, content)
    if file is not None and (len(times) < len(stamps) or not times):
        problem = "has times that are not numbers: its samples are left out" if stamps else "has no sample times"
        sink.issue("error" if stamps else "warning", file, problem, AGAIN, place="time_stamp")
        return Usage(file, content)
    return Usage(file, content, [time * _MS for time in times])


def first_sample_ns(file: Path | None) -> int | None:
    """The time of the first sample by the monotonic clock; None if unknown; damage is not reported."""
    first = next(map(whole_number, list_of(peek_object(file), "time_stamp")), None)
    return None if first is None else first * _MS


def write_usage(usage: Usage, pipeline: Pipeline, clock: Clock, sink: Sink, *, with_host: bool) -> None:
    """Write the rows of `host_usage`: of the operators of the dataset, and with `with_host` of host and process too."""
    content, count = usage.content, len(usage.times_ns)
    processors = small_number(content.get("cpu_processor_num"))
    if not count or usage.path is None:
        return
    if processors is None or processors < 1:
        problem = "does not give the number of processors of the host, so CPU shares are unknown"
        sink.issue("error", usage.path, problem, AGAIN, place="cpu_processor_num")
        return
    time_ns = pl.Series("time_ns", usage.times_ns, dtype=pl.Int64) + clock.shift_ns

    def write(scope: str, name: str | None, samples: pl.DataFrame) -> None:
        known = pl.any_horizontal(pl.col(samples.columns).is_not_null())
        counts = [whole(pl.col(key)) for key in samples.columns if not key.endswith("_ratio")]
        texts = {"scope": pl.lit(scope), "name": pl.lit(name, pl.String), "processors": pl.lit(processors, pl.Int32)}
        sink.write(HOST_USAGE, samples.with_columns(time_ns).filter(known).with_columns(*counts, **texts))

    percent, of_host = 1 / (100 * processors), 1 / 100
    host = content.get("device_info")
    of_machine = _samples(host, _HOST_CPU, count, of_host)
    own = _samples(content.get("process_info"), _CPU, count, percent)
    # A machine is busy or idle: if all its shares are zero, nothing was measured. A first sample has no interval.
    is_empty = of_machine.select(
        (pl.sum_horizontal(pl.all().is_not_null()) > 2) & pl.all_horizontal(pl.all().fill_null(0) == 0)
    ).to_series()
    lacks_first = any(of_key[0] is None and of_key.count() for of_key in own)
    nothing = is_empty | (pl.int_range(count, eager=True) == 0) if lacks_first else is_empty
    for entry in list_of(content, "op_info"):
        number = small_number(entry.get("op_id")) if isinstance(entry, dict) else None
        if number is not None and number >= 0:  # -1: threads that belong to no operator
            name = pipeline.name(number) or f"Operator_{number}"
            write("operator", name, _without_zeros(_samples(entry.get("metrics"), _CPU, count, percent), nothing))
    if with_host:
        resident = _samples(content.get("process_memory_info"), _PROCESS_MEMORY, count, _MIB)
        write("process", None, pl.concat([_without_zeros(own, nothing), resident], how="horizontal"))
        memory = _samples(content.get("system_memory_info"), _HOST_MEMORY, count, _MIB)
        used = pl.concat([of_machine, _samples(host, _HOST_COUNTS, count)], how="horizontal")
        write("host", None, pl.concat([_without_zeros(used, is_empty), memory], how="horizontal"))
        if _is_doubled(host, count):
            problem = (
                "values of the host are written twice or followed by a zero, and some lists end early; the first of "
                "each pair is used"
            )
            remedy = "Nothing to do: missing values are unknown."
            sink.issue("note", usage.path, problem, remedy, place="device_info")


def _is_doubled(part: Any, count: int) -> bool:
    """Whether a part has each value twice, or with a zero behind it, as MindSpore 2.0 to 2.10 writes the machine's."""
    lists = [value for value in part.values() if isinstance(value, list)] if isinstance(part, dict) else []
    return max(map(len, lists), default=0) >= 2 * count > 2


def _samples(part: Any, keys: Keys, count: int, factor: float = 1) -> pl.DataFrame:
    """Numbers of one part of the file times a factor, one for each of `count` times, null if there is none.

    Each column has the first list that is there. A list shorter than the times lacks the first sample, which has no
    interval; but doubled ones are cut off where the times end.
    """
    is_doubled = _is_doubled(part, count)
    columns = {}
    for column, names in keys.items():
        values = next((found for name in names if (found := list_of(part, name))), [])[:: 2 if is_doubled else 1]
        missing = [None] if len(values) < count and not is_doubled else []
        columns[column] = ([*missing, *map(as_amount, values)] + [None] * count)[:count]
    return pl.DataFrame(columns, schema=dict.fromkeys(keys, pl.Float64)) * factor


def _without_zeros(samples: pl.DataFrame, nothing: pl.Series) -> pl.DataFrame:
    """The samples; zeros are unknown at times when nothing was measured."""
    return samples.select(pl.when(~(pl.lit(nothing) & (pl.all() == 0))).then(pl.all()))
