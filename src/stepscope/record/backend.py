"""What a backend is: the part of the recorder that knows one framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stepscope.record.options import Options, Target
    from stepscope.record.steps import StepTracker


@dataclass
class Identity:
    """Who this process is, as far as the framework knows now; None is unknown."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    device_id: int | None = None


@dataclass
class Surroundings:
    """What `recording.json` says of framework, device and job. Asked at the start, after the process group was made,
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


class WindowLost(Exception):
    """What a window recorded is lost, and why, for people. Recording goes on."""


class Backend(Protocol):
    """One framework. All methods run on the training thread unless they say otherwise."""

    target: Target
    """Where the operators run; decides which options are valid."""
    window_kind: str
    """`kind` in `windows.csv`."""

    counts_events: bool
    """Whether what `end_window` returns sets `window_events`."""
    window_events: int
    """How many events the window held that was written last."""

    @property
    def window_cut(self) -> tuple[int, int] | None:
        """Where the last window had to end before `end_window`, since another profiler began: the last step that had
        ended, and the time, of `time.perf_counter_ns`; None where it had not to."""

    def identity(self) -> Identity:
        """Rank and world size. Cheap; may change when the process group is made."""

    def surroundings(self) -> Surroundings:
        """What is known of framework, device and job."""

    def lacks(self, options: Options) -> dict[str, str]:
        """Options that were asked for and that this framework or device cannot give, with the reason."""

    def attach(self, steps: StepTracker, options: Options) -> None:
        """Put the hooks in place, perhaps again after `detach`. They call `steps`, which ignores them while nothing is
        recorded."""

    def detach(self) -> None:
        """Take all hooks away again."""

    def started(self, directory: Path) -> None:
        """`start()` was called: begin what runs from start to stop (not operator windows).

        Args:
            directory: The recording's directory.
        """

    def stopped(self, directory: Path) -> None:
        """`stop()` was called: end that and write it below `directory`."""

    def begin_window(self, directory: Path) -> None:
        """Begin to record operators. `directory` exists and is empty; may raise if another profiler is active."""

    def end_window(self, directory: Path) -> Callable[[], list[str]] | None:
        """Stop recording operators, as fast as possible.

        Returns:
            What is left to do, on another thread: it writes the files into `directory` and returns their names.
            None if the window held nothing.

        Raises:
            WindowLost: If what it held is lost.
        """

    def worker_pids(self) -> dict[int, str]:
        """Processes of the input pipeline that are alive, with a name. Called from the sampler's thread."""

    def in_data_worker(self) -> bool:
        """Whether this process is a worker of a data loader, or another that trains nothing and must never record."""
