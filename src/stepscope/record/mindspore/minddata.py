"""MindData's own profiling: queues and operations of the input pipeline, and the CPU time they take.

The manager is one for the process, and easily upset: it sees only the first pipeline that is made after its `init`;
`init` beside a living pipeline can hang, `start` after the observed one has gone can crash the process. Hence it is
told to look before each pipeline that is made while no other lives, and started only while that one lives.
"""

from __future__ import annotations

import logging
import weakref
from pathlib import Path
from typing import Any

from stepscope.record.files import DIRECTORY_MODE, FILE_MODE, make_private
from stepscope.record.mindspore.hooks import Hooks

log = logging.getLogger("stepscope")

DEFAULT_INTERVAL = 1000
"""MindSpore's own sampling interval, ms; another one was set by the user and stays."""


class MindData:
    """Observes one pipeline after the other, between `start` and `stop`.

    Args:
        interval: Time between two samples of queues and CPU, ms.
    """

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._works = True
        self._restored_interval: int | None = None
        self._observed: weakref.ref[Any] | None = None
        self._looks = False
        self._directory: Path | None = None
        self._runs = False

    def install(self, hooks: Hooks) -> None:
        """Observe the first pipeline that is made from now on."""
        from mindspore.dataset.engine.iterators import Iterator

        self._set_interval(self._interval)
        hooks.around(Iterator, "__init__", self._enter_made, self._leave_made)
        self._look()

    def remove(self) -> None:
        """Leave the manager alone from now on."""
        self.stop()
        self._works = False
        if self._restored_interval is not None:
            self._set_interval(self._restored_interval)

    def start(self, directory: Path) -> None:
        """Record, into new directories below `directory`, until `stop`."""
        self._directory = directory
        if not self._looks or self._gone():
            self._look()
        self._start()

    def stop(self) -> None:
        """Stop, and write what was recorded."""
        self._save()
        self._directory = None

    def _enter_made(self, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
        """A pipeline is about to be made. Each epoch may have its own; the last one's record ends here."""
        if not self._works:
            return None
        if self._gone() or not self._looks:
            self._save()
            self._look()
            if self._directory is not None:
                self._start()
        return args[0] if self._looks and self._observed is None else None

    def _leave_made(self, iterator: Any, returned: bool) -> None:
        if returned:
            self._observed = weakref.ref(iterator)

    def _gone(self) -> bool:
        return self._observed is not None and self._observed() is None

    def _look(self) -> None:
        """Have the manager observe the next pipeline, if that is safe now."""
        if self._works and not _pipelines() and not self._runs:
            self._looks = self._call("init")
            self._observed = None

    def _start(self) -> None:
        if self._works and self._looks and not self._gone() and not self._runs:
            self._runs = self._call("start")

    def _save(self) -> None:
        if not self._runs:
            return
        self._runs = False
        if not self._call("stop") or self._directory is None:
            return
        try:
            target = _next_directory(self._directory)
        except OSError as error:
            log.warning("Profiler: the record of the input pipeline is lost: %s", error)
            return
        self._call("save", str(target))
        _make_files_private(target)

    def _call(self, method: str, *arguments: str) -> bool:
        """Call the manager; its refusal ends our use of it."""
        try:
            from mindspore._c_dataengine import GlobalContext

            getattr(GlobalContext.profiling_manager(), method)(*arguments)
        except Exception as error:
            self._works = False
            reason = str(error).strip().splitlines()
            log.warning("Profiler: the input pipeline is no longer observed (%s: %s)", method, reason[-1:] or error)
        return self._works

    def _set_interval(self, interval: int) -> None:
        try:
            from mindspore.dataset import config

            now = config.get_monitor_sampling_interval()
            if now != interval and (now == DEFAULT_INTERVAL or self._restored_interval is not None):
                self._restored_interval = now
                config.set_monitor_sampling_interval(interval)
        except Exception as error:
            log.warning("Profiler: the sampling interval of MindData stays as it is (%s)", error)


def _pipelines() -> list[Any]:
    """Iterators of data sets that are alive."""
    from mindspore.dataset.engine import iterators

    return [found for found in (reference() for reference in list(iterators.ITERATORS_LIST)) if found is not None]


def _next_directory(directory: Path) -> Path:
    """`minddata/<K>` with the first K that is free."""
    number = 0
    while (directory / "minddata" / str(number)).exists():
        number += 1
    make_private(directory / "minddata" / str(number))
    return directory / "minddata" / str(number)


def _make_files_private(directory: Path) -> None:
    """For this user alone; an empty directory goes."""
    files = list(directory.iterdir())
    for file in files:
        file.chmod(FILE_MODE if file.is_file() else DIRECTORY_MODE)
    if not files:
        directory.rmdir()
