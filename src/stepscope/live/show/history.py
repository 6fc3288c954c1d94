"""The last steps of each rank, and totals since the manager started: what views are made from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from stepscope.live.messages import Digest

KEPT_STEPS = 64
"""Steps of a rank that are kept; a screen is rarely wider."""
MEDIAN_STEPS = 20
"""Medians are of this many last steps."""


class StepTimes(NamedTuple):
    """Times of one step of one rank in ns; None if its kind was off."""

    step: int
    step_ns: int
    data_ns: int | None
    forward_ns: int | None
    communication_ns: int | None
    checkpoint_ns: int | None
    own_ns: int


MEASURES = ("step_ns", "data_ns", "forward_ns", "communication_ns", "checkpoint_ns")
"""Times of a step that are summed and shown."""


def times_of(digest: Digest) -> StepTimes:
    """The times that are kept of a step.

    Its own time is what the rank spent without waiting for others, as far as it was measured: the step less its calls
    of communication, if they are known and wait for others themselves; else data, forward pass and the rank's own part
    of the backward pass; else the whole step.
    """
    return StepTimes(
        digest.step,
        digest.step_ns,
        digest.data_ns,
        digest.forward_ns,
        digest.communication_ns,
        digest.checkpoint_ns,
        _own_ns(digest),
    )


def _own_ns(digest: Digest) -> int:
    if digest.communication_ns and not any(call.launched for call in digest.calls):
        return max(digest.step_ns - digest.communication_ns, 0)
    own = [part for part in (digest.data_ns, digest.forward_ns, digest.backward_own_ns) if part is not None]
    return sum(own) if digest.forward_ns is not None else digest.step_ns


@dataclass
class Total:
    """How many values came, and their sum in ns."""

    count: int = 0
    sum_ns: int = 0


@dataclass
class RankHistory:
    """The last steps of one rank."""

    recent: deque[StepTimes] = field(default_factory=lambda: deque(maxlen=KEPT_STEPS))
    totals: dict[str, Total] = field(default_factory=lambda: {measure: Total() for measure in MEASURES})

    def take(self, digest: Digest) -> None:
        """Add a step."""
        times = times_of(digest)
        self.recent.append(times)
        for measure, total in self.totals.items():
            value = getattr(times, measure)
            if value is not None:
                total.count += 1
                total.sum_ns += value

    def restarted(self) -> None:
        """Its process is a new one: steps of the old one are not recent any more. Totals go on."""
        self.recent.clear()

    @property
    def waits_for_batches(self) -> bool:
        """Whether it ever has: a script without a data loader does not wait 0 us for it."""
        return self.totals["data_ns"].sum_ns > 0

    def typical(self, measure: str) -> int | None:
        """Median of a time over the last steps in which it was measured; None if there are none."""
        if measure == "data_ns" and not self.waits_for_batches:
            return None
        last = islice(reversed(self.recent), MEDIAN_STEPS)
        return median_of(getattr(times, measure) for times in last)


def median_of(values: Iterable[int | None]) -> int | None:
    """The median of the known values; None if there are none."""
    known = sorted(value for value in values if value is not None)
    half = len(known) // 2
    return (known[half] if len(known) % 2 else (known[half - 1] + known[half]) // 2) if known else None
