"""Record files of a rank: which file is written, and what happens if it cannot be."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from stepscope.live.messages import Group, Hello
from stepscope.live.store import RecordStore, limit_from_environment, records
from stepscope.live.store.lines import host_range
from stepscope.recording_format.light import FILE_BYTES

LINE = host_range(1, "step 1", "default", 1, 2, 3, 4)
MANY = LINE * (FILE_BYTES // len(LINE) + 1)
"""More than a file may have."""


class Clock:
    """A clock that can be set."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def store(base: Path, clock: Clock | None = None, limit_mb: int = 1000) -> RecordStore:
    """The store of rank 3 of a job."""
    return RecordStore(base, "job", 3, limit_mb=limit_mb, now_s=clock or Clock())


def names(base: Path) -> list[str]:
    """The files of the rank."""
    return sorted(entry.name for entry in (base / "job" / "3").iterdir())


def test_lines_are_appended_to_one_private_file_named_by_the_time(tmp_path: Path) -> None:
    base = tmp_path / "base"
    written = store(base, Clock(1234.9))

    written.write(LINE)
    written.write(LINE)

    assert names(base) == ["1234"]
    assert (base / "job/3/1234").read_text() == LINE * 2
    assert stat.S_IMODE((base / "job/3/1234").stat().st_mode) == 0o600
    assert [stat.S_IMODE((base / part).stat().st_mode) for part in ("", "job", "job/3")] == [0o700] * 3
    assert (written.problem, written.dropped) == ("", 0)


def test_a_new_file_begins_after_10_mib_also_twice_in_one_second(tmp_path: Path) -> None:
    written = store(tmp_path)

    for _ in range(3):
        written.write(MANY)
    written.write(LINE)

    assert names(tmp_path) == ["1000", "1001", "1002", "1003"]
    assert (tmp_path / "job/3/1003").read_text() == LINE


def test_a_file_exceeds_its_size_by_no_more_than_a_piece(tmp_path: Path) -> None:
    store(tmp_path).write(MANY * 3)

    sizes = [(tmp_path / "job/3" / name).stat().st_size for name in names(tmp_path)]
    assert len(sizes) == 3 and max(sizes) < FILE_BYTES + 2 * records._PIECE_BYTES
    assert sum(sizes) == len(MANY * 3)


def test_a_clock_that_is_set_back_gives_no_name_before_the_newest(tmp_path: Path) -> None:
    clock = Clock(5000)
    written = store(tmp_path, clock)
    written.write(MANY)
    clock.now = 1000
    written.write(LINE)

    assert names(tmp_path) == ["5000", "5001"]


def test_a_restarted_process_goes_on_in_the_newest_file(tmp_path: Path) -> None:
    store(tmp_path, Clock(10)).write(LINE)
    again = store(tmp_path, Clock(2000))

    again.write(LINE)

    assert names(tmp_path) == ["10"]
    assert (tmp_path / "job/3/10").read_text() == LINE * 2


def test_a_line_that_a_killed_process_left_half_spoils_no_other(tmp_path: Path) -> None:
    store(tmp_path, Clock(10)).write(LINE)
    with (tmp_path / "job/3/10").open("a") as file:
        file.write('{"Kind":1,"Fl')

    store(tmp_path, Clock(20)).write(LINE)

    assert (tmp_path / "job/3/10").read_text() == LINE + '{"Kind":1,"Fl\n' + LINE


@pytest.mark.parametrize("foreign", ["notes of a user\n", '{"mine": 1}\n'])
def test_a_foreign_file_named_by_digits_is_not_appended_to(tmp_path: Path, foreign: str) -> None:
    (tmp_path / "job/3").mkdir(parents=True)
    (tmp_path / "job/3/2000").write_text(foreign)

    store(tmp_path).write(LINE)

    assert names(tmp_path) == ["2000", "2001"]
    assert (tmp_path / "job/3/2000").read_text() == foreign


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text(LINE)
    base = tmp_path / "base"
    (base / "job/3").mkdir(parents=True)
    (base / "job/3/2000").symlink_to(target)

    store(base).write(LINE)

    assert target.read_text() == LINE
    (base / "job2").symlink_to(tmp_path)
    elsewhere = RecordStore(base, "job2", 0, limit_mb=10)
    elsewhere.write(LINE)
    assert "symbolic link" in elsewhere.problem


def test_names_of_jobs_cannot_lead_elsewhere(tmp_path: Path) -> None:
    written = RecordStore(tmp_path / "base", "../../job", 0, limit_mb=10)

    written.write(LINE)

    assert written.directory.parent.parent == tmp_path / "base"


def test_a_full_disk_gives_one_message_drops_whole_lines_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "_FIRST_WAIT_S", 0.0)
    written = store(tmp_path)
    written.write(LINE)
    real = os.write

    def full(descriptor: int, data: Any) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, bytes(data)[:50])

    with caplog.at_level(logging.WARNING, "stepscope"):
        with monkeypatch.context() as patch:
            patch.setattr("stepscope.live.store.files.os.write", full)
            for _ in range(3):
                written.write(LINE)
        assert "No space left" in written.problem
        assert written.dropped == 6
        assert (tmp_path / "job/3/1000").read_text() == LINE
        written.write(LINE)

    assert written.problem == ""
    assert (tmp_path / "job/3/1000").read_text() == LINE * 2
    assert [record.levelname for record in caplog.records if "No space left" in record.getMessage()] == ["WARNING"]


def test_while_writing_fails_it_is_only_tried_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def refuse(*_: Any, **__: Any) -> None:
        nonlocal tried
        tried += 1
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(records, "open_to_append", refuse)
    written = store(tmp_path)

    for _ in range(100):
        written.write(LINE)

    assert tried == 1 and written.dropped == 200


def test_a_directory_that_vanishes_is_made_again(tmp_path: Path) -> None:
    written = store(tmp_path)
    written.write(LINE)
    (tmp_path / "job/3/1000").unlink()
    (tmp_path / "job/3").rmdir()

    written.write(LINE)

    assert (tmp_path / "job/3/1000").read_text() == LINE


def test_groups_and_worker_are_written_in_known_forms(tmp_path: Path) -> None:
    written = store(tmp_path)
    groups = [Group("0", [0, 3], "default_group"), Group("7", [3, 5], "tp"), Group("8", [1, 2])]

    written.write_groups(groups, 3)
    written.write_worker(Hello("job", 3, 9, "node", 5))

    assert json.loads((tmp_path / "job/3/parallel_group.json").read_text()) == {
        "0": {"group_name": "default_group", "group_rank": 1, "global_ranks": [0, 3]},
        "7": {"group_name": "tp", "group_rank": 0, "global_ranks": [3, 5]},
    }
    assert json.loads((tmp_path / "job/3/worker.json").read_text())["host"] == "node"
    assert names(tmp_path) == ["parallel_group.json", "worker.json"]


@pytest.mark.parametrize(("text", "limit"), [("", 5000), ("20", 20), ("0", 5000), ("-1", 5000), ("many", 5000)])
def test_the_cap_comes_from_the_environment(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_LIVE_LIMIT_MB", text)

    assert limit_from_environment() == limit
