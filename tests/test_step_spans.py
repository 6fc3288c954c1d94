"""Steps whose work on the device spans little of what they take on the host are reported as such."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import KERNELS, STEPS

MS = 1_000_000
Step = tuple[int, int, int, int]
"""Start and end on the host, first and last device work, in ms."""


def job(*ranks: list[Step], window: str = "device") -> Run:
    """Ranks whose device computes all the time of a step's window."""
    return Run.from_frames({number: frames(steps, window) for number, steps in enumerate(ranks)}, "job")


def frames(steps: list[Step], window: str) -> dict[str, pl.DataFrame]:
    start, end, first, last = ([time * MS for time in times] for times in zip(*steps, strict=True))
    numbers = list(range(1, len(steps) + 1))
    return {
        "steps": STEPS.frame(
            step=numbers, start_ns=start, end_ns=end, window_start_ns=first, window_end_ns=last,
            window=[window] * len(steps),
        ),
        "kernels": KERNELS.frame(
            kernel=numbers, step=numbers, start_ns=first, duration_ns=[b - a for a, b in zip(first, last, strict=True)],
            kind=["compute"] * len(steps), name=["k"] * len(steps), device=[0] * len(steps), stream=[7] * len(steps),
        ),
    }  # fmt: skip


def test_one_kernel_in_a_long_step_is_not_said_to_be_the_step() -> None:
    run = job([(0, 13_000, 1, 3)])

    (issue,) = run.issues.to_dicts()
    text = verdict(answers(run))

    assert (issue["severity"], issue["rank"]) == ("warning", 0)
    assert (
        "its step takes 13.00 s on the host, but the recorded work on its device spans only 2.00 ms" in issue["problem"]
    )
    assert "spans 2.00 ms of the 13.00 s that the step takes on the host" in text
    assert "Nothing stands out" not in text and "The average step takes" not in text


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([(0, 100, 40, 95)], id="one step of which the host needs less than half"),
        pytest.param([(0, 10, 5, 400), (10, 20, 400, 800)], id="a host that runs ahead"),
        pytest.param([(0, 100, 90, 190), (100, 200, 190, 290), (200, 300, 290, 310)], id="several steps, the last cut"),
    ],
)
def test_whole_steps_are_not_reported(steps: list[Step]) -> None:
    run = job(steps)

    assert run.issues.is_empty()
    assert verdict(answers(run)).startswith("Nothing stands out. The average step takes ")


def test_windows_of_the_host_are_the_steps() -> None:
    assert job([(0, 13_000, 1, 3)], window="host").issues.is_empty()


def test_a_step_that_the_user_chose_is_judged_with_the_others() -> None:
    run = job([(0, 900, 5, 905), (900, 1000, 905, 910), (1000, 1010, 910, 1900)])

    assert run.select(steps=2).issues.is_empty()


def test_of_several_ranks_the_worst_is_named_and_the_verdict_needs_most() -> None:
    whole, narrow, worst = [(0, 100, 5, 95)], [(0, 100, 5, 25)], [(0, 100, 5, 15)]

    few, most = job(whole, whole, worst), job(narrow, whole, worst)

    assert "rank 2: its step takes 100.00 ms" in few.issues["problem"][0]
    assert "The average step takes" in verdict(answers(few))
    assert most.issues["problem"][0].endswith(
        "spans only 10.00 ms of that; times and shares are of this span (1 more rank alike)"
    )
    assert "of the 100.00 ms that the step takes on the host" in verdict(answers(most))
