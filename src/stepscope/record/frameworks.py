"""Which framework trains in this process, and the backend for it."""

from __future__ import annotations

import importlib.util
import sys

from stepscope.record.backend import Backend

FRAMEWORKS = ("torch", "mindspore")


def backend_for(framework: str | None = None) -> Backend:
    """The backend of the imported framework; if none is imported yet, of the installed one.

    Args:
        framework: `torch` or `mindspore`; needed only if both are imported.

    Raises:
        RuntimeError: If the framework is ambiguous or not installed.
    """
    chosen = framework or _found()
    if chosen == "torch":
        from stepscope.record.torch.backend import TorchBackend  # noqa: PLC0415 - imports its framework

        return TorchBackend()
    from stepscope.record.mindspore.backend import MindSporeBackend  # noqa: PLC0415 - imports its framework

    return MindSporeBackend()


def _found() -> str:
    loaded = [name for name in FRAMEWORKS if name in sys.modules]
    candidates = loaded or [name for name in FRAMEWORKS if importlib.util.find_spec(name) is not None]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise RuntimeError("Profiler: neither torch nor mindspore is installed in this environment")
    raise RuntimeError(
        f"Profiler: {' and '.join(candidates)} are both {'loaded' if loaded else 'installed'}. "
        'Name the one that trains: Profiler(framework="torch") or Profiler(framework="mindspore")'
    )
