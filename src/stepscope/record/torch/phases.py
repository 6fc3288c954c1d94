"""Backward passes and checkpoints: functions of the framework, wrapped in every module that imports them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.record.torch.hook import Hook, marked
from stepscope.recording_format.marks import BACKWARD, CHECKPOINT

_DISTRIBUTED_CHECKPOINT = "torch.distributed.checkpoint"


class BackwardHooks:
    """Marks backward passes, including `Tensor.backward`.

    Args:
        steps: Receives the marks.
        patches: Installs the wrapper.
        over: Called when a pass has ended.
    """

    def __init__(self, steps: StepTracker, patches: Patches, over: Callable[[], None]) -> None:
        self._hook = Hook(steps, "backward passes", over, alone=True)
        self._patches = patches

    def running(self) -> bool:
        """Whether a backward pass is running."""
        return bool(self._hook.inside)

    def attach(self) -> None:
        """Wrap it."""
        from torch import autograd

        wrapper = marked(autograd.backward, self._hook, BACKWARD, lambda args, kwargs: ("", ""))  # noqa: ARG005
        self._patches.put_everywhere(autograd.backward, wrapper)

    def detach(self) -> None:
        """A wrapper that cannot be removed goes straight through from now on."""
        self._hook.off = True


class CheckpointHooks:
    """Marks checkpoints.

    Args:
        steps: Takes the marks.
        patches: Puts the wrappers in place.
    """

    def __init__(self, steps: StepTracker, patches: Patches) -> None:
        self._hook = Hook(steps, "checkpoints")
        self._patches = patches
        self._wrapped: set[str] = set()

    def attach(self) -> None:
        """Wrap the saving functions of imported modules; call again for modules imported since."""
        for module, name, where in (
            ("torch", "save", "f"),
            (_DISTRIBUTED_CHECKPOINT, "save", "checkpoint_id"),
            (_DISTRIBUTED_CHECKPOINT, "async_save", "checkpoint_id"),
        ):
            title = f"{module}.{name}"
            original = getattr(sys.modules.get(module), name, None)
            if original is None or title in self._wrapped:
                continue
            self._wrapped.add(title)
            wrapper = marked(original, self._hook, CHECKPOINT, _Saved(title, where))
            self._patches.put_everywhere(original, wrapper)

    def detach(self) -> None:
        """Wrappers that cannot be removed go straight through from now on."""
        self._hook.off = True


class _Saved:
    """Describes a saving call: the function, and the path if known."""

    def __init__(self, title: str, where: str) -> None:
        self._title = title
        self._where = where

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
        place = kwargs.get(self._where)
        if place is None and self._where == "f" and len(args) > 1:
            place = args[1]
        name = place if isinstance(place, (str, bytes)) or hasattr(place, "__fspath__") else getattr(place, "name", "")
        return self._title, str(name)
