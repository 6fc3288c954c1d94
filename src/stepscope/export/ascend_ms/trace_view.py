"""trace_view.json: the timeline as a list of Chrome trace events, never larger than the limit and always complete.

On a host alone, communication and overlap are what its threads did; there are no kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import polars as pl

from stepscope.analysis.methods.intervals import WINDOW
from stepscope.analysis.step.activity import WORK
from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.communication import named_calls
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.collective_tables import ELEMENT_BYTES
from stepscope.tables.steps import WHOLE_RECORDING
from stepscope.timeline.overlaps import overlaps
from stepscope.timeline.writing.events import (
    SEPARATOR,
    arguments,
    arrow_end,
    capped,
    complete,
    json_value,
    names,
    sample,
)

HOST, RUNTIME, COLLECTION = "Python", "CANN", "Python GC"
DEVICE, COMMUNICATION, OVERLAP, COUNTERS = "Ascend Hardware", "Communication", "Overlap Analysis", "Counters"
"""Names of processes that readers look for; their labels name the device."""
_ORDER = {HOST: 0, COLLECTION: 1, RUNTIME: 2, DEVICE: 8, COUNTERS: 9, COMMUNICATION: 10, OVERLAP: 11}
_ON_HOST = (HOST, RUNTIME, COLLECTION)
_FIRST_NAMED_THREAD = 1 << 22
"""Threads that are no number get numbers from here on; those of Linux end below."""
STEP = "ProfilerStep#"
_PROCESS = {"runtime": RUNTIME, "gc": COLLECTION}
_CATEGORY = {"operator": "cpu_op", "python": "python_function", "gc": "GC"}
_LEFT = ("kernel", "memory", "communication", "communication_task", "device_annotation")
"""Slices of the device, which the device's own tables give."""
_ARGUMENTS = {
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "input_shapes": "Input Dims",
    "input_types": "Input type",
    "text": "Call stack",
}
OVERLAPS = {
    "computing": "Computing",
    "communication": "Communication",
    "communication_alone": "Communication(Not Overlapped)",
    "free": "Free",
}
"""Rows of the overlap analysis, of each of `overlaps`."""
ELEMENT_TYPES = {
    "float": "FP32",
    "double": "FP64",
    "c10::half": "FP16",
    "half": "FP16",
    "c10::bfloat16": "BFP16",
    "bfloat16": "BFP16",
    "int": "INT32",
    "long int": "INT64",
    "long": "INT64",
    "short": "INT16",
    "signed char": "INT8",
    "unsigned char": "UINT8",
    "byte": "UINT8",
    "bool": "UINT8",
}
"""Element types as frameworks record them, and as the format does."""


def trace_view(export: RankExport) -> Iterator[str]:
    """The file, in parts. What explains the job comes first, so that a timeline that is cut still shows the steps;
    the names of a track stand before the first event on it."""
    tracks = Tracks(export)
    kinds = (_step_events, _overlap_events, _communication_events, _kernel_events, _counter_events, _host_events)
    events = chain.from_iterable(make(export, tracks) for make in kinds)
    first = next(events, None)
    if first is None:
        raise Unavailable("nothing with a time was recorded")
    entries = (SEPARATOR.join((*tracks.new_names(), event)) for event in chain([first], events))

    def note(written: int, cut: int) -> None:
        limit = f"timeline_limit ({export.timeline_limit_bytes} bytes)"
        reason = f"holds the first {written} of {written + cut} events, as many as {limit} allows"
        export.leave_out("trace_view.json", reason)

    return capped(entries, export.timeline_limit_bytes, note)


def _step_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """The steps as ranges of the main thread."""
    steps = export.rows("steps").filter(pl.col("window") != WHOLE_RECORDING)
    for step, start, end in steps.sort("start_ns").select("step", "start_ns", "end_ns").iter_rows():
        track = tracks.thread(HOST, str(tracks.pid))
        yield _range(f"{STEP}{step}", track, start, end - start, category="cpu_op")


def _host_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """All ranges of the host but the steps, and the arrows from forward to backward, in order of start."""
    slices = export.rows("slices").filter(
        ~pl.col("category").is_in(_LEFT) & pl.col("stream").is_null() & ~pl.col("name").str.starts_with(STEP)
    )
    stacks = export.rows("stacks").select("stack", "text")
    details = export.rows("operators").select("slice", "stack", *(name for name in _ARGUMENTS if name != "text"))
    details = details.join(stacks, on="stack", how="left").drop("stack")
    rows = in_order(slices).join(details, on="slice", how="left", maintain_order="left")
    columns = ["start_ns", "duration_ns", "category", "name", "thread", "correlation", *_ARGUMENTS]
    for start, duration, category, name, thread, correlation, *values in rows.select(columns).iter_rows():
        track = tracks.thread(_PROCESS.get(category, HOST), thread or str(tracks.pid))
        args = _arguments(correlation, values)
        yield _range(name, track, start, duration, args, category=_CATEGORY.get(category))
    yield from _arrows(export, tracks)


def _counter_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """Samples of counters."""
    for name, time, value in (
        export.rows("counters").sort("time_ns", maintain_order=True).select("name", "time_ns", "value").iter_rows()
    ):
        yield sample(name, (tracks.process(COUNTERS), 0), time, value, as_text=True)


def _arguments(correlation: int | None, values: list[Any]) -> dict[str, Any]:
    args = {title: value for title, value in zip(_ARGUMENTS.values(), values, strict=True) if value is not None}
    if "Call stack" in args:
        args["Call stack"] = args["Call stack"].replace("\n", ";\r\n")
    if correlation is not None:
        args["connection_id"] = correlation
    return args


def _arrows(export: RankExport, tracks: Tracks) -> Iterator[str]:
    flows = export.rows("flows").filter(pl.col("kind") == "forward_backward").drop_nulls(["from_ns", "to_ns"])
    columns = ["flow", "from_ns", "from_thread", "to_ns", "to_thread"]
    for flow, *ends in flows.sort("from_ns", maintain_order=True).select(columns).iter_rows():
        for phase, time, thread in (("s", *ends[:2]), ("f", *ends[2:])):
            track, is_tail = tracks.thread(HOST, thread or str(tracks.pid)), phase == "s"
            yield arrow_end("fwdbwd", track, time, json_value(flow), is_tail=is_tail, category="fwdbwd", as_text=True)


def _kernel_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """Kernels and memory operations by stream, without calls of communication."""
    kind = str(export.facts.get("device_kind") or "device").upper()
    task = (
        pl.when(pl.col("kind") != "memory")
        .then(pl.col("core").fill_null(f"KERNEL_{kind}"))
        .when(pl.col("name").str.contains("(?i)memset"))
        .then(pl.lit("MEMSET_ASYNC"))
        .otherwise(pl.lit("MEMCPY_ASYNC"))
    )
    kernels, calls = export.rows("kernels"), export.rows("collectives")
    is_call = (pl.col("kind") == "communication") & pl.col("start_ns").is_in(calls["start_ns"].implode())
    rows = in_order(kernels.filter(~is_call)).select(
        "start_ns", "duration_ns", "name", "stream", "correlation", "size_bytes", task.alias("task")
    )
    for start, duration, name, stream, correlation, size, task_type in rows.iter_rows():
        track = tracks.thread(DEVICE, str(stream or 0), f"Stream {stream or 0}")
        known = {"Stream Id": stream, "connection_id": correlation, "size(B)": size}
        args = {"Task Type": task_type, **{title: value for title, value in known.items() if value is not None}}
        yield _range(name, track, start, duration, args)


def _communication_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """Calls of communication by group."""
    places: dict[str | None, int] = {}
    for row in named_calls(export).iter_rows(named=True):
        place = places.setdefault(row["group"], len(places))
        track = tracks.thread(COMMUNICATION, str(place), f"Group {place} Communication")
        yield _range(row["call"], track, row["start_ns"], row["duration_ns"], _payload(row))


def _overlap_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """When the rank was computing, communicating, both, or neither, from its first work to its last."""
    try:
        activity: pl.DataFrame = export.run.analyse("activity")
    except Unavailable:
        return
    work = activity.filter(pl.col("what").is_in(WORK))
    if work.is_empty():
        return
    window = work.group_by("rank").agg(pl.min("start_ns"), pl.max("end_ns"), pl.lit(0, pl.Int64).alias(WINDOW))
    found = overlaps(activity, window.lazy())
    for place, (part, name) in enumerate(OVERLAPS.items()):
        for start, end in found[part].select("start_ns", "end_ns").iter_rows():
            yield _range(name, tracks.thread(OVERLAP, str(place), name), start, end - start)


def _payload(row: dict[str, Any]) -> dict[str, Any]:
    """What is known of a call's data; the format gives its size as a number of elements."""
    recorded = str(row["element_type"] or "")
    element = ELEMENT_TYPES.get(recorded.lower(), recorded)
    args: dict[str, Any] = {"data_type": element} if element else {}
    width = ELEMENT_BYTES.get(element)
    if width and row["size_bytes"] is not None and row["size_bytes"] % width == 0:
        args["count"] = row["size_bytes"] // width
    if row["correlation"] is not None:
        args["connection_id"] = row["correlation"]
    return args


class Tracks:
    """Gives out process and thread numbers.

    Args:
        export: For the real process, and the device.
    """

    def __init__(self, export: RankExport) -> None:
        facts = export.facts
        self.pid = int(facts.get("process") or 0)
        self.device = int(facts.get("device") or 0)
        kind = str(facts.get("device_kind") or "cpu").upper()
        self._label = "CPU" if kind == "CPU" else f"{'NPU' if kind == 'NPU' else 'GPU'} {self.device}"
        self._threads: dict[tuple[str, str], int] = {}
        self._names: list[str] = []
        self._seen: set[str] = set()

    def process(self, name: str) -> int:
        """The number of a process of the format: the real one for the host, else one that ends in the device."""
        pid = self.pid if name == HOST else (self.pid << 10) | (_ORDER[name] << 5) | (self.device & 31)
        if name not in self._seen:
            self._seen.add(name)
            label = "CPU" if name in _ON_HOST else self._label
            self._names += names("process", (pid, 0), name=name, labels=label, sort_index=_ORDER[name])
        return pid

    def thread(self, process: str, thread: str, title: str | None = None) -> tuple[int, int]:
        """Process and thread number of a track, by its name."""
        pid, key = self.process(process), (process, thread)
        if key not in self._threads:
            others = sum(of == process for of, _ in self._threads)
            tid = int(thread) if thread.isdecimal() and len(thread) < 16 else _FIRST_NAMED_THREAD + others
            self._threads[key] = tid
            self._names += names("thread", (pid, tid), name=title or f"Thread {thread}", sort_index=others)
        return pid, self._threads[key]

    def new_names(self) -> list[str]:
        """The events that name what was given out since the last call."""
        new, self._names = self._names, []
        return new


def _range(
    name: str,
    track: tuple[int, int],
    start_ns: int,
    duration_ns: int,
    args: dict[str, Any] | None = None,
    category: str | None = None,
) -> str:
    """An event with a length. Its times are text, as the format has them."""
    told = arguments((args or {}).items())
    return complete(name, track, start_ns, duration_ns, category=category, args=told, as_text=True)


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in order of start, the longer first if starts are equal."""
    return rows.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
