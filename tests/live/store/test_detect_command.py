"""`stepscope live detect` over stored records."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from light_records import MS, START_NS, LightJob, one
from stepscope.cli import main

SLOW = LightJob(forward=one(2, 15, 10), steps=200)


def test_the_slow_rank_is_named_and_the_exit_code_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "detect", str(SLOW.write(tmp_path))]) == 1

    assert capsys.readouterr().out.startswith("Rank 2 computes slowly: 1.")


def test_records_of_taskd_are_judged_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = LightJob(data=one(1, 8, 1)).write_as_taskd(tmp_path)

    assert main(["live", "detect", str(directory), "--json"]) == 1

    (verdict,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (verdict["cause"], verdict["ranks"]) == ("slow_data", [1])


def test_a_healthy_job_and_damage_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = LightJob().write(tmp_path)
    with next((directory / "0").glob("[0-9]*")).open("a") as file:
        file.write("damaged\n")

    assert main(["live", "detect", str(tmp_path)]) == 0

    said = capsys.readouterr()
    assert said.out == "Nobody is slow: 4 ranks, steps 1 to 150.\n"
    assert "1 damaged line" in said.err


def test_records_that_cannot_be_read_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, opens = LightJob(steps=20).write(tmp_path), os.open

    def refusing(path: Path, *arguments: int) -> int:
        if Path(path).parent == directory / "1":
            raise PermissionError(13, "Permission denied", str(path))
        return opens(path, *arguments)

    monkeypatch.setattr("stepscope.live.store.tail.os.open", refusing)
    main(["live", "detect", str(tmp_path)])

    assert "warning: records of rank 1 could not be read. Check permissions" in capsys.readouterr().err


def test_two_processes_of_a_rank_at_the_same_time_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    LightJob(ranks=2, steps=20).write(tmp_path)
    LightJob(ranks=2, steps=20, pid=500, start_ns=START_NS + 30 * MS).write(tmp_path)

    main(["live", "detect", str(tmp_path)])

    said = capsys.readouterr().err
    assert "warning: two processes (100 and 500) have written the records of ranks 0-1 at the same time" in said
    assert "another MINDX_TASK_ID or STEPSCOPE_LIVE_DIR" in said


def test_a_restarted_rank_is_no_rival_of_its_earlier_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LightJob(ranks=2, steps=20).write(tmp_path)
    LightJob(ranks=2, steps=20, pid=500, start_ns=START_NS + 60_000 * MS).write(tmp_path)

    main(["live", "detect", str(tmp_path)])

    assert "two processes" not in capsys.readouterr().err


def test_one_that_recovers_is_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = LightJob(steps=500, forward=lambda rank, step: 20 if rank == 2 and 100 < step < 250 else 10)

    assert main(["live", "detect", str(job.write(tmp_path))]) == 0

    said = capsys.readouterr().out
    assert said.startswith("Rank 2 computes slowly") and "over" in said


@pytest.mark.parametrize("make", [False, True])
def test_no_records_are_an_error_with_what_to_do(
    tmp_path: Path, make: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "job"
    if make:
        directory.mkdir()

    assert main(["live", "detect", str(directory)]) == 2

    assert "Give the directory of a job" in capsys.readouterr().err


def test_following_reports_what_begins_later(tmp_path: Path) -> None:
    healthy = LightJob(steps=40)
    directory = healthy.write(tmp_path)
    command = [sys.executable, "-u", "-m", "stepscope", "live", "detect", str(directory), "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        later = dataclasses.replace(SLOW, steps=400, first_step=41, start_ns=START_NS + 1000 * MS)
        later.write(tmp_path)
        verdict = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait(20)

    assert (verdict["cause"], verdict["ranks"]) == ("slow_compute", [2])
    assert process.returncode == 1
