"""The Profiler: the recorder's interface for training scripts."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from weakref import WeakMethod, finalize

from stepscope.record import analysing
from stepscope.record.backend import Backend
from stepscope.record.endings import at_end, not_at_end
from stepscope.record.environment import EXTERNAL_VARIABLE, FORBIDDEN_VARIABLE, FRAMEWORKS, output_root
from stepscope.record.files import make_private
from stepscope.record.options import SPECS, is_default, resolve
from stepscope.record.recorder import Recorder
from stepscope.record.schedule import Action

log = logging.getLogger("stepscope")


class Profiler:
    """Records a training job in PyTorch or MindSpore, with two lines in its script.

    It records from construction, or `start()`, to `stop()`; `analyse()` then writes the files for people and other
    tools. Raw data is written continuously, so a job that is killed loses only the last window. Errors while recording
    are logged once and never affect training; wrong use of this class raises.

    All arguments are keyword options, described in `docs/profiler.md` and `stepscope.record.options.Options`. Options
    that the device does not support and unknown options are reported as warnings.

    Raises:
        TypeError: For a bad value that decides whether, what or where to record: `start_profile`, `output_path`,
            `schedule`, `on_trace_ready`, `steps`, `epochs`, `framework`.
        RuntimeError: If `output_path` is empty or has invalid characters, `PROFILING_MODE` is set, or the framework
            is ambiguous.

    Examples:
        Around a training loop, or between any two of its steps::

            profiler = stepscope.Profiler(output_path="./profile")
            train()
            profiler.analyse()
    """

    is_by_environment = False
    """Whether the environment created it, not the script."""

    def __init__(
        self,
        *,
        output_path: str | os.PathLike[str] | None = None,
        start_profile: bool = True,
        op_time: bool = True,
        timeline_limit: int = 500,
        profile_framework: Literal["all", "time", "memory"] | None = "all",
        data_process: bool = True,
        sync_enable: bool = True,
        profile_memory: bool = False,
        profile_communication: bool = False,
        parallel_strategy: bool = True,
        aicore_metrics: int = 0,
        l2_cache: bool = False,
        hbm_ddr: bool = False,
        pcie: bool = False,
        profiler_level: Literal["Level0", "Level1", "Level2"] | Enum | None = None,
        data_simplification: bool = True,
        host_stack: bool | None = None,
        ascend_job_id: str = "",
        schedule: Callable[[int], Action] | Mapping[str, int] | None = None,
        on_trace_ready: Callable[[Profiler], object] | None = None,
        steps: Sequence[int] | None = None,
        epochs: Sequence[int] | None = None,
        record_shapes: bool = True,
        window_seconds: float = 5.0,
        sampling_interval: int = 1000,
        runtime_detail: bool = False,
        framework: Literal["torch", "mindspore"] | None = None,
        **unknown: Any,
    ) -> None:
        options = {**_asked(locals()), **unknown}
        self._external = bool(os.environ.get(EXTERNAL_VARIABLE))
        self._started = False
        self._in_callback = False
        self._recorder: Recorder | None = None
        self._owner = os.getpid()
        lenient = self.is_by_environment
        if os.environ.get(FORBIDDEN_VARIABLE):
            raise RuntimeError(f"Profiler: {FORBIDDEN_VARIABLE} is set, so another profiler is active. Unset it")
        if self._external:
            log.warning("Profiler: %s is set, so an external collector records; stepscope does not", EXTERNAL_VARIABLE)
            return
        framework = options.get("framework")
        backend = backend_for(framework if framework in FRAMEWORKS else None)
        self.options = resolve(options, backend.target, lenient=lenient)
        self.root = output_root(self.options.output_path)
        if backend.in_data_worker():
            log.warning("Profiler: this is a helper process (data loader, scheduler); nothing is recorded here")
        elif lenient or _writable(self.root):
            over, woke = _weakly(self._cycle_over), _weakly(self._woke)  # the hooks must not hold this object
            self._recorder = Recorder(self.root, backend, self.options, over, woke, lazy=lenient)
            finalize(self, self._recorder.detach).atexit = False
        if self.options.start_profile:
            self.start()

    @property
    def directory(self) -> Path | None:
        """The directory of raw data; None until something is recorded."""
        return None if self._recorder is None else self._recorder.session.directory

    def start(self) -> None:
        """Start recording. May be called again after `stop()`.

        Raises:
            RuntimeError: If already started, or if another Profiler records in this process.
        """
        if self._external:
            return
        if self._started:
            raise RuntimeError("Profiler: start() was called already. Call stop() before the next start()")
        if self._owner != os.getpid():
            log.warning(
                "Profiler: it was created in process %d and this is a forked child, %d; nothing is recorded here. "
                "Create a Profiler in the process that trains",
                self._owner,
                os.getpid(),
            )
        elif self._recorder is not None:
            _take(self)
            self._recorder.start()
        self._started = True

    def stop(self) -> None:
        """Stop recording. Raw data is then complete on disk; nothing is analysed.

        Raises:
            RuntimeError: If not started.
        """
        if self._external:
            return
        if not self._started:
            raise RuntimeError("Profiler: stop() was called, but nothing is being recorded. Call start() first")
        self._started = False
        if _Running.profiler is self:
            _Running.profiler = None
        if self._recorder is not None and self._owner == os.getpid():
            self._recorder.stop()

    def step(self) -> None:
        """Mark the end of a step. From the first call on, steps end here instead of with the optimizer."""
        if self._recorder is not None:
            self._recorder.steps.user_step()

    def analyse(
        self,
        offline_path: str | None = None,
        pretty: bool = False,
        step_list: Sequence[int] | None = None,
        mode: str = "sync",
    ) -> None:
        """Stop recording, and write the files for people and other tools. Errors are logged, not raised.

        Args:
            offline_path: Analyse the recordings below this directory instead, as `offline_analyse` does.
            pretty: Indent JSON files.
            step_list: Consecutive steps to analyse. Default: all.
            mode: `sync` waits for the analysis, `async` does not.
        """
        if self._external:
            return
        if self._started and not self._in_callback:
            self.stop()
        if self._recorder is None and offline_path is None:
            return
        directories = [self.directory] if self.directory is not None else []
        analysing.analyse(self.options.timeline_limit, directories, offline_path, pretty, step_list, mode)

    @classmethod
    def offline_analyse(
        cls, path: str | os.PathLike[str], pretty: bool = False, step_list: Sequence[int] | None = None
    ) -> None:
        """Analyse the recordings of all ranks below `path`, e.g. of a job that was killed.

        Args:
            path: The `output_path` of the job.
            pretty: Indent JSON files.
            step_list: Consecutive steps to analyse. Default: all.

        Raises:
            ProfilerPathError: If there are no recordings.
        """
        directories = analysing.recordings_below(Path(path))
        analysing.analyse(None, directories, None, pretty, step_list, "sync")

    def op_analyse(self, op_name: str | list[str], device_id: int | None = None) -> str:
        """Times and shapes of operators, as JSON.

        Args:
            op_name: One or more operator types, e.g. `Conv2D` or `aten::mm`.
            device_id: Only this process's own device has data.

        Raises:
            TypeError: If an argument has the wrong type, or no name is given.
            RuntimeError: If nothing was recorded, or the operator does not exist; always on Ascend.
        """
        names = _operator_names(op_name)
        if device_id and (isinstance(device_id, bool) or not isinstance(device_id, int)):
            raise TypeError(f"op_analyse: device_id must be an integer, not {device_id!r}")
        if self._recorder is None or self.directory is None:
            raise RuntimeError("op_analyse: nothing was recorded yet. Call start() first")
        backend = self._recorder.backend
        if backend.target == "ascend":
            raise RuntimeError("op_analyse is not available on Ascend; use analyse() and its operator tables")
        own = backend.identity().device_id or 0
        if device_id not in (None, own):
            return f"op_analyse: this process records device {own}; ask the process of device {device_id}"
        return analysing.operators(self.directory, names)

    def __enter__(self) -> Profiler:
        if not self._started:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started:
            self.stop()
        if not self._external and self.options.on_trace_ready is None:
            self.analyse()

    def _woke(self) -> None:
        """Training begins in this process, which may be a forked child of the one that was waiting for it."""
        self._owner = os.getpid()
        _take(self)

    def _cycle_over(self) -> None:
        ready = self.options.on_trace_ready
        if ready is None:
            return
        self._in_callback = True
        try:
            ready(self)
        except Exception:
            log.exception("Profiler: on_trace_ready failed; training continues")
        finally:
            self._in_callback = False


class EnvironmentProfiler(Profiler):
    """The Profiler that the environment starts: it waits for the first sign of training, never raises, yields to one
    that the script creates, and analyses when the process ends."""

    is_by_environment = True


class _Running:
    """The Profiler that records, so that one the script keeps no reference to is not lost, and its process."""

    process = 0
    profiler: Profiler | None = None


def running() -> Profiler | None:
    """The Profiler that records in this process; one inherited by a fork does not count."""
    return _Running.profiler if _Running.process == os.getpid() else None


def _take(profiler: Profiler) -> None:
    """`profiler` begins to record: one at a time.

    Raises:
        RuntimeError: If another one records, unless the environment created that one: it yields.
    """
    other = running()
    if other is not None and other is not profiler:
        if not other.is_by_environment:
            raise RuntimeError(
                "Profiler: another Profiler records in this process. Call its stop() first, or use one for both"
            )
        log.warning("Profiler: the script's own Profiler replaces the one started from the environment")
        other.stop()
    if _Running.process != os.getpid():
        at_end(_end)
    _Running.process, _Running.profiler = os.getpid(), profiler


def leave() -> None:
    """Nothing is recorded in this process any more: remove what would be called when it ends."""
    not_at_end(_end)
    _Running.process, _Running.profiler = 0, None


def _end() -> None:
    """The process ends: complete the recording, and analyse it if the environment started it."""
    profiler = running()
    if profiler is None:
        return
    profiler.stop()
    if profiler.is_by_environment and profiler.directory is not None:
        with suppress(KeyboardInterrupt):  # already logged; the process ends anyway
            profiler.analyse()


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """Calls a method if its object still exists."""
    reference = WeakMethod(method)

    def call() -> None:
        if (bound := reference()) is not None:
            bound()

    return call


def backend_for(framework: str | None = None) -> Backend:
    """The backend of the imported framework; if none is imported yet, of the installed one.

    Args:
        framework: `torch` or `mindspore`; needed only if both are imported.

    Raises:
        RuntimeError: If the framework is ambiguous or not installed.
    """
    if framework is None:
        loaded = [name for name in FRAMEWORKS if name in sys.modules]
        candidates = loaded or [name for name in FRAMEWORKS if importlib.util.find_spec(name) is not None]
        if not candidates:
            raise RuntimeError("Profiler: neither torch nor mindspore is installed in this environment")
        if len(candidates) > 1:
            raise RuntimeError(
                f"Profiler: {' and '.join(candidates)} are both {'loaded' if loaded else 'installed'}. "
                'Name the one that trains: Profiler(framework="torch") or Profiler(framework="mindspore")'
            )
        framework = candidates[0]
    if framework == "torch":
        from stepscope.record.torch.backend import TorchBackend  # noqa: PLC0415 - imports its framework

        return TorchBackend()
    from stepscope.record.mindspore.backend import MindSporeBackend  # noqa: PLC0415 - imports its framework

    return MindSporeBackend()


def _asked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options among `arguments` that differ from their defaults.

    `host_stack` has no fixed default: on Ascend stacks are recorded unless it is False, elsewhere only if it is True.
    """
    asked = {name: arguments[name] for name in SPECS if not is_default(name, arguments[name])}
    if asked["host_stack"] is None:
        del asked["host_stack"]
    return asked


def _operator_names(op_name: Any) -> list[str]:
    if not isinstance(op_name, (str, list)):
        raise TypeError(f"op_analyse: op_name must be a string or a list of strings, not {op_name!r}")
    names = [op_name] if isinstance(op_name, str) else op_name
    if not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError("op_analyse: op_name must name at least one operator")
    return names


def _writable(root: Path) -> bool:
    """Whether the directory is writable; created if missing."""
    if (root / "recording").exists():
        log.warning("Profiler: %s contains earlier recordings; they are kept, new ones are added", root)
    try:
        make_private(root)
        if os.access(root, os.W_OK | os.X_OK):
            return True
        problem = "is not writable"
    except OSError as error:
        problem = f"cannot be created ({error.strerror or error})"
    log.error("Profiler: %s %s. Nothing is recorded; training continues. Choose another output_path", root, problem)
    return False
