"""Random jobs that a profiler could have recorded, for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from traces import COLLECTIVE, COPY, EPOCH_NS, LOADER, Dialect, Kind, RankTrace, Span, Work

OPERATORS = ("aten::mm", "aten::add_", "c10d::allreduce_", "autograd::engine::evaluate_function: MmBackward0")
KERNELS = ("gemm_f16_128x128", "void at::native::vectorized_elementwise_kernel<4>(int)", "flash_fwd_kernel")
THREADS = (1, 7)
BACKEND_THREAD = 30
STREAMS = (7, 8, 20)
US, ODD = 1000, 137
"""Grids of time in ns: whole us, as older versions record; and one that needs three decimals."""

_SMALL = st.integers(0, 20)
_ACTION = st.sampled_from(("open", "open", "close", "close", "launch", "launch", "copy", "load"))
_ACTIONS = st.lists(st.tuples(_SMALL, _ACTION, _SMALL, _SMALL, st.integers(0, 5)), max_size=12)
"""Time until the action, the action, delay and length of what it launches, and which name or stream."""


@dataclass(frozen=True)
class Plan:
    """What all ranks of a job share; times in ns."""

    grid_ns: int
    world_size: int
    steps: Sequence[int]
    """Their numbers; empty if none are marked."""
    on_device: bool
    groups: dict[str, Sequence[int]]
    calls: Sequence[Sequence[str]]
    """Groups of the collectives of each step."""
    orderly: bool
    """Each step begins with a kernel that starts when it is launched, so that device windows cannot overlap."""


@dataclass(frozen=True)
class Job:
    """A job and how its traces are written."""

    plan: Plan
    traces: Sequence[RankTrace]
    dialect: Dialect


class Host:
    """One host thread on which ranges open and close, properly nested, and work is launched."""

    def __init__(self, thread: int, plan: Plan) -> None:
        self.thread = thread
        self.plan = plan
        self.now = EPOCH_NS
        self.operators: list[Span] = []
        self.annotations: list[Span] = []
        self.work: list[Work] = []
        self._open: list[tuple[str, int]] = []

    def wait(self, ticks: int) -> None:
        """Let time pass."""
        self.now += ticks * self.plan.grid_ns

    def act(self, actions: Sequence[tuple[int, str, int, int, int]]) -> None:
        """Do one thing after another, then close what is open."""
        for pause, action, delay, length, which in actions:
            self.wait(pause)
            if action == "open":
                self._open.append((OPERATORS[which % len(OPERATORS)], self.now))
            elif action == "load":
                self._open.append((LOADER, self.now))
            elif action == "close":
                self.close()
            elif self.plan.on_device:
                name = COPY if action == "copy" else KERNELS[which % len(KERNELS)]
                self.launch(name, action, delay, length, STREAMS[which % len(STREAMS)])
        while self._open:
            self.close()

    def close(self) -> None:
        """Close the innermost open range."""
        if self._open:
            name, start_ns = self._open.pop()
            span = Span(name, start_ns, self.now - start_ns, self.thread)
            (self.annotations if name == LOADER else self.operators).append(span)

    def launch(self, name: str, action: str, delay: int, length: int, stream: int) -> None:
        """Launch a kernel or a copy that starts `delay` ticks after the call begins."""
        kind: Kind = "memory" if action == "copy" else "compute"
        start_ns = self.now + delay * self.plan.grid_ns
        self.work.append(Work(kind, name, start_ns, length * self.plan.grid_ns, stream, self.call("cudaLaunchKernel")))

    def call(self, name: str) -> Span:
        """A host call of one tick."""
        span = Span(name, self.now, self.plan.grid_ns, self.thread)
        self.wait(1)
        return span


@st.composite
def plans(draw: st.DrawFn, orderly: bool = False) -> Plan:
    world_size = draw(st.integers(1, 4))
    count = draw(st.integers(0, 3))
    first = draw(st.integers(0, 5))
    everyone = range(world_size)
    groups: dict[str, Sequence[int]] = {"0": everyone}
    if world_size == 4 and draw(st.booleans()):
        groups |= {"1": (0, 1), "2": (2, 3)}
    kinds = ["all"] if len(groups) == 1 else ["all", "pair"]
    calls = st.lists(st.sampled_from(kinds), max_size=3)
    return Plan(
        grid_ns=draw(st.sampled_from((US, ODD))),
        world_size=world_size,
        steps=range(first, first + count),
        on_device=draw(st.integers(0, 3)) > 0,
        groups=groups,
        calls=[draw(calls) for _ in range(max(count, 1))],
        orderly=orderly,
    )


@st.composite
def rank_traces(draw: st.DrawFn, plan: Plan, rank: int) -> RankTrace:
    """One rank of a job, on a clock of its own."""
    main, *others = [Host(thread, plan) for thread in THREADS]
    steps: list[tuple[int, Span]] = []
    communication: list[Work] = []
    for number, calls in enumerate(plan.calls):
        began = main.now
        main.wait(1)
        if plan.orderly and plan.on_device:
            main.launch(KERNELS[0], "launch", 0, draw(st.integers(1, 20)), STREAMS[0])
        main.operators.append(Span(OPERATORS[0], main.now, plan.grid_ns))
        main.wait(1)
        main.act(draw(_ACTIONS))
        for call in calls:
            group = "0" if call == "all" else str(1 + rank // 2)
            launch = main.call("cudaLaunchKernelExC") if plan.on_device else None
            after = communication[-1].start_ns + plan.grid_ns if communication else 0
            start_ns = max(main.now + draw(_SMALL) * plan.grid_ns, after)
            length_ns = draw(_SMALL) * plan.grid_ns
            communication.append(Work("communication", COLLECTIVE, start_ns, length_ns, STREAMS[-1], launch, group))
        main.wait(1)
        if plan.steps:
            steps.append((plan.steps[number], Span(f"ProfilerStep#{plan.steps[number]}", began, main.now - began)))
    for other in others:
        other.act(draw(_ACTIONS))
    work = [w for host in (main, *others) for w in host.work] + communication
    # As the profiler waits for the device at its end, so does the recording.
    end_ns = max([main.now, *(w.end_ns for w in work)]) + plan.grid_ns
    sync = Span("cudaDeviceSynchronize", main.now, end_ns - main.now)
    annotations = [span for host in (main, *others) for span in host.annotations]
    if not plan.on_device:
        annotations += [Span("gloo:all_reduce", w.start_ns, w.duration_ns, BACKEND_THREAD) for w in communication]
        work = []
    trace = RankTrace(
        rank=rank,
        world_size=plan.world_size,
        steps=steps,
        operators=[span for host in (main, *others) for span in host.operators],
        annotations=annotations,
        runtime=[sync] if plan.on_device else [],
        work=work,
        groups=plan.groups,
    )
    return trace.shifted(draw(_SMALL) * plan.grid_ns)


@st.composite
def jobs(draw: st.DrawFn, orderly: bool = False) -> Job:
    """A job of 1 to 4 ranks, and the dialect of its traces.

    Args:
        draw: Given by hypothesis.
        orderly: Whether the device windows of its steps follow one another.
    """
    plan = draw(plans(orderly))
    traces = [draw(rank_traces(plan, rank)) for rank in range(plan.world_size)]
    dialect = Dialect(
        old_names=draw(st.booleans()),
        base_ns=draw(st.sampled_from((0, EPOCH_NS - 7_000_000_000))),
        pretty=draw(st.booleans()),
        zipped=draw(st.booleans()),
    )
    return Job(plan, traces, dialect)
