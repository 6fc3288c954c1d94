"""Where the parts of a job meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.live import places


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*places._LAUNCHERS, places.TASK_VARIABLE, places.BASE_VARIABLE, places.SOCKET_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_all_ranks_of_a_job_derive_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "node-1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    names = set()
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        names.add(places.task_id())

    assert names == {"default_task_id_node-1_29500"}


@pytest.mark.parametrize(
    ("stated", "name"), [("job-1", "job-1"), ("../../etc", "_.._etc"), ("a/b c", "a_b_c"), ("..", "_")]
)
def test_a_stated_task_id_cannot_leave_the_directory(monkeypatch: pytest.MonkeyPatch, stated: str, name: str) -> None:
    monkeypatch.setenv(places.TASK_VARIABLE, stated)

    assert places.task_id() == name


def test_records_go_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(places.BASE_VARIABLE, str(tmp_path))

    assert places.base_directory() == tmp_path


def test_the_socket_is_in_a_directory_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    assert places.socket_path(9700) == tmp_path / "stepscope" / "live-9700.sock"
