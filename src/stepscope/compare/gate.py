"""Whether the new side is slower than a limit allows, for a check that fails."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.compare.pair import Pair
from stepscope.errors import Unavailable

CERTAIN, UNTESTED, NOISE = "certain", "untested", "noise"


@dataclass(frozen=True)
class Verdict:
    """How much slower the new side is, and whether that is too much.

    Args:
        base_ns: Mean step of the base.
        new_ns: Mean step of the new side.
        limit_ratio: The difference that is allowed, as a share of the base.
        how: `certain`: the difference is beyond noise; `untested`: all steps are slower, but they are too few to be
            sure; `noise`: steps of one side differ as much.
    """

    base_ns: int
    new_ns: int
    limit_ratio: float
    how: str

    @property
    def slower_ratio(self) -> float:
        """How much longer the new side takes, as a share of the base; negative if it is faster."""
        return self.new_ns / self.base_ns - 1 if self.base_ns else 0.0

    @property
    def fails(self) -> bool:
        """Whether it is slower than allowed, and that is more than noise or cannot be told."""
        return self.slower_ratio > self.limit_ratio and self.how != NOISE


def judged(pair: Pair, limit_ratio: float) -> Verdict:
    """Judge the step, which is the whole recording if no steps are marked.

    Raises:
        Unavailable: If the steps of a side are unknown.
    """
    if pair.without_steps:
        raise Unavailable(f"{pair.without_steps}: it has no steps to compare with those of the other side")
    step = pair.analyse("time_differences").row(0, named=True)
    how = {"noise": NOISE, "too few": UNTESTED}.get(step["verdict"], CERTAIN)
    return Verdict(step["base_ns"], step["new_ns"], limit_ratio, how)
