"""Steps and epochs of `Model.train`: our callbacks around those of the user.

Ends are reported before the user's callbacks run, starts after them: so a callback may call `profiler.stop()` at the
end of its last step and `profiler.start()` at the start of its first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from stepscope.record.hooks import Hooks, Switch
from stepscope.record.mindspore.calls import CallHooks
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import VALIDATION


class ModelTrain:
    """Reports the events that `Model.train` and `Model.fit` pass to callbacks.

    Args:
        steps: Receives steps and epochs.
        calls: The hooks on functional code, which must not end steps meanwhile.
    """

    def __init__(self, steps: StepTracker, calls: CallHooks) -> None:
        self._steps = steps
        self._calls = calls
        self._ahead = 0
        self._validates_from_ns: int | None = None
        self._switch = Switch("steps of Model.train")

    def install(self, hooks: Hooks) -> None:
        """Add the callbacks to every training run from now on."""
        from mindspore.train import Model

        original = Model._transform_callbacks

        @functools.wraps(original)
        def transform(callbacks: Any) -> Any:
            given = original(callbacks)
            return given if self._switch.off else [self._ends(), *given, self._begins()]

        hooks.put(Model, "_transform_callbacks", staticmethod(transform))

    def remove(self) -> None:
        """Report nothing more in running training runs."""
        self._switch.off = True

    def _ends(self) -> Any:
        return self._callback(
            on_train_step_end=self._step_ended,
            on_train_epoch_end=self._epoch_ended,
            on_eval_end=self._validation_ended,
        )

    def _begins(self) -> Any:
        return self._callback(
            trainings=1,
            on_train_begin=self._first_step_follows,
            on_train_epoch_begin=self._epoch_began,
            on_train_step_begin=lambda _: self._steps.activity(perf_counter_ns()),
            on_eval_begin=self._validation_began,
        )

    def _callback(self, trainings: int = 0, **reports: Callable[[Any], None]) -> Any:
        """A `mindspore.train.Callback` whose methods report with their run context, and which counts as so many
        trainings in progress."""
        from mindspore.train import Callback

        def entered(callback: Any) -> Any:
            self._calls.model_trains += trainings
            return callback

        def left(*_: Any) -> None:
            self._calls.model_trains -= trainings

        def method(report: Callable[[Any], None]) -> Callable[[Any, Any], None]:
            return lambda _, run_context: self._switch.attempt(report, run_context)

        members = {name: method(report) for name, report in reports.items()}
        return type("StepscopeCallback", (Callback,), {**members, "__enter__": entered, "__exit__": left})()

    def _first_step_follows(self, context: Any) -> None:
        self._steps.epochs_reported = True
        done = int(context.original_args().get("cur_step_num", 0) or 0)
        self._ahead = max(self._steps.number - done, 0)  # steps of earlier trainings in this process

    def _step_ended(self, context: Any) -> None:
        self._steps.ended(perf_counter_ns(), int(context.original_args().cur_step_num) + self._ahead)

    def _epoch_began(self, context: Any) -> None:
        self._steps.epoch_began(int(context.original_args().cur_epoch_num), perf_counter_ns())

    def _epoch_ended(self, context: Any) -> None:
        self._steps.epoch_ended(int(context.original_args().cur_epoch_num))

    def _validation_began(self, _: Any) -> None:
        self._validates_from_ns = perf_counter_ns()

    def _validation_ended(self, _: Any) -> None:
        began_ns, self._validates_from_ns = self._validates_from_ns, None
        if began_ns is not None and self._calls.model_trains:  # else `Model.eval` by itself: nothing trains
            self._steps.mark(VALIDATION, "Model.eval", began_ns, perf_counter_ns())
