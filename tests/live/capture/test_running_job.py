"""Captures, checks and dumps of a job of real processes, and what they show."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.live.capture import findings
from stepscope.live.capture.stacks import merged, threads_in
from stepscope.live.messages import Capture, Captured, Check, Checked, Dump, Message, from_worker, line_of

pytest.importorskip("torch")

SCRIPT = Path(__file__).with_name("trained.py")


class Job:
    """Two ranks, of which rank 1 computes more."""

    def __init__(self, directory: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        shared = {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCH_FR_BUFFER_SIZE": "200",
        }
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **shared, "RANK": str(rank)},
            )
            for rank in range(2)
        ]

    def ask(self, request: Message) -> list[Message]:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(line_of(request))
            process.stdin.flush()
        return [from_worker(process.stdout.readline()) for process in self.processes if process.stdout is not None]

    def end(self) -> list[int]:
        for process in self.processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
        codes = [process.wait(20) for process in self.processes]
        for process in self.processes:
            assert process.stdout is not None
            process.stdout.close()
        return codes


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    one = Job(tmp_path_factory.mktemp("records"))
    try:
        yield one
    finally:
        codes = one.end()
    assert codes == [0, 0]  # training was not harmed


@pytest.fixture(scope="module")
def profiles(job: Job) -> list[Captured]:
    return [answer for answer in job.ask(Capture("c1", steps=8, first_step=20)) if isinstance(answer, Captured)]


def test_ranks_record_the_same_steps(profiles: list[Captured]) -> None:
    assert [(one.rank, one.error, one.steps) for one in profiles] == [(0, "", [20, 27]), (1, "", [20, 27])]


def test_the_profiles_name_what_the_slow_rank_does_longer(profiles: list[Captured]) -> None:
    healthy, slow = (one.directory for one in profiles)

    finding = asyncio.run(findings.compared(healthy, slow, 1, 0))

    assert "rank 1 works" in finding.text
    assert "aten::mm" in finding.text
    assert "30 instead of 2 calls" in finding.text
    assert finding.figures["profiled_own_work_ns"] > finding.figures["profiled_own_work_of_healthy_ns"]


def test_devices_and_links_are_measured_between_two_steps(job: Job) -> None:
    for lead in (50, 200, 800):  # a busy machine needs longer until all is ready
        now = [one.steps[1] for one in job.ask(Capture(f"now{lead}", steps=1)) if isinstance(one, Captured)]
        answers = job.ask(Check(f"k{lead}", ["gemm", "link"], at_step=max(now) + lead, peers=[0, 1]))
        if not any(isinstance(one, Checked) and one.error for one in answers):
            break

    for answer, peer in zip(answers, (1, 0), strict=True):
        assert isinstance(answer, Checked)
        assert answer.error == ""
        assert 0 < answer.results["gemm_best_ns"] <= answer.results["gemm_ns"]
        assert 0 < answer.results[f"link_{peer}_latency_ns"] < answer.results[f"link_{peer}_ns"]


def test_a_check_that_cannot_be_made_says_why_and_training_goes_on(job: Job) -> None:
    over = job.ask(Check("k2", ["gemm"], at_step=1))
    unknown = job.ask(Check("k3", ["disk"], at_step=10**6))
    nobody = job.ask(Check("k4", ["link"], at_step=10**6, peers=[7]))

    assert all(isinstance(one, Checked) and "step 1 was over" in one.error for one in over)
    assert all(isinstance(one, Checked) and "'disk' is not a check" in one.error for one in unknown)
    assert all(isinstance(one, Checked) and "ranks of this job are 0 to 1" in one.error for one in nobody)


def test_a_dump_has_stacks_and_last_calls(job: Job) -> None:
    answers = job.ask(Dump("d1"))

    for answer in answers:
        assert isinstance(answer, Captured)
        files = {Path(file).name: Path(file) for file in answer.files}
        assert files.keys() == {"stacks.json", f"nccl_trace_rank_{answer.rank}"}
        place = merged({0: threads_in(files["stacks.json"].read_text())})[0]
        assert place.place.startswith("trained.py:")
        assert json.loads(files["stacks.json"].read_text())[0]["pid"] == job.processes[answer.rank].pid
