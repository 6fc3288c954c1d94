"""Classes of a script are stored with all their methods by cloudpickle and dill, e.g. to send a model elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.live.kinds import Kind
from stepscope.live.worker.on_times import marks_of
from stepscope.live.worker.tracker import LiveTracker
from stepscope.record.options import resolve
from stepscope.record.torch.backend import TorchBackend

torch = pytest.importorskip("torch")
dill = pytest.importorskip("dill")


def test_models_can_be_stored_with_their_classes_while_hooks_are_on() -> None:
    class Net(torch.nn.Module):  # type: ignore[misc,name-defined] # torch may be missing
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, given: Any) -> Any:
            return self.inner(given)

    class Calling(Net):
        def __call__(self, given: Any) -> Any:
            return super().__call__(given)

    tracker = LiveTracker(lambda: None)
    tracker.switch(marks_of(Kind))
    backend = TorchBackend()
    backend.attach(tracker, resolve({"op_time": False}, backend.target, lenient=True))
    try:
        for model in (Net(), Calling()):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.zeros(1, 2)).sum().backward()
                optimizer.step()
            assert "__call__" in vars(type(model))

            copy = dill.loads(dill.dumps(model, byref=False, recurse=True))
            queued = len(tracker.queue)

            assert type(copy) is not type(model)
            assert torch.equal(copy(torch.ones(1, 2)), model(torch.ones(1, 2)))
            assert len(tracker.queue) == queued + 1
    finally:
        backend.detach()
