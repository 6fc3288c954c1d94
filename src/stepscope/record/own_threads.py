"""The recorder's own threads. The recording lists them, since Python code on them is not the user's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_ids: set[int] = set()


def own_thread(target: Callable[..., object], name: str, *args: Any) -> threading.Thread:
    """A daemon thread of the recorder, not started yet."""

    def run() -> None:
        _ids.add(threading.get_native_id())
        target(*args)

    return threading.Thread(target=run, name=name, daemon=True)


def own_thread_ids() -> list[int]:
    """Native ids of the recorder's threads so far."""
    return sorted(_ids)
