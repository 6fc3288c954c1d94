"""The backend interface: the part of the recorder that knows one framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.record.environment import Identity
from stepscope.record.options import Options, Target
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import MarkKind


@dataclass
class Surroundings:
    """Framework, device and job as stored in `recording.json`. Queried at the start, when the process group changes
    and at each stop."""

    framework: str
    framework_version: str
    device_kind: str
    device_name: str | None = None
    mode: str | None = None
    backend: str | None = None
    parallel: dict[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    clock: dict[str, Any] | None = None


@dataclass(frozen=True)
class InProgress:
    """A call that has begun and not ended.

    Args:
        kind: Of the mark that it will get.
        start_ns: When it began (`time.perf_counter_ns`).
        name: Of its mark; of a collective its operation.
        detail: Of its mark.
    """

    kind: MarkKind
    start_ns: int
    name: str = ""
    detail: str = ""


class WindowLost(Exception):
    """The data of a window is lost; the message gives the reason. Recording continues."""


Written = tuple[list[str], "int | None"]
"""Names of a window's files, and the number of its events if known."""


class OperatorWindows(ABC):
    """Records operators with a profiler of the framework."""

    kind: str
    """`kind` in `windows.csv`."""
    cut: tuple[int, int] | None = None
    """Last completed step and time (`time.perf_counter_ns`) at which the last window ended early because another
    profiler began; None if it did not."""

    @abstractmethod
    def begin(self, directory: Path) -> None:
        """Begin recording operators. `directory` exists and is empty.

        Raises:
            RuntimeError: If another profiler is active, or this process cannot record.
        """

    @abstractmethod
    def end(self, directory: Path) -> Callable[[], Written] | None:
        """Stop recording operators, as fast as possible.

        Returns:
            A function to call on another thread: it writes the files into `directory`. None if the window is empty.

        Raises:
            WindowLost: If its data is lost.
        """

    def in_child(self) -> None:  # noqa: B027 - not every framework has something to do
        """In a forked child: stop recording."""


class Backend(ABC):
    """One framework. All methods run on the training thread unless they say otherwise."""

    target: Target
    """Device of the operators; decides which options are valid."""
    counts_events = False
    """Whether the number of events of a window is known once it is written."""
    windows: OperatorWindows
    """Set by `attach`."""

    @abstractmethod
    def identity(self) -> Identity:
        """Rank and world size. Cheap; may change when the process group is created."""

    @abstractmethod
    def surroundings(self) -> Surroundings:
        """Framework, device and job, as far as known."""

    @abstractmethod
    def lacks(self, options: Options) -> dict[str, str]:
        """Requested options that this framework or device does not support, with the reason."""

    @abstractmethod
    def attach(self, steps: StepTracker, options: Options) -> None:
        """Install the hooks, also again after `detach`. They report to `steps`, which ignores them unless recording."""

    @abstractmethod
    def detach(self) -> None:
        """Remove all hooks."""

    def started(self, directory: Path) -> None:  # noqa: B027 - not every backend has something to do
        """`start()` was called: begin recording everything but operator windows into the recording's directory."""

    def stopped(self, directory: Path) -> None:  # noqa: B027
        """`stop()` was called: stop what `started` began and write it below `directory`."""

    def end_threads(self) -> None:  # noqa: B027
        """Before `detach`, perhaps on another thread: end the threads of the hooks, which may take some seconds."""

    @abstractmethod
    def worker_pids(self) -> dict[int, str]:
        """Living worker processes of the input pipeline, with names. Called from the sampler's thread."""

    def in_progress(self) -> list[InProgress]:
        """What the threads of this process are in at the moment. Called from other threads."""
        return []

    def device_module(self) -> Any:
        """What has the streams and events of the device, with the functions of `torch.cuda`; None if there is none."""
        return None

    @abstractmethod
    def in_data_worker(self) -> bool:
        """Whether this process is a data-loader worker or another helper that does not train and must never record."""
