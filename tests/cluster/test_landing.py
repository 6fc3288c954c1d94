"""The directory that files are collected into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.cluster.landing import Arrived, Landing, Part
from stepscope.errors import StepscopeError


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "run", resume=False)


def settle(landing: Landing, target: str, text: bytes) -> bool:
    with landing.part(1, Part(target, len(text), 5), go_on=False) as part:
        part.write(text)
    return landing.settle(1, part.name, Arrived(target, len(text), 5, part.digest.hexdigest(), "sha256"))


def test_a_file_takes_its_place_once(landing: Landing, tmp_path: Path) -> None:
    assert settle(landing, "1/a.json", b"one")
    assert not settle(landing, "1/a.json", b"two")

    assert (tmp_path / "run/1/a.json").read_bytes() == b"one"
    assert landing.arrived(1)["1/a.json"].size == 3


def test_a_link_in_the_way_is_not_followed(landing: Landing, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "1").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="1"):
        settle(landing, "1/a.json", b"one")

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_part_of_another_file_is_not_gone_on_with(landing: Landing) -> None:
    with landing.part(1, Part("1/a.json", 6, 5), go_on=True) as part:
        part.write(b"one")
    with landing.part(1, Part("1/a.json", 6, 5), go_on=True) as part:
        assert part.was_there == 3
    with landing.part(1, Part("1/a.json", 6, 5), go_on=False) as part:
        assert part.was_there == 0
        part.write(b"one")
    with landing.part(1, Part("1/a.json", 6, 99), go_on=True) as part:
        assert part.was_there == 0


def test_one_call_at_a_time(landing: Landing, tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="another `stepscope collect` is at work"):
        Landing(tmp_path / "run", resume=True)


@pytest.mark.parametrize(("resume", "problem"), [(False, "nothing is overwritten"), (True, "was not made by")])
def test_a_directory_of_others_is_refused(tmp_path: Path, resume: bool, problem: str) -> None:
    (tmp_path / "mine.txt").touch()

    with pytest.raises(StepscopeError, match=problem):
        Landing(tmp_path, resume=resume)

    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


def test_what_was_collected_is_gone_on_with_only_if_asked(landing: Landing, tmp_path: Path) -> None:
    landing.close()
    (tmp_path / "run" / "1").mkdir()

    with pytest.raises(StepscopeError, match="Pass --resume"):
        Landing(tmp_path / "run", resume=False)
    Landing(tmp_path / "run", resume=True).close()


def test_after_an_attempt_of_which_nothing_arrived_another_one_may_begin(landing: Landing, tmp_path: Path) -> None:
    landing.write_mapping([("10.0.0.1", 1)])
    landing.close()

    Landing(tmp_path / "run", resume=False).close()


def test_room_is_reserved_for_all_hosts_together(landing: Landing) -> None:
    room = os.statvfs(landing.directory)
    free = room.f_bavail * room.f_frsize

    assert landing.reserve(free // 2, free // 4)
    assert not landing.reserve(free // 2, free // 4)
    landing.release(free // 2)
    assert landing.reserve(free // 2, free // 4)


def test_what_a_killed_command_left_is_removed(landing: Landing, tmp_path: Path) -> None:
    (landing.quarantine(1) / "half").write_text("x")
    landing.close()

    Landing(tmp_path / "run", resume=True).close()

    assert list((tmp_path / "run" / ".stepscope-collect").glob("quarantine*")) == []
