"""`TransformersCallback`: a Profiler for the Trainer of Hugging Face. The class is made when it is asked for, on
Transformers' own."""

from __future__ import annotations

import importlib
from functools import cache
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from stepscope.record.callbacks.trainer import TrainerRecording

if TYPE_CHECKING:
    TransformersCallback: Any


def __getattr__(name: str) -> Any:
    if name != "TransformersCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _callback_class()


@cache
def _callback_class() -> type:
    """The class, on `transformers.TrainerCallback`."""
    try:
        base = importlib.import_module("transformers.trainer_callback").TrainerCallback
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "TransformersCallback needs Transformers; install it with: pip install transformers"
        ) from error
    names = {"__module__": __name__, "__doc__": _TransformersMethods.__doc__}
    return type("TransformersCallback", (_TransformersMethods, base), names)


class _TransformersMethods:
    """Records training by Transformers' Trainer: `Trainer(..., callbacks=[stepscope.TransformersCallback()])`.

    It records from the begin of training to its end and then writes the files that people and other tools read. Where
    training ends by an exception, of which that Trainer tells nobody, this is done when the next training begins or
    the process ends. A step is an update of the model, however many batches it took.

    Args:
        **options: Of `stepscope.Profiler`, `steps` and `epochs` among them.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._recording = TrainerRecording(options)
        self._epoch = 0
        self._told_ns = 0
        self._validates_from_ns: int | None = None

    @property
    def profiler(self) -> Any:
        """The Profiler of this training, or of the last; None before the first."""
        return self._recording.profiler

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - Trainer's words
        """Begin to record."""
        self._recording.begin()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """An epoch begins; the Trainer counts them in parts, from 0."""
        self._epoch = int(state.epoch or 0) + 1
        self._recording.epoch_began(self._epoch)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """An epoch is over."""
        self._recording.epoch_ended(self._epoch)
        self._told_ns = perf_counter_ns()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """A step is over."""
        self._recording.step()
        self._told_ns = perf_counter_ns()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Something was logged."""
        self._told_ns = perf_counter_ns()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """A batch of validation is over. That Trainer does not tell where validation begins: where it last told of
        something else."""
        if self._validates_from_ns is None:
            self._validates_from_ns = self._told_ns

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Validation is over."""
        began_ns, self._validates_from_ns = self._validates_from_ns, None
        if began_ns is not None:
            self._recording.validated("Trainer", began_ns)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Stop, and write the files."""
        self._recording.end()
