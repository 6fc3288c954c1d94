"""A signal handler of the user may raise anywhere, also within a hook."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.live.kinds import Kind
from stepscope.live.worker.on_times import marks_of
from stepscope.live.worker.tracker import LiveTracker
from stepscope.record.options import resolve
from stepscope.record.torch.backend import TorchBackend

torch = pytest.importorskip("torch")


class Interrupted(LiveTracker):
    """Is interrupted by a signal when something begins."""

    interrupts = False

    def activity(self, start_ns: int, kind: Any = None) -> None:
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        super().activity(start_ns, kind)


def test_what_follows_a_call_that_was_interrupted_within_a_hook_is_recorded() -> None:
    tracker = Interrupted(lambda: None)
    tracker.switch(marks_of(Kind))
    backend = TorchBackend()
    backend.attach(tracker, resolve({"op_time": False}, backend.target, lenient=True))
    try:
        module = torch.nn.Linear(2, 2)
        loader = iter(torch.utils.data.DataLoader(torch.zeros(8, 2), batch_size=1))
        calls = [lambda: module(torch.zeros(1, 2)), lambda: module(torch.zeros(1, 2)).sum().backward(), loader.__next__]
        for call in calls:
            tracker.interrupts = tracker.awaits_activity = True
            with pytest.raises(KeyboardInterrupt):
                call()
            tracker.queue.clear()
            call()
            assert tracker.queue, call
            assert not backend.in_progress()
    finally:
        backend.detach()
