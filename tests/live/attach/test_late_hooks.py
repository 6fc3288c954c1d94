"""Hooks that are installed in the middle of training, at whatever place it is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from live.attach.attaching import rows

torch = pytest.importorskip("torch")

from stepscope.live.attach.visitor import _is_safe  # noqa: E402
from stepscope.record.profiler import Profiler  # noqa: E402


def at(place: Callable[[Callable[[], None]], None]) -> bool:
    """Whether hooks may be added while another thread is at a place, which calls what it is given."""
    there, done = threading.Event(), threading.Event()

    def pause() -> None:
        there.set()
        done.wait(10)

    thread = threading.Thread(target=place, args=(pause,))
    thread.start()
    assert there.wait(10)
    try:
        return _is_safe(sys._current_frames()[thread.ident or 0])
    finally:
        done.set()
        thread.join()


def test_hooks_are_not_added_while_those_of_an_optimizer_are_called() -> None:
    def place(pause: Callable[[], None]) -> None:
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        optimizer.register_step_post_hook(lambda *_: pause())
        optimizer.step()

    assert not at(place)


def test_hooks_may_be_added_within_the_step_of_an_optimizer_and_elsewhere() -> None:
    def within(pause: Callable[[], None]) -> None:
        def closure() -> Any:
            pause()
            return torch.zeros(1)

        torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step(closure)

    assert at(within)
    assert at(lambda pause: pause())


def test_modules_called_in_the_forward_pass_that_goes_on_are_not_taken_for_outermost(tmp_path: Path) -> None:
    made: list[Profiler] = []

    class Inner(torch.nn.Linear):  # type: ignore[misc, name-defined]
        pass

    class Outer(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Inner(4, 4), Inner(4, 4)

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            if not made:
                made.append(Profiler(output_path=str(tmp_path), op_time=False, framework="torch"))
            return self.second(x)

    model = Outer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    made[0].stop()
    assert made[0].directory is not None and made[0]._recorder is not None
    made[0]._recorder.detach()

    marks = rows(made[0].directory / "marks.csv")
    assert [row[1] for row in marks if row[0] == "forward"] == ["Outer"] * 5
    assert [row[1] for row in marks if row[0] == "step"] == ["1", "2", "3", "4", "5", "6"]
