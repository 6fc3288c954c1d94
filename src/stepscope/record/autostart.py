"""Starting the recorder from the environment, without a change to the script.

Python runs `arm` at start-up if `STEPSCOPE_OPTIONS` or `MS_PROFILER_OPTIONS` is set. It waits until torch or mindspore
is imported, installs the hooks, and records from the first sign of training on: launchers, data-loader workers and
other helpers that merely import a framework leave nothing on disk.
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


def arm() -> None:
    """Wait for a framework to be imported if the environment asks for a recording. Never raises."""
    try:
        if any(isinstance(f, _Waiting) for f in sys.meta_path):
            return
        classic = os.environ.get(CLASSIC_VARIABLE) if not os.environ.get(OPTIONS_VARIABLE) else None
        options = options_from_environment()
        if options is None:
            return
        if classic is not None:
            _take_over(options)
        signs.give(signs.PYTHON)
        loaded = [name for name in FRAMEWORKS if name in sys.modules]
        if loaded:
            start(options, loaded[0])
        else:
            sys.meta_path.insert(0, _Waiting(options))
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
    """Lets a framework be imported as usual, then starts the recorder."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
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
        wanted = self._options.get("framework")
        if wanted in FRAMEWORKS and wanted != fullname:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _StartingLoader(spec.loader, lambda: self._start(fullname))
        return spec

    def _start(self, framework: str) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            start(self._options, framework)


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
