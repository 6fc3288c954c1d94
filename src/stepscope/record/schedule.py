"""Which steps of a training run are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Action(Enum):
    """What to do during one step."""

    NONE = 0
    WARMUP = 1
    """Record operators and discard them, to get the one-time costs of the profiler out of the way."""
    RECORD = 2
    RECORD_AND_SAVE = 3
    """The last step of a cycle: the recording is complete after it."""

    @property
    def records(self) -> bool:
        """Whether the step is kept."""
        return self in (Action.RECORD, Action.RECORD_AND_SAVE)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Cycles of `wait` steps that are skipped, `warmup` steps that are discarded and `active` steps that are recorded.

    Args:
        wait: Steps at the start of a cycle that are not recorded.
        warmup: Steps that are recorded and discarded.
        active: Steps that are kept, at least 1.
        repeat: Number of cycles; 0 for no limit.
        skip_first: Steps before the first cycle.

    Raises:
        ValueError: If a value is not an integer in range.

    Examples:
        >>> plan = Schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """

    wait: int = 0
    warmup: int = 0
    active: int = 1
    repeat: int = 0
    skip_first: int = 0

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0), ("skip_first", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"schedule: {name} must be an integer >= {least}, not {value!r}")

    def __call__(self, step: int) -> Action:
        """The action for a step, counted from 0.

        Raises:
            ValueError: If `step` is negative.
        """
        if step < 0:
            raise ValueError(f"schedule: step must be >= 0, not {step}")
        if step < self.skip_first:
            return Action.NONE
        length = self.wait + self.warmup + self.active
        cycle, place = divmod(step - self.skip_first, length)
        if (self.repeat and cycle >= self.repeat) or place < self.wait:
            return Action.NONE
        if place < self.wait + self.warmup:
            return Action.WARMUP
        return Action.RECORD_AND_SAVE if place == length - 1 else Action.RECORD


schedule = Schedule
"""Its public name: `Profiler(schedule=schedule(wait=10, warmup=2, active=5, repeat=1))`."""


def as_schedule(value: Any) -> Callable[[int], Action] | None:
    """A schedule from ours, another library's (actions matched by name), or a dict of numbers.

    Raises:
        ValueError: If it is none of these.
    """
    if value is None or isinstance(value, Schedule):
        return value
    if isinstance(value, dict):
        try:
            return Schedule(**value)
        except TypeError:
            raise ValueError("accepts only wait, warmup, active, repeat and skip_first") from None
    if not callable(value):
        raise ValueError("must be made with stepscope.schedule(...)")

    def translated(step: int) -> Action:
        name = str(getattr(value(step), "name", "NONE")).replace("WARM_UP", "WARMUP")
        return Action[name] if name in Action.__members__ else Action.NONE

    return translated


class Plan:
    """What to record, by step number.

    Args:
        schedule: Its step 0 is the first after `began`.
        steps: First and last step.
        epochs: First and last epoch; steps outside of them are not recorded.
    """

    def __init__(
        self,
        schedule: Callable[[int], Action] | None = None,
        steps: tuple[int, int] | None = None,
        epochs: tuple[int, int] | None = None,
    ) -> None:
        self._schedule = schedule
        self._steps = steps
        self._epochs = epochs
        self._first = 1
        self._in_epochs = epochs is None or epochs[0] == 1

    @property
    def is_always(self) -> bool:
        """Whether everything from `start()` to `stop()` is recorded."""
        return self._schedule is None and self._steps is None and self._epochs is None

    def __str__(self) -> str:
        """The plan as text for messages."""
        wanted = [f"steps {self._steps[0]} to {self._steps[1]}"] if self._steps else []
        wanted += [f"epochs {self._epochs[0]} to {self._epochs[1]}"] if self._epochs else []
        wanted += ["the schedule's first active step"] if self._schedule else []
        return " of ".join(wanted) or "training"

    def began(self, number: int) -> None:
        """Recording was started; step `number` is the next one."""
        self._first = number

    def epoch(self, number: int, *, over: bool) -> None:
        """Epoch `number` begins, or is over."""
        if self._epochs is not None:
            first, last = self._epochs
            self._in_epochs = (self._in_epochs and number < last) if over else first <= number <= last

    def action(self, number: int) -> Action:
        """What to do during step `number`, counted from 1."""
        if not self._in_epochs:
            return Action.NONE
        if self._steps is not None:
            first, last = self._steps
            if not first <= number <= last:
                return Action.NONE
            if self._schedule is None:
                return Action.RECORD_AND_SAVE if number == last else Action.RECORD
        if self._schedule is None:
            return Action.RECORD
        return self._schedule(max(number - self._first, 0))
