"""What `stepscope serve` may be told, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.web.settings import Settings, is_loopback
from stepscope.web.tokens import SHORTEST, VARIABLE, Stated, stated

GOOD = "a-token-of-20-letters"


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_a_root_is_a_directory_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text("{}")
    assert Settings.checked([tmp_path, file, tmp_path]).roots == (tmp_path, file)


def test_a_missing_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="nothing: no such file or directory"):
        Settings.checked([tmp_path / "nothing"])


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root may read everything")
def test_a_root_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        with pytest.raises(StepscopeError, match="cannot be read"):
            Settings.checked([tmp_path])
    finally:
        tmp_path.chmod(0o700)


def test_a_root_that_is_a_circle_of_links_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StepscopeError, match="cannot be read"):
        Settings.checked([tmp_path / "loop"])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_no_token_is_needed_on_this_machine_alone(tmp_path: Path, host: str) -> None:
    assert Settings.checked([tmp_path], host=host).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "my-host", "localhost.example.com", ""])
def test_an_address_that_others_reach_needs_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(StepscopeError, match=r"clients must give a token.*--token-file"):
        Settings.checked([tmp_path], host=host)
    assert Settings.checked([tmp_path], host=host, token=GOOD).token == GOOD


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_is_a_number_up_to_65535(tmp_path: Path, port: int) -> None:
    with pytest.raises(StepscopeError, match="from 0 to 65535"):
        Settings.checked([tmp_path], port=port)


@pytest.mark.parametrize("name", ["http://a.b", "a.b:80", "a b", "a/b", "", "*", "evil\nhost"])
def test_a_host_name_is_no_address_of_a_page(tmp_path: Path, name: str) -> None:
    with pytest.raises(StepscopeError, match="host name alone"):
        Settings.checked([tmp_path], names=[name])


def test_hosts_are_those_of_this_machine_and_the_allowed(tmp_path: Path) -> None:
    own = Settings.checked([tmp_path], names=["Perf.Example.COM"]).hosts()
    assert own == {"127.0.0.1", "localhost", "::1", "perf.example.com"}
    assert "localhost" not in Settings.checked([tmp_path], host="192.168.1.2", token=GOOD).hosts()


def test_only_addresses_of_this_machine_are_loopback() -> None:
    assert is_loopback("127.0.0.1")
    assert not is_loopback("127.0.0.1.example.com")


def test_the_token_is_not_shown(tmp_path: Path) -> None:
    assert GOOD not in repr(Settings.checked([tmp_path], token=GOOD))


# Tokens


def test_a_literal_token_is_warned_about() -> None:
    found = stated(GOOD, None)
    assert found.token == GOOD
    assert "other users of this machine can see" in found.warning
    assert GOOD not in found.warning
    assert found.keep() == ""


@pytest.mark.parametrize("bad", ["short", "x" * (SHORTEST - 1), "", "ümläute-und-noch-mehr", "two words of a token"])
def test_a_short_or_odd_token_is_refused_with_what_is_needed(bad: str) -> None:
    with pytest.raises(StepscopeError, match=f"at least {SHORTEST} characters"):
        stated(bad, None)


def test_the_environment_states_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stated(None, None) == Stated(None)
    monkeypatch.setenv(VARIABLE, GOOD + "\n")
    assert stated(None, None) == Stated(GOOD)
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(StepscopeError, match=f"{VARIABLE}.*at least"):
        stated(None, None)


def test_a_token_is_read_from_a_file_of_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "another-token-of-the-environment")
    file = tmp_path / "token"
    file.write_text(GOOD + "\n")
    file.chmod(0o600)
    assert stated(None, file) == Stated(GOOD)
    for mode in (0o640, 0o604, 0o620, 0o666):
        file.chmod(mode)
        with pytest.raises(StepscopeError, match="chmod 600"):
            stated(None, file)


def test_a_missing_file_gets_a_new_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    found = stated(None, file)
    assert found.token is not None
    assert len(found.token) > 40
    assert not file.exists()
    done = found.keep()
    assert str(file) in done
    assert found.token not in done
    assert file.stat().st_mode & 0o777 == 0o600
    assert stated(None, file) == Stated(found.token)
    with pytest.raises(StepscopeError, match="cannot be created"):  # another process was faster
        found.keep()


def test_no_token_is_written_beside_recordings(tmp_path: Path) -> None:
    for file in (tmp_path / "token", tmp_path / "below" / "token"):
        file.parent.mkdir(exist_ok=True)
        with pytest.raises(StepscopeError, match="no token is written beside recordings"):
            stated(None, file, [tmp_path])
        assert not file.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "alone, on one line"),
        (b"one-line-of-a-token\nanother-line-of-it", "alone, on one line"),
        (b"\xff" * 30, "alone, on one line"),
        (b"x" * 5000, "alone, on one line"),
        (b"short", "at least 16"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(StepscopeError, match=problem):
        stated(None, file)


def test_a_place_that_cannot_hold_a_token_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="cannot be created"):
        stated(None, tmp_path / "no" / "token").keep()
    with pytest.raises(StepscopeError, match="is a directory"):
        stated(None, tmp_path)


def test_a_pipe_as_file_of_a_token_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(StepscopeError, match="alone, on one line"):
        stated(None, tmp_path / "pipe")


def test_two_tokens_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="give one of them"):
        stated(GOOD, tmp_path / "token")
