"""`TransformersCallback`: a Profiler for Hugging Face's Trainer. Created on first access, as it needs Transformers."""

from __future__ import annotations

import importlib
from functools import cache
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from stepscope.record.callbacks.trainer import TrainerCallback

if TYPE_CHECKING:
    TransformersCallback: Any


def __getattr__(name: str) -> Any:
    if name != "TransformersCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _callback_class()


@cache
def _callback_class() -> type:
    """The class, derived from `transformers.TrainerCallback`."""
    try:
        base = importlib.import_module("transformers.trainer_callback").TrainerCallback
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "TransformersCallback requires Transformers; install it with: pip install transformers"
        ) from error
    return type("TransformersCallback", (_Methods, base), {"__module__": __name__, "__doc__": _Methods.__doc__})


class _Methods(TrainerCallback):
    """Records training by Transformers' Trainer: `Trainer(..., callbacks=[stepscope.TransformersCallback()])`.

    It records from the start of training to its end and then writes the files for people and other tools. If training
    raises, which the Trainer does not report to callbacks, this happens when the next run begins or the process
    ends. A step is an update of the model, however many batches it takes.

    Args:
        **options: Options of `stepscope.Profiler`, e.g. `steps` and `epochs`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._epoch = 0
        self._latest_ns = 0
        self._validates_from_ns: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - Trainer's names
        """Start recording."""
        self._recording.begin()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """An epoch begins; the Trainer counts fractional epochs from 0."""
        self._epoch = int(state.epoch or 0) + 1
        self._recording.epoch_began(self._epoch)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """An epoch is over."""
        self._recording.epoch_ended(self._epoch)
        self._latest_ns = perf_counter_ns()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """A step is over."""
        self._recording.step()
        self._latest_ns = perf_counter_ns()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Something was logged."""
        self._latest_ns = perf_counter_ns()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """A validation batch is over. The Trainer does not report the start of validation, so the last other event
        counts as its start."""
        if self._validates_from_ns is None:
            self._validates_from_ns = self._latest_ns

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Validation is over."""
        began_ns, self._validates_from_ns = self._validates_from_ns, None
        if began_ns is not None:
            self._recording.validated(began_ns)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Stop, and write the files."""
        self._recording.end()
