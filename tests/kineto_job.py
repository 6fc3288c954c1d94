"""Small jobs as PyTorch's profiler records them on CUDA, ROCm or a CPU, written event by event, and what is advised."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import polars as pl

from stepscope.advice import Finding, advise
from stepscope.run import open_run
from stepscope.sources.head import read_head
from stepscope.sources.kineto import KinetoSource
from stepscope.store import MemorySink

Device = Literal["cuda", "rocm", "cpu"]

BASE_NS = 1_790_000_000 * 10**9
GIB = 2**30

DEVICES: dict[str, dict[str, Any]] = {
    "cuda": {"name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 80 * GIB, "computeMajor": 9, "computeMinor": 0},
    "rocm": {"name": "AMD Instinct MI300X", "totalGlobalMem": 192 * GIB, "computeMajor": 9, "computeMinor": 4},
}
LAUNCH_US = 5


class RankTrace:
    """One rank's trace in the making; times in us.

    Args:
        rank: Its number.
        world: Ranks of the job.
        device: What it runs on.
        groups: Members by the name of each process group.
        model: Name of the device; None for a usual one.
    """

    def __init__(
        self,
        rank: int = 0,
        world: int = 1,
        device: Device = "cuda",
        *,
        groups: dict[str, Sequence[int]] | None = None,
        model: dict[str, Any] | None = None,
    ) -> None:
        self.rank, self.device = rank, device
        self.events: list[dict[str, Any]] = []
        self.correlation = 0
        self.header: dict[str, Any] = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS}
        if device != "cpu":
            self.header["deviceProperties"] = [{"id": 0, **DEVICES[device], **(model or {})}]
        if device == "rocm":
            self.header["hip_runtime_version"] = 60_300_000
        if world > 1:
            backend = "gloo" if device == "cpu" else "nccl"
            listed = [{"pg_name": name, "ranks": list(members)} for name, members in (groups or {}).items()]
            facts = {"backend": backend, "rank": rank, "world_size": world, "pg_count": len(listed)}
            self.header["distributedInfo"] = {**facts, "pg_config": listed}

    def add(self, category: str, name: str, start: float, length: float, *, thread: int = 1, **args: Any) -> RankTrace:
        """An event; underscores in pairs become blanks in the names of arguments."""
        named = {key.replace("__", " "): value for key, value in args.items()}
        place = {"pid": 9, "tid": thread, "ts": start, "dur": length}
        self.events.append({"ph": "X", "cat": category, "name": name, **place, "args": named})
        return self

    def step(self, number: int, start: float, length: float) -> RankTrace:
        """A step that the profiler marks."""
        return self.add("user_annotation", f"ProfilerStep#{number}", start, length)

    def operator(
        self, name: str, start: float, length: float, dims: Any = None, types: Any = None, *, thread: int = 1
    ) -> RankTrace:
        """An operator of the host, with shapes and types of its inputs."""
        shapes = {} if dims is None else {"Input__Dims": dims, "Input__type": types or ["float"] * len(dims)}
        return self.add("cpu_op", name, start, length, thread=thread, External__id=len(self.events), **shapes)

    def call(self, name: str, start: float, length: float, *, correlation: int = 0, thread: int = 1) -> RankTrace:
        """A call of the runtime; `Malloc` is `cudaMalloc` or `hipMalloc`."""
        prefix = "hip" if self.device == "rocm" else "cuda"
        return self.add("cuda_runtime", f"{prefix}{name}", start, length, thread=thread, correlation=correlation)

    def kernel(
        self,
        name: str,
        start: float,
        length: float,
        *,
        stream: int = 7,
        launched: float | None = None,
        category: str = "kernel",
        call: str = "LaunchKernel",
        thread: int = 1,
        **args: Any,
    ) -> RankTrace:
        """Work of the device, and the call that launched it, by default 10 us before it begins."""
        self.correlation += 1
        at = start - 2 * LAUNCH_US if launched is None else launched
        self.call(call, at, LAUNCH_US, correlation=self.correlation, thread=thread)
        place = {"device": 0, "stream": stream, "correlation": self.correlation}
        return self.add(category, name, start, length, thread=stream, **place, **args)

    def collective(
        self,
        operation: str,
        start: float,
        length: float,
        *,
        elements: int,
        group: str = "0",
        size: int = 2,
        stream: int = 20,
        launched: float | None = None,
        kind: str = "AllReduce_Sum_f32_RING_LL",
        out: int | None = None,
        thread: int = 1,
        dtype: str = "Float",
    ) -> RankTrace:
        """A call of NCCL or RCCL, as PyTorch names it (`allreduce`, `_allgather_base`...)."""
        facts: dict[str, Any] = {"Collective name": operation, "Process Group Name": group, "dtype": dtype}
        facts |= {"In msg nelems": elements, "Out msg nelems": out or elements, "Group size": size}
        name = f"ncclDevKernel_{kind}(ncclDevKernelArgsStorage<4096ul>)"
        return self.kernel(name, start, length, stream=stream, launched=launched, thread=thread, **facts)

    def memory(self, at: float, allocated: int, reserved: int, *, change: int = 512) -> RankTrace:
        """A change of the caching allocator's memory, with totals in bytes."""
        facts = {"Total Allocated": allocated, "Total Reserved": reserved, "Bytes": change, "Addr": 4096}
        kind = {"cuda": 1, "rocm": 1, "cpu": 0}[self.device]
        event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 9, "tid": 1, "ts": at}
        self.events.append({**event, "args": {"Device Type": kind, "Device Id": 0, **facts}})
        return self

    def write(self, directory: Path) -> Path:
        """Write the trace."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"rank{self.rank}.pt.trace.json"
        path.write_text(json.dumps({**self.header, "traceEvents": self.events}))
        return path

    def tables(self) -> dict[str, pl.DataFrame]:
        """What the reader makes of it."""
        with TemporaryDirectory() as directory:
            path = self.write(Path(directory))
            source = KinetoSource()
            item = source.sniff(path, read_head(path) or b"")
            assert item is not None
            sink = MemorySink(source.name)
            source.read(item, sink)
            return dict(sink.close())


def advised(directory: Path, *ranks: RankTrace) -> list[Finding]:
    """Write the ranks of a job, and ask for advice."""
    for rank in ranks:
        rank.write(directory)
    return advise(open_run(directory), strict=True)


def by_rule(findings: Sequence[Finding]) -> dict[tuple[str, str], Finding]:
    """Findings by rule and message."""
    return {(one.rule, one.message): one for one in findings}


def grave(findings: Sequence[Finding]) -> list[str]:
    """Rules and messages of those of high or medium severity."""
    return [f"{one.rule}: {one.message}" for one in findings if one.severity != "low"]
