"""MindData's own profiling: queues and operations of the input pipeline, and the CPU time they take.

There is one fragile manager per process. It observes only the first pipeline created after `init`. `init` while a
pipeline exists can cause a hang later, and is refused before a `stop`; `start` after the observed pipeline is gone can
crash the process. So each pipeline created while no other exists is created after `init` and `start`; unless recording,
`stop` follows at once, and `start` again when recording begins.
"""

from __future__ import annotations

import logging
import tempfile
import weakref
from pathlib import Path
from typing import Any

from stepscope.record.files import make_private, protect
from stepscope.record.hooks import Hooks
from stepscope.recording_format.layout import MINDDATA

log = logging.getLogger("stepscope")

DEFAULT_INTERVAL = 1000
"""MindSpore's default sampling interval, ms; a different one was set by the user and is kept."""

_observed: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""The iterator of the observed pipeline, if still in use, and its remaining epochs (below 0: endless). Shared by
successive Profilers."""


class MindData:
    """Observes one pipeline after the other, between `start` and `stop`.

    Args:
        interval: Time between two samples of queues and CPU, ms.
    """

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._restored_interval: int | None = None
        self._works = True
        self._runs = False
        self._directory: Path | None = None

    def install(self, hooks: Hooks) -> None:
        """Observe pipelines created from now on."""
        from mindspore.dataset.engine.iterators import Iterator

        self._set_interval(self._interval)
        hooks.around(Iterator, "__init__", self._before_made, self._after_made)

    def remove(self) -> None:
        """Leave the manager alone from now on."""
        self.stop()
        self._works = False
        if self._restored_interval is not None:
            self._set_interval(self._restored_interval)

    def start(self, directory: Path) -> None:
        """Record, into new directories `minddata/<K>` below `directory`, until `stop`."""
        self._directory = directory
        if _is_observed_alive() and self._works:
            self._runs = self._call("start")

    def stop(self) -> None:
        """Stop, and write what was recorded."""
        self._save()
        self._directory = None

    def epoch_over(self, iterator: Any) -> None:
        """An iterator has returned its last batch of an epoch."""
        if iterator in _observed:
            _observed[iterator] -= 1
            if _observed[iterator] == 0:
                del _observed[iterator]  # it is finished; after another `start` the process would hang on exit

    def _before_made(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A pipeline is about to be created. Each epoch may have its own; the record of the last one ends here."""
        if not self._works or _is_observed_alive():
            return None
        self._save()
        if not _is_any_alive() and self._call("init"):
            self._runs = self._call("start")
        epochs = kwargs.get("num_epochs", args[2] if len(args) > 2 else -1)
        return (args[0], epochs) if self._runs else None

    def _after_made(self, made: tuple[Any, int], returned: bool) -> None:
        if returned:
            _observed.clear()
            _observed[made[0]] = made[1]
        if not returned or self._directory is None:
            self._save()

    def _save(self) -> None:
        """Stop; write the data, or drop it unless recording."""
        if not self._runs:
            return
        self._runs = False
        if not self._call("stop"):
            return
        if self._directory is None:  # the manager can only be restarted after a save
            with tempfile.TemporaryDirectory() as nowhere:
                self._call("save", nowhere)
            return
        number = 0
        while (target := self._directory / MINDDATA / str(number)).exists():
            number += 1
        try:
            make_private(target)
        except OSError as error:
            log.warning("Profiler: the data of the input pipeline is lost: %s", error)
            return
        self._call("save", str(target))
        if not protect(target):
            target.rmdir()

    def _call(self, method: str, *arguments: str) -> bool:
        """Call the manager; after an error, stop using it."""
        try:
            from mindspore._c_dataengine import GlobalContext

            getattr(GlobalContext.profiling_manager(), method)(*arguments)
        except Exception as error:
            self._works = False
            reason = next((line for line in str(error).splitlines() if "[ERROR]" in line), str(error))
            log.warning("Profiler: the input pipeline is no longer observed: %s failed (%s)", method, reason)
        return self._works

    def _set_interval(self, interval: int) -> None:
        try:
            from mindspore.dataset import config

            now = config.get_monitor_sampling_interval()
            if now != interval and (now == DEFAULT_INTERVAL or self._restored_interval is not None):
                self._restored_interval = now
                config.set_monitor_sampling_interval(interval)
        except Exception as error:
            log.warning("Profiler: the sampling interval of MindData could not be set (%s)", error)


def _is_observed_alive() -> bool:
    """Whether an observed pipeline exists; a stopped iterator no longer has one."""
    return any(getattr(iterator, "_runtime_context", None) is not None for iterator in _observed)


def _is_any_alive() -> bool:
    """Whether the process has any pipeline now."""
    from mindspore.dataset.engine import iterators

    return any(reference() is not None for reference in list(iterators.ITERATORS_LIST))
