"""A device may run a step long after its host: then both times are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import BASE_NS, both

from stepscope.run import Run
from stepscope.tables import KERNELS, STEPS


def stepped(window: str, shift_ns: int) -> Run:
    """A rank with two steps of 100 ns on the host, whose windows are that much later."""
    starts = [BASE_NS, BASE_NS + 100]
    steps = STEPS.frame(
        step=[4, 5],
        start_ns=starts,
        end_ns=[start + 100 for start in starts],
        window_start_ns=[start + shift_ns for start in starts],
        window_end_ns=[start + shift_ns + 100 for start in starts],
        window=[window] * 2,
    )
    at = [start + shift_ns for start in starts]
    kernels = KERNELS.frame(kernel=[0, 1], start_ns=at, duration_ns=[9, 9], kind=["compute"] * 2, name=["k"] * 2)
    return Run.from_frames({0: {"steps": steps, "kernels": kernels}})


def windows(run: Run, directory: Path) -> list[tuple[str, int, int | None]]:
    """The windows of steps that are drawn."""
    return [(each.name, each.start, each.end) for each in both(run, directory).ranges if each.category == "step_window"]


@pytest.mark.parametrize("window", ["device", "stated"])
def test_windows_of_the_device_are_drawn_where_they_are(window: str, tmp_path: Path) -> None:
    assert windows(stepped(window, 150), tmp_path) == [("Step 4", 150, 250), ("Step 5", 250, 350)]


@pytest.mark.parametrize(("window", "shift_ns"), [("device", 0), ("host", 150)])
def test_windows_that_are_those_of_the_host_are_not_drawn_twice(window: str, shift_ns: int, tmp_path: Path) -> None:
    assert windows(stepped(window, shift_ns), tmp_path) == []
