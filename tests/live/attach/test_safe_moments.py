"""At which moments hooks may be added to and removed from a running process."""

from __future__ import annotations

import sys
import threading
from types import FrameType

import pytest

from stepscope.live.attach.visitor import _is_safe
from stepscope.record.process_facts import own_thread


def waiting(file: str) -> tuple[threading.Event, object]:
    """A function of some file that waits until its event is set, in no frame but its own."""
    end = threading.Event()
    found: dict[str, object] = {"over": end.is_set}
    exec(compile("import time\ndef wait():\n    while not over():\n        time.sleep(0.02)", file, "exec"), found)
    return end, found["wait"]


def frame_of(thread: threading.Thread, function: object) -> FrameType:
    """The innermost frame of a thread, once it is in a function."""
    while True:
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code is function.__code__:  # type: ignore[attr-defined]
            return frame


@pytest.mark.parametrize(
    ("file", "of_recorder", "safe"),
    [
        ("/x/stepscope/record/hooks.py", False, False),
        ("/x/stepscope/record/torch/clock.py", True, True),
        ("/x/train.py", False, True),
    ],
)
def test_a_thread_of_the_recorder_that_waits_makes_nobody_wait(file: str, of_recorder: bool, safe: bool) -> None:
    end, function = waiting(file)
    make = own_thread if of_recorder else lambda target, name: threading.Thread(target=target, name=name, daemon=True)
    thread = make(function, "some")  # type: ignore[operator, arg-type]
    thread.start()

    found = _is_safe(frame_of(thread, function))
    end.set()
    thread.join(20)

    assert found is safe
