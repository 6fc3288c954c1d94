"""Runs a module's tests for each mutant of it, in a process forked for it after pytest has collected them once."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

PASSED, FAILED, NOT_IMPORTED = 0, 1, 2
"""Exit status of a fork."""

SHORTEST_LIMIT_S = 30.0
"""A mutant gets at least so long, and otherwise a few times as long as the original: it may be caught in a loop."""

TIMES_AS_LONG = 5


def survivors(
    file: Path, tests: Sequence[str], sources: Sequence[str], *, jobs: int, done: Callable[[int], None]
) -> list[int]:
    """The places of the texts of a module for which all of its tests pass.

    Args:
        file: The module's file, below a directory `src`.
        tests: Files or directories of tests, relative to the working directory.
        sources: Texts of the module.
        jobs: Processes at a time.
        done: Called with the number of texts that have been tested.

    Raises:
        SystemExit: If the tests fail without any change, or do not import the module.
    """
    scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
    forks = Forks(file, sources, jobs, scratch, done)
    quiet = ["-pno:terminal", "-pno:cacheprovider", "--capture=no", "--override-ini=addopts="]
    try:
        status = pytest.main([*quiet, *tests], plugins=[forks])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if forks.problem or status != pytest.ExitCode.OK:
        raise SystemExit(f"{file}: {forks.problem or f'pytest ended with {status!r}'}: pytest {' '.join(tests)}")
    return sorted(forks.found)


class Forks:
    """Plugin that takes the place of pytest's loop over the tests."""

    def __init__(
        self, file: Path, sources: Sequence[str], jobs: int, scratch: Path, done: Callable[[int], None]
    ) -> None:
        self.file, self.sources, self.jobs, self.scratch, self.done = file, sources, jobs, scratch, done
        self.module = ".".join(file.with_suffix("").parts[file.parts.index("src") + 1 :])
        self.limit_s = 600.0
        self.problem = ""
        self.found: list[int] = []
        self.order: list[int] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Test the original, then each of the texts."""
        self.order = list(range(len(session.items)))
        gc.freeze()
        started = time.monotonic()
        # The original in the mutants' way: what makes a fork fail by itself would seem to catch every mutant.
        ((_, status),) = self._forked(session, [self.file.read_text()])
        if status != PASSED:
            self.problem = "the tests " + ("do not import it" if status == NOT_IMPORTED else "fail without any change")
            return True
        self.limit_s = max(SHORTEST_LIMIT_S, TIMES_AS_LONG * (time.monotonic() - started))
        for count, (number, status) in enumerate(self._forked(session, self.sources), start=1):
            self.done(count)
            if status == PASSED:
                self.found.append(number)
        return True

    def _forked(self, session: pytest.Session, sources: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Number and exit status of each text's tests."""
        waiting, running = list(enumerate(sources))[::-1], dict[int, tuple[int, float]]()
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number, source = waiting.pop()
                running[self._fork(session, number, source)] = number, time.monotonic() + self.limit_s
            time.sleep(0.005)
            for process, (number, deadline) in list(running.items()):
                late = time.monotonic() > deadline
                if late:
                    os.kill(process, signal.SIGKILL)
                ended, status = os.waitpid(process, 0 if late else os.WNOHANG)
                if ended:
                    del running[process]
                    self._learn(number)
                    yield number, os.waitstatus_to_exitcode(status)

    def _learn(self, number: int) -> None:
        """Begin with the test that noticed the last mutant: it is likely to notice the next one."""
        folder = self.scratch / str(number)
        failed = folder / "failed"
        if failed.exists():
            test = int(failed.read_text())
            self.order.remove(test)
            self.order.insert(0, test)
        shutil.rmtree(folder, ignore_errors=True)

    def _fork(self, session: pytest.Session, number: int, source: str) -> int:
        process = os.fork()
        if process:
            return process
        status = FAILED
        try:
            folder = self.scratch / str(number)
            folder.mkdir()
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            status = self._test(session, source, folder)
        finally:
            os._exit(status)

    def _test(self, session: pytest.Session, source: str, folder: Path) -> int:
        """Run the tests here, up to the first that fails, on a text of the module."""
        if self.module not in sys.modules:
            return NOT_IMPORTED
        put_in_place(sys.modules[self.module], compile(source, str(self.file), "exec"))
        for test in self.order:
            session.config.hook.pytest_runtest_protocol(item=session.items[test], nextitem=None)
            if session.testsfailed:
                (folder / "failed").write_text(str(test))
                return FAILED
        return PASSED


def put_in_place(old: ModuleType, code: object) -> None:
    """Run a module's code anew, and give what it defines to all who imported it from the module.

    What others made of it while they were imported, such as the default value of a parameter, stays the original's: a
    mutant there may seem to survive.
    """
    new = ModuleType(old.__name__)
    vars(new).update({name: value for name, value in vars(old).items() if name.startswith("__")})
    sys.modules[old.__name__] = new
    exec(code, vars(new))  # type: ignore[call-overload]
    same = {id(value): vars(new).get(name) for name, value in vars(old).items() if _is_defined(value, old)}
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
            elif id(value) in same:
                setattr(module, name, same[id(value)])
            elif not name.startswith("__") and name in vars(old) and value is vars(old)[name]:
                setattr(module, name, vars(new).get(name))


def _is_defined(value: object, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__
