"""`LightningCallback`: a Profiler for Lightning's Trainer. The class is made on Lightning's own when asked for."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from stepscope.record.callbacks.trainer import TrainerRecording

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")

if TYPE_CHECKING:
    LightningCallback: Any


def __getattr__(name: str) -> Any:
    if name != "LightningCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _callback_class()


@cache
def _callback_class() -> type:
    """The class, on the `Callback` of the package that is loaded; of both, if both are."""
    bases = [importlib.import_module(f"{package}.callbacks").Callback for package in _packages()]
    return type(
        "LightningCallback", (_LightningMethods, *bases), {"__module__": __name__, "__doc__": _LightningMethods.__doc__}
    )


def _packages() -> list[str]:
    loaded = [package for package in _PACKAGES if sys.modules.get(package) is not None]
    if loaded:
        return loaded
    for package in _PACKAGES:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError:
            continue
        return [package]
    raise ModuleNotFoundError("LightningCallback needs Lightning; install it with: pip install lightning")


class _LightningMethods:
    """Records training by Lightning's Trainer: `Trainer(callbacks=[stepscope.LightningCallback(steps=(11, 20))])`.

    It records from the begin of training to its end, also if that is an exception, and then writes the files that
    people and other tools read. A step is an update of the model, however many batches it took.

    Args:
        **options: Of `stepscope.Profiler`, `steps` and `epochs` among them.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._recording = TrainerRecording(options)
        self._updates = 0
        self._validates_from_ns = 0

    @property
    def profiler(self) -> Any:
        """The Profiler of this training, or of the last; None before the first."""
        return self._recording.profiler

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - Lightning's words, here and below
        """Begin to record."""
        self._updates = trainer.global_step
        self._recording.begin()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """An epoch begins; Lightning counts them from 0."""
        self._recording.epoch_began(trainer.current_epoch + 1)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """An epoch is over."""
        self._recording.epoch_ended(trainer.current_epoch + 1)

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """A batch is over, and perhaps a step."""
        if trainer.global_step != self._updates:
            self._updates = trainer.global_step
            self._recording.step()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Validation begins, within an epoch or at its end."""
        self._validates_from_ns = perf_counter_ns()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Validation is over."""
        self._recording.validated("Trainer", self._validates_from_ns)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Stop, and write the files."""
        self._recording.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """The same, before the exception goes on."""
        self._recording.end()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002
        """The same, if nothing else told."""
        self._recording.end()
