"""When windows end."""

from __future__ import annotations

import pytest

from stepscope.record.window_timing import FIRST_NS, LEAST_NS, MOST_COST_NS, MOST_EVENTS, WindowTiming

SECOND = 1_000_000_000


def ends(timing: WindowTiming, step_ns: int, steps: int, start_ns: int = 0, first: int = 1) -> list[int]:
    """The steps with which windows end, where all steps are of one length."""
    found = []
    timing.began(first, start_ns)
    for step in range(first, first + steps):
        now_ns = start_ns + (step - first + 1) * step_ns
        if timing.is_over(step, now_ns):
            found.append(step)
            timing.began(step + 1, now_ns)
    return found


def test_windows_are_between_half_as_long_and_as_long_as_asked_for() -> None:
    for step_ns in (7_000_000, 30_000_000, 99_000_000, 333_000_000):
        last = 0
        for step in ends(WindowTiming(5 * SECOND), step_ns, 3000):
            assert 2.5 * SECOND <= (step - last) * step_ns <= 5 * SECOND + step_ns
            last = step


def test_ranks_of_about_the_same_speed_pause_together() -> None:
    slow, quick = (
        ends(WindowTiming(5 * SECOND), 101_000_000, 400),
        ends(WindowTiming(5 * SECOND), 95_000_000, 400, 12345),
    )
    assert slow == quick
    assert slow[1] - slow[0] == 32


def test_steps_longer_than_a_window_are_windows() -> None:
    assert ends(WindowTiming(SECOND), 3 * SECOND, 4) == [1, 2, 3, 4]


def test_windows_that_cost_much_get_shorter() -> None:
    timing = WindowTiming(4 * SECOND)
    timing.cost(MOST_COST_NS // 2)
    assert ends(timing, SECOND, 4) == [4]
    timing.cost(4 * MOST_COST_NS)
    assert ends(timing, SECOND, 4) == [1, 2, 3, 4]
    timing.cost(1000 * MOST_COST_NS)
    assert ends(timing, LEAST_NS, 4) == [1, 2, 3, 4]


@pytest.mark.parametrize("asked_ns", [1, LEAST_NS // 2])
def test_windows_shorter_than_the_least_stay_as_asked_for(asked_ns: int) -> None:
    timing = WindowTiming(asked_ns)
    timing.cost(1000 * MOST_COST_NS)
    assert ends(timing, asked_ns, 3) == [1, 2, 3]


def test_a_window_holds_so_many_events_at_most() -> None:
    timing = WindowTiming(5 * SECOND, counts=True)
    step_ns = FIRST_NS // 10
    assert ends(timing, step_ns, 16) == [8, 16]  # until it is known how many there are, windows are short
    timing.counted(MOST_EVENTS, 5)
    assert ends(timing, step_ns, 16) == [4, 8, 12, 16]
    timing.counted(MOST_EVENTS * 7, 2)
    assert ends(timing, step_ns, 3) == [1, 2, 3]
    timing.counted(100, 10)
    assert ends(timing, LEAST_NS // 10, 300) == [128, 256]


def test_where_nothing_is_counted_windows_are_as_long_as_asked_for() -> None:
    assert ends(WindowTiming(4 * SECOND), SECOND, 4) == [4]


def test_what_takes_long_to_end_is_followed_by_a_pause() -> None:
    timing = WindowTiming(5 * SECOND, spares=True)
    timing.began(1, 0)
    timing.cost(SECOND // 5, SECOND // 4, SECOND // 6)  # ended after 50 ms, in 200 ms
    assert not timing.resumes(2, SECOND // 4)
    assert not timing.resumes(7, 2 * SECOND // 5)  # half of the time since it began, but not a step of all ranks
    assert timing.resumes(8, 2 * SECOND // 5)
    timing.began(10, SECOND)
    timing.cost(SECOND // 5, 2 * SECOND, SECOND // 6)  # it was long enough for that
    assert timing.resumes(11, 2 * SECOND)


def test_ranks_that_pause_for_about_as_long_record_the_same_steps() -> None:
    slow, quick = spared(41_000_000, 300_000_000), spared(40_000_000, 170_000_000)

    assert len(slow) >= 15
    assert set(slow) <= set(quick)


def spared(step_ns: int, cost_ns: int) -> list[int]:
    """The first 300 steps with operators, in windows of one step that take so long to end."""
    timing, now, recorded, is_open = WindowTiming(step_ns // 2, spares=True), 0, [], True
    timing.began(1, 0)
    for step in range(1, 301):
        now += step_ns
        if is_open:
            recorded.append(step)
            now += cost_ns
            timing.cost(cost_ns, now, cost_ns)
        is_open = timing.resumes(step, now)
        if is_open:
            timing.began(step + 1, now)
    return recorded


def test_where_each_step_was_asked_for_there_is_no_pause() -> None:
    timing = WindowTiming(5 * SECOND)
    timing.began(1, 0)
    timing.cost(SECOND, SECOND, SECOND)
    assert timing.resumes(2, SECOND)
