"""When windows end."""

from __future__ import annotations

import pytest

from stepscope.record.pace import LEAST_NS, MOST_COST_NS, Pace

SECOND = 1_000_000_000


def ends(pace: Pace, step_ns: int, steps: int, start_ns: int = 0, first: int = 1) -> list[int]:
    """The steps with which windows end, where all steps are of one length."""
    found = []
    pace.began(first, start_ns)
    for step in range(first, first + steps):
        now_ns = start_ns + (step - first + 1) * step_ns
        if pace.is_over(step, now_ns):
            found.append(step)
            pace.began(step + 1, now_ns)
    return found


def test_windows_are_between_half_as_long_and_as_long_as_asked_for() -> None:
    for step_ns in (7_000_000, 30_000_000, 99_000_000, 333_000_000):
        last = 0
        for step in ends(Pace(5 * SECOND), step_ns, 3000):
            assert 2.5 * SECOND <= (step - last) * step_ns <= 5 * SECOND + step_ns
            last = step


def test_ranks_of_about_the_same_speed_pause_together() -> None:
    slow, quick = ends(Pace(5 * SECOND), 101_000_000, 400), ends(Pace(5 * SECOND), 95_000_000, 400, 12345)
    assert slow == quick
    assert slow[1] - slow[0] == 32


def test_steps_longer_than_a_window_are_windows() -> None:
    assert ends(Pace(SECOND), 3 * SECOND, 4) == [1, 2, 3, 4]


def test_windows_that_cost_much_get_shorter() -> None:
    pace = Pace(4 * SECOND)
    pace.cost(MOST_COST_NS // 2)
    assert ends(pace, SECOND, 4) == [4]
    pace.cost(4 * MOST_COST_NS)
    assert ends(pace, SECOND, 4) == [1, 2, 3, 4]
    pace.cost(1000 * MOST_COST_NS)
    assert ends(pace, LEAST_NS, 4) == [1, 2, 3, 4]


@pytest.mark.parametrize("asked_ns", [1, LEAST_NS // 2])
def test_windows_shorter_than_the_least_stay_as_asked_for(asked_ns: int) -> None:
    pace = Pace(asked_ns)
    pace.cost(1000 * MOST_COST_NS)
    assert ends(pace, asked_ns, 3) == [1, 2, 3]
