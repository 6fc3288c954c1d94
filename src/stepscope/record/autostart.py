"""Starting the recorder or a live worker from the environment, without a change to the script.

Python runs `arm` at start-up if `STEPSCOPE_OPTIONS`, `MS_PROFILER_OPTIONS` or `STEPSCOPE_LIVE` is set. It waits until
torch or mindspore is imported, installs the hooks, and records from the first sign of training on: launchers,
data-loader workers and other helpers that merely import a framework leave nothing on disk.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from stepscope.record import signs
from stepscope.record.environment import (
    CLASSIC_VARIABLE,
    FRAMEWORKS,
    OPTIONS_VARIABLE,
    RUN_VARIABLE,
    options_from_environment,
    output_root,
)

log = logging.getLogger("stepscope")

LIVE_VARIABLE = "STEPSCOPE_LIVE"
"""Set to 1, or to the framework to trace, it asks for a live worker."""
_Start = tuple[object, "Callable[[str], None]"]
"""The framework that something waits for, if a certain one, and what starts it."""


def arm() -> None:
    """Wait for a framework to be imported if the environment asks for a recording. Never raises."""
    try:
        if any(isinstance(f, _Waiting) for f in sys.meta_path):
            return
        starts = [made for made in (_recorder(), _live()) if made is not None]
        if not starts:
            return
        signs.give(signs.PYTHON)
        waiting = _Waiting(starts)
        for name in FRAMEWORKS:
            if name in sys.modules:
                waiting.loaded(name)
        if waiting.starts:
            sys.meta_path.insert(0, waiting)
    except Exception:
        log.exception("the Profiler could not be started from the environment; the program continues")


def start(options: dict[str, Any], framework: str) -> None:
    """Install the hooks. Never raises."""
    from stepscope.record.profiler import EnvironmentProfiler  # noqa: PLC0415 - only if something is recorded

    signs.give(signs.FRAMEWORK, framework)
    try:
        EnvironmentProfiler(**{"framework": framework, **options})
    except Exception as error:
        signs.give(signs.FAILED, f"the recorder could not start ({error})")
        log.error("the Profiler could not be started from the environment (%s); the program continues", error)


def start_live(framework: str) -> None:
    """Put a live worker in wait for training. Never raises."""
    signs.give(signs.FRAMEWORK, framework)
    try:
        # only if it is wanted, and in another package, which loads this one
        module = importlib.import_module("stepscope.live.worker.api")
        problem = module.start_from_environment(framework)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        signs.give(signs.FAILED, f"the live worker could not start ({problem})")
        log.error("the live worker could not be started from the environment (%s); the program continues", problem)


def _recorder() -> _Start | None:
    classic = os.environ.get(CLASSIC_VARIABLE) if not os.environ.get(OPTIONS_VARIABLE) else None
    options = options_from_environment()
    if options is None:
        return None
    if classic is not None:
        _take_over(options)
    chosen = options
    return options.get("framework"), lambda framework: start(chosen, framework)


def _live() -> _Start | None:
    wanted = os.environ.get(LIVE_VARIABLE, "").strip().lower()
    if wanted in ("", "0"):
        return None
    if wanted != "1" and wanted not in FRAMEWORKS:
        names = ", ".join(FRAMEWORKS)
        log.error("%s=%s: use 1, or the framework to trace: %s; nothing is traced", LIVE_VARIABLE, wanted[:40], names)
        return None
    return wanted, start_live


def _take_over(options: dict[str, Any]) -> None:
    """Hide the variable from MindSpore's own profiler, which reads it too: both at once would disturb each other."""
    resolved = {
        **options,
        "start": True,
        "start_time": time.time_ns() // 1000,
        "file_output_path": str(output_root(options.get("output_path"))),
        "pid": os.getpid(),
    }
    os.environ[RUN_VARIABLE] = json.dumps(resolved)
    os.environ[OPTIONS_VARIABLE] = json.dumps({**options, "start": True})
    del os.environ[CLASSIC_VARIABLE]


class _Waiting(importlib.abc.MetaPathFinder):
    """Lets a framework be imported as usual, then starts what waits for it.

    Args:
        starts: What is to be started once.
    """

    def __init__(self, starts: list[_Start]) -> None:
        self.starts = starts
        self._searching = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - names of the interface
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """The framework's own spec, whose loader starts the recorder afterwards."""
        if fullname not in FRAMEWORKS or self._searching:
            return None
        if not any(_fits(wanted, fullname) for wanted, _ in self.starts):
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _StartingLoader(spec.loader, lambda: self.loaded(fullname))
        return spec

    def loaded(self, framework: str) -> None:
        """A framework is imported: start what waits for it."""
        due = [begin for wanted, begin in self.starts if _fits(wanted, framework)]
        self.starts = [one for one in self.starts if not _fits(one[0], framework)]
        if not self.starts and self in sys.meta_path:
            sys.meta_path.remove(self)
        for begin in due:
            begin(framework)


def _fits(wanted: object, framework: str) -> bool:
    return wanted not in FRAMEWORKS or wanted == framework


class _StartingLoader(importlib.abc.Loader):
    """Wraps the framework's loader, which may serve other modules and is left as it is, to start the recorder after."""

    def __init__(self, loader: Any, then: Callable[[], None]) -> None:
        self._loader = loader
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Delegate to the framework's loader."""
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Load the framework, then start the recorder."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()
