"""What `/proc` shows of processes, and which of them may be attached to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.live.attach import permission, processes
from stepscope.live.attach.permission import CannotAttach, check, forbidden
from stepscope.live.attach.processes import below, look, training_below

TORCH = "7f00-7f01 r-xp 00000000 08:01 1 /env/site-packages/torch/lib/libtorch_python.so\n"
PYTHON = "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/libpython3.12.so.1.0\n"


class Proc:
    """A made-up `/proc`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        pid: int,
        *,
        parent: int = 1,
        command: str = "python train.py",
        maps: str = PYTHON,
        environment: dict[str, str] | None = None,
        user: int | None = None,
        state: str = "S (sleeping)",
        tracer: int = 0,
        namespace: str = "4026531840",
    ) -> None:
        place = self.root / str(pid)
        (place / "ns").mkdir(parents=True)
        user = os.geteuid() if user is None else user
        (place / "status").write_text(
            f"Name:\tx\nState:\t{state}\nPPid:\t{parent}\nTracerPid:\t{tracer}\nUid:\t{user}\t{user}\t{user}\t{user}\n"
        )
        (place / "cmdline").write_bytes(b"\0".join(command.encode().split(b" ")) + b"\0")
        pairs = (f"{name}={value}".encode() for name, value in (environment or {}).items())
        (place / "environ").write_bytes(b"\0".join(pairs))
        (place / "maps").write_text(maps)
        (place / "exe").symlink_to("/usr/bin/something")
        (place / "ns" / "mnt").symlink_to(f"mnt:[{namespace}]")
        (place / "ns" / "pid").symlink_to("pid:[1]")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    made = Proc(tmp_path)
    made.add(os.getpid(), command="stepscope attach")
    return made


def test_the_version_of_a_running_python_is_known() -> None:
    assert look(os.getpid()).python() == sys.version_info[:2]


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("/usr/lib/libpython3.14.so.1.0", (3, 14)),
        ("/opt/conda/bin/python3.11", (3, 11)),
        ("/env/numpy/_core.cpython-313-x86_64-linux-gnu.so", (3, 13)),
        ("/usr/lib/libpython3.13t.so.1.0", (3, 13)),
        ("/usr/bin/sleep", None),
    ],
)
def test_the_version_comes_from_what_the_process_has_loaded(
    proc: Proc, file: str, version: tuple[int, int] | None
) -> None:
    proc.add(70, maps=f"7f00-7f01 r-xp 00000000 08:01 1 {file}\n")

    assert look(70).python() == version


def test_training_processes_of_a_launcher_are_found_without_their_helpers(proc: Proc) -> None:
    proc.add(10, command="python /env/bin/torchrun train.py", maps=PYTHON + TORCH)
    for pid, rank in ((12, 1), (11, 0)):
        environment = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        proc.add(pid, parent=10, maps=PYTHON + TORCH, environment=environment)
        proc.add(pid + 10, parent=pid, maps=PYTHON + TORCH, environment=environment)  # a worker of a data loader
        proc.add(pid + 20, parent=pid, command="nvidia-smi", maps="", environment=environment)

    assert [one.pid for one in training_below(10)] == [11, 12]
    assert look(10).is_launcher and not look(11).is_launcher
    assert {one.pid for one in below(10)} == {11, 12, 21, 22, 31, 32}


def test_spawned_ranks_without_variables_are_found(proc: Proc) -> None:
    proc.add(10, command="python spawn.py", maps=PYTHON)
    proc.add(11, parent=10, maps=PYTHON + TORCH)
    proc.add(12, parent=10, maps=PYTHON + TORCH)
    proc.add(13, parent=12, maps=PYTHON + TORCH)

    assert [one.pid for one in training_below(10)] == [11, 12]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"user": 4242}, "belongs to another user"),
        ({"state": "Z (zombie)"}, "has ended"),
        ({"tracer": 99}, "is traced already, by process 99"),
        ({"maps": "", "command": "sleep 60"}, "does not run Python"),
        ({"maps": PYTHON.replace("3.12", "3.8")}, "runs Python 3.8; stepscope requires 3.10"),
        ({"namespace": "7"}, "runs in a container that has its own files"),
    ],
)
def test_a_process_that_cannot_be_recorded_is_refused_with_the_reason(
    proc: Proc, monkeypatch: pytest.MonkeyPatch, made: dict[str, object], reason: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (proc.root / str(os.getpid())).joinpath("status").write_text("Uid:\t1000\t1000\t1000\t1000\n")
    proc.add(70, **made)  # type: ignore[arg-type]

    with pytest.raises(CannotAttach, match=reason):
        check(look(70))


def test_root_may_attach_to_any_user(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    proc.add(70, user=4242)

    check(look(70))


def test_this_command_and_missing_processes_are_refused() -> None:
    with pytest.raises(CannotAttach, match="is this command itself"):
        check(look(os.getpid()))
    with pytest.raises(StepscopeError, match="no process with PID "):
        look(2**22 + 1)


def test_no_debugger_is_started_for_another_users_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.live.attach.session import Session

    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **_: started.append(arguments))
    monkeypatch.setattr(os, "geteuid", lambda: 4242)

    with pytest.raises(CannotAttach, match="belongs to another user"):
        Session(os.getppid())

    assert not started


@pytest.mark.parametrize(
    ("scope", "capabilities", "container", "reason"),
    [
        ("1", 0, False, "only to its own children .*sudo sysctl kernel.yama.ptrace_scope=0"),
        ("2", 0, False, "nothing without root"),
        ("3", 1 << 19, False, "forbids all debuggers until it is restarted"),
        ("0", 0, True, "--cap-add=SYS_PTRACE"),
        ("0", 1 << 19, False, "security module or seccomp"),
    ],
)
def test_the_reason_why_the_system_refuses_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, capabilities: int, container: bool, reason: str
) -> None:
    yama = tmp_path / "ptrace_scope"
    yama.write_text(scope)
    monkeypatch.setattr(permission, "YAMA", yama)
    monkeypatch.setattr(permission, "_capabilities", lambda: capabilities)
    monkeypatch.setattr(permission, "_in_container", lambda: container)

    text = forbidden(70)

    import re

    assert re.search(reason, text)
