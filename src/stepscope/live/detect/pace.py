"""Whether a whole job is slower than before: a change of the usual length of its steps."""

from __future__ import annotations

from collections import deque
from math import exp, log, sqrt

from stepscope.live.detect.limits import TESTS, Limits, Tuning
from stepscope.live.detect.series import Series
from stepscope.live.detect.statistics import LEVEL_ERROR, MAD_TO_SIGMA, median, onset_round
from stepscope.live.detect.tails import Tails

BLOCK = 16
"""Rounds whose median counts as one for what is usual."""
LASTING = 0.7
"""Share of the noise that a change must exceed if it lasts for long, chosen by us: machines drift for minutes."""
BLOCKS = 128


class Pace:
    """One value of the whole job, round by round, as a logarithm.

    Attributes:
        since: First round that is slower, if `is_slow`.
        recovered_at: Last slow round, once it is over.
    """

    def __init__(self, tuning: Tuning, limits: Limits) -> None:
        self._tuning, self._limits = tuning, limits
        self._series = Series()
        self._tails = Tails(limits.most_increment)
        self._block: list[float] = []
        self._blocks: deque[float] = deque(maxlen=BLOCKS)
        self._recovery = 0.0
        self._recovered_from = 0
        self._indifference = tuning.shift / 2
        self.is_slow = False
        self.since = self.until = 0
        self.sureness = 0.0
        self.base = 0.0

    def restart(self) -> None:
        """The job starts anew: nothing is usual yet."""
        self.__init__(self._tuning, self._limits)  # type: ignore[misc]

    @property
    def suspected(self) -> bool:
        """Whether it may be slower."""
        return self.is_slow or self._series.others.value > 4

    @property
    def slower_since(self) -> int:
        """The round since which it may be slower."""
        return self.since if self.is_slow else self._series.others.since

    def excess(self, rounds: int = 16) -> float:
        """How much slower than usual the last rounds are: a difference of logarithms."""
        return median(self._series.last(rounds)) - self.base

    def update(self, number: int, value: float, round_ns: float, spare: float = 0.0) -> bool:
        """Take in a round; return whether it has become slow, or is no longer.

        Args:
            number: Of the round.
            value: Of the round.
            round_ns: How long a round usually is.
            spare: Further excess that is needed to be slow.
        """
        series, tuning, most = self._series, self._tuning, self._limits.most_increment
        series.add(value)
        if series.seen < self._limits.pace_rounds:
            self._collect(value)
            series.restart(number)
            return False
        if series.seen == self._limits.pace_rounds or (series.seen % BLOCK == 0 and not self.suspected):
            self._measure()
        excess = value - self.base
        gain = max(-most, min(most, series.scale * (excess - self._indifference)))
        score = series.others
        if not self.is_slow:
            score.add(number, gain, most)
            self._collect(value)
            theta = self._tails.theta()
            tests = log(max(1000.0, self._limits.horizon_ns / max(round_ns, 1e6)) * TESTS / self._limits.budget)
            rounds = number - score.since + 1
            if theta <= 0 or score.value * theta < tests or rounds * round_ns < 2 * self._limits.least_ns:
                return False
            shown = self.excess(rounds)
            doubt = 2 * LEVEL_ERROR * series.sigma / sqrt(min(rounds, 64))
            # a machine drifts: what lasts for several blocks of rounds is less and less likely chance
            drift = self._limits.pace_score * series.sigma * max(LASTING, sqrt(min(1.0, BLOCK / rounds)))
            least = max(self._limits.least_ratio * tuning.shift + doubt, drift - tuning.shift)
            if rounds < 2 * self._limits.least_rounds or shown < least + spare:
                return False
            values = [one - self.base for one in series.last(rounds)]
            self.since = onset_round(values, number, self._limits.least_rounds, self._indifference) or score.since
            self.is_slow, self._recovery = True, 0.0
            false = self._limits.budget * exp(min(0.0, tests - score.value * theta))
            self.sureness = round(max(0.5, min(0.999, 1 - false)), 3)
            return True
        self._recovery = max(0.0, self._recovery + min(most / 2, -gain))
        if not self._recovery:
            self._recovered_from = number + 1
        if self._recovery * max(0.2, self._tails.theta()) < self._limits.recovery_score:
            return False
        self.is_slow, self.until = False, self._recovered_from - 1
        series.restart(number)
        return True

    def _collect(self, value: float) -> None:
        """Remember it for what is usual, unless it is suspected."""
        if self.suspected:
            self._block.clear()
            return
        self._block.append(value)
        if len(self._block) == BLOCK:
            self._blocks.append(median(self._block))
            self._block.clear()

    def _measure(self) -> None:
        series, tuning = self._series, self._tuning
        self.base = median(self._blocks)
        series.measure_noise()
        # levels that move from block to block are noise as well
        moves = median([abs(one - self.base) for one in self._blocks]) * MAD_TO_SIGMA
        linked = max(1.0, series.linked)
        series.sigma = max(tuning.least_noise, sqrt((series.noise * linked) ** 2 + moves**2))
        series.scale = tuning.shift / series.sigma**2
        # what is usual is not known exactly
        self._indifference = tuning.shift / 2 + 2 * LEVEL_ERROR * series.sigma / sqrt(BLOCK * len(self._blocks))
        for value in series.last(BLOCK if series.seen > self._limits.pace_rounds else 64):
            self._tails.add(series.scale * (value - self.base - self._indifference))
