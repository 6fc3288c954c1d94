"""stepscope: says where the time of a training job goes, why, and what to change.

Importing this package is cheap: the names below load their modules on first use, so that a training
process that only records pays for nothing else. Neither importing it nor opening a run changes the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope._version import __version__

if TYPE_CHECKING:
    from stepscope.errors import StepscopeError, Unavailable
    from stepscope.record.callbacks.lightning import LightningCallback
    from stepscope.record.callbacks.model_train import ProfileEpochs, ProfileSteps
    from stepscope.record.callbacks.transformers import TransformersCallback
    from stepscope.record.profiler import Profiler
    from stepscope.record.schedule import schedule
    from stepscope.run import Run, open_run, open_runs

__all__ = [
    "LightningCallback",
    "ProfileEpochs",
    "ProfileSteps",
    "Profiler",
    "Run",
    "StepscopeError",
    "TransformersCallback",
    "Unavailable",
    "__version__",
    "open_run",
    "open_runs",
    "schedule",
]

_HOMES = {
    "Profiler": "stepscope.record.profiler",
    "schedule": "stepscope.record.schedule",
    "ProfileEpochs": "stepscope.record.callbacks.model_train",
    "ProfileSteps": "stepscope.record.callbacks.model_train",
    "LightningCallback": "stepscope.record.callbacks.lightning",
    "TransformersCallback": "stepscope.record.callbacks.transformers",
    "Run": "stepscope.run",
    "open_run": "stepscope.run",
    "open_runs": "stepscope.run",
    "StepscopeError": "stepscope.errors",
    "Unavailable": "stepscope.errors",
}


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    import importlib  # noqa: PLC0415 - keeps the bare import cheap

    if name not in _HOMES:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
