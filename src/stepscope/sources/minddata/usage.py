"""`minddata_cpu_utilization_N.json`: CPU use of the host, the process and the dataset operators' threads.

Percentages are whole numbers, of the machine for the host, of one processor for all else; so they reach 100 times the
number of processors. Times are ms of the host's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import list_of, small_number, whole_number
from stepscope.sources.base import Sink
from stepscope.sources.minddata.files import Clock
from stepscope.sources.minddata.pipeline import Pipeline
from stepscope.sources.side_files import AGAIN, peek_object, read_object
from stepscope.tables import HOST_USAGE

_MS = 1_000_000
_LATEST_MS = 9_000_000_000_000
_MIB = 1 << 20
Values = Sequence[float | None]
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
    """Write the rows of `host_usage`.

    Args:
        usage: The file.
        pipeline: Names the operators.
        clock: Converts its times to those of the table.
        sink: Takes the rows and issues.
        with_host: Whether to write host and process too.
    """
    content, count = usage.content, len(usage.times_ns)
    processors = small_number(content.get("cpu_processor_num"))
    if not count or usage.path is None:
        return
    if processors is None or processors < 1:
        problem = "does not give the number of processors of the host, so CPU shares are unknown"
        sink.issue("error", usage.path, problem, AGAIN, place="cpu_processor_num")
        return
    time_ns = pl.Series("time_ns", usage.times_ns, dtype=pl.Int64) + clock.shift_ns

    def write(scope: str, name: str | None, columns: Mapping[str, Values]) -> None:
        rows = pl.DataFrame([time_ns, *(pl.Series(key, values, pl.Float64) for key, values in columns.items())])
        known = pl.any_horizontal(pl.col(list(columns)).is_not_null())
        counts = [pl.col(key).round().cast(pl.Int64) for key in columns if not key.endswith("_ratio")]
        texts = {"scope": pl.lit(scope), "name": pl.lit(name, pl.String), "processors": pl.lit(processors, pl.Int32)}
        sink.write(HOST_USAGE, rows.filter(known).with_columns(*counts, **texts))

    percent, of_host = 1 / (100 * processors), 1 / 100
    process, host = _Part(content.get("process_info"), count), _Part(content.get("device_info"), count)
    empty = host.measured_nothing(_HOST_CPU)
    nothing = [empty[0] or process.lacks_first(_CPU), *empty[1:]]
    for entry in list_of(content, "op_info"):
        number = small_number(entry.get("op_id")) if isinstance(entry, dict) else None
        if number is not None and number >= 0:  # -1: threads that belong to no operator
            name = pipeline.name(number) or f"Operator_{number}"
            operator = _Part(entry.get("metrics"), count)
            write("operator", name, _without_zeros(operator.take(_CPU, percent), nothing))
    if with_host:
        resident = _Part(content.get("process_memory_info"), count).take(_PROCESS_MEMORY, _MIB)
        write("process", None, _without_zeros(process.take(_CPU, percent), nothing) | resident)
        memory = _Part(content.get("system_memory_info"), count).take(_HOST_MEMORY, _MIB)
        used = host.take(_HOST_CPU, of_host) | host.take(_HOST_COUNTS)
        write("host", None, _without_zeros(used, empty) | memory)
        if host.is_doubled:
            problem = (
                "values of the host are written twice or followed by a zero, and some lists end early; the first of "
                "each pair is used"
            )
            remedy = "Nothing to do: missing values are unknown."
            sink.issue("note", usage.path, problem, remedy, place="device_info")


class _Part:
    """Lists of one part of the file, as one value for each time, null if there is none.

    A list shorter than the times lacks the first sample, which has no interval. MindSpore 2.0 to 2.10 writes each
    value of the machine twice, or with a zero behind it, and cuts some lists off where the times end.

    Args:
        part: The JSON object.
        count: How many times there are.
    """

    def __init__(self, part: Any, count: int) -> None:
        self._part = part
        self._count = count
        lists = [value for value in part.values() if isinstance(value, list)] if isinstance(part, dict) else []
        longest = max(map(len, lists), default=0)
        self.is_doubled = longest >= 2 * count > 2

    def take(self, keys: Keys, factor: float = 1) -> dict[str, Values]:
        """Numbers times a factor, of the first list that is there for each column."""
        return {column: self._values(names, factor) for column, names in keys.items()}

    def measured_nothing(self, keys: Keys) -> list[bool]:
        """For each time whether all shares are zero: those of a machine, which is busy or idle, never are all zero.

        The first sample has no interval to measure.
        """
        samples = [[v for v in sample if v is not None] for sample in zip(*self.take(keys).values(), strict=True)]
        return [len(known) > 2 and not any(known) for known in samples]

    def lacks_first(self, keys: Keys) -> bool:
        """Whether there are values, but none for the first time."""
        return any(any(v is not None for v in of_key) and of_key[0] is None for of_key in self.take(keys).values())

    def _values(self, names: tuple[str, ...], factor: float) -> Values:
        values = next((found for name in names if (found := list_of(self._part, name))), [])
        values = values[:: 2 if self.is_doubled else 1]
        missing = 1 if len(values) < self._count and not self.is_doubled else 0
        numbers = [value * factor if _is_number(value) else None for value in values]
        return ([None] * missing + numbers + [None] * self._count)[: self._count]


def _without_zeros(values: Mapping[str, Values], nothing: Sequence[bool]) -> dict[str, Values]:
    """The values; zeros are unknown at times when nothing was measured."""
    return {
        name: [None if unknown and not value else value for value, unknown in zip(of_key, nothing, strict=True)]
        for name, of_key in values.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**62
