"""Light records lead to the same blame as full recordings, where what they hold allows it, and else to none."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import polars as pl
import pytest

from light_records import LightJob, always, one
from stepscope import Run, open_run
from stepscope.advice import advise
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict

SLOW_FORWARD = LightJob(forward=one(2, 15, 10))
SLOW_BACKWARD = LightJob(backward=one(2, 15, 10))
SLOW_LOADER = LightJob(data=one(1, 8, 1))


def silent(job: LightJob) -> LightJob:
    """The job without recorded calls, as by default."""
    return dataclasses.replace(job, communicates=lambda rank, step: False)


def opened(job: LightJob, directory: Path, writer: str) -> Run:
    """The run of a job, written by us or as by TaskD."""
    return open_run(job.write(directory) if writer == "ours" else job.write_as_taskd(directory))


def blamed(run: Run) -> list[tuple[int, str]]:
    """Ranks and what they are slow at."""
    found = run.analyse("slow_ranks")
    return found.select("rank", "kind").rows()


@pytest.mark.parametrize("writer", ["ours", "taskd"])
@pytest.mark.parametrize(
    ("job", "blame"),
    [
        (SLOW_FORWARD, [(2, "computing")]),
        (SLOW_BACKWARD, [(2, "dispatch")]),
        (SLOW_LOADER, [(1, "data_loading")]),
        (silent(SLOW_FORWARD), [(2, "computing")]),
        (silent(SLOW_BACKWARD), []),
        (silent(SLOW_LOADER), [(1, "data_loading")]),
        # as with sharded models: others wait within their forward passes for the rank whose batch comes late
        (dataclasses.replace(silent(SLOW_LOADER), forward=one(1, 10, 17)), [(1, "data_loading")]),
        (LightJob(), []),
        (silent(LightJob()), []),
        (LightJob(checkpoint=lambda rank, step: 0 if step % 10 else 60 if rank == 3 else 10), [(3, "checkpoint")]),
    ],
    ids=lambda value: "",
)
def test_the_slow_rank_is_blamed_and_no_other(
    job: LightJob, blame: list[tuple[int, str]], writer: str, tmp_path: Path
) -> None:
    assert blamed(opened(job, tmp_path, writer)) == blame


@pytest.mark.parametrize("job", [SLOW_FORWARD, SLOW_LOADER, silent(SLOW_FORWARD), silent(SLOW_LOADER)])
def test_of_two_ranks_the_one_that_waits_is_not_blamed(job: LightJob, tmp_path: Path) -> None:
    two = dataclasses.replace(job, ranks=2, forward=one(1, job.forward(2, 1), 10), data=one(1, job.data(1, 1), 1))

    assert [rank for rank, _ in blamed(opened(two, tmp_path, "ours"))] == [1]


def test_waiting_in_calls_is_known_by_rank(tmp_path: Path) -> None:
    arrival = opened(SLOW_FORWARD, tmp_path, "taskd").analyse("arrival")

    last = dict(arrival.group_by("rank").agg(pl.col("is_last").sum()).iter_rows())
    assert max(last, key=lambda rank: last[rank]) == 2


def test_what_is_not_marked_is_no_finding(tmp_path: Path) -> None:
    run = opened(dataclasses.replace(LightJob(), backward=always(30)), tmp_path, "ours")

    assert [finding.rule for finding in advise(run, strict=True) if finding.rule == "idle-time"] == []


def test_the_verdict_says_that_idle_time_is_not_known(tmp_path: Path) -> None:
    run = opened(dataclasses.replace(LightJob(steps=20), backward=always(30)), tmp_path, "ours")

    told = verdict(answers(run, strict=True))
    assert "unmarked or idle" in told
    assert "does not mark backward passes and optimizers" in told
    assert set(run.analyse("idle")["cause"]) <= {"unmarked", "data_loading"}


def test_calls_outside_of_recorded_steps_are_no_part_of_a_step(tmp_path: Path) -> None:
    directory = LightJob(steps=60, communicates=lambda rank, step: step > 30).write(tmp_path)
    for file in directory.glob("[0-9]*/[0-9]*"):  # as if steps had been switched off when communication went on
        lines = file.read_text().splitlines(keepends=True)
        late = {json.loads(line)["Id"] for line in lines if _step(line) > 30}
        file.write_text("".join(line for line in lines if json.loads(line)["Id"] not in late))
    run = open_run(directory)

    assert not run.has("collectives")
    assert run.issues.filter(pl.col("problem").str.contains("calls left out")).height
    assert [finding.rule for finding in advise(run, strict=True) if finding.rule == "exposed-communication"] == []


def _step(line: str) -> int:
    name = json.loads(line)["Name"]
    return int(name.split()[1]) if name.startswith("step ") else 0


def test_ranks_whose_records_begin_at_different_steps_are_compared_by_step(tmp_path: Path) -> None:
    job = dataclasses.replace(SLOW_FORWARD, communicates=lambda rank, step: step > 10 * rank)

    run = opened(job, tmp_path, "ours")

    assert blamed(run) == [(2, "computing")]
    matched = run.analyse("arrival")
    assert matched.filter(matched["members"] == 4)["step"].min() == 31


def test_calls_that_could_do_without_more_than_they_take_are_shortened_to_nothing(tmp_path: Path) -> None:
    job = LightJob(ranks=2, transfer=4, varies=0.9, sizes=(16_384, 256))

    found = opened(job, tmp_path, "ours").analyse("call_savings")

    assert found["item"].to_list() == ["slow", "latency"]
    assert all(0 <= saving <= 4_200_000 for saving in found["saving_ns"])
