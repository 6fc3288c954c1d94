"""Small recordings in the making: what one rank did, and writers of the formats that record it.

A `RankTrace` says what happened in ns since the epoch; `write_kineto` writes it as the PyTorch profiler does, in
any of its dialects.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Kind = Literal["compute", "communication", "memory"]

EPOCH_NS = 1_700_000_000_000_000_000
STEP_THREAD = 1
ELEMENTS = 1024
"""Float32 elements of each collective."""
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
COPY = "Memcpy HtoD (Pageable -> Device)"


@dataclass(frozen=True)
class Span:
    """A range on a host thread."""

    name: str
    start_ns: int
    duration_ns: int
    thread: int = STEP_THREAD

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class Work:
    """A piece of device work, and the host call that launched it (None if that was not recorded)."""

    kind: Kind
    name: str
    start_ns: int
    duration_ns: int
    stream: int = 7
    launch: Span | None = None
    group: str | None = None
    """Process group of a collective."""

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class RankTrace:
    """What one rank did."""

    rank: int
    world_size: int
    steps: Sequence[tuple[int, Span]] = ()
    """Number and range of each step."""
    operators: Sequence[Span] = ()
    annotations: Sequence[Span] = ()
    runtime: Sequence[Span] = ()
    """Host calls that launch nothing."""
    work: Sequence[Work] = ()
    groups: dict[str, Sequence[int]] = field(default_factory=dict)

    @property
    def spans(self) -> list[Span]:
        """All ranges on the host."""
        launches = [work.launch for work in self.work if work.launch is not None]
        return [*(span for _, span in self.steps), *self.operators, *self.annotations, *self.runtime, *launches]

    def shifted(self, ns: int) -> RankTrace:
        """The same by a clock that is `ns` ahead."""

        def later(span: Span) -> Span:
            return replace(span, start_ns=span.start_ns + ns)

        return replace(
            self,
            steps=[(number, later(span)) for number, span in self.steps],
            operators=[later(span) for span in self.operators],
            annotations=[later(span) for span in self.annotations],
            runtime=[later(span) for span in self.runtime],
            work=[
                replace(w, start_ns=w.start_ns + ns, launch=None if w.launch is None else later(w.launch))
                for w in self.work
            ],
        )


@dataclass(frozen=True)
class Dialect:
    """How a trace of the PyTorch profiler is written."""

    old_names: bool = False
    """Categories and arguments of PyTorch 1.8 (`Operator`, `Kernel`), which know nothing of groups."""
    base_ns: int = 0
    """`baseTimeNanoseconds`, written behind the events; 0 for none."""
    pretty: bool = False
    zipped: bool = False


CATEGORIES = {
    False: {"compute": "kernel", "communication": "kernel", "memory": "gpu_memcpy"},
    True: {"compute": "Kernel", "communication": "Kernel", "memory": "Memcpy"},
}


def write_kineto(directory: Path, trace: RankTrace, dialect: Dialect = Dialect()) -> Path:
    """Write one rank's trace; times are exact to the ns, as text with three decimals where they need them."""
    info: dict[str, Any] = {"backend": "nccl", "rank": trace.rank, "world_size": trace.world_size}
    if trace.groups:
        info["pg_count"] = len(trace.groups)
        info["pg_config"] = [{"pg_name": name, "ranks": list(ranks)} for name, ranks in trace.groups.items()]
    events = list(_events(trace, dialect))
    content: dict[str, Any] = {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}
    if dialect.base_ns:
        content["baseTimeNanoseconds"] = dialect.base_ns
    text = json.dumps(content, indent=2 if dialect.pretty else None)
    text = re.sub(r'"ns:(-?\d+)"', lambda match: _us(int(match[1])), text)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"rank-{trace.rank}.pt.trace.json{'.gz' if dialect.zipped else ''}"
    path.write_bytes(gzip.compress(text.encode(), 1) if dialect.zipped else text.encode())
    return path


def _us(ns: int) -> str:
    """A time in us as the profiler writes it: whole if it is, else with three decimals."""
    whole, rest = divmod(ns, 1000)
    return f"{whole}.{rest:03d}" if rest else str(whole)


def _events(trace: RankTrace, dialect: Dialect) -> Iterator[dict[str, Any]]:
    old = dialect.old_names
    operator, runtime = ("Operator", "Runtime") if old else ("cpu_op", "cuda_runtime")
    annotation = operator if old else "user_annotation"

    def host(category: str, span: Span, **arguments: Any) -> dict[str, Any]:
        return _event(category, span, 100, span.thread, dialect, arguments)

    yield {"ph": "M", "name": "process_name", "ts": "ns:0", "pid": 100, "tid": 0, "args": {"name": "python"}}
    for number, span in enumerate(trace.operators):
        yield host(operator, span, **{"External id": operator_id(number)})
    for span in (*(span for _, span in trace.steps), *trace.annotations):
        yield host(annotation, span)
    for span in trace.runtime:
        yield host(runtime, span, correlation=0)
    for number, work in enumerate(trace.work, start=1):
        arguments: dict[str, Any] = {"device": 0, "stream": work.stream, "correlation": number}
        if work.launch is not None:
            yield host(runtime, work.launch, correlation=number)
        if work.kind == "memory":
            arguments["bytes"] = work.duration_ns
        if work.kind == "communication" and work.group is not None and not old:
            arguments |= {"Collective name": "allreduce", "Process Group Name": work.group, "dtype": "Float"}
            arguments |= {"In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS}
            arguments["Group size"] = len(trace.groups[work.group])
        yield _event(CATEGORIES[old][work.kind], work, 0, work.stream, dialect, arguments)


def _event(
    category: str, span: Span | Work, process: int, thread: int, dialect: Dialect, arguments: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": f"ns:{span.start_ns - dialect.base_ns}", "dur": f"ns:{span.duration_ns}"}
    return {"ph": "X", "cat": category, "name": span.name, "pid": process, "tid": thread, **times, "args": arguments}


def operator_id(number: int) -> int:
    """External id of the n-th operator of a trace."""
    return 10_000 + number
