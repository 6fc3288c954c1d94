"""Making another Python process run one line: through Python itself (3.14 and newer), or a debugger."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepscope.live.attach import debuggers
from stepscope.live.attach.permission import CannotAttach, forbidden, remote_debugging_is_off
from stepscope.live.attach.processes import Process

Method = Literal["auto", "remote-exec", "gdb", "lldb"]
REMOTE_EXEC = (3, 14)
"""The first Python with `sys.remote_exec`."""
_HELPER_S = 30.0
_BREAKPOINT_S = 10.0
_NOT_NOW = (
    "_PyEval_AddPendingCall",
    "Py_AddPendingCall",
    "_PyEval_MakePendingCalls",
    "make_pending_calls",
    "_Py_HandlePending",
)
"""Functions that hold the lock of Python's list of pending calls, for an instant."""
_TRIES = 5
_NEAR = 12
"""Frames from the innermost on in which these functions count."""
_WAITS_FOR_THREADS = ("PyThread_acquire_lock_timed", "acquire_timed", "lock_PyThread_acquire_lock", "_PySemaphore_Wait")
"""Functions in which a main thread waits that leaves the training to other threads, as any thread that waits for a lock
of Python's."""

_LINE = """\
try:
    exec({body!r}, {{"__name__": "_stepscope_visitor", "__file__": {file!r}, "ROOM": {room!r}}})
except KeyboardInterrupt:
    __import__("_thread").interrupt_main()
except BaseException:
    pass
"""
_BODY = """\
with open(__file__, "rb") as file:
    content = file.read()
exec(compile(content, __file__, "exec"))
"""


@dataclass(frozen=True)
class Injected:
    """How the line was injected.

    Args:
        method: `remote-exec`, `gdb` or `lldb`.
        page: Address of the memory that was mapped for it in the process; 0 for none.
        stack: Compiled functions in which the main thread was, innermost first; empty if unknown.
    """

    method: str
    page: int = 0
    stack: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """What the main thread was doing, for people; empty if unknown."""
        known = [name for name in self.stack if not name.startswith("_")]
        return " < ".join(known[:4])


def line(room: Path) -> str:
    """The injected text. It binds no name in the process, and no error of it reaches the script."""
    return _LINE.format(body=_BODY, file=str(room / "visitor.py"), room=str(room))


def inject(process: Process, room: Path, method: Method) -> Injected:
    """Have a process run the line.

    Args:
        process: The process.
        room: The private directory where the process finds what to do; the line is written there.
        method: How; `auto` takes what works.

    Raises:
        CannotAttach: If no way is possible here, with what to do.
    """
    file = room / "line.py"
    file.write_text(line(room))
    reason = ""
    if method in ("auto", "remote-exec"):
        reason = _refusal(process)
        if not reason:
            try:
                _remote_exec(process, file)
                return Injected("remote-exec")
            except CannotAttach as error:
                if method == "remote-exec":
                    raise
                reason = str(error)
        elif method == "remote-exec":
            raise CannotAttach(reason)
    return _by_debugger(process, file, method)


def _refusal(process: Process) -> str:
    """Why `sys.remote_exec` does not work in this process; empty if it does."""
    version = process.python() or (0, 0)
    if version < REMOTE_EXEC:
        return (
            f"{process.pid} runs Python {version[0]}.{version[1]}, which cannot run code for another process, as 3.14 "
            "can. Use --method gdb or lldb"
        )
    if remote_debugging_is_off(process):
        return (
            f"{process.pid} was started with PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug. Use --method gdb "
            "or lldb, or start it without"
        )
    return ""


def _remote_exec(process: Process, file: Path) -> None:
    """Through Python itself: it needs the same version on both sides, so the process's own interpreter may help."""
    version = process.python()
    own = getattr(sys, "remote_exec", None)
    if own is not None and version == sys.version_info[:2]:
        try:
            own(process.pid, str(file))
        except PermissionError as error:
            raise CannotAttach(f"{process.pid}: {forbidden(process.pid)}") from error
        except (RuntimeError, OSError, ValueError) as error:
            raise CannotAttach(f"{process.pid}: Python's remote execution failed: {error}") from error
        return
    program = f"/proc/{process.pid}/exe" if not process.executable() else process.executable()
    code = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
    try:
        done = subprocess.run(
            [program, "-I", "-c", code, str(process.pid), str(file)],
            capture_output=True,
            text=True,
            timeout=_HELPER_S,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotAttach(f"{process.pid}: its interpreter {program} could not be run to attach: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        why = forbidden(process.pid) if "PermissionError" in last else f"Python's remote execution failed: {last}"
        raise CannotAttach(f"{process.pid}: {why}")


def _by_debugger(process: Process, file: Path, method: Method) -> Injected:
    kind, program = debuggers.found(None if method in ("auto", "remote-exec") else method)[0]
    text = file.with_name("line.bin")
    text.write_bytes(file.read_bytes() + b"\0")
    if text.stat().st_size > debuggers.PAGE:
        raise CannotAttach(f"{file}: the path of the temporary directory is too long. Set TMPDIR to a shorter one")
    page, stack, by_thread = 0, tuple[str, ...](), False
    for _ in range(_TRIES):
        with kind(program, process.pid) as debugger:
            stack = stack or tuple(debugger.stack())
            if any(name in _NOT_NOW for name in stack[:_NEAR]):
                stack = ()
                continue
            if not page:
                page = debugger.map_page()
                debugger.write(page, text)
            if not by_thread and any(name in _WAITS_FOR_THREADS for name in stack[:_NEAR]):
                by_thread = True
                if debugger.run_when_waiting(page, _BREAKPOINT_S):
                    return Injected(kind.name, page, stack)
            elif debugger.add_pending_call(page):
                return Injected(kind.name, page, stack)
    raise CannotAttach(f"{process.pid}: its Python has more pending calls than it can take. Try again")
