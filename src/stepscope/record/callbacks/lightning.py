"""`LightningCallback`: a Profiler for Lightning's Trainer. Created on first access, as it needs Lightning."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from stepscope.record.callbacks.trainer import TrainerCallback

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")

if TYPE_CHECKING:
    LightningCallback: Any


def __getattr__(name: str) -> Any:
    if name != "LightningCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _callback_class()


@cache
def _callback_class() -> type:
    """The class, derived from the `Callback` of the imported package; of both if both are imported."""
    bases = [importlib.import_module(f"{package}.callbacks").Callback for package in _packages()]
    return type("LightningCallback", (_Methods, *bases), {"__module__": __name__, "__doc__": _Methods.__doc__})


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
    raise ModuleNotFoundError("LightningCallback requires Lightning; install it with: pip install lightning")


class _Methods(TrainerCallback):
    """Records training by Lightning's Trainer: `Trainer(callbacks=[stepscope.LightningCallback(steps=(11, 20))])`.

    It records from the start of training to its end, also if training raises, and then writes the files for people and
    other tools. A step is an update of the model, however many batches it takes.

    Args:
        **options: Options of `stepscope.Profiler`, e.g. `steps` and `epochs`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._updates = 0
        self._validates_from_ns = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - Lightning's names, here and below
        """Start recording."""
        self._updates = trainer.global_step
        self._recording.begin()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """An epoch begins; Lightning counts them from 0."""
        self._recording.epoch_began(trainer.current_epoch + 1)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """An epoch is over."""
        self._recording.epoch_ended(trainer.current_epoch + 1)

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """A batch is over, and possibly a step."""
        if trainer.global_step != self._updates:
            self._updates = trainer.global_step
            self._recording.step()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Validation begins, within an epoch or at its end."""
        self._validates_from_ns = perf_counter_ns()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Validation is over."""
        self._recording.validated(self._validates_from_ns)

    def teardown(self, *_: Any, **__: Any) -> None:
        """Training is over, an exception is about to propagate, or no other hook was called: stop, write the files."""
        self._recording.end()

    on_train_end = on_exception = teardown
