"""The noise of an ordinary member of a comparison, and what follows from it for the scores of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import log, sqrt
from typing import Generic

from stepscope.live.detect.limits import Limits, Tuning
from stepscope.live.detect.series import RECENT, SETTLED, Series
from stepscope.live.detect.statistics import MAD_TO_SIGMA, median
from stepscope.live.detect.suspect import M

PRIOR_ROUNDS = 12
"""Rounds of one member as which the assumed noise counts."""
MANY = 8
"""Members from which on it shows how far healthy ones differ for good."""


class Noise(Generic[M]):
    """Noise that all members show together.

    Attributes:
        usual: Standard deviation of an ordinary member from round to round.
        indifference: Excess that is no fault.
    """

    def __init__(self, tuning: Tuning, limits: Limits) -> None:
        self._tuning, self._limits = tuning, limits
        self.usual = tuning.noise
        self.indifference = tuning.shift / 2
        self._lates = self._rounds = 0.0

    def count_late(self, number: int, series: Series, shown: float, *, is_late: bool) -> None:
        """Single late rounds: those that follow a late one share its cause and do not count again."""
        lates, rounds = series.late_all, series.rounds_all
        series.count_late(number, shown, is_late=is_late)
        self._lates += series.late_all - lates
        self._rounds += series.rounds_all - rounds

    def pool(self, members: Mapping[M, Series], suspects: Collection[M], normal: Collection[M]) -> None:
        """Measure it anew, and with it how much an excess adds to each score.

        Args:
            members: All.
            suspects: Those that are slow.
            normal: Those that define what is normal in their programs.
        """
        known = [s for m, s in members.items() if s.noise > 0 and m not in suspects]
        tuning = self._tuning
        seen = median([s.seen for s in known]) * len(known) if known else 0.0
        seen = min(seen, 64.0 * max(1, len(known)))
        pooled = median([s.noise for s in known])
        linked = max(1.0, median([s.linked for s in known])) if known else 1.0
        variance = (PRIOR_ROUNDS * tuning.noise**2 + seen * (pooled * linked) ** 2) / (PRIOR_ROUNDS + seen)
        self.usual = max(tuning.least_noise, sqrt(variance))
        levels = [abs(members[m].long_level) for m in normal if members[m].seen >= SETTLED]
        apart = median(levels) * MAD_TO_SIGMA if len(levels) >= MANY else 0.0
        self.indifference = max(tuning.shift / 2, self._limits.apart_score * apart)
        for member, series in members.items():
            own = series.noise * max(1.0, min(linked, 3.0)) if series.seen >= RECENT else 0.0
            if member in suspects:
                own = min(own, self.usual)
            series.sigma = max(self.usual, own)
            series.scale = tuning.shift / series.sigma**2
            self._weigh_lates(series)

    def _weigh_lates(self, series: Series) -> None:
        """What a late round of a member says, by how often others are late."""
        others = max(1.0, self._rounds - series.rounds_all)
        usual = self._limits.usual_rate
        rate = (self._lates - series.late_all + 50 * usual) / (others + 50)
        rate = min(0.5, max(usual, rate))
        often = min(0.9, max(self._limits.often_rate, 3 * rate))
        series.late_gain, series.late_loss = log(often / rate), log((1 - often) / (1 - rate))
