"""A simulated job as a `Run`, with the tables that a reader of PyTorch traces fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import polars as pl

from simulated.layouts import COMPUTE, Shape
from simulated.operations import Network
from simulated.simulate import Done, Times
from simulated.truth import STEP_NUMBER, Job
from stepscope.run import Run
from stepscope.tables import (
    COLLECTIVES,
    COUNTERS,
    GROUPS,
    KERNELS,
    LINKS,
    OPERATORS,
    RANKS,
    SLICES,
    STEPS,
    SYNCHRONIZATIONS,
)

START_NS = 1_700_000_000_000_000_000
THREAD, PROCESS = "100", "100"
LAUNCHES = {"kernel": "cudaLaunchKernel", "call": "cudaLaunchKernelExC", "callback": "cudaLaunchHostFunc"}
Rows = list[dict[str, Any]]


def clock_of(shape: Shape, rank: int) -> int:
    """What the clock of the rank's host shows too much."""
    host = rank // shape.ranks_per_host
    return round((Random(f"clock {shape.seed} {host}").random() - 0.5) * 2 * shape.clock_spread_ns) if host else 0


def run_of(job: Job) -> Run:
    """The job as it would be recorded."""
    groups = job.network.groups
    return Run.from_frames({rank: _tables(job, rank, groups) for rank in range(job.shape.ranks)}, name=job.name)


def _tables(job: Job, rank: int, groups: Mapping[str, Sequence[int]]) -> dict[str, pl.DataFrame]:
    shape, times = job.shape, job.times
    rows = _Rows(START_NS + clock_of(shape, rank), times.steps[rank], groups)
    for done in times.done[rank]:
        rows.add(done)
    tables = rows.tables(times.steps[rank], shape, rank)
    own = [{"group": group, "name": group.rstrip("0123456789.-"), "members": list(members)}
           for group, members in groups.items() if rank in members]  # fmt: skip
    if own:
        tables["groups"] = GROUPS.conform(pl.DataFrame(own))
    if job.links:
        tables["links"] = LINKS.conform(pl.DataFrame(_link_rows(job.network, times, rank, shape.seed)))
    if counters := _counter_rows(job, rank, START_NS + clock_of(shape, rank)):
        tables["counters"] = COUNTERS.conform(pl.DataFrame(counters))
    return tables


class _Rows:
    """Rows of one rank."""

    def __init__(self, clock_ns: int, spans: list[tuple[int, int]], groups: Mapping[str, Sequence[int]]) -> None:
        self.groups = groups
        self.clock_ns = clock_ns
        self.kernels: Rows = []
        self.collectives: Rows = []
        self.slices: Rows = []
        self.operators: Rows = []
        self.waits: Rows = []
        self.sequences: dict[str, int] = {}
        self.recorded: dict[int, tuple[int, int]] = {}
        """Stream and correlation of the record of each event."""
        for number, (start, end) in enumerate(spans, start=STEP_NUMBER):
            self._slice(start_ns=start, duration_ns=end - start, step=number, category="annotation",
                        name=f"ProfilerStep#{number}", depth=0)  # fmt: skip

    def add(self, done: Done) -> None:
        operation, step = done.operation, done.step + STEP_NUMBER
        correlation = len(self.slices) + 1
        called = {"start_ns": done.called_ns, "duration_ns": done.returned_ns - done.called_ns, "step": step}
        start, length = done.start_ns, done.end_ns - done.start_ns
        if operation.what == "host":
            if operation.kind:
                self._slice(**called, category=operation.kind, name=operation.name, depth=1, parent=done.step)
                if operation.kind == "operator":
                    self.operators.append({**called, "slice": len(self.slices) - 1, "name": operation.name})
            return
        if operation.operator:
            around = {**called, "start_ns": done.called_ns - 400, "duration_ns": called["duration_ns"] + 400}
            is_mark = operation.operator.startswith("Optimizer")  # which its reader takes for one
            category = "annotation" if is_mark else "operator"
            self._slice(**around, category=category, name=operation.operator, self_ns=400, depth=1, parent=done.step)
        if operation.operator and not is_mark:
            self.operators.append({**around, "slice": len(self.slices) - 1, "name": operation.operator, "self_ns": 400,
                                   "external_id": correlation})  # fmt: skip
        within = (
            {"depth": 2, "parent": len(self.slices) - 1} if operation.operator else {"depth": 1, "parent": done.step}
        )
        name = LAUNCHES.get(operation.what, operation.name)
        if operation.kind == "memory":
            name = "cudaMemcpyAsync"
        self._slice(**called, category="runtime", name=name, correlation=correlation, **within)
        if operation.what == "record":
            self.recorded[operation.event] = (operation.stream, correlation)
        elif operation.what in ("wait", "synchronise"):
            self._wait(done, called, correlation)
        elif operation.what in ("kernel", "call"):
            launched = {"start_ns": start, "duration_ns": length, "step": step, "stream": operation.stream,
                        "correlation": correlation, "name": operation.name}  # fmt: skip
            category = {"compute": "kernel"}.get(operation.kind, operation.kind)
            self._slice(**{**launched, "device": 0}, category=category)
            size = operation.size_bytes if operation.kind == "memory" else None
            self.kernels.append({**launched, "kind": operation.kind, "device": 0, "external_id": correlation,
                                 "launch_start_ns": done.called_ns, "launch_end_ns": done.returned_ns,
                                 "size_bytes": size})  # fmt: skip
            if operation.what == "call":
                self._collective(done, launched)

    def _wait(self, done: Done, called: dict[str, int], correlation: int) -> None:
        """The synchronisation as the driver's activity records state it."""
        operation = done.operation
        if operation.what == "wait":
            stream, record = self.recorded[operation.event]
            more = {"name": "Stream Wait Event", "waited_stream": stream, "waited_correlation": record,
                    "waited_event": operation.event}  # fmt: skip
        else:
            more = {"name": "Stream Sync"}
        row = {**called, "device": 0, "stream": operation.stream}
        self._slice(**row, category="other", name=more["name"], depth=0)
        del row["step"]
        self.waits.append({**row, "slice": len(self.slices) - 1, "correlation": correlation, **more})

    def _collective(self, done: Done, launched: dict[str, Any]) -> None:
        operation = done.operation
        sequence = self.sequences.get(operation.group, -1) + 1
        self.sequences[operation.group] = sequence
        self.collectives.append({**launched, "group": operation.group, "sequence": sequence, "peer": operation.peer,
                                 "operation": operation.operation, "size_bytes": operation.size_bytes,
                                 "on_device": True, "group_size": len(self.groups[operation.group])})  # fmt: skip

    def _slice(self, **row: Any) -> None:
        host = row["category"] in ("operator", "runtime", "annotation", "gc", "compile")
        self.slices.append(
            {"slice": len(self.slices), "process": PROCESS if host else "0", "thread": THREAD if host else None, **row}
        )

    def tables(self, spans: list[tuple[int, int]], shape: Shape, rank: int) -> dict[str, pl.DataFrame]:
        ordered = sorted(self.collectives, key=lambda row: (row["start_ns"], row["stream"]))
        frames = {
            "kernels": KERNELS.conform(
                _frame(sorted(self.kernels, key=lambda row: row["start_ns"])).with_row_index("kernel")
            ),
            "slices": SLICES.conform(_frame(self.slices)),
            "operators": OPERATORS.conform(_frame(self.operators).with_columns(thread=pl.lit(THREAD))),
            "steps": STEPS.conform(_frame(self._step_rows(spans))),
        }
        if self.waits:
            frames["synchronizations"] = SYNCHRONIZATIONS.conform(_frame(self.waits))
        if ordered:
            frames["collectives"] = COLLECTIVES.conform(_frame(ordered).with_row_index("collective"))
        shifted = {name: frame.with_columns(_times(frame) + self.clock_ns) for name, frame in frames.items()}
        facts = {"host": [f"host{rank // shape.ranks_per_host}"], "device_kind": ["cuda"], "framework": ["pytorch"],
                 "backend": ["nccl"], "device": [rank % shape.ranks_per_host], "world_size": [shape.ranks],
                 "format": ["kineto"]}  # fmt: skip
        return {**shifted, "ranks": RANKS.conform(pl.DataFrame(facts))}

    def _step_rows(self, spans: list[tuple[int, int]]) -> Rows:
        """Windows from the first work of a step on the stream that computes to that of the next step."""
        firsts: dict[int, int] = {}
        for row in self.kernels:
            if row["stream"] == COMPUTE:
                firsts[row["step"]] = min(row["start_ns"], firsts.get(row["step"], row["start_ns"]))
        last = max(row["start_ns"] + row["duration_ns"] for row in self.kernels)
        starts = [firsts[number] for number in sorted(firsts)]
        return [
            {
                "step": number,
                "start_ns": start,
                "end_ns": end,
                "window_start_ns": first,
                "window_end_ns": until,
                "window": "device",
            }
            for number, ((start, end), first, until) in enumerate(
                zip(spans, starts, [*starts[1:], last], strict=True), start=STEP_NUMBER
            )
        ]


def _frame(rows: Rows) -> pl.DataFrame:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in names})


def _times(frame: pl.DataFrame) -> pl.Expr:
    lengths = ("duration_ns", "self_ns", "wait_ns", "transmit_ns", "synchronization_ns")
    return pl.col([name for name in frame.columns if name.endswith("_ns") and name not in lengths])


def _link_rows(network: Network, times: Times, rank: int, seed: int) -> Rows:
    """What the rank sent over each link in each step: totals by group and operation."""
    chance = Random(f"links {seed} {rank}")
    sums: dict[tuple[int, str, str, int], list[float]] = {}
    for done in times.done[rank]:
        operation = done.operation
        if operation.what != "call" or operation.operation == "recv":
            continue
        members = network.groups[operation.group]
        each = network.per_link_bytes(operation.operation, operation.size_bytes, len(members))
        for other in members:
            if other == rank:
                continue
            total = sums.setdefault((done.step, operation.group, operation.operation, other), [0.0, 0.0])
            total[0] += each
            total[1] += each / network.rate(rank, other, members, done.step) * 1e9 * (1 + 0.01 * chance.gauss(0, 1))
    return [
        {"step": step + STEP_NUMBER, "group": group, "operation": operation, "source": rank, "destination": other,
         "transport": "HCCS" if network.host_of(rank) == network.host_of(other) else "RDMA",
         "size_bytes": round(size), "duration_ns": max(1, round(length))}
        for (step, group, operation, other), (size, length) in sorted(sums.items())
    ]  # fmt: skip


def _counter_rows(job: Job, rank: int, clock_ns: int) -> Rows:
    """Samples of the counters that faults move, every 2 ms."""
    return [
        {"time_ns": clock_ns + time, "name": name, "device": 0, "value": moved if rank in fault.ranks else usual}
        for fault in job.faults
        for name, usual, moved in fault.counters
        for time in range(0, job.times.total_ns, 2_000_000)
    ]
