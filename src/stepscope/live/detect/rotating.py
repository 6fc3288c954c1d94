"""Whether in most rounds some rank is late, but each time another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import exp
from statistics import fmean, pvariance

import msgspec

from stepscope.live.detect.comparison import Comparison
from stepscope.live.detect.limits import Limits
from stepscope.live.detect.statistics import median
from stepscope.live.verdicts import Cause, Verdict

KEY = "slow_compute:rotating"
EACH = 8
"""Rounds between looks."""
MOST_SHARE = 3.0
"""A rank that is late more often than so many times the mean of the late ones is late by itself."""
LEAST_RANKS = 3
SURENESS = 0.99
"""Poisson counts of 64 rounds have a variance of less than 0.4 of their mean once in 10**6."""


class Rotating:
    """Looks at which ranks were late in the last rounds of a comparison. Stalls that strike at random leave rounds out
    and strike several ranks in others; here about as many are late in each round."""

    def __init__(self, comparison: Comparison[int], limits: Limits) -> None:
        self._comparison, self._limits = comparison, limits
        self.open: Verdict | None = None

    def judge(
        self, number: int, times: Mapping[int, float], step_ns: float, starts: Mapping[int, tuple[int, int]], at_ns: int
    ) -> list[Verdict]:
        """A verdict that is new or over, if any."""
        counts, members = self._comparison.late_counts, self._comparison.late_members
        limits = self._limits
        if number % EACH or len(counts) < limits.rotating_rounds:
            return []
        often = sum(count > 0 for count in counts) >= limits.rotating_ratio * len(counts)
        if self.open is not None:
            recent = list(counts)[-4 * EACH :]
            if sum(count > 0 for count in recent) >= len(recent) / 2:
                return []
            step = starts.get(number - 2 * EACH, (self.open.since_step, 0))[0]
            over = msgspec.structs.replace(self.open, until_step=step, until_at_ns=at_ns)
            self.open = None
            return [over]
        mean = fmean(counts)
        if not often or pvariance(counts) > limits.rotating_spread * mean or self._comparison.suspects:
            return []
        turns = Counter(member for late in members for member in late)
        share = sum(turns.values()) / len(turns)
        if len(turns) < LEAST_RANKS or max(turns.values()) > min(MOST_SHARE * share, len(counts) / 2):
            return []
        excess = median([self._comparison.excesses.get(member, 0.0) for member in members[-1]])
        first, since_ns = starts.get(number - len(counts) + 1, (0, at_ns))
        own = median(list(times.values()))
        self.open = Verdict(
            key=KEY,
            cause=Cause.COMPUTE,
            ranks=sorted(turns),
            since_step=first,
            since_at_ns=since_ns,
            ratio=round(exp(excess), 3) if members[-1] else None,
            cost_ns=round(own * (exp(excess) - 1)) if members[-1] else None,
            sureness=SURENESS,
            intermittent=True,
            evidence={"late_share": round(mean / max(1, len(times)), 4), "step_ns": round(step_ns)},
        )
        return [self.open]
