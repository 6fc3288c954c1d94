"""How the allocator of Polars treats freed memory; has to be said before Polars is loaded."""

from __future__ import annotations

import os

_CORES_AN_ARENA = 4
"""By default there are four arenas a core, and each keeps freed memory of its own. One for a few cores takes a fifth
less at the peak and less time to fetch fresh pages; threads of many cores still find a free one."""
_DECAY_MS = 1000
"""Give freed memory back after a second: sooner costs time, as most of it is wanted again at once."""


def settings(cores: int) -> str:
    """The settings for a machine of some cores."""
    return f"dirty_decay_ms:{_DECAY_MS},muzzy_decay_ms:0,narenas:{max(1, cores // _CORES_AN_ARENA)}"


def spare_memory() -> None:
    """Set it, unless the user has."""
    os.environ.setdefault("_RJEM_MALLOC_CONF", settings(os.cpu_count() or 1))
