"""Shared by the callbacks of trainers: a Profiler from the start of training to its end."""

from __future__ import annotations

import atexit
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from stepscope.recording_format.marks import VALIDATION

if TYPE_CHECKING:
    from stepscope.record.profiler import Profiler
    from stepscope.record.steps import StepTracker


class TrainerCallback:
    """The base of the callbacks. Users derive from them, so it has no other names than these.

    Args:
        **options: Options of `stepscope.Profiler`, e.g. `steps` and `epochs`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._recording = TrainerRecording(options)

    @property
    def profiler(self) -> Profiler | None:
        """The Profiler of the current or last training run; None before the first."""
        return self._recording.profiler


class TrainerRecording:
    """Records one training run after the other. Copies, also in other processes, start fresh."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self.profiler: Profiler | None = None
        self._runs = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "profiler": None, "_runs": False}

    @property
    def _steps(self) -> StepTracker | None:
        """Receives what the trainer reports; None unless recording."""
        recorder = self.profiler._recorder if self._runs and self.profiler is not None else None
        return None if recorder is None else recorder.steps

    def begin(self) -> None:
        """Training begins. Raises what `Profiler` and its `start` raise."""
        from stepscope.record.profiler import Profiler  # noqa: PLC0415 - only if something is recorded

        self.end()  # of a run that ended with an unreported exception
        self.profiler = Profiler(**{**self._options, "start_profile": False})
        if self.profiler._recorder is not None:
            self.profiler._recorder.steps.epochs_reported = True
        self.profiler.start()
        self._runs = True
        atexit.register(self.end)

    def step(self) -> None:
        """The optimizer has updated the model, after one or more batches."""
        if self._steps is not None:
            self._steps.user_step()

    def epoch_began(self, number: int) -> None:
        """Epoch `number`, counted from 1, begins."""
        if self._steps is not None:
            self._steps.epoch_began(number, perf_counter_ns())

    def epoch_ended(self, number: int) -> None:
        """Epoch `number` is over."""
        if self._steps is not None:
            self._steps.epoch_ended(number)

    def validated(self, start_ns: int) -> None:
        """The trainer has validated the model, from `start_ns` to now."""
        if self._steps is not None:
            self._steps.mark(VALIDATION, "Trainer", start_ns, perf_counter_ns())

    def end(self) -> None:
        """Training has ended, normally or not: stop and analyse. A second call does nothing."""
        if not self._runs or self.profiler is None:
            return
        self._runs = False
        atexit.unregister(self.end)
        self.profiler.analyse()
