"""gdb and lldb, led by commands on a pipe: they attach, have the process call a function, and detach."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType

from stepscope.live.attach.permission import CannotAttach, forbidden

PAGE = 4096
"""Bytes of memory that are mapped in the process for the injected line."""
_READ_WRITE, _PRIVATE_ANONYMOUS = 3, 0x22
PATIENCE_S = 60.0
"""How long a debugger may take for one command; reading symbols of large libraries takes seconds on a slow disk."""
_HEXADECIMAL = re.compile(r"0x([0-9a-f]+)")


class Debugger(ABC):
    """A debugger that is attached to a process; leaving the `with` block detaches it.

    Args:
        program: Its path.
        pid: The process.

    Raises:
        CannotAttach: If it cannot be attached.
    """

    name: str
    names: tuple[str, ...]
    """Names of the program, the preferred one first."""

    def __init__(self, program: str, pid: int) -> None:
        self.pid = pid
        self._process = subprocess.Popen(
            [program, *self._options()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**os.environ, "LC_ALL": "C", "DEBUGINFOD_URLS": "", "PYTHONPATH": "", "TERM": "dumb"},
            start_new_session=True,  # Ctrl-C in the terminal must not stop it half-way
            bufsize=0,
        )
        self._asked = 0
        try:
            self._attach()
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Debugger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @abstractmethod
    def stack(self) -> list[str]:
        """Names of the compiled functions in which the main thread is, innermost first."""

    @abstractmethod
    def map_page(self) -> int:
        """Have the process map a page of memory; returns its address.

        Raises:
            CannotAttach: If that fails.
        """

    @abstractmethod
    def write(self, address: int, file: Path) -> None:
        """Copy a file into the process's memory."""

    @abstractmethod
    def add_pending_call(self, address: int) -> bool:
        """Have Python's main thread run the text at an address, when it next comes to a safe place; False if Python's
        list of such calls is full.

        Raises:
            CannotAttach: If the process's Python has no symbols.
        """

    @abstractmethod
    def run_when_waiting(self, address: int, wait_s: float) -> bool:
        """Run the text at an address on whichever thread next gives up the interpreter to wait for something; False if
        none did."""

    @abstractmethod
    def _options(self) -> list[str]: ...

    @abstractmethod
    def _attach(self) -> None: ...

    @abstractmethod
    def _marker(self, mark: str) -> str:
        """A command that prints `mark`."""

    def ask(self, command: str, patience_s: float = PATIENCE_S) -> str:
        """What it prints for a command.

        Raises:
            CannotAttach: If it takes too long, or has ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asked += 1
        mark = f"stepscope{self._asked}end"
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            printed, until_s = b"", time.monotonic() + patience_s
            try:
                self._process.stdin.write(f"{command}\n{self._marker(mark)}\n".encode())
            except OSError as error:
                raise CannotAttach(f"{self.name} ended unexpectedly") from error
            while f"\n{mark}".encode() not in printed:
                if not selector.select(max(until_s - time.monotonic(), 0)):
                    raise CannotAttach(
                        f"{self.name} did not answer within {patience_s:.0f} s ({command.partition(' ')[0]})"
                    )
                more = os.read(self._process.stdout.fileno(), 65536)
                if not more:
                    raise CannotAttach(f"{self.name} ended unexpectedly: {_last_line(printed)}")
                printed += more
        return printed.partition(f"\n{mark}".encode())[0].decode("utf-8", "replace")

    def _end(self) -> None:
        """Detach and end. A command in progress is interrupted; it is taken back in the process."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        for attempt in (self._say_goodbye, lambda: process.send_signal(signal.SIGINT), process.terminate, process.kill):
            try:
                attempt()
                process.communicate(timeout=5)
                break
            except (subprocess.TimeoutExpired, OSError, ValueError):
                continue
        process.stdout.close()

    def _interrupt(self) -> None:
        """Stop the process, which runs on until it meets a breakpoint."""
        self._process.send_signal(signal.SIGINT)

    def _say_goodbye(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"detach\nquit\n")

    def _refuse(self, printed: str) -> None:
        """Raise the reason if it could not attach."""
        if "ermitted" in printed or "ermission" in printed or "not allowed" in printed:
            raise CannotAttach(f"{self.pid}: {forbidden(self.pid)}")
        if "No such process" in printed or "no such process" in printed:
            raise CannotAttach(f"{self.pid} has ended")


class Gdb(Debugger):
    """GNU's debugger."""

    name = "gdb"
    names = ("gdb",)

    def stack(self) -> list[str]:
        printed = self.ask("bt 40")
        names = (re.match(r"#\d+ +(?:0x\w+ in )?([A-Za-z_][\w:~<>]*)", line) for line in printed.splitlines())
        return [name[1] for name in names if name]

    def map_page(self) -> int:
        kind = "void *(*)(unsigned long, unsigned long, int, int, int, long)"
        printed = self.ask(f"print (({kind})mmap)(0, {PAGE}, {_READ_WRITE}, {_PRIVATE_ANONYMOUS}, -1, 0)")
        return _address(printed, self.name)

    def write(self, address: int, file: Path) -> None:
        self.ask(f"restore {file} binary {address:#x}")

    def add_pending_call(self, address: int) -> bool:
        printed = self.ask(f"print ((int(*)(void*, void*))Py_AddPendingCall)(PyRun_SimpleString, (void*){address:#x})")
        _check_symbols(printed)
        return "$" in printed and printed.rstrip().endswith("= 0")

    def run_when_waiting(self, address: int, wait_s: float) -> bool:
        _check_symbols(self.ask("tbreak PyEval_SaveThread"))
        try:
            self.ask("continue", wait_s)
        except CannotAttach:
            self._interrupt()
            return False
        printed = self.ask(f"print ((int(*)(void*))PyRun_SimpleString)((void*){address:#x})")
        return printed.rstrip().endswith("= 0")

    def _options(self) -> list[str]:
        settings = (
            "set confirm off",
            "set pagination off",
            "set width 0",
            "set prompt",
            "set debuginfod enabled off",
            "set auto-load off",
            "set auto-solib-add off",  # reading the symbols of all libraries of torch takes seconds
            "set print thread-events off",
            "set unwindonsignal on",
            "set disable-randomization off",
        )
        return ["-q", "-nx", *(word for setting in settings for word in ("-iex", setting))]

    def _attach(self) -> None:
        printed = self.ask(f"attach {self.pid}")
        self._refuse(printed)
        if "ptrace" in printed.lower() or "Could not attach" in printed or "Can't attach" in printed:
            raise CannotAttach(f"{self.pid}: gdb cannot attach: {_last_line(printed.encode())}")
        self.ask("sharedlibrary libpython")
        self.ask("sharedlibrary /libc[.-]")
        self.ask("sharedlibrary /ld-musl")

    def _marker(self, mark: str) -> str:
        return f"echo \\n{mark}\\n"


class Lldb(Debugger):
    """LLVM's debugger."""

    name = "lldb"
    names = ("lldb", *(f"lldb-{version}" for version in range(22, 10, -1)))

    def stack(self) -> list[str]:
        printed = self.ask("thread backtrace -c 40")
        return [match[1] for line in printed.splitlines() if (match := re.search(r"frame #\d+: .*?`([\w:~<>]+)", line))]

    def map_page(self) -> int:
        kind = "void *(*)(unsigned long, unsigned long, int, int, int, long)"
        return _address(self._call(f"(({kind})mmap)(0, {PAGE}, {_READ_WRITE}, {_PRIVATE_ANONYMOUS}, -1, 0)"), self.name)

    def write(self, address: int, file: Path) -> None:
        self.ask(f'memory write --infile "{file}" {address:#x}')

    def add_pending_call(self, address: int) -> bool:
        function = self._call("(void*)PyRun_SimpleString")
        _check_symbols(function)
        text = _number(function)
        return self._returned_0(f"((int(*)(void*, void*))Py_AddPendingCall)((void*){text:#x}, (void*){address:#x})")

    def run_when_waiting(self, address: int, wait_s: float) -> bool:
        self.ask("breakpoint set --one-shot true --name PyEval_SaveThread")
        try:
            self.ask("process continue", wait_s)
        except CannotAttach:
            self._interrupt()
            return False
        return self._returned_0(f"((int(*)(void*))PyRun_SimpleString)((void*){address:#x})")

    def _returned_0(self, expression: str) -> bool:
        printed = self._call(expression)
        _check_symbols(printed)
        return re.search(r"\(int\) \$\d+ = 0$", printed, re.MULTILINE) is not None

    def _call(self, expression: str) -> str:
        return self.ask(f"expression --language c --unwind-on-error true --ignore-breakpoints true -- {expression}")

    def _options(self) -> list[str]:
        settings = (
            "settings set target.preload-symbols false",
            "settings set symbols.enable-external-lookup false",
            "settings set target.load-cwd-lldbinit false",
            "settings set auto-confirm true",
            "settings set use-color false",
            "settings set stop-line-count-before 0",
            "settings set stop-line-count-after 0",
        )
        return ["--no-lldbinit", "--no-use-colors", *(word for setting in settings for word in ("-O", setting))]

    def _attach(self) -> None:
        printed = self.ask(f"process attach --pid {self.pid}")
        self._refuse(printed)
        if "error:" in printed and "stopped" not in printed:
            raise CannotAttach(f"{self.pid}: lldb cannot attach: {_last_line(printed.encode())}")
        self.ask("thread select 1")

    def _marker(self, mark: str) -> str:
        return f"platform shell echo {mark}"


def found(wanted: str | None = None) -> list[tuple[type[Debugger], str]]:
    """The installed debuggers, with their paths.

    Raises:
        StepscopeError: If there is none.
    """
    kinds = [kind for kind in (Gdb, Lldb) if wanted in (None, kind.name)]
    there = [(kind, path) for kind in kinds if (path := next(filter(None, map(shutil.which, kind.names)), None))]
    if not there:
        raise CannotAttach(
            f"attaching needs {wanted or 'gdb or lldb'}, which is not installed (only Python 3.14 or newer needs no "
            f"debugger). Install it, e.g. with: apt-get install {wanted or 'gdb'}"
        )
    return list(there)


def _address(printed: str, name: str) -> int:
    address = _number(printed)
    if not address or address % PAGE or address > 1 << 62:
        raise CannotAttach(f"{name} could not have the process map memory: {_last_line(printed.encode())}")
    return address


def _number(printed: str) -> int:
    numbers = _HEXADECIMAL.findall(printed.rpartition("=")[2])
    return int(numbers[-1], 16) if numbers else 0


def _check_symbols(printed: str) -> None:
    if "No symbol" in printed or "undeclared identifier" in printed or "not defined" in printed:
        raise CannotAttach(
            "the process's Python has no symbols (a stripped static build), so its functions cannot be called. Use "
            "another build of Python, or start the job with `stepscope record`"
        )


def _last_line(printed: bytes) -> str:
    lines = [line.strip() for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
