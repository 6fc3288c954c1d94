"""A simulated job as traces of the PyTorch profiler, as version 2.7 writes them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulated.frames import LAUNCHES, PROCESS, START_NS, THREAD, clock_of
from simulated.simulate import Done
from simulated.truth import STEP_NUMBER, Job

BASE_NS = 1_699_999_000_000_000_000
"""`baseTimeNanoseconds`; times of events count from there."""
COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
    "all_to_all": "all_to_allv",
}
"""What the profiler calls them."""
CATEGORIES = {"annotation": "user_annotation", "gc": "python_gc", "runtime": "cuda_runtime", "operator": "cpu_op"}


def write(job: Job, directory: Path) -> None:
    """Write the trace of each rank."""
    directory.mkdir(parents=True, exist_ok=True)
    groups = job.network.groups
    for rank, done in enumerate(job.times.done):
        clock = START_NS - BASE_NS + clock_of(job.shape, rank)
        own = {name: list(members) for name, members in groups.items() if rank in members}
        config = [{"pg_name": n, "pg_desc": n, "pg_size": len(m), "ranks": m} for n, m in own.items()]
        device = rank % job.shape.ranks_per_host
        trace = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": device, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.shape.ranks,
                                "pg_count": len(config), "pg_config": config, "nccl_version": "2.21.5"},
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
            "traceEvents": [*_steps(job.times.steps[rank], clock), *_events(done, clock, own, rank, device)],
        }  # fmt: skip
        path = directory / f"host{rank // job.shape.ranks_per_host}_{rank}.{1000 + rank}.pt.trace.json.gz"
        path.write_bytes(gzip.compress(json.dumps(trace).encode(), 1))


def _steps(spans: list[tuple[int, int]], clock: int) -> Iterator[dict[str, Any]]:
    for number, (start, end) in enumerate(spans, start=STEP_NUMBER):
        yield _event("user_annotation", f"ProfilerStep#{number}", start + clock, end - start, PROCESS, THREAD)


def _events(
    done: list[Done], clock: int, groups: dict[str, list[int]], rank: int, device: int
) -> Iterator[dict[str, Any]]:
    recorded: dict[int, tuple[int, int]] = {}
    for number, each in enumerate(done, start=1):
        operation = each.operation
        called, lasted = each.called_ns + clock, each.returned_ns - each.called_ns
        if operation.what == "host":
            if operation.kind:
                yield _event(CATEGORIES[operation.kind], operation.name, called, lasted, PROCESS, THREAD)
            continue
        ids = {"External id": number} if operation.operator else {}
        if operation.operator:
            yield _event("cpu_op", operation.operator, called - 400, lasted + 400, PROCESS, THREAD, **ids)
        name = "cudaMemcpyAsync" if operation.kind == "memory" else LAUNCHES.get(operation.what, operation.name)
        yield _event("cuda_runtime", name, called, lasted, PROCESS, THREAD, correlation=number, **ids)
        on_device = {"device": device, "stream": operation.stream, "correlation": number, **ids}
        if operation.what == "record":
            recorded[operation.event] = (operation.stream, number)
        elif operation.what in ("wait", "synchronise"):
            stream, record = recorded.get(operation.event, (-1, -1)) if operation.what == "wait" else (-1, -1)
            waited = {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": record,
                      "wait_on_cuda_event_id": operation.event if operation.what == "wait" else -1}  # fmt: skip
            what = "Stream Wait Event" if operation.what == "wait" else "Stream Sync"
            yield _event("cuda_sync", what, called, lasted, device, operation.stream, **on_device, **waited)
        elif operation.what in ("kernel", "call"):
            category = "gpu_memcpy" if operation.kind == "memory" else "kernel"
            more = {"bytes": operation.size_bytes} if operation.kind == "memory" else {}
            if operation.what == "call" and operation.operator:
                more = _described(each, groups[operation.group], rank)
            start, length = each.start_ns + clock, each.end_ns - each.start_ns
            yield _event(category, operation.name, start, length, device, operation.stream, **on_device, **more)


def _described(done: Done, members: list[int], rank: int) -> dict[str, Any]:
    """What the profiler says of a call."""
    operation = done.operation
    elements = operation.size_bytes // 2
    name = COLLECTIVES.get(operation.operation, operation.operation)
    found = {"Collective name": name, "In msg nelems": elements, "Out msg nelems": elements, "dtype": "BFloat16",
             "Group size": len(members), "Process Group Name": operation.group,
             "Process Group Description": operation.group, "Process Group Ranks": str(members)}  # fmt: skip
    if operation.peer is not None:
        ends = (rank, operation.peer) if operation.operation == "send" else (operation.peer, rank)
        found |= {"Src Rank": ends[0], "Dst Rank": ends[1]}
    return found


def _event(
    category: str, name: str, start_ns: int, length_ns: int, process: object, thread: object, **args: object
) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start_ns / 1000,
            "dur": length_ns / 1000, "args": args}  # fmt: skip
