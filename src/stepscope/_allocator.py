"""How the allocator of Polars treats freed memory, in processes of our own; it reads this when Polars is loaded.

A process that imports the library keeps its settings: this module is for the command line, the exporter and the
workers that read inputs.
"""

from __future__ import annotations

import os

_CORES_PER_ARENA = 4
"""By default there are four arenas a core, and each keeps freed memory of its own. One for a few cores takes a fifth
less at the peak and less time to fetch fresh pages; threads of many cores still find a free one."""
_DECAY_MS = 500
"""Give freed memory back after half a second: much sooner costs time, as most of it is wanted again at once."""
_VARIABLE = "_RJEM_MALLOC_CONF"


def allocator_environment(cores: int | None = None) -> dict[str, str]:
    """The environment variable that spares memory, by name, for a machine of so many cores (default: this one)."""
    arenas = max(1, (cores or os.cpu_count() or 1) // _CORES_PER_ARENA)
    return {_VARIABLE: f"dirty_decay_ms:{_DECAY_MS},muzzy_decay_ms:0,narenas:{arenas}"}


def spare_memory() -> None:
    """Set it for this process, unless the user has. Call it before Polars is loaded."""
    for name, value in allocator_environment().items():
        os.environ.setdefault(name, value)
