"""The threads that the recorder starts: what Python does in them is not the user's, and the recording lists them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_ids: set[int] = set()


def own_thread(target: Callable[..., object], name: str, *args: Any) -> threading.Thread:
    """A daemon thread of the recorder, not yet started."""

    def run() -> None:
        _ids.add(threading.get_native_id())
        target(*args)

    return threading.Thread(target=run, name=name, daemon=True)


def own_thread_ids() -> list[int]:
    """The native ids of those that have run so far."""
    return sorted(_ids)
