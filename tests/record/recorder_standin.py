"""A backend without a framework: what it is told to do, and what tests make it report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recorded

import stepscope
from stepscope.record.backend import Surroundings, Written
from stepscope.record.environment import Identity
from stepscope.record.options import Options, Target
from stepscope.record.steps import StepTracker


class StandIn:
    """Writes `trace.json` for each window; `train` plays a training loop."""

    kind = "kineto"
    counts_events = False
    window_events: int | None = None

    def __init__(self, root: Path, target: Target = "cpu", rank: int | None = 0) -> None:
        self.root = root
        self.target = target
        self.rank = rank
        self.calls: list[str] = []
        self.refuses: Exception | None = None
        self.write_fails: Exception | None = None
        self.loses: Exception | None = None
        self.worker = False
        self.windows = self
        self.cut: tuple[int, int] | None = None
        self.steps: StepTracker | None = None

    def profiler(self, **options: Any) -> stepscope.Profiler:
        """A Profiler that records below `root`."""
        return stepscope.Profiler(output_path=str(self.root), **options)

    def record(self, count: int, before: Callable[[int], object] | None = None, **options: Any) -> stepscope.Profiler:
        """Record so many steps, from the first to the last."""
        made = self.profiler(**options)
        self.train(count, before)
        made.stop()
        return made

    @property
    def directory(self) -> Path:
        """The latest recording."""
        assert self.steps is not None
        recorder: Any = self.steps._step_ended.__self__  # type: ignore[attr-defined]
        assert recorder.session.directory is not None
        return recorder.session.directory

    def rows(self, name: str = "marks.csv", kind: str | None = None) -> list[dict[str, str]]:
        return recorded.rows(self.directory, name, kind)

    def recorded_steps(self) -> list[int]:
        return recorded.steps(self.directory)

    def about(self) -> dict[str, Any]:
        return recorded.about(self.directory)

    def identity(self) -> Identity:
        return Identity(self.rank, None if self.rank is None else 4, self.rank, 0)

    def surroundings(self) -> Surroundings:
        return Surroundings("pytorch", "9.9", "cpu", groups=[{"group": "0", "name": "default_pg", "members": [0, 1]}])

    def lacks(self, options: Options) -> dict[str, str]:
        return {}

    def attach(self, steps: StepTracker, options: Options) -> None:
        self.steps = steps

    def detach(self) -> None:
        self.calls.append("detach")

    def started(self, directory: Path) -> None:
        self.calls.append("started")

    def stopped(self, directory: Path) -> None:
        self.calls.append("stopped")

    def begin(self, directory: Path) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.calls.append("begin")

    def end(self, directory: Path) -> Callable[[], Written] | None:
        self.calls.append("end")
        if self.loses is not None:
            raise self.loses

        def write() -> Written:
            if self.write_fails is not None:
                raise self.write_fails
            (directory / "trace.json").write_text("{}")
            return ["trace.json"], self.window_events

        return write

    def worker_pids(self) -> dict[int, str]:
        return {}

    def in_data_worker(self) -> bool:
        return self.worker

    def train(self, count: int, before: Callable[[int], object] | None = None) -> None:
        """Some steps of forward and optimizer; `before` is called with 1, 2... at the start of each."""
        assert self.steps is not None
        for number in range(1, count + 1):
            if before is not None:
                before(number)
            start = time.perf_counter_ns()
            self.steps.activity(start)
            self.steps.mark("forward", "Net", start, time.perf_counter_ns())
            start = time.perf_counter_ns()
            self.steps.mark("optimizer", "SGD", start, time.perf_counter_ns())
            self.steps.ended(time.perf_counter_ns())
