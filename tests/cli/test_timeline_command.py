"""`stepscope timeline` on the shipped recording and on small ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("perfetto")

from light_records import LightJob
from stepscope.cli import main
from tests.cli.calling import EXAMPLE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of its own: another one has the cache."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Small recordings of a job of two ranks."""
    LightJob(ranks=2, steps=4).write(tmp_path / "job")
    return tmp_path / "job"


def told(capture: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """What the command says, on standard error."""
    assert main(["timeline", *map(str, words)]) == code
    out, err = capture.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_what_was_written_is_said(capfd, folder: Path) -> None:
    text = told(capfd, EXAMPLE, "-o", folder / "a.pftrace", "--kind", "summary")

    pattern = r"stepscope: wrote \S+a\.pftrace \(\d+ events of 4 ranks on \d+ tracks, [\d.]+ kB\)\n"
    assert re.fullmatch(pattern, text)
    assert [file.name for file in folder.iterdir()] == ["a.pftrace"]


def test_quiet_says_nothing(capfd, job: Path, folder: Path) -> None:
    assert told(capfd, job, "-o", folder / "a.pftrace", "-q") == ""


@pytest.mark.parametrize(
    ("name", "words", "start"),
    [
        ("a.json", (), b'{"displayTimeUnit"'),
        ("a.json.gz", (), b"\x1f\x8b"),
        ("a.pftrace", (), b"\x0a"),
        ("a", (), b"\x0a"),
        ("a.json", ("--format", "perfetto"), b"\x0a"),
        ("a.pftrace", ("--format", "json"), b'{"displayTimeUnit"'),
    ],
)
def test_the_form_is_that_of_the_name_unless_it_is_given(
    name: str, words: tuple[str, ...], start: bytes, capfd, job: Path, folder: Path
) -> None:
    for _ in range(2):  # our own file is replaced
        told(capfd, job, "-o", folder / name, "--kind", "summary", *words)

    assert (folder / name).read_bytes().startswith(start)


def test_the_bytes_are_the_same_without_a_store_and_with_processes(capfd, job: Path, folder: Path) -> None:
    ways = ((), ("--no-store",), ("--engine", "processes"), ("--engine", "threads"))

    for number, words in enumerate(ways):
        told(capfd, job, "-o", folder / str(number), *words)

    assert len({file.read_bytes() for file in folder.iterdir()}) == 1


def test_ranks_are_chosen(capfd, job: Path, folder: Path) -> None:
    told(capfd, job, "-o", folder / "a.json", "--ranks", "1")

    events = json.loads((folder / "a.json").read_bytes())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {name.split(" (")[0] for name in names} <= {"rank 1", "job"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--ranks", "9"), "no rank 9 in job. It has ranks 0-1"),
        (("--ranks", "x"), "ranks 'x': 'x' is not a number. Write them like 0,3-5 or 7-"),
        (("--steps", "99"), "no step 99 in job. It has steps"),
        (("--graphs", "1"), "its steps are not counted by graph (model). Leave out --graphs"),
        (("--graphs", "x"), "graphs 'x': 'x' is not a number"),
        (("--limit-mb", "0"), "--limit-mb 0: give a size above 0"),
        (("--limit-mb", "-3"), "--limit-mb -3: give a size above 0"),
        (("--limit-mb", "nan"), "--limit-mb nan: give a size above 0"),
        (("--limit-mb", "0.00001"), "not even the steps fit into 10 B. Allow a larger file"),
        (("--kind", "all"), "--kind all: give one of summary, detail"),
        (("--format", "xml"), "--format xml: give one of perfetto, json"),
        (("--run", "7"), "no run 7"),
    ],
)
def test_what_is_not_possible_is_said_and_leaves_nothing(
    words: tuple[str, ...], problem: str, capfd, job: Path, folder: Path
) -> None:
    assert problem in told(capfd, job, "-o", folder / "a.pftrace", *words, code=2)
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize("limit", [20_000, 200_000])
def test_a_limit_is_kept_and_what_is_left_out_is_said(limit: int, capfd, folder: Path) -> None:
    text = told(capfd, EXAMPLE, "-o", folder / "a.pftrace", "--limit-mb", limit / 1e6, "--no-explain")

    assert (folder / "a.pftrace").stat().st_size <= limit
    assert re.search(r"left out of Host: \d+ rows: ranges shorter than [\d.]+ [mu]s", text)
    assert "left out of Steps" not in text


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("job/a.pftrace", "inside the recording"),
        ("out", "this is a directory. Give the name of a file"),
        ("out/none/a.pftrace", "Create it first"),
    ],
)
def test_nothing_is_read_if_the_place_is_bad(
    place: str, problem: str, capfd, job: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.cli.opening.opened", lambda *_, **__: pytest.fail("it was read"))

    assert problem in told(capfd, job, "-o", folder.parent / place, code=2)


def test_a_file_of_others_stays_unless_it_is_forced(capfd, job: Path, folder: Path) -> None:
    (folder / "a.json").write_text("mine")

    assert "was not written by stepscope" in told(capfd, job, "-o", folder / "a.json", code=2)
    assert (folder / "a.json").read_text() == "mine"
    told(capfd, job, "-o", folder / "a.json", "--force")
    assert (folder / "a.json").read_bytes().startswith(b"{")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="every directory can be written to")
def test_a_directory_that_cannot_be_written_to_is_said(capfd, job: Path, folder: Path) -> None:
    folder.chmod(0o500)

    assert "nothing can be written there" in told(capfd, job, "-o", folder / "a.pftrace", code=2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_said(capfd, job: Path) -> None:
    assert "No space left on device. Free some space there" in told(capfd, job, "-o", "/dev/full", code=2)


def test_standard_output_is_no_file(capfd, job: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    assert "-o -: a timeline is written to a file" in told(capfd, job, "-o", "-", code=2)
    assert [*folder.iterdir()] == []


def test_of_several_runs_the_one_that_is_shown_is_named(capfd, job: Path, folder: Path) -> None:
    both = job.parent / "both"
    shutil.copytree(EXAMPLE, both / "example")
    job.rename(both / "job")

    first, second = (told(capfd, both, "-o", folder / run, "--kind", "summary", "--run", run) for run in ("1", "2"))
    default = told(capfd, both, "-o", folder / "a", "--kind", "summary")

    assert "this is run" in default
    assert "one of 2 runs. Choose with --run NAME; others: " in default
    assert first != second
    assert (folder / "a").read_bytes() == (folder / "1").read_bytes() != (folder / "2").read_bytes()


def test_help_fits_80_columns(capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert main(["timeline", "--help"]) == 0
    assert max(map(len, capfd.readouterr().out.splitlines())) <= 80


def test_what_is_said_fits_80_columns_of_a_terminal(capfd, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.cli.notes._width", lambda: 80)
    monkeypatch.chdir(folder)

    text = told(capfd, EXAMPLE, "-o", "a.pftrace", "--limit-mb", "0.02")

    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", ["a.pftrace", "a.json", "a.json.gz"])
def test_a_timeline_is_no_recording_and_named_as_one(name: str, capfd, job: Path, folder: Path) -> None:
    told(capfd, job, "-o", folder / name, "--kind", "summary")

    text = told(capfd, folder / name, "-o", folder / "again.pftrace", code=2)

    assert "is a timeline that stepscope wrote. Show it with `stepscope view`" in " ".join(text.split())


def test_a_damaged_input_is_told(capfd, folder: Path) -> None:
    for number, file in enumerate(sorted(Path(EXAMPLE).rglob("*.json*"))):
        content = file.read_bytes()
        target = folder / "in" / file.name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content[: len(content) // 2] if number == 0 else content)

    text = told(capfd, folder / "in", "-o", folder / "a.pftrace", "--kind", "summary")

    assert "error: " in text
