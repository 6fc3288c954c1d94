"""Runs a test session for each mutant, in a process forked for it."""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PASSED = 0
NOT_IMPORTED = 100
"""Exit status of a session that passed without importing the mutated module."""

SHORTEST_LIMIT_S = 10.0
"""A mutant gets at least so long, and otherwise a few times as long as the original: it may be caught in a loop."""

TIMES_AS_LONG = 5


class Mutated(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Loads one module from a text instead of its file."""

    def __init__(self, module: str, file: Path, source: str) -> None:
        super().__init__(module, str(file))
        self.source = source
        self.imported = False

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Where to find a module: here, if it is the one."""
        return importlib.machinery.ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def get_code(self, name: str) -> CodeType:
        """The code of the text."""
        self.imported = True
        return compile(self.source, self.path, "exec")


class Forks:
    """Tests the texts of one module, each in a fork of this process.

    Other projects' modules are imported once, before; this project's anew in each fork, so that nothing has a
    function or constant of the original left.

    Args:
        file: The module's file below a `src` directory.
        tests: Files or directories of tests, relative to the working directory.
        jobs: Processes at a time.
    """

    def __init__(self, file: Path, tests: Sequence[str], jobs: int = 1) -> None:
        self.file, self.tests, self.jobs = file, list(tests), jobs
        self.module = ".".join(file.with_suffix("").parts[file.parts.index("src") + 1 :])
        self.limit_s = 600.0
        self.scratch = Path(tempfile.mkdtemp(prefix="mutants-"))

    def original(self) -> None:
        """Test the unchanged module, see how long that takes, and import what the tests import.

        Raises:
            SystemExit: If the tests fail, or do not import the module.
        """
        needed = self.scratch / "needed.json"

        def write_modules() -> None:
            needed.write_text(json.dumps([name for name, it in sys.modules.items() if not _is_ours(it)]))

        self._pass(write_modules)
        for name in json.loads(needed.read_text()):
            try:
                importlib.import_module(name)
            except Exception:  # what cannot be imported out of order is imported by the forks
                sys.modules.pop(name, None)
        gc.freeze()
        started = time.monotonic()
        self._pass()  # a fork that fails on its own would seem to catch every mutant
        self.limit_s = max(SHORTEST_LIMIT_S, TIMES_AS_LONG * (time.monotonic() - started))

    def _pass(self, after: Callable[[], None] = lambda: None) -> None:
        """Test the unchanged module."""
        ((_, status),) = self._forked([(0, self.file.read_text())], after)
        if status != PASSED:
            print((self.scratch / "output.txt").read_text())
            reason = "do not import it" if status == NOT_IMPORTED else "fail without any change"
            raise SystemExit(f"{self.file}: its tests {reason}: {' '.join(self.tests)}")

    def survivors(self, sources: Sequence[str], done: Callable[[int], None]) -> list[int]:
        """The places of the texts that no test fails for.

        Args:
            sources: Texts of the module.
            done: Called with the number of texts that have been tested.
        """
        found = []
        for count, (number, status) in enumerate(self._forked(list(enumerate(sources))), start=1):
            done(count)
            if status == PASSED:
                found.append(number)
        return sorted(found)

    def close(self) -> None:
        """Remove what tests wrote."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _forked(
        self, sources: list[tuple[int, str]], after: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, int]]:
        """Number and exit status of each text's tests; 0 only if all passed."""
        waiting, running = list(reversed(sources)), dict[int, tuple[int, float]]()
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number, source = waiting.pop()
                running[self._fork(number, source, after)] = number, time.monotonic() + self.limit_s
            time.sleep(0.01)
            for process, (number, deadline) in list(running.items()):
                if time.monotonic() > deadline:
                    os.kill(process, signal.SIGKILL)
                ended, status = os.waitpid(process, 0 if time.monotonic() > deadline else os.WNOHANG)
                if ended:
                    del running[process]
                    shutil.rmtree(self.scratch / str(number), ignore_errors=True)
                    yield number, os.waitstatus_to_exitcode(status)

    def _fork(self, number: int, source: str, after: Callable[[], None]) -> int:
        process = os.fork()
        if process:
            return process
        status = 1
        try:
            (self.scratch / "output.txt").unlink(missing_ok=True)
            output = os.open(self.scratch / "output.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            status = self._session(number, source)
            after()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _session(self, number: int, source: str) -> int:
        """Run the tests here, on a text of the module."""
        import pytest

        for name in [name for name, it in sys.modules.items() if _is_ours(it)]:
            del sys.modules[name]
        mutated = Mutated(self.module, self.file, source)
        sys.meta_path.insert(0, mutated)
        status = pytest.main(
            ["-q", "-x", f"--basetemp={self.scratch / str(number)}"]
            + [f"-pno:{plugin}" for plugin in ("cacheprovider", "faulthandler")]
            + self.tests
        )
        return int(status) or (PASSED if mutated.imported else NOT_IMPORTED)


def _is_ours(module: ModuleType) -> bool:
    """Whether a module lies in this checkout, and not in an environment there."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__ == "__main__" or Path(file).parent == Path(__file__).parent:
        return False
    return Path(file).is_relative_to(Path.cwd()) and "site-packages" not in file
