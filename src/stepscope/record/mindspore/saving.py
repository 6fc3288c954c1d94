"""Checkpoints: a hook on `save_checkpoint` in every module that imports it."""

from __future__ import annotations

import os
from time import perf_counter_ns
from typing import Any

from stepscope.record.hooks import Hooks
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import CHECKPOINT


class Saving:
    """Marks each saved checkpoint."""

    def __init__(self, steps: StepTracker) -> None:
        self._steps = steps

    def install(self, hooks: Hooks) -> None:
        """Install the hook."""
        from mindspore.train.serialization import save_checkpoint

        hooks.around_everywhere(save_checkpoint, self._enter, self._leave)

    def _enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int] | None:
        if not self._steps.active:
            return None
        path = args[1] if len(args) > 1 else kwargs.get("ckpt_file_name", "")
        return (os.fspath(path) if isinstance(path, (str, os.PathLike)) else "", perf_counter_ns())

    def _leave(self, token: tuple[str, int], returned: bool) -> None:
        path, start_ns = token
        if returned:
            self._steps.mark(CHECKPOINT, "save_checkpoint", start_ns, perf_counter_ns(), path)
