"""Hooks under test: a backend attached to steps, with a listener that only remembers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepscope.record.marks import MarkBuffer  # noqa: E402
from stepscope.record.options import Options  # noqa: E402
from stepscope.record.steps import StepTracker  # noqa: E402
from stepscope.record.torch.backend import TorchBackend  # noqa: E402

Mark = tuple[str, str, int, int, int, int, str]


class Attached:
    """A backend, what its hooks reported, and what the listener was told."""

    def __init__(self, options: Options | None = None) -> None:
        self.ended: list[int] = []
        self.identity_changes = 0
        self.events: int | None = None
        self._marks = MarkBuffer()
        self.steps = StepTracker(self._marks, self.step_ended, lambda number, over: None, self.identity_changed)
        self.backend = TorchBackend()
        self.backend.attach(self.steps, options or Options())

    def step_ended(self, number: int, now_ns: int) -> None:
        self.ended.append(number)

    def identity_changed(self) -> None:
        self.identity_changes += 1

    def finish(self, directory: Path) -> list[str]:
        """End the window, write it and return the names of its files."""
        job = self.backend.windows.end(directory)
        assert job is not None
        names, self.events = job()
        return names

    @property
    def marks(self) -> list[Mark]:
        return list(self._marks._marks)

    def of(self, kind: str) -> list[Mark]:
        return [mark for mark in self.marks if mark[0] == kind]

    def kinds(self, step: int) -> list[str]:
        """Kinds of the marks of one step, in the order of their ends."""
        return [mark[0] for mark in self.marks if mark[4] == step and mark[0] != "step"]

    @property
    def batches(self) -> list[tuple[Any, ...]]:
        return list(self._marks._batches)


@contextmanager
def attached(options: Options | None = None, *, active: bool = True) -> Iterator[Attached]:
    """Hooks in place for the length of a `with` block."""
    recorder = Attached(options)
    try:
        if active:
            recorder.steps.begin()
        yield recorder
        recorder.steps.finish()
    finally:
        recorder.backend.detach()


class Net(torch.nn.Module):  # type: ignore[misc]
    """A small model with modules inside modules."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


def train(model: Any, optimizer: Any, batches: Any) -> None:
    """A plain training loop."""
    for x in batches:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


def make() -> tuple[Any, Any]:
    """A model and its optimizer."""
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def batches(count: int) -> list[Any]:
    return [torch.ones(3, 4) for _ in range(count)]


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def in_thread(work: Callable[[], object]) -> None:
    """Work in another thread, and wait for it."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
