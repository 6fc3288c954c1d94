"""Ways to have a process run the line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from live.attach.attaching import script, stepscope, why_not_gdb
from stepscope.live.attach import debuggers, injection
from stepscope.live.attach.injection import Injected, inject, line
from stepscope.live.attach.permission import CannotAttach
from stepscope.live.attach.processes import Process, look

needs_gdb = pytest.mark.skipif(bool(why_not_gdb()), reason=why_not_gdb() or "gdb works")


def as_version(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> Process:
    """This process, said to run some version."""
    monkeypatch.setattr(Process, "python", lambda _: version)
    return look(os.getpid())


def test_the_line_binds_no_name_and_no_error_leaves_it(tmp_path: Path) -> None:
    names: dict[str, object] = {"file": "the script's own", "content": 1}

    exec(line(tmp_path / "nothing here"), names)

    names.pop("__builtins__")
    assert names == {"file": "the script's own", "content": 1}


def test_the_line_survives_odd_paths(tmp_path: Path) -> None:
    room = tmp_path / 'it\'s "odd" \\ {here}\n'
    room.mkdir()
    (room / "visitor.py").write_text("import pathlib; pathlib.Path(ROOM, 'came').touch()")

    exec(line(room), {})

    assert (room / "came").exists()


def test_python_3_14_is_asked_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []
    monkeypatch.setattr(sys, "remote_exec", lambda pid, file: asked.append((pid, file)), raising=False)
    monkeypatch.setattr(injection, "REMOTE_EXEC", sys.version_info[:2])
    process = as_version(monkeypatch, sys.version_info[:2])

    injected = inject(process, tmp_path, "auto")

    assert injected == Injected("remote-exec")
    assert asked == [(process.pid, str(tmp_path / "line.py"))]
    assert Path(asked[0][1]).read_text() == line(tmp_path)


def test_another_version_is_asked_by_its_own_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "python3.14"
    helper.write_text(f'#!/bin/sh\nshift 3\necho "$@" > {tmp_path}/asked\n')
    helper.chmod(0o755)
    monkeypatch.setattr(Process, "executable", lambda _: str(helper))
    process = as_version(monkeypatch, (3, 14))

    assert inject(process, tmp_path, "remote-exec") == Injected("remote-exec")

    assert (tmp_path / "asked").read_text().split() == [str(process.pid), str(tmp_path / "line.py")]


def test_a_refusal_by_the_system_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(sys, "remote_exec", refuse, raising=False)
    monkeypatch.setattr(injection, "REMOTE_EXEC", sys.version_info[:2])
    monkeypatch.setattr(injection, "forbidden", lambda _: "the reason")
    process = as_version(monkeypatch, sys.version_info[:2])

    with pytest.raises(CannotAttach, match="the reason"):
        inject(process, tmp_path, "remote-exec")


@pytest.mark.parametrize(
    ("version", "variable", "reason"),
    [((3, 11), None, "3.11, which cannot run code for another process"), ((3, 14), "1", "PYTHON_DISABLE_REMOTE_DEBUG")],
)
def test_remote_execution_is_refused_with_the_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int],
    variable: str | None,
    reason: str,
) -> None:
    environment = {} if variable is None else {"PYTHON_DISABLE_REMOTE_DEBUG": variable}
    monkeypatch.setattr(Process, "environment", lambda _: environment)

    with pytest.raises(CannotAttach, match=reason):
        inject(as_version(monkeypatch, version), tmp_path, "remote-exec")


def test_without_a_debugger_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CannotAttach, match=r"gdb or lldb, which is not installed .* apt-get install gdb"):
        inject(as_version(monkeypatch, (3, 11)), tmp_path, "auto")


def fake_gdb(tmp_path: Path, answer: str) -> str:
    """A program that answers `attach` with a text, and echoes what it shall echo."""
    program = tmp_path / "gdb"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "for line in sys.stdin:\n"
        "    word, _, rest = line.strip().partition(' ')\n"
        "    said = rest.replace('\\\\n', '\\n') if word == 'echo' else ''\n"
        f"    print({answer!r} if word == 'attach' else said, flush=True)\n"
        "    if word == 'quit': break\n"
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("ptrace: Operation not permitted.", "the reason"),
        ("warning: process 7 is already traced by process 8\nptrace: Operation not permitted.", "the reason"),
        ("ptrace: No such process.", "has ended"),
        ("Can't attach to process.", "gdb cannot attach: Can't attach"),
    ],
)
def test_what_gdb_says_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, reason: str) -> None:
    monkeypatch.setattr(debuggers, "forbidden", lambda _: "the reason")

    with pytest.raises(CannotAttach, match=reason):
        debuggers.Gdb(fake_gdb(tmp_path, answer), 7)


def test_a_python_without_symbols_is_explained() -> None:
    with pytest.raises(CannotAttach, match=r"no symbols .*stripped"):
        debuggers._check_symbols('No symbol "Py_AddPendingCall" in current context.')


@needs_gdb
def test_gdb_has_the_line_run_and_the_process_goes_on(tmp_path: Path) -> None:
    with script("idling.py", STEPSCOPE_TEST_LINE=str(tmp_path / "line.py")) as running:
        before = running.look()

        code, printed = stepscope("attach", str(running.pid), "-o", str(tmp_path / "out"))

        assert code
        assert "has not loaded torch or mindspore" in printed
        after = running.look()
        assert {**after, "threads": 1} == {**before, "threads": 1}


@needs_gdb
def test_a_program_that_is_not_python_is_refused_before_gdb_is_started(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        code, printed = stepscope("attach", str(other.pid), "-o", str(tmp_path / "out"))
    finally:
        other.kill()
        other.wait()

    assert code and "does not run Python" in printed
