"""Where a report may be written."""

from __future__ import annotations

import errno
import zipfile
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.report.targets import MARK, check_apart, check_target, is_ours, write_file


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    folder = tmp_path / "recording"
    folder.mkdir()
    return folder


def test_nothing_is_written_into_an_input(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(recording)

    for target in (recording / "report.html", tmp_path / "link" / "report.html"):
        with pytest.raises(StepscopeError, match="inside the recording"):
            check_target(target, [recording])


def test_an_input_is_not_replaced(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(f'{{"stepscope_version": "{MARK}"}}')

    with pytest.raises(StepscopeError, match="the recording itself"):
        check_target(trace, [trace], force=True)


def test_two_outputs_are_not_written_to_one_file(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to(tmp_path / "report.html")

    check_apart([tmp_path / "report.html", tmp_path / "report.xlsx"])
    with pytest.raises(StepscopeError, match="same file"):
        check_apart([tmp_path / "report.html", tmp_path / "link.html"])


def test_files_of_others_stay(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.html").write_text("mine")

    with pytest.raises(StepscopeError, match="--force"):
        check_target(tmp_path / "notes.html", [recording])
    check_target(tmp_path / "notes.html", [recording], force=True)


def test_own_files_are_replaced(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "own.html").write_text(f'<!doctype html><meta content="{MARK}">')
    with zipfile.ZipFile(tmp_path / "own.xlsx", "w") as packed:
        packed.writestr("docProps/core.xml", f"<dc:description>{MARK}</dc:description>")

    for name in ("own.html", "own.xlsx", "new.html"):
        check_target(tmp_path / name, [recording])


@pytest.mark.parametrize("content", [b"PK\x03\x04 cut short", b"text"])
def test_what_has_no_mark_is_not_ours(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)

    assert not is_ours(tmp_path / "file")


@pytest.mark.parametrize(("name", "problem"), [("", "is a directory"), ("none/report.html", "there is no directory")])
def test_a_target_is_a_file_in_a_directory(name: str, problem: str, recording: Path, tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=problem):
        check_target(tmp_path / name, [recording])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def fail(draft: Path) -> None:
        draft.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(StepscopeError, match=r"report.html: cannot write the report: No space left"):
        write_file(target, fail)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "old"


def test_a_directory_that_takes_nothing_is_reported_before_anything_is_read(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)

    with pytest.raises(StepscopeError, match=r"nothing can be written there\. Choose a file in a writable directory"):
        check_target(tmp_path / "report.html", [recording])


def test_a_full_disk_is_to_be_given_room(tmp_path: Path) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    told = r"No space left on device\. Free some space there, or choose another disk"
    with pytest.raises(StepscopeError, match=told):
        write_file(tmp_path / "report.html", full)
