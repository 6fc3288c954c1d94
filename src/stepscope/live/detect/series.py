"""What is remembered of one rank (or group) at one kind of work: its recent rounds, its level and noise, its scores."""

from __future__ import annotations

from array import array
from math import inf, sqrt

from stepscope.live.detect.statistics import MAD_TO_SIGMA, median
from stepscope.live.detect.suspect import OTHERS, PAST

KEPT = 64
"""Rounds that are remembered."""
BLOCK = 8
"""Rounds over whose means it shows whether noise hangs together."""
FORGET = 1024
"""Rounds after which older late ones count half."""
RECENT = 16
FIRST_REFRESHES = (3, 6, 12, 24)
SETTLED = 16
"""Rounds from which on a member's own past is known."""


class Score:
    """A sum of increments that begins anew whenever it falls to 0 (CUSUM).

    Attributes:
        value: The sum.
        since: The first round that counts in it.
    """

    __slots__ = ("since", "value")

    def __init__(self, since: int) -> None:
        self.value, self.since = 0.0, since

    def add(self, number: int, gain: float, most: float, ceiling: float = inf) -> None:
        """Count what a round adds or takes off, at most `most`; the sum stays below the ceiling."""
        value = self.value + (most if gain > most else -most if gain < -most else gain)
        if value <= 0:
            self.value, self.since = 0.0, number + 1
        else:
            self.value = min(value, ceiling)


class Series:
    """One member of a comparison.

    Attributes:
        first: Its first round.
        seen: Rounds so far.
        ring, beside: Its last values; if these are beyond what the round has in common for all, also by how much it was
            above others.
        base: Its usual value, beyond what the round has in common for all.
        long_level: Median of its values in all rounds that are remembered.
        usual: How much longer than others it has taken for long, at least 0; as far as that is no fault.
        noise: Its standard deviation from round to round; 0 while unknown.
        linked: How much larger the spread of means over several rounds is than that of independent rounds, at least 1.
        scale: What an excess adds to the score.
        others, past: Scores of the comparison with others, and with its own past.
        often_score, often_since, lates, late_sum: Of single late rounds: score, the first one, how many, their excess.
        late: Whether the last round was late.
        late_all, rounds_all: Late rounds and all rounds, older ones counted less.
        late_gain, late_loss: What a late round adds to `often_score`, and another one.
    """

    __slots__ = (
        "base",
        "based",
        "beside",
        "first",
        "last_late",
        "late",
        "late_all",
        "late_gain",
        "late_loss",
        "late_sum",
        "lates",
        "linked",
        "long_level",
        "noise",
        "often_score",
        "often_since",
        "others",
        "past",
        "place",
        "ring",
        "rounds_all",
        "scale",
        "seen",
        "sigma",
        "usual",
    )

    def __init__(self, number: int = 0) -> None:
        self.first = number
        self.ring, self.beside = array("d"), array("d")
        self.place = self.seen = self.based = self.last_late = 0
        self.base = self.long_level = self.noise = 0.0
        self.linked = 1.0
        self.scale = self.sigma = self.usual = 0.0
        self.late_all = self.rounds_all = 0.0
        self.late_gain, self.late_loss = 2.0, -0.15
        self.restart(number - 1)

    def restart(self, number: int) -> None:
        """Forget scores, e.g. after a recovery."""
        self.others, self.past = Score(number + 1), Score(number + 1)
        self.often_score, self.often_since = 0.0, number + 1
        self.late, self.lates, self.late_sum = False, 0, 0.0

    def scores(self) -> tuple[tuple[str, Score], ...]:
        """Beside what, and the score: of what lasts."""
        return (OTHERS, self.others), (PAST, self.past)

    @property
    def highest(self) -> float:
        """The higher one of these scores."""
        return max(self.others.value, self.past.value)

    def add(self, value: float) -> bool:
        """Remember a value; return whether statistics are due."""
        if len(self.ring) < KEPT:
            self.ring.append(value)
        else:
            self.ring[self.place] = value
        self.place = (self.place + 1) % KEPT
        self.seen += 1
        return self.seen % RECENT == 0 or self.seen in FIRST_REFRESHES

    def add_beside(self, excess: float) -> None:
        """Remember by how much it was above others in the round whose value was added last. From then on in each."""
        if len(self.beside) < len(self.ring):  # so far values were relative to others already
            self.beside.extend(self.ring[len(self.beside) :])
        self.beside[(self.place - 1) % KEPT] = excess

    def last(self, count: int) -> list[float]:
        """The last values, oldest first."""
        return self._last(self.ring, count)

    def above(self, how: str, rounds: int) -> list[float]:
        """By how much it was above others, or above its past, in its last rounds, oldest first."""
        if how == PAST:
            return [value - self.base for value in self.last(rounds)]
        return self._last(self.beside, rounds) if self.beside else self.last(rounds)

    def _last(self, ring: array[float], count: int) -> list[float]:
        count = min(count, len(ring))
        if len(ring) < KEPT:
            return list(ring[len(ring) - count :])
        start = (self.place - count) % KEPT
        part = list(ring[start : start + count])
        return part + list(ring[: count - len(part)])

    def measure_noise(self, without: int = 0) -> None:
        """Take its noise from all rounds that are remembered, less so many of the last ones."""
        values = self.last(KEPT)
        values = values[: max(1, len(values) - without)]
        self.long_level = middle = median(values)
        around = median([abs(value - middle) for value in values]) * MAD_TO_SIGMA
        self.noise = around * (1 + 1 / len(values))
        if len(values) < 3 * BLOCK or not around:
            return
        most = 3 * around
        cut = [min(most, max(-most, value - middle)) for value in values]
        means = [sum(cut[n : n + BLOCK]) / BLOCK for n in range(len(cut) % BLOCK, len(cut), BLOCK)]
        spread = sqrt(sum(value * value for value in means) / len(means))
        self.linked = spread * sqrt(BLOCK) / around

    def count_late(self, number: int, excess: float, *, is_late: bool) -> None:
        """Count a round for what comes and goes; late rounds that follow a late one share its cause.

        Args:
            number: Of the round.
            excess: By how much it is late.
            is_late: Whether it counts as late.
        """
        self.rounds_all += 1
        if is_late:
            self.last_late = number
            if not self.late:
                self.late_all += 1
                self.often_score += self.late_gain
                if not self.lates:
                    self.often_since = number
                self.lates += 1
                self.late_sum += excess
        else:
            self.often_score += self.late_loss
            if self.often_score <= 0:
                self.often_score, self.lates, self.late_sum = 0.0, 0, 0.0
        self.late = is_late
        if self.rounds_all > FORGET:
            self.late_all /= 2
            self.rounds_all /= 2
