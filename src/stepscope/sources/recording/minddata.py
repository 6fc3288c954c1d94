"""`minddata/`: what MindSpore's dataset profiling wrote of queues, batches and CPU use, one directory a span."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.header import whole_number
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.recording.about import About
from stepscope.tables import HOST_USAGE, INPUT_PIPELINE

_MS = 1_000_000
_USAGE = {"user_ratio": "user_utilization", "system_ratio": "sys_utilization"}
_DEVICE_USAGE = {**_USAGE, "io_ratio": "io_utilization", "idle_ratio": "idle_utilization"}
_BATCH_PARTS = {"0": "get_ns", "1": "push_ns", "2": "duration_ns"}


@dataclass(frozen=True)
class _Span:
    """The files of one span.

    Args:
        directory: Where they are.
        shift_ns: Added to times of the monotonic clock, in ns.
        samples_ns: When samples were taken, by the monotonic clock; empty if unknown.
        operators: The dataset operators by their number.
    """

    directory: Path
    shift_ns: int
    samples_ns: list[int]
    operators: Mapping[int, Mapping[str, Any]]

    def name(self, number: int | None) -> str | None:
        """What an operator is called."""
        entry = self.operators.get(number) if number is not None else None
        return f"{entry.get('op_type') or 'Operator'}_{number}" if entry is not None else None


def minddata_directories(directory: Path) -> list[Path]:
    """The directories of the spans, in order of time."""
    try:
        found = [entry for entry in (directory / "minddata").iterdir() if entry.is_dir()]
    except OSError:
        return []
    return sorted(found, key=lambda entry: (int(entry.name) if entry.name.isdecimal() else 0, entry.name))


def write_minddata(about: About, steps: Steps, sink: Sink, *, with_host: bool) -> None:
    """Write what the files give of `input_pipeline` and `host_usage`.

    Args:
        about: The recording.
        steps: Its steps.
        sink: Takes the rows.
        with_host: Whether to write samples of host and process too, which the recorder's own usually are.
    """
    for number, directory in enumerate(minddata_directories(about.directory)):
        usage = _json(directory, "minddata_cpu_utilization_", sink)
        pipeline = _json(directory, "pipeline_profiling_", sink)
        times = [whole_number(time) for time in _list(usage, "time_stamp")]
        samples_ns = [time * _MS for time in times if time is not None]
        listed = (o for o in _list(pipeline, "op_info") if isinstance(o, dict))
        operators = {one: o for o in listed if (one := whole_number(o.get("op_id"))) is not None}
        shift_ns = _shift(about, number, samples_ns, directory, sink)
        if shift_ns is None:
            continue
        span = _Span(directory, shift_ns, samples_ns, operators)
        _write_queues(span, pipeline, steps, sink)
        _write_batches(span, steps, sink)
        _write_usage(span, usage, sink, with_host=with_host)


def _shift(about: About, number: int, samples_ns: Sequence[int], directory: Path, sink: Sink) -> int | None:
    """What makes monotonic times those of the events; from the start of the span where the recorder did not say."""
    if about.epoch_shift_ns is not None:
        return about.epoch_shift_ns + about.shift_ns
    if samples_ns and number < len(about.spans):
        problem = "times of the dataset are known to a sampling interval only: the recorder did not relate the clocks"
        sink.issue("note", directory, problem, "Record with a newer stepscope if that matters")
        return about.spans[number][0] - samples_ns[0] + about.shift_ns
    problem = "the clock of the dataset's files is not related to that of the recording; they are left out"
    sink.issue("warning", directory, problem, "Record again with a newer stepscope")
    return None


def _write_queues(span: _Span, pipeline: Mapping[str, Any], steps: Steps, sink: Sink) -> None:
    """Fill of each operator's output queue, sample by sample."""
    parents = {
        child: number
        for number, entry in span.operators.items()
        for child in map(whole_number, _list(entry, "children"))
    }
    every_ns = (whole_number(pipeline.get("sampling_interval")) or 0) * _MS
    for number, entry in span.operators.items():
        metrics = entry.get("metrics")
        queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
        sizes = [whole_number(size) for size in _list(queue, "size")]
        times = span.samples_ns
        if len(times) < len(sizes) and times and every_ns:
            times = [times[0] + k * every_ns for k in range(len(sizes))]
        count = min(len(times), len(sizes))
        if not count or not isinstance(queue, dict):
            continue
        time_ns = pl.Series("time_ns", times[:count], dtype=pl.Int64) + span.shift_ns
        rows = pl.DataFrame([time_ns, pl.Series("queue_size", sizes[:count], dtype=pl.Int64)]).with_columns(
            operator=pl.lit(span.name(number)),
            parent=pl.lit(span.name(parents.get(number)), pl.String),
            queue_capacity=pl.lit(whole_number(queue.get("length")), pl.Int64),
            workers=pl.lit(whole_number(entry.get("num_workers")), pl.Int32),
            step=steps.of(time_ns),
        )
        sink.write(INPUT_PIPELINE, rows)


def _write_batches(span: _Span, steps: Steps, sink: Sink) -> None:
    """Batch by batch, what the iterator or the queue to the device cost: lines `type extra batch value time`."""
    for kind in ("dataset_iterator", "device_queue"):
        for file in sorted(span.directory.glob(f"{kind}_profiling_*.txt")):
            try:
                text = file.read_bytes().decode("utf-8", "replace")
            except OSError as error:
                _tell_unread(file, error, sink)
                continue
            batches: dict[int, dict[str, int]] = {}
            lost = 0
            for line in text.splitlines():
                fields = line.split()
                if len(fields) != 5 or not all(field.lstrip("-").isdecimal() for field in fields):
                    lost += 1
                    continue
                row = batches.setdefault(int(fields[2]), {})
                row["time_ns"] = max(row.get("time_ns", 0), int(fields[4]) * _MS + span.shift_ns)
                if fields[0] == "1":
                    row |= {"queue_capacity": int(fields[1]), "queue_size": int(fields[3])}
                elif fields[1] in _BATCH_PARTS:
                    row[_BATCH_PARTS[fields[1]]] = int(fields[3]) * _MS
            if lost:
                problem = f"{lost} lines are damaged and left out"
                sink.issue("warning", file, problem, "The rest is complete", lost=lost)
            columns = ("time_ns", "queue_capacity", "queue_size", *_BATCH_PARTS.values())
            rows = pl.DataFrame(
                [{"batch": batch, **row} for batch, row in batches.items()],
                schema=dict.fromkeys(("batch", *columns), pl.Int64),
            )
            sink.write(INPUT_PIPELINE, rows.with_columns(operator=pl.lit(kind), step=steps.of(rows["time_ns"])))


def _write_usage(span: _Span, usage: Mapping[str, Any], sink: Sink, *, with_host: bool) -> None:
    """CPU use of operators, and of host and process if wanted.

    Some versions write each value of the machine twice, or with a zero behind it, and cut some lists off where the
    times end, so the second half is lost. A list shorter by one lacks the first sample, which has nothing before it.
    """
    count = len(span.samples_ns)
    processors = whole_number(usage.get("cpu_processor_num")) or None
    if not count or processors is None:
        return
    time_ns = pl.Series("time_ns", span.samples_ns, dtype=pl.Int64) + span.shift_ns

    def write(scope: str, name: str | None, columns: Mapping[str, Sequence[float | None]]) -> None:
        rows = pl.DataFrame([time_ns, *(pl.Series(key, values) for key, values in columns.items())])
        known = pl.any_horizontal(pl.col(list(columns)).is_not_null())
        texts = {"scope": pl.lit(scope), "name": pl.lit(name, pl.String), "processors": pl.lit(processors, pl.Int32)}
        sink.write(HOST_USAGE, rows.filter(known).with_columns(**texts))

    device, process = usage.get("device_info"), usage.get("process_info")
    for entry in _list(usage, "op_info"):
        number = whole_number(entry.get("op_id")) if isinstance(entry, dict) else None
        if number is not None and number >= 0:
            name = span.name(number) or f"Operator_{number}"
            write("operator", name, _shares(entry.get("metrics"), _USAGE, count, 100 * processors))
    if with_host:
        write("process", None, _shares(process, _USAGE, count, 100 * processors))
        doubled = any(len(_list(device, key)) > count for key in _list_names(device))
        write("host", None, _shares(device, _DEVICE_USAGE, count, 100, every=2 if doubled else 1))


def _shares(
    part: Any, keys: Mapping[str, str], count: int, whole: int, every: int = 1
) -> dict[str, Sequence[float | None]]:
    """Percentages as shares of `whole`, one for each of `count` times, null where there is none."""
    found: dict[str, Sequence[float | None]] = {}
    for name, key in keys.items():
        values = _list(part, key)[::every]
        missing = 1 if len(values) == count - 1 and every == 1 else 0
        numbers = [value / whole if isinstance(value, (int, float)) else None for value in values]
        found[name] = ([None] * missing + numbers + [None] * count)[:count]
    return found


def _list_names(part: Any) -> Iterable[str]:
    return part.keys() if isinstance(part, dict) else ()


def _list(part: Any, key: str) -> list[Any]:
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, list) else []


def _json(directory: Path, prefix: str, sink: Sink) -> Mapping[str, Any]:
    """The first JSON object of that name; empty if there is none, or it cannot be read."""
    for file in sorted(directory.glob(f"{prefix}*.json")):
        try:
            value = json.loads(file.read_bytes())
        except OSError as error:
            _tell_unread(file, error, sink)
        except (ValueError, RecursionError) as error:
            sink.issue("error", file, f"is damaged ({error})", "Record again; all else is read")
        else:
            return value if isinstance(value, dict) else {}
    return {}


def _tell_unread(file: Path, error: OSError, sink: Sink) -> None:
    sink.issue("error", file, f"cannot be read: {error.strerror or error}", "Check the file and the disk that it is on")
