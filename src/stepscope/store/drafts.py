"""Names under which things are built before they are renamed into place, and what killed builders left."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from stepscope.processes import is_running

DRAFT = ".tmp"
HOUR_S = 3600.0


def draft_name(name: str) -> str:
    """A name for a draft of something, which no other process chooses."""
    return f"{name}.{socket.gethostname()}.{os.getpid()}.{os.urandom(4).hex()}{DRAFT}"


def is_abandoned(draft: Path) -> bool:
    """Whether the process that builds in `draft` is gone: not running on this host, or silent for an hour."""
    try:
        silent_s = time.time() - draft.stat().st_mtime
    except OSError:
        return False
    host, _, pid = draft.name.removesuffix(DRAFT).rpartition(".")[0].rpartition(".")
    if host.endswith("." + socket.gethostname()) and pid.isdigit() and not is_running(int(pid)):
        return True
    return silent_s > HOUR_S
