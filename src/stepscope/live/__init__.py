"""Always-on light tracing of a running job: switched on and off without a restart, with bounded storage, and watched by
an online detector of slow ranks, hosts and links. See `docs/live.md`.

Importing this package is cheap: its functions load their modules on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.live.worker.api import start_worker, step, stop_worker

__all__ = ["start_worker", "step", "stop_worker"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'stepscope.live' has no attribute {name!r}")
    from stepscope.live.worker import api  # noqa: PLC0415 - keeps the import of this package cheap

    return getattr(api, name)
