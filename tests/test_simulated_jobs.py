"""The jobs of `benchmarks/detect.py`: what a fault costs there, by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from simulated.faults import Fault, kernels, stops, waits_for_event
from simulated.frames import run_of
from simulated.layouts import LOADER, Shape
from simulated.operations import Network, Operation, SlowPath
from simulated.recording import recorded
from simulated.replays import program_of
from simulated.scoring import Claim, is_about, score
from simulated.simulate import BETWEEN_NS, REACH_NS, simulate
from simulated.truth import Job
from stepscope.run import Run

MS = 1_000_000
QUIET = Shape(ranks=2, steps=3, layers=2, kernel_noise=0, host_noise=0, call_noise=0)
LAUNCH = 4000


def kernel(length: int) -> Operation:
    return Operation("kernel", "gemm", length, launch_ns=LAUNCH)


def call() -> Operation:
    return Operation("call", "sum", launch_ns=LAUNCH, group="all", operation="all_reduce", size_bytes=1000)


def test_the_last_member_starts_a_call_for_all() -> None:
    network = Network(latency_ns=MS, inside_bytes_per_s=1e9, groups={"all": [0, 1]})
    wait = Operation("synchronise", "cudaStreamSynchronize", launch_ns=0)
    times = simulate(
        {0: [[kernel(5 * MS), call(), wait]], 1: [[kernel(7 * MS), call(), wait]]}, network, {"all": [1.0]}
    )
    last = LAUNCH + REACH_NS + 7 * MS + BETWEEN_NS
    first_call, second_call = times.done[0][1], times.done[1][1]
    assert (first_call.start_ns, second_call.start_ns) == (last - 2 * MS, last)
    sent = 1000  # ns: each of two members sends 2 * 1000 / 2 bytes at 1 GB/s
    assert first_call.end_ns == second_call.end_ns == last + MS + sent
    assert times.total_ns == last + MS + sent + BETWEEN_NS


def test_a_stream_waits_for_an_event_of_another() -> None:
    work = [
        Operation("kernel", "copy", 5 * MS, launch_ns=LAUNCH, stream=9),
        Operation("record", "cudaEventRecord", launch_ns=0, stream=9, event=1),
        Operation("wait", "cudaStreamWaitEvent", launch_ns=0, event=1),
        kernel(MS),
    ]
    times = simulate({0: [work]}, Network(), {})
    assert times.done[0][3].start_ns == LAUNCH + REACH_NS + 5 * MS + BETWEEN_NS


def test_no_fault_no_loss_and_the_same_numbers() -> None:
    healthy = Job("healthy", replace(QUIET, kernel_noise=0.05, stalls=0.5, stall_ns=MS))
    assert healthy.loss_ns == [0, 0, 0]
    assert healthy.times.step_ns == Job("again", healthy.shape).times.step_ns


def test_the_loss_of_a_slow_rank_is_what_its_kernels_take_longer() -> None:
    job = Job("slow", QUIET, [Fault("computing", "rank", (1,), kernels(1.5))])
    own = [done for done in job.times.done[1] if done.step == 1 and done.operation.what == "kernel"]
    longer = sum(done.operation.ns - done.operation.ns / 1.5 for done in own if done.operation.kind == "compute")
    assert abs(job.loss_ns[1] - longer) < 0.01 * longer


def test_a_loss_in_one_step_is_in_that_step_only() -> None:
    job = Job("slow", QUIET, [Fault("computing", "rank", (1,), kernels(1.5), steps=frozenset({1}))])
    before, during, after = job.loss_ns
    assert before == 0 < during and abs(after) < 0.01 * during


def test_of_two_equally_slow_ranks_mending_one_saves_nothing() -> None:
    faults = [Fault("computing", "rank", (rank,), kernels(1.5)) for rank in (0, 1)]
    job = Job("both", QUIET, faults)
    assert job.loss_without(faults[0]) < 0.01 * job.mean_loss_ns


def test_a_slow_nic_slows_what_leaves_the_host() -> None:
    network = Network(ranks_per_host=2, groups={"near": [0, 1], "far": [1, 2]}, slow=[SlowPath(4.0, (1,))])
    near, far = (network.transmit_ns("all_reduce", group, 10**8, 0) - network.latency_ns for group in ("near", "far"))
    assert far == 4 * near


def test_the_run_is_the_job() -> None:
    job = Job(
        "hole", replace(QUIET, tensor=2), [Fault("dependency", "job", (0, 1), waits_for_event(5 * MS))], links=True
    )
    run = run_of(job)
    assert run.steps == [3, 4, 5]
    starts = run.table("slices").filter(name=LOADER).collect()["start_ns"]
    assert starts.len() == 6
    calls = run.analyse("arrival")
    assert calls["members"].min() == 2 and calls["group"].unique().to_list() == ["tp0.0"]
    waits = run.table("synchronizations").filter(name="Stream Wait Event", waited_stream=32).collect()
    assert waits.height == 6


def test_a_claim_is_right_if_it_names_exactly_the_ranks() -> None:
    job = Job("slow", QUIET, [Fault("computing", "rank", (1,), kernels(1.5))])
    claim = Claim("slow-rank", ("computing",), (1,), (), 1.0, 1.0, 1.0, "high", accuses=True)
    fault = job.faults[0]
    assert is_about(claim, fault, job.truth)
    assert not is_about(replace(claim, ranks=(0, 1)), fault, job.truth)
    found = score("slow", job.truth, run_of(job))
    assert (found.material, found.wrong, found.failure) == (1, 0, "")


def test_rows_in_memory_are_those_that_a_reader_makes_of_the_traces() -> None:
    shape = Shape(stages=2, tensor=2, layers=1, steps=2, micro_batches=2, clock_spread_ns=MS, ranks_per_host=4)
    job = Job("slow", shape, [Fault("garbage_collection", "rank", (1,), stops(MS, "python_gc", "gc"))])
    with recorded(job) as here, recorded(replace(job, on_disk=True)) as read:
        assert compared(here, read) == dict.fromkeys(ROWS, 0)


ROWS = {
    "steps": ("step", "start_ns", "end_ns", "window_start_ns", "window_end_ns"),
    "kernels": ("start_ns", "duration_ns", "kind", "name", "stream", "step", "launch_start_ns", "launch_end_ns"),
    "slices": ("start_ns", "duration_ns", "category", "name", "step", "depth"),
    "operators": ("start_ns", "duration_ns", "name", "step"),
    "collectives": ("start_ns", "duration_ns", "group", "sequence", "operation", "peer", "size_bytes", "group_size"),
    "synchronizations": ("start_ns", "duration_ns", "name", "stream", "waited_stream"),
}
"""Columns to compare."""


def compared(one: Run, other: Run) -> dict[str, int]:
    """How many rows of each table differ."""
    found = {}
    for table, columns in ROWS.items():
        rows = [run.table(table).select("rank", *columns).collect() for run in (one, other)]
        different = [a.join(b, on=a.columns, how="anti", nulls_equal=True) for a, b in (rows, rows[::-1])]
        found[table] = sum(frame.height for frame in different)
    return found


def test_a_replay_repeats_what_a_recorded_rank_did() -> None:
    row = {"name": "gemm", "kind": "compute", "stream": 7, "operation": None, "size_bytes": None, "size": None}
    sent = {**row, "name": "sum", "kind": "communication", "stream": 20, "operation": "all_reduce", "size": 1000}
    rows = [
        {**row, "at": 0, "until": 4, "start_ns": 10, "duration_ns": 50},
        {**sent, "at": 10, "until": 14, "start_ns": 60, "duration_ns": 30},
        {**row, "at": 20, "until": 24, "start_ns": 60, "duration_ns": 10},
        {**row, "at": 30, "until": 34, "start_ns": 95, "duration_ns": 10},
    ]
    program = program_of(rows, 7)
    assert [each.what for each in program] == ["kernel", "record", "wait", "call", "record", "kernel", "wait", "kernel"]
    assert [each.gap_ns for each in program if each.what in ("kernel", "call")] == [0, 6, 6, 6]
    assert program[6].event == program[4].event  # the last kernel began after the call had ended
