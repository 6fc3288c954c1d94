"""`stepscope report` on the shipped recording."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("xlsxwriter")

from stepscope.cli import main
from tests.cli.calling import EXAMPLE, printed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of its own: another one has the cache."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_all_files_are_written(capfd, folder: Path) -> None:
    files = [folder / f"report.{ending}" for ending in ("html", "xlsx", "md", "json")]
    words = [
        word
        for flag, file in zip(("-o", "--xlsx", "--markdown", "--json"), files, strict=True)
        for word in (flag, file)
    ]

    printed(capfd, "report", EXAMPLE, *words)
    printed(capfd, "report", EXAMPLE, *words, "-q")

    assert sorted(folder.iterdir()) == sorted(files)
    assert "Rank 2 waits for data" in files[0].read_text(encoding="utf-8")
    assert json.loads(files[3].read_text(encoding="utf-8"))["findings"][0]["where"] == {"rank": 2}


def test_only_what_is_asked_for_is_written(capfd, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    text = printed(capfd, "report", EXAMPLE, "--markdown", "-", "--lang", "zh")

    assert "rank 2" in text
    assert [*folder.iterdir()] == []
    printed(capfd, "report", EXAMPLE)
    assert [file.name for file in folder.iterdir()] == ["report.html"]


def test_nothing_is_read_if_the_target_is_bad(capfd) -> None:
    error = printed(capfd, "report", EXAMPLE, "-o", f"{EXAMPLE}/report.html", code=2)

    assert "into which nothing is written" in error


def test_two_answers_cannot_be_printed(capfd) -> None:
    assert "only one of" in printed(capfd, "report", EXAMPLE, "--markdown", "-", "--json", "-", code=2)


@pytest.mark.parametrize(("library", "words"), [("jinja2", ["-o"]), ("xlsxwriter", ["--xlsx"])])
def test_a_missing_library_is_named_with_the_remedy(
    library: str, words: list[str], capfd, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stepscope.report.html", "stepscope.report.xlsx"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, library, None)

    error = printed(capfd, "report", EXAMPLE, *words, folder / "file", code=2)

    assert "pip install 'stepscope[report]'" in error
    assert [*folder.iterdir()] == []


def test_the_browser_opens_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", seen.append)

    main(["report", EXAMPLE, "-o", str(folder / "a b.html"), "--open", "-q"])

    assert seen == [f"{folder.as_uri()}/a%20b.html"]


def test_savings_of_a_day_are_stated_on_demand(capfd) -> None:
    text = printed(capfd, "report", EXAMPLE, "--markdown", "-", "--gpus", "4", "--gpu-hour-price", "2")

    assert "device-hours" in text
    assert "USD" in text


def test_a_small_file_has_a_size(capfd, folder: Path) -> None:
    assert main(["report", EXAMPLE, "--markdown", str(folder / "report.md")]) == 0

    assert " kB)" in capfd.readouterr().err


def test_a_report_that_rests_on_part_of_the_data_is_told_in_the_terminal_as_well(capfd, folder: Path) -> None:
    job = folder / "job"
    shutil.copytree(EXAMPLE, job)
    first = min(job.glob("*.gz"))
    first.write_bytes(first.read_bytes()[:20_000])

    assert main(["report", str(job), "-o", str(folder / "report.html"), "-q"]) == 0
    assert "warning: This report rests on part of the data: 1 file has lost data." in capfd.readouterr().err

    assert main(["report", EXAMPLE, "-o", str(folder / "whole.html"), "-q"]) == 0
    assert capfd.readouterr().err == ""
