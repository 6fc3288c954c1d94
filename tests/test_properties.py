"""What holds for any job: it is read back exactly, however it is written and opened, and its sums add up."""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from polars.testing import assert_frame_equal

from made_up_jobs import Job, Plan, jobs
from stepscope import Run, open_run
from stepscope.analysis.job.segments import KINDS
from stepscope.report.answers import answers
from stepscope.sources.native import library
from stepscope.tables import TABLES
from traces import ELEMENTS, EPOCH_NS, LOADER, Dialect, RankTrace, Span, Work, operator_id, write_kineto

PARTS = ("computing_ns", "communication_not_overlapped_ns", "memory_not_overlapped_ns", "free_ns")
"""What each step's window consists of."""


def sampled(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same examples on every machine and run."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@contextmanager
def written(job: Job) -> Iterator[Path]:
    """The job's traces in a directory of their own."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "job"
        for trace in job.traces:
            write_kineto(folder, trace, job.dialect)
        yield folder


@contextmanager
def opened(job: Job) -> Iterator[Run]:
    """The job, written and read back."""
    with written(job) as folder:
        yield open_run(folder, use_store=False)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
@sampled(20)
@given(job=jobs())
def test_what_was_recorded_comes_back(job: Job, compiled: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(library, "_LIBRARY", None)
        with opened(job) as run:
            tables = [{name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks]

    assert [rank.rank for rank in run.ranks] == list(range(job.plan.world_size))
    for rank, trace in zip(tables, job.traces, strict=True):
        assert rank["slices"].height == len(trace.spans) + len(trace.work)
        assert steps_of(rank["steps"], trace)
        for name, expected in rows_by_hand(job, trace).items():
            found = rank[name].select(expected.columns).rows() if name in rank else []
            assert Counter(found) == Counter(expected.rows)


@sampled(12)
@given(jobs())
def test_a_fresh_read_the_store_and_memory_give_equal_tables(job: Job) -> None:
    with written(job) as folder:
        fresh = open_run(folder)
        stored = open_run(folder)
        unstored = open_run(folder, use_store=False)

        for name in TABLES:
            assert fresh.has(name) == stored.has(name) == unstored.has(name)
            if fresh.has(name):
                assert_frame_equal(fresh.table(name).collect(), stored.table(name).collect())
                assert_frame_equal(fresh.table(name).collect(), unstored.table(name).collect())


@sampled(40)
@given(jobs(orderly=True))
def test_the_breakdown_is_what_counting_by_hand_gives(job: Job) -> None:
    with opened(job) as run:
        breakdown = run.analyse("breakdown")

    expected = [row for trace in job.traces for row in breakdown_by_hand(trace)]
    assert breakdown.select(list(expected[0])).to_dicts() == expected


@sampled(40)
@given(jobs(orderly=True))
def test_sums_add_up(job: Job) -> None:
    with opened(job) as run:
        breakdown, idle, segments = (run.analyse(name) for name in ("breakdown", "idle", "segments"))

    assert breakdown.select(pl.sum_horizontal(PARTS) == pl.col("window_ns")).to_series().all()
    assert breakdown.select(pl.min_horizontal(pl.selectors.ends_with("_ns")) >= 0).to_series().drop_nulls().all()
    free = {(rank, step): ns for rank, step, ns in breakdown.select("rank", "step", "free_ns").rows() if ns}
    assert {(rank, step): ns for rank, step, ns in sums(idle, "idle_ns")} == free
    assert (idle["idle_ns"] > 0).all() and (idle["gaps"] > 0).all()
    assert segments.select(pl.sum_horizontal(f"{kind}_ns" for kind in KINDS) == pl.col("own_ns")).to_series().all()
    assert segments.select(pl.min_horizontal("wait_ns", *(f"{kind}_ns" for kind in KINDS)) >= 0).to_series().all()


def test_sums_add_up_where_a_step_launches_nothing() -> None:
    steps = [(step, Span(f"ProfilerStep#{step}", EPOCH_NS + step * 100, 100)) for step in range(3)]
    work = [
        Work("compute", "gemm", EPOCH_NS + at + 5, 20, launch=Span("cudaLaunchKernel", EPOCH_NS + at, 1))
        for at in (5, 245)
    ]
    job = Job(Plan(1, 1, range(3), True, {}, [], False), [RankTrace(0, 1, steps, work=work)], Dialect())

    with opened(job) as run:
        breakdown = run.analyse("breakdown")

    assert breakdown.select(pl.sum_horizontal(PARTS) == pl.col("window_ns")).to_series().all()


@sampled(15)
@given(jobs())
def test_totals_are_those_of_the_rows_they_sum(job: Job) -> None:
    with opened(job) as run:
        for rank, trace in zip(run.ranks, job.traces, strict=True):
            operators = rank.table("operators").collect()
            assert (operators["self_ns"] >= 0).all()
            for thread, ns in operators.group_by("thread").agg(pl.sum("self_ns")).rows():
                spans = [span for span in trace.operators if str(span.thread) == thread]
                assert ns <= sum(end - start for start, end in pieces(spans) if covered(spans, start, end))
        if job.plan.on_device and run.has("kernels"):
            totals = run.analyse("kernel_totals").select("rank", "kind", "name", "count", "total_ns").rows()
            assert sorted(totals) == kernel_totals_by_hand(job)


@sampled(25)
@given(jobs())
def test_any_job_gets_its_answers(job: Job) -> None:
    with opened(job) as run:
        told = answers(run)

    if "slow_ranks" in told.tables:
        assert (told.tables["slow_ranks"]["cost_ns"] >= 0).all()
    else:
        silent = [trace for trace in job.traces if trace.work and all(w.kind != "compute" for w in trace.work)]
        assert job.plan.world_size - len(silent) < 2
        assert re.search("two ranks|without compute kernels", told.unavailable["slow_ranks"])
    calls = sum(len(calls) for calls in job.plan.calls)
    if "arrival" not in told.tables:
        assert calls == 0
        return
    arrival = told.tables["arrival"].with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    assert arrival.height == calls * job.plan.world_size
    assert (arrival["wait_ns"].drop_nulls() >= 0).all()
    assert (arrival["transmit_ns"].drop_nulls() >= 0).all()
    known = arrival.drop_nulls("wait_ns")
    assert (known["wait_ns"] + known["transmit_ns"]).equals(known["duration_ns"])


def steps_of(steps: pl.DataFrame, trace: RankTrace) -> bool:
    """Whether the steps are those recorded, or one for all where none is."""
    if not trace.steps:
        return steps.select("step", "window").rows() == [(0, "recording")]
    marked = [(number, span.start_ns, span.end_ns) for number, span in trace.steps]
    return steps.select("step", "start_ns", "end_ns").rows() == marked


class Rows(NamedTuple):
    """Rows of a table, in no order."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


def rows_by_hand(job: Job, trace: RankTrace) -> dict[str, Rows]:
    """What a trace must give, by table."""
    spans = ("name", "start_ns", "duration_ns")
    operators = [
        (s.name, s.start_ns, s.duration_ns, str(s.thread), operator_id(number), step_at(trace, s.start_ns))
        for number, s in enumerate(trace.operators)
    ]
    kernels = [kernel_row(trace, number, work) for number, work in enumerate(trace.work, start=1)]
    launch = ("correlation", "launch_start_ns", "launch_end_ns", "step")
    call = ("group", "sequence", "start_ns", "duration_ns", "size_bytes")
    return {
        "operators": Rows((*spans, "thread", "external_id", "step"), operators),
        "kernels": Rows((*spans, "kind", "stream", *launch), kernels),
        "collectives": Rows(call, list(collective_rows(job, trace))),
    }


def step_at(trace: RankTrace, ns: int) -> int | None:
    """The step in which a time lies."""
    if not trace.steps:
        return 0
    return next((number for number, span in trace.steps if span.start_ns <= ns < span.end_ns), None)


def step_of(trace: RankTrace, work: Work) -> int | None:
    """The step that launched the work."""
    return step_at(trace, work.start_ns if work.launch is None else work.launch.start_ns)


def kernel_row(trace: RankTrace, number: int, work: Work) -> tuple[object, ...]:
    """Name, times, kind, stream, correlation, launch and step of one piece of work."""
    assert work.launch is not None
    launch = (number, work.launch.start_ns, work.launch.end_ns, step_of(trace, work))
    return (work.name, work.start_ns, work.duration_ns, work.kind, work.stream, *launch)


def collective_rows(job: Job, trace: RankTrace) -> Iterator[tuple[object, ...]]:
    """Group (where it can be known), position in it, times and size of each collective."""
    count: Counter[str | None] = Counter()
    known = not job.dialect.old_names and job.plan.on_device
    only = next(iter(trace.groups)) if len(trace.groups) == 1 else None
    calls: list[Span | Work] = [w for w in trace.work if w.kind == "communication"]
    calls += [s for s in trace.annotations if s.name.startswith("gloo:")]
    for call in sorted(calls, key=lambda call: call.start_ns):
        group = call.group if known and isinstance(call, Work) else only
        yield (group, count[group], call.start_ns, call.duration_ns, ELEMENTS * 4 if known else None)
        count[group] += 1


def kernel_totals_by_hand(job: Job) -> list[tuple[int, str, str, int, int]]:
    """Count and sum of each kernel of each rank."""
    found: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    for trace in job.traces:
        for work in trace.work:
            found[trace.rank, work.kind, work.name].append(work.duration_ns)
    return sorted((*key, len(durations), sum(durations)) for key, durations in found.items())


def sums(frame: pl.DataFrame, column: str) -> list[tuple[int, int, int]]:
    """A column's sum by rank and step."""
    return frame.group_by("rank", "step").agg(pl.sum(column)).rows()


def breakdown_by_hand(trace: RankTrace) -> Iterator[dict[str, object]]:
    """The breakdown of a rank by looking at each piece of time between neighbouring ends."""
    computing: Sequence[Span | Work] = [w for w in trace.work if w.kind == "compute"]
    communication: Sequence[Span | Work] = [w for w in trace.work if w.kind == "communication"]
    memory = [w for w in trace.work if w.kind == "memory"]
    loading = [s for s in trace.annotations if s.name == LOADER]
    if not trace.work:
        computing = [s for s in trace.operators if not s.name.startswith("c10d::")]
        communication = [s for s in (*trace.operators, *trace.annotations) if s.name.startswith(("c10d::", "gloo:"))]
    around = [] if trace.work else [s for s in computing if isinstance(s, Span) and is_around_a_call(s, trace)]
    computing = [s for s in computing if s not in around]
    everything = [*computing, *around, *communication, *memory, *loading]
    for step, window, start_ns, end_ns in windows_by_hand(trace):
        row = dict.fromkeys(
            ("computing_ns", "communication_ns", "overlapped_ns", "communication_not_overlapped_ns"), 0
        ) | dict.fromkeys(("memory_ns", "memory_not_overlapped_ns", "free_ns", "data_loading_ns"), 0)
        for start, end in pieces(everything, start_ns, end_ns):
            loads, talks, copies = (covered(spans, start, end) for spans in (loading, communication, memory))
            works = covered(computing, start, end) or (covered(around, start, end) and not talks)
            computes = works and not (loads and not trace.work)
            for name, holds in {
                "computing_ns": computes,
                "communication_ns": talks,
                "overlapped_ns": talks and computes,
                "communication_not_overlapped_ns": talks and not computes,
                "memory_ns": copies,
                "memory_not_overlapped_ns": copies and not (talks or computes),
                "free_ns": not (copies or talks or computes),
                "data_loading_ns": loads,
            }.items():
                row[name] += (end - start) * holds
        yield {"rank": trace.rank, "step": step, "window": window, "window_ns": end_ns - start_ns, **row}


def is_around_a_call(span: Span, trace: RankTrace) -> bool:
    """Whether an operator encloses the next call that its thread makes, so that it may wait for it."""
    made = [s for s in trace.operators if s.name.startswith("c10d::") and s.thread == span.thread]
    later = sorted((s.start_ns, s.end_ns) for s in made if s.start_ns >= span.start_ns)
    has_calls = any(s.name.startswith("gloo:") for s in trace.annotations)
    return has_calls and bool(later) and later[0][0] < span.end_ns and later[0][1] <= span.end_ns


def windows_by_hand(trace: RankTrace) -> Iterator[tuple[int, str, int, int]]:
    """Step, kind, start and end of each window."""
    if not trace.steps:
        spans = trace.work or trace.spans
        yield 0, "recording", min(s.start_ns for s in spans), max(s.end_ns for s in spans)
        return
    first = {
        number: min((w.start_ns for w in trace.work if step_of(trace, w) == number), default=None)
        for number, _ in trace.steps
    }
    for (number, span), following in zip(trace.steps, [*trace.steps[1:], None], strict=True):
        begin = first[number]
        if begin is None:
            yield number, "host", span.start_ns, span.end_ns
            continue
        last_ns = max(w.end_ns for w in trace.work if step_of(trace, w) == number)
        end = first[following[0]] if following else last_ns
        assert end is not None
        yield (number, "device", begin, end) if end > begin else (number, "host", span.start_ns, span.end_ns)


def pieces(spans: Sequence[Span | Work], start_ns: int = 0, end_ns: int = 2**63) -> Iterator[tuple[int, int]]:
    """The time between neighbouring ends of ranges, inside a window if there is one."""
    ends = {end for span in spans for end in (span.start_ns, span.end_ns) if start_ns < end < end_ns}
    return pairwise(sorted(ends | ({start_ns, end_ns} if start_ns else set())))


def covered(spans: Sequence[Span | Work], start_ns: int, end_ns: int) -> bool:
    """Whether some range covers a piece of time."""
    return any(span.start_ns <= start_ns and end_ns <= span.end_ns for span in spans)
