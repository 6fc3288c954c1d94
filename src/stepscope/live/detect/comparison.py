"""Ranks (or groups) compared at one kind of work, round by round: who takes longer than others, or than before.

In each round a member's excess is its value less what is normal: the median of the normal members of its program. Those
are its lowest group that is large enough (offline: `references`), so that slow ranks do not define what is normal, also
if half of them are slow from the start. Members of small programs, or of programs that are only guessed, are also
compared with their own past: with how much longer they take than usual, less how much longer the members of the job do
in the median. So what makes all of them slower accuses nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from math import exp, log, sqrt
from typing import Generic

from stepscope.live.detect.limits import TESTS, Limits, Tuning
from stepscope.live.detect.noise import Noise
from stepscope.live.detect.normal import FEW, Normal
from stepscope.live.detect.series import FIRST_REFRESHES, KEPT, RECENT, SETTLED, Series
from stepscope.live.detect.statistics import LEVEL_ERROR, MAD_TO_SIGMA, lower_median, median, onset_round
from stepscope.live.detect.suspect import OFTEN, OTHERS, M, Suspect
from stepscope.live.detect.tails import ASSUMED, Tails

NORMAL_EACH = 4
"""Rounds between looks at who is normal."""
ENOUGH = 6
"""Rounds that show noise."""
CLEARLY = 3.0
"""Standard deviations of a round by which a median over some is larger than before, clearly."""


class Comparison(Generic[M]):
    """All members at one kind of work.

    Args:
        tuning: How this kind of work is tested.
        limits: Limits of the detector.
    """

    def __init__(self, tuning: Tuning, limits: Limits) -> None:
        self.tuning = tuning
        self.limits = limits
        self.members: dict[M, Series] = {}
        self.suspects: dict[M, Suspect[M]] = {}
        self.excesses: dict[M, float] = {}
        """Of the last round."""
        self.late_counts: deque[int] = deque(maxlen=limits.rotating_rounds)
        self.late_members: deque[list[M]] = deque(maxlen=limits.rotating_rounds)
        self.rounds = self._last_number = 0
        self.normal = Normal(self.members, tuning, limits)
        self.noise = Noise[M](tuning, limits)
        self._tails = Tails(limits.most_increment)
        self._program_of: Mapping[M, Hashable] = {}
        self._single: Mapping[M, float] = {}
        self._pooled_at = -NORMAL_EACH
        self._round_ns = 5e8
        self.threshold = float("inf")
        self.theta = 0.0

    def forget(self, member: M) -> None:
        """A member is gone or another process now."""
        self.members.pop(member, None)
        self.suspects.pop(member, None)

    def update(
        self,
        number: int,
        values: Mapping[M, float],
        program_of: Mapping[M, Hashable],
        round_ns: float,
        *,
        sure: bool,
        single: Mapping[M, float] | None = None,
    ) -> list[Suspect[M]]:
        """Judge a round.

        Args:
            number: Increases from round to round.
            values: Of each member that is known: logarithms of times, or shares of a step.
            program_of: Of each of these members.
            round_ns: How long a round usually is.
            sure: Whether programs are known, not guessed.
            single: What else the round takes longer for single members, by something that happens now and then. It
                counts for late rounds only.

        Returns:
            Suspects that are new or have recovered.
        """
        self.rounds += 1
        self._last_number = number
        self._round_ns = round_ns
        self._program_of = program_of
        self._single = single or {}
        programs: dict[Hashable, list[M]] = {}
        for member in values:
            if member not in self.members:
                self.members[member] = Series(number)
            programs.setdefault(program_of[member], []).append(member)
        if self.rounds % NORMAL_EACH == 0 or self.rounds <= RECENT:
            self.normal.choose(programs, self.noise.usual)
        self._set_threshold(len(values))
        self.excesses = {}
        changed: list[Suspect[M]] = []
        late: list[M] = []
        due: list[M] = []
        common: tuple[list[tuple[float, M]], float] | None = None
        for name, found in programs.items():
            alone = len(found) < 3 or not sure
            if alone:
                common = common or self.normal.common(values, self.noise.usual)
                self._by_past(number, values, name, found, common, late, due, changed)
            else:
                offsets = self.normal.offsets(values, found, name, self.noise.usual)
                for member, offset in zip(found, offsets, strict=True):
                    value = values[member] - offset
                    if self._step(number, member, self.members[member], value, value, None, late, changed):
                        due.append(member)
        self.late_counts.append(len(late))
        self.late_members.append(late)
        if due:
            self._refresh(due)
        return changed

    def recent_excess(self, member: M, rounds: int, how: str = OTHERS) -> float:
        """Median excess of a member over others, or over its past, in its last rounds."""
        series = self.members.get(member)
        if series is None or not series.seen:
            return 0.0
        return median(series.above(how, max(1, min(rounds, KEPT))))

    def grown(self, member: M, rounds: int) -> float:
        """How much larger its excess over others was in its last rounds than before, if clearly; else 0."""
        series = self.members.get(member)
        if series is None:
            return 0.0
        values = series.above(OTHERS, KEPT)
        rounds = min(rounds, len(values) // 2)
        if rounds < self.limits.least_rounds:
            return 0.0
        more = median(values[-rounds:]) - median(values[:-rounds])
        return more if more > CLEARLY * series.sigma else 0.0

    def suspected(self) -> set[M]:
        """The members that are slow, or may soon be found to be."""
        return self._doubtful() if self.threshold < 1e9 else set(self.suspects)

    def _unsure_rounds(self, doubtful: set[M]) -> int:
        """How many of the last rounds do not show noise, as some members are doubtful: not theirs, and if all are few,
        not that of others, whose values move with it. 0 if that has long been so: all of them do, then."""
        begins = [since for m in doubtful if (since := self.slow_since(m)) is not None]
        rounds = self._last_number - min(begins, default=self._last_number + 1) + 1
        return rounds if rounds <= KEPT - RECENT else 0

    def _least_doubtful(self) -> float:
        return min(self.threshold, self._log_tests() / ASSUMED) / 4

    def _doubtful(self) -> set[M]:
        """The members whose values may be those of a fault, and do not show what is normal."""
        least = self._least_doubtful()
        return {m for m, s in self.members.items() if m in self.suspects or s.highest > least}

    def rising(self) -> bool:
        """Whether some member is not slow yet, but may soon be found to be."""
        least = self.threshold / 2
        return any(s.highest > least for m, s in self.members.items() if m not in self.suspects)

    def slow_since(self, member: M) -> int | None:
        """The round since which a member seems to be slow, whether it is blamed or not; None if it does not."""
        suspect, series = self.suspects.get(member), self.members.get(member)
        if suspect is not None:
            return None if suspect.how == OFTEN else suspect.since
        if series is None:
            return None
        for how, score in series.scores():
            if score.value > self._least_doubtful():
                values = series.above(how, self._last_number - score.since + 1)
                return self._begin(values, series, self._last_number) or score.since
        return None

    def _begin(self, values: list[float], series: Series, number: int) -> int | None:
        """The round in which the last values rose, if they did; `number` is that of the last one."""
        return onset_round(values, number, self.limits.least_rounds, max(self.noise.indifference, series.sigma))

    def open_with(self, suspect: Suspect[M], member: M) -> None:
        """Another member is slow for the same reason, e.g. as it is on the same host."""
        if member == suspect.member:
            self.suspects[member] = suspect
        elif member not in self.suspects and member in self.members:
            excess = self.recent_excess(member, suspect.opened - suspect.since + 1, suspect.how)
            last = suspect.last_late
            self.suspects[member] = Suspect(
                member, suspect.how, suspect.since, suspect.opened, excess, suspect.share, suspect.sureness, last
            )

    def _by_past(
        self,
        number: int,
        values: Mapping[M, float],
        name: Hashable,
        found: list[M],
        common: tuple[list[tuple[float, M]], float],
        late: list[M],
        due: list[M],
        changed: list[Suspect[M]],
    ) -> None:
        """Judge members of a program that is small or guessed, also by their past."""
        changes, middle = common
        beyond: list[float] = []
        for member in found:
            series = self.members[member]
            if not series.based:
                normal = [values[other] for other in found]
                series.base = values[member] - lower_median(sorted(normal), self.noise.usual)
                series.based = 1
            if len(changes) < 2:
                offset = 0.0 if not changes or changes[0][1] == member else middle
            elif len(changes) < FEW:
                rest = [change for change, other in changes if other != member]
                offset = sum(rest) / len(rest)
            else:
                offset = middle
            beyond.append(values[member] - offset)
        offsets = self.normal.offsets(values, found, name, self.noise.usual)
        for member, value, offset in zip(found, beyond, offsets, strict=True):
            series = self.members[member]
            excess = None if len(found) < 2 else values[member] - offset
            change = value - series.base if series.seen >= SETTLED and len(changes) > 1 else None
            if self._step(number, member, series, value, excess, change, late, changed):
                due.append(member)

    def _step(
        self,
        number: int,
        member: M,
        series: Series,
        value: float,
        excess: float | None,
        change: float | None,
        late: list[M],
        changed: list[Suspect[M]],
    ) -> bool:
        """Take a round of a member into its scores; return whether its statistics are due."""
        due = series.add(value)
        if series.based:
            series.add_beside(excess if excess is not None else 0.0)
        shown = excess if excess is not None else change
        if shown is None:
            return due
        self.excesses[member] = shown
        half, most = self.noise.indifference, self.limits.most_increment
        ceiling = 3 * self.threshold if self.threshold < 1e9 else 1e9
        if excess is not None:
            series.others.add(number, series.scale * (excess - half - series.usual), most, ceiling)
        if change is not None:
            series.past.add(number, series.scale * (change - half), most, ceiling)
        shown += self._single.get(member, 0.0)
        is_late = shown > max(self.tuning.late, 4 * series.sigma)
        self.noise.count_late(number, series, shown, is_late=is_late)
        suspect = self.suspects.get(member)
        if is_late and suspect is None:
            late.append(member)
        if suspect is None:
            if series.highest >= self.threshold or series.lates > 4:
                self._accuse(number, member, series, changed)
        else:
            self._watch(number, suspect, series, excess, change, is_late=is_late, changed=changed)
        return due

    def _accuse(self, number: int, member: M, series: Series, changed: list[Suspect[M]]) -> None:
        for how, score in series.scores():
            if score.value < self.threshold:
                continue
            # it had no score before
            since = series.first if score.since <= series.first + FIRST_REFRESHES[0] else score.since
            rounds = number - since + 1
            if rounds < self.limits.least_rounds or rounds * self._round_ns < self.limits.least_ns:
                continue
            values = series.above(how, rounds)
            excess = median(values)
            least = self.limits.least_ratio if series.seen >= KEPT else self.limits.early_ratio
            if excess - self._doubt(values, series) < least * self.tuning.shift:
                continue
            begin = self._begin(values, series, number)
            if begin is not None:  # small excesses by chance began its score
                since, excess = begin, median(values[begin - number - 1 :])
            score.since = since
            sureness = self._sureness(score.value * self.theta)
            self._open(Suspect(member, how, since, number, excess, 1.0, sureness, number), changed)
            return
        often = self._log_tests()
        if series.lates >= self.limits.late_rounds and series.often_score >= often:
            rounds = max(1, number - series.often_since + 1)
            share, mean = series.lates / rounds, series.late_sum / series.lates
            sureness = self._sureness(series.often_score)
            self._open(
                Suspect(member, OFTEN, series.often_since, number, mean, min(1.0, share), sureness, number), changed
            )

    @staticmethod
    def _doubt(values: list[float], series: Series) -> float:
        """Standard error of the median of its values, by how much they scatter."""
        middle = median(values)
        spread = max(series.sigma / 2, median([abs(value - middle) for value in values]) * MAD_TO_SIGMA)
        return LEVEL_ERROR * spread * max(1.0, min(2.0, series.linked)) / sqrt(len(values))

    def _open(self, suspect: Suspect[M], changed: list[Suspect[M]]) -> None:
        self.suspects[suspect.member] = suspect
        changed.append(suspect)

    def _watch(
        self,
        number: int,
        suspect: Suspect[M],
        series: Series,
        excess: float | None,
        change: float | None,
        *,
        is_late: bool,
        changed: list[Suspect[M]],
    ) -> None:
        """A suspect may recover."""
        if is_late:
            suspect.last_late = number
        if suspect.how == OFTEN:
            if number - suspect.last_late > max(30.0, 8 / max(suspect.share, 0.01)):
                self._close(suspect, series, suspect.last_late, number, changed)
            return
        shown = excess if suspect.how == OTHERS else change
        if shown is None:
            return
        step = min(max(self.tuning.shift, suspect.excess), 2.5 * self.tuning.shift)
        gain = series.scale * step / self.tuning.shift * (step / 2 - shown)
        most = self.limits.most_increment
        suspect.recovery += min(most / 2, max(-most, gain))
        if suspect.recovery <= 0:
            suspect.recovery, suspect.recovered_from = 0.0, number + 1
        elif suspect.recovery * max(self.theta, 0.2) >= self.limits.recovery_score:
            self._close(suspect, series, suspect.recovered_from - 1, number, changed)

    def _close(self, suspect: Suspect[M], series: Series, until: int, number: int, changed: list[Suspect[M]]) -> None:
        suspect.until = until
        del self.suspects[suspect.member]
        series.restart(number)
        self.late_counts.clear()
        self.late_members.clear()
        changed.append(suspect)

    def _set_threshold(self, members: int) -> None:
        self.theta = self._tails.theta()
        self.threshold = self._log_tests(members) / self.theta if self.theta > 0 else float("inf")

    def _log_tests(self, members: int = 0) -> float:
        tests = max(members, len(self.members), 1) * max(1000.0, self.limits.horizon_ns / max(self._round_ns, 1e6))
        return log(tests * TESTS / self.limits.budget)

    def _sureness(self, exponent: float) -> float:
        """That this is not one of the false verdicts of the horizon, of which the score allows so many."""
        false = self.limits.budget * exp(min(0.0, self._log_tests() - exponent))
        return round(max(0.5, min(0.999, 1 - false)), 3)

    def _refresh(self, due: list[M]) -> None:
        """Measure levels and noise anew, of members that are not suspected."""
        half = self.noise.indifference
        doubtful = self._doubtful()
        unsure = self._unsure_rounds(doubtful) if len(self.members) < FEW else 0
        for member in due:
            series = self.members[member]
            if member in doubtful and series.seen > RECENT:
                continue
            late = max(unsure, self._unsure_rounds({member})) if member in doubtful else unsure
            series.measure_noise(late if series.seen - late >= ENOUGH else 0)
            if series.based:
                usual = series.long_level
                series.base += (usual - series.base) * (1.0 if series.seen <= 64 else 0.25)
            elif series.seen >= KEPT:
                usual = max(0.0, min(series.long_level, self.limits.usual_ratio * self.tuning.shift))
                series.usual += 0.5 * (usual - series.usual)
            if series.seen % RECENT == 0 and series.scale > 0:
                middle = series.base if series.based else series.usual
                for value in series.last(RECENT)[: max(0, RECENT - unsure)]:
                    self._tails.add(series.scale * (value - middle - half))
        if self.rounds <= 2 * RECENT or self.rounds - self._pooled_at >= NORMAL_EACH:
            self._pooled_at = self.rounds
            self.noise.pool(self.members, self.suspects, self._normal_members())

    def _normal_members(self) -> list[M]:
        """The members that define what is normal in their programs."""
        return [
            m
            for m, series in self.members.items()
            if m not in self.suspects
            and not series.based
            and m in self.normal.members_of.get(self._program_of.get(m), ())
        ]
