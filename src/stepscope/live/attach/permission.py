"""Whether we may attach to a process, and if not, why and what to do."""

from __future__ import annotations

import os
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.live.attach.processes import Process, look, training_below

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
OLDEST = (3, 10)
DISABLED_VARIABLE = "PYTHON_DISABLE_REMOTE_DEBUG"
_MAY_TRACE = 1 << 19
"""CAP_SYS_PTRACE."""


class CannotAttach(StepscopeError):
    """The process cannot be attached to; the message gives the reason and what to do."""


def check(process: Process) -> None:
    """Refuse before anything is done to the process.

    Raises:
        CannotAttach: If it belongs to another user, is not Python of a supported version, is traced by another program,
            or cannot see our files.
    """
    pid = process.pid
    if pid == os.getpid():
        raise CannotAttach(f"{pid} is this command itself. Give the number of the training process")
    if process.state in "ZX":
        raise CannotAttach(f"{pid} has ended; its parent {process.parent} has not collected it yet")
    own = os.geteuid()
    if own != 0 and set(process.users) != {own}:
        raise CannotAttach(
            f"{pid} belongs to another user (id {process.users[0] if process.users else 'unknown'}, not {own}). Run "
            "this command as that user, or as root"
        )
    if process.tracer:
        raise CannotAttach(
            f"{pid} is traced already, by process {_shown(process.tracer)}: only one debugger can be attached. End "
            "that first"
        )
    for name, what in (("pid", "processes"), ("mnt", "files")):
        theirs, ours = process.namespace(name), look(os.getpid()).namespace(name)
        if theirs and ours and theirs != ours:
            raise CannotAttach(
                f"{pid} runs in a container that has its own {what}. Run this command in that container, e.g. "
                f"docker exec CONTAINER stepscope attach PID, with the PID that it has there"
            )
    version = process.python()
    if version is None:
        hint = (
            f" Its children train: {', '.join(one.shown() for one in found)}" if (found := training_below(pid)) else ""
        )
        raise CannotAttach(f"{process.shown()} does not run Python.{hint}")
    if (0, 0) < version < OLDEST:
        raise CannotAttach(
            f"{pid} runs Python {version[0]}.{version[1]}; stepscope requires {OLDEST[0]}.{OLDEST[1]} or newer"
        )


def forbidden(pid: int) -> str:
    """Why the system refused to trace a process of the same user, and what to do."""
    try:
        scope = int(YAMA.read_text())
    except (OSError, ValueError):
        scope = 0
    capable = _capabilities() & _MAY_TRACE
    if scope == 3:
        return (
            "the system forbids all debuggers until it is restarted (kernel.yama.ptrace_scope is 3). Start the job "
            "with `stepscope record` or STEPSCOPE_LIVE=1 instead"
        )
    if scope and not capable:
        return (
            f"the system lets a debugger attach only to {'its own children' if scope == 1 else 'nothing without root'} "
            f"(kernel.yama.ptrace_scope is {scope}). Run this command with sudo, or allow it until the next restart: "
            "sudo sysctl kernel.yama.ptrace_scope=0"
        )
    if _in_container() and not capable:
        return (
            "the container has no permission to trace processes. Start it with --cap-add=SYS_PTRACE (Kubernetes: "
            'securityContext: {capabilities: {add: ["SYS_PTRACE"]}})'
        )
    return (
        f"the system does not let this user trace process {pid}: it may have given up its permissions (setuid, "
        "PR_SET_DUMPABLE), or a security module or seccomp filter forbids it. Run this command as root"
    )


def remote_debugging_is_off(process: Process) -> bool:
    """Whether the process was started so that `sys.remote_exec` does not work in it."""
    return bool(process.environment().get(DISABLED_VARIABLE)) or any(
        word.replace("-", "_") in ("disable_remote_debug", "_Xdisable_remote_debug") for word in process.command
    )


def _shown(pid: int) -> str:
    try:
        return look(pid).shown()
    except StepscopeError:
        return str(pid)


def _capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _in_container() -> bool:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or "KUBERNETES_SERVICE_HOST" in os.environ:
        return True
    try:
        return any(word in Path("/proc/1/cgroup").read_text() for word in ("docker", "kubepods", "containerd"))
    except OSError:
        return False
