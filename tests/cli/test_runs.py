"""Several runs under one path: which one answers is reported, and can be chosen."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from stepscope.cli import main
from tests.cli.calling import document, printed

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"

CALLS = {
    "analyze": ["--json"],
    "steps": ["--json"],
    "ops": ["--csv"],
    "flops": [],
    "input": [],
    "memory": ["--json"],
    "sql": ["SELECT rank FROM ranks ORDER BY rank", "-f", "csv"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs: one of two ranks, and one rank of a job an hour later."""
    for run, rank, hours in (("pair", 0, 0), ("pair", 1, 0), ("later", 2, 1)):
        text = gzip.decompress(next(EXAMPLE.glob(f"rank-{rank}*")).read_bytes())
        base = re.search(rb'("baseTimeNanoseconds": )(\d+)', text)
        assert base is not None
        moved = text.replace(base[0], base[1] + str(int(base[2]) + hours * 3_600_000_000_000).encode())
        (tmp_path / run).mkdir(exist_ok=True)
        (tmp_path / run / f"rank-{rank}.json").write_bytes(moved)
    return tmp_path


@pytest.mark.parametrize("command", CALLS)
def test_the_run_that_answers_is_named_on_standard_error(capfd, folder: Path, command: str) -> None:
    assert main([command, str(folder), *CALLS[command]]) == 0

    out, err = capfd.readouterr()
    first = err.splitlines()[0]
    assert first.startswith("stepscope: this is run pair, one of 2 runs. Choose with --run NAME; others: rank-2 ")
    assert "this is run" not in out


@pytest.mark.parametrize("command", CALLS)
def test_a_chosen_run_answers_and_nothing_is_asked(capfd, folder: Path, command: str) -> None:
    names = runs_of(capfd, folder)
    assert main([command, str(folder), *CALLS[command], "--run", names[1]]) == 0
    by_name = capfd.readouterr()
    assert main([command, str(folder), *CALLS[command], "--run", "2"]) == 0
    by_number = capfd.readouterr()

    assert by_name == by_number
    assert "this is run" not in by_name.err


def runs_of(capfd: pytest.CaptureFixture[str], folder: Path) -> list[str]:
    return [run["name"] for run in document(capfd, "info", folder)["runs"]]


def test_info_numbers_the_runs_and_shows_one_of_them(capfd, folder: Path) -> None:
    names = runs_of(capfd, folder)

    out = printed(capfd, "info", folder)
    assert all(f"{number}. {name}: " in out for number, name in enumerate(names, start=1))
    assert f"{names[0]}: " not in printed(capfd, "info", folder, "--run", names[1])


def test_a_run_that_is_not_there_is_answered_by_those_that_are(capfd, folder: Path) -> None:
    names = runs_of(capfd, folder)

    assert f"no run 7. Give the number or name of one of these: 1 ({names[0]}), 2 ({names[1]})" in printed(
        capfd, "sql", folder, "SELECT 1 AS one FROM ranks", "--run", "7", code=2
    )
