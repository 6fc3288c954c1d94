"""The requests of MindInsight's pages that apply to an output directory, and what their answers must say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from facts import Facts
from server import RUN

Check = Callable[[Any], "str | None"]
"""Says what is wrong with an answer; None if nothing is."""

TOLERANCE = 1e-3
"""The server rounds to three decimals, and step times to four."""
_RUN = {"profile": "./profiler", "train_id": RUN}
PAGE_ROWS = 100
"""As many rows as the server gives at once."""
STEPS = 20
"""Each step is a request, so only the first ones are looked at one by one."""
_ALL = {"filter_condition": {}, "group_condition": {"limit": PAGE_ROWS, "offset": 0}}


@dataclass(frozen=True)
class Page:
    """One request.

    Args:
        path: Its endpoint.
        params: Of the address.
        body: Of a POST; None for a GET.
        check: What its answer must say.
    """

    path: str
    params: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] | None = None
    check: Check = lambda _: None

    @property
    def name(self) -> str:
        """For people."""
        said = {**self.params, **(self.body or {}), **(self.body or {}).get("filter_condition", {})}
        kept = [f"{key}={said[key]}" for key in ("device_id", "type", "op_type", "op_id", "step_id") if key in said]
        return f"{self.path} {' '.join(kept)}".strip()


def pages(profiler: Path, facts: dict[int, Facts], queues: Callable[[Path], int]) -> Iterator[Page]:
    """All requests that apply: a page whose files were not made is not asked for.

    Args:
        profiler: The `profiler` directory.
        facts: What our tables say, by rank.
        queues: Counts the queue records of a file.
    """
    ranks = sorted(facts)
    yield Page("profile/devices", _RUN, check=_ranks(ranks))
    yield Page("profile/profile_info", _RUN)
    yield Page("profile/summary/cluster-propose", {"train_id": RUN})
    steps = [len(facts[rank].steps_ns) for rank in ranks]
    if ranks and all((profiler / f"step_trace_raw_{rank}_detail_time.csv").exists() for rank in ranks):
        body = {**_ALL, "filter_condition": {"step_id": 0}}
        yield Page("profile/cluster-step-trace-summary", {"train_id": RUN}, body, _cluster(ranks, steps[0]))
    for rank in ranks:
        yield Page("profile/summary/propose", {**_RUN, "device_id": rank})
        yield from _step_pages(profiler, rank, facts[rank])
        yield from _operator_pages(profiler, rank, facts[rank])
        yield from _data_pages(profiler, rank, queues)
        yield from _memory_pages(profiler, rank)


def _step_pages(profiler: Path, rank: int, facts: Facts) -> Iterator[Page]:
    if not (profiler / f"step_trace_raw_{rank}_detail_time.csv").exists():
        return
    here = {"dir": RUN, "device_id": rank}
    count = len(facts.steps_ns)
    if _is_pynative(profiler, rank):  # the server shows no steps of a mode that knows no whole graph
        yield Page("profile/training-trace/graph", {**here, "type": 0}, check=_nothing)
        return
    yield Page("profile/training-trace/graph", {**here, "type": 0}, check=_total_steps(count))
    for number, length in enumerate(facts.steps_ns[:STEPS], 1):
        yield Page("profile/training-trace/graph", {**here, "type": number}, check=_step_length(length))
    for phase in ("iteration_interval", "fp_and_bp", "tail"):
        yield Page("profile/training-trace/target-time-info", {**here, "type": phase}, check=_series(phase, count))


def _operator_pages(profiler: Path, rank: int, facts: Facts) -> Iterator[Page]:
    def search(kind: str, check: Check) -> Page:
        return Page("profile/ops/search", _RUN, {"op_type": kind, "device_id": str(rank), **_ALL}, check)

    if (profiler / f"cpu_op_type_info_{rank}.csv").exists():
        sums = _sums("type_occurrences", facts.operators, "total_compute_time", facts.operators_ns)
        yield search("cpu_op_type", sums)
        yield search("cpu_op_info", _sized)
    if (profiler / f"gpu_op_type_info_{rank}.csv").exists():
        yield search("gpu_op_type", _sums(None, None, "total_time", facts.kernels_ns))
        yield search("gpu_op_info", _sized)
        yield search("gpu_cuda_activity", _sized)
    if (profiler / f"gpu_timeline_display_{rank}.json").exists():  # the server knows no device type `cpu` here
        here = {"dir": RUN, "device_id": rank, "device_type": "gpu"}
        yield Page("profile/timeline-summary", here, check=_has("total_time"))
        yield Page("profile/timeline", {**here, "scope_name_num": 0}, check=_sized)


def _data_pages(profiler: Path, rank: int, queues: Callable[[Path], int]) -> Iterator[Page]:
    here = {**_RUN, "device_id": rank}
    host = next(
        (
            file
            for name in ("device_queue_profiling", "dataset_iterator_profiling")
            if (file := profiler / f"{name}_{rank}.txt").exists()
        ),
        None,
    )
    if host is not None:
        count = queues(host)
        yield Page("profile/queue_info", {**here, "type": "device_queue"}, check=_size(count))
        yield Page("profile/minddata_op", {**here, "type": "device_queue"}, check=_has("info"))
        yield Page("profile/process_summary", here, check=_total_batches(count))
    if (profiler / f"minddata_pipeline_raw_{rank}.csv").exists():
        rows = len((profiler / f"minddata_pipeline_raw_{rank}.csv").read_text().splitlines()) - 1
        body = {"device_id": str(rank), **_ALL}
        yield Page("profile/minddata-pipeline/op-queue", _RUN, body, _size(rows))
        for operator in range(rows):
            yield Page("profile/minddata-pipeline/queue", {**here, "op_id": operator}, check=_has("current_op"))
    if (profiler / f"minddata_cpu_utilization_{rank}.json").exists():
        body = {"device_id": str(rank), "filter_condition": {}}
        yield Page("profile/minddata-cpu-utilization-summary", _RUN, body, _has("device_info"))


def _memory_pages(profiler: Path, rank: int) -> Iterator[Page]:
    if (profiler / f"memory_usage_summary_{rank}.json").exists():
        here = {"dir": RUN, "device_id": rank, "device_type": "ascend"}
        yield Page("profile/memory-summary", here)
        yield Page("profile/memory-graphics", here)
    if (profiler / f"flops_summary_{rank}.json").exists():
        yield Page("profile/flops-summary", {"train_id": RUN, "device_id": rank})


def _is_pynative(profiler: Path, rank: int) -> bool:
    info = json.loads((profiler / f"profiler_info_{rank}.json").read_bytes())
    return bool(info["context_mode"] == "pynative")


def _nothing(answer: Any) -> str | None:
    return None if answer == {} else f"is not empty: {answer}"


def _ranks(ranks: list[int]) -> Check:
    return lambda answer: _unequal("ranks", sorted(map(int, answer["device_list"])), ranks)


def _cluster(ranks: list[int], steps: int) -> Check:
    def check(answer: Any) -> str | None:
        listed = sorted(int(row["rank_id"]) for row in answer["info"])
        return _unequal("ranks", listed, ranks) or _unequal("steps", int(answer["total_step_num"]), steps)

    return check


def _total_steps(steps: int) -> Check:
    return lambda answer: _unequal("steps", answer["summary"]["total_steps"], steps)


def _step_length(length_ns: int) -> Check:
    """The total stands in the first line; steps that follow one another close up, so they may be longer than marked."""

    def check(answer: Any) -> str | None:
        shown_ms, marked_ms = answer["training_trace_graph"][0][0]["duration"], length_ns / 1e6
        return None if shown_ms >= marked_ms - TOLERANCE else f"shows {shown_ms} ms, the step took {marked_ms} ms"

    return check


def _series(phase: str, steps: int) -> Check:
    return lambda answer: _unequal("steps", len(answer["info"][phase]), steps)


def _sums(count: str | None, expected: int | None, time: str, expected_ns: int | None) -> Check:
    """Column sums of a table; the server counts in microseconds."""

    def check(answer: Any) -> str | None:
        rows, columns = answer["object"], answer["col_name"]
        if answer["size"] != len(rows):
            return f"{len(rows)} rows of {answer['size']}"
        if count and expected is not None:
            found = sum(row[columns.index(count)] for row in rows)
            if found != expected:
                return f"{count} adds up to {found}, expected {expected}"
        if expected_ns is None:
            return None
        found_us = sum(row[columns.index(time)] for row in rows)
        near = abs(found_us - expected_ns / 1000) <= len(rows) * TOLERANCE + TOLERANCE * expected_ns / 1000
        return None if near else f"{time} adds up to {found_us} us, expected {expected_ns / 1000} us"

    return check


def _sized(answer: Any) -> str | None:
    rows = answer["object"] if isinstance(answer, dict) else answer
    return None if rows else "is empty"


def _size(expected: int) -> Check:
    return lambda answer: _unequal("size", answer.get("size"), expected)


def _total_batches(expected: int) -> Check:
    return lambda answer: _unequal("batches", answer["device_queue_info"]["summary"]["total_batch"], expected)


def _has(key: str) -> Check:
    return lambda answer: None if answer.get(key) else f"has no {key}"


def _unequal(what: str, found: object, expected: object) -> str | None:
    return None if found == expected else f"{what}: {found}, expected {expected}"
