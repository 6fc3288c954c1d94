"""Which steps are recorded."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from stepscope.record.schedule import Action, Plan, Schedule, as_schedule, schedule


def actions(plan: Any, count: int) -> str:
    """The first letters of the actions of steps 0, 1...; `S` for the last of a cycle."""
    letters = {Action.NONE: ".", Action.WARMUP: "w", Action.RECORD: "r", Action.RECORD_AND_SAVE: "S"}
    return "".join(letters[plan(step)] for step in range(count))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"active": 1}, "SSSS"),
        ({"active": 3}, "rrSrrSrr"),
        ({"wait": 2, "warmup": 1, "active": 2}, "..wrS..wrS"),
        ({"wait": 1, "active": 2, "repeat": 2}, ".rS.rS...."),
        ({"skip_first": 3, "warmup": 1, "active": 1, "repeat": 1}, "...wS..."),
    ],
)
def test_cycles(numbers: dict[str, int], expected: str) -> None:
    assert actions(schedule(**numbers), len(expected)) == expected


@pytest.mark.parametrize("name", ["wait", "warmup", "active", "repeat", "skip_first"])
@pytest.mark.parametrize("value", [-1, True, 1.5, "2", None])
def test_numbers_out_of_range(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        schedule(**{name: value})


def test_no_active_step_and_a_negative_step() -> None:
    with pytest.raises(ValueError, match="active"):
        Schedule(active=0)
    with pytest.raises(ValueError, match="-1"):
        Schedule()(-1)


def test_schedules_of_other_libraries_are_taken_by_the_names_of_their_actions() -> None:
    class Theirs(enum.Enum):
        NONE = 0
        WARM_UP = 1
        WARMUP = 2
        RECORD = 3
        RECORD_AND_SAVE = 4

    plan = as_schedule(lambda step: list(Theirs)[step])
    assert plan is not None
    assert actions(plan, 5) == ".wwrS"


def test_a_plan_counts_the_schedule_from_its_beginning() -> None:
    plan = Plan(schedule(wait=1, active=1, repeat=1))
    plan.began(8)
    assert [plan.action(number).records for number in range(8, 12)] == [False, True, False, False]


def test_a_plan_of_steps() -> None:
    plan = Plan(steps=(3, 4))
    assert [plan.action(number) for number in range(2, 6)] == [
        Action.NONE,
        Action.RECORD,
        Action.RECORD_AND_SAVE,
        Action.NONE,
    ]


def test_a_plan_of_epochs() -> None:
    plan = Plan(epochs=(2, 2))
    assert not plan.action(1).records
    plan.epoch(2, over=False)
    assert plan.action(9).records
    plan.epoch(2, over=True)
    assert not plan.action(10).records
    assert Plan(epochs=(1, 3)).action(1).records
