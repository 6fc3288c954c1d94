"""What is normal in a round of a comparison: for the members of a program, and for all of the job."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from math import sqrt
from typing import Generic

from stepscope.live.detect.limits import Limits, Tuning
from stepscope.live.detect.series import RECENT, Series
from stepscope.live.detect.statistics import LEVEL_ERROR, lower_median, lowest_group, median
from stepscope.live.detect.suspect import M

FEW = 4
"""Members from which on their median is what is normal."""
PLACE_ROUNDS = 48
"""Rounds from which on levels of places are known."""


class Normal(Generic[M]):
    """Which members define what is normal.

    Args:
        series: Of all members; read only.
        tuning: How the kind of work is tested.
        limits: Limits of the detector.
    """

    def __init__(self, series: Mapping[M, Series], tuning: Tuning, limits: Limits) -> None:
        self._series, self._tuning, self._limits = series, tuning, limits
        self.members_of: dict[Hashable, set[M]] = {}
        """By program."""
        self.place_of: Callable[[M], Hashable] = _nowhere
        """Where a member is; members at one place may be slow together."""

    def choose(self, programs: Mapping[Hashable, list[M]], noise: float) -> None:
        """Look anew at who is normal."""
        self.members_of = {name: self._normal_of(found, noise) for name, found in programs.items()}

    def common(self, values: Mapping[M, float], noise: float) -> tuple[list[tuple[float, M]], float]:
        """How much longer than usual each member takes in this round, in order, and the median."""
        based = [
            (value - self._series[member].base, member)
            for member, value in values.items()
            if self._series[member].based
        ]
        based.sort(key=lambda pair: pair[0])
        return based, lower_median([change for change, _ in based], 3 * noise) if based else 0.0

    def offsets(self, values: Mapping[M, float], found: list[M], name: Hashable, noise: float) -> list[float]:
        """What is normal in this round for each member of a program."""
        if len(found) < 2:
            return [values[member] for member in found]
        if len(found) < FEW:
            total = sum(values[member] for member in found)
            return [(total - values[member]) / (len(found) - 1) for member in found]
        normal = self.members_of.get(name) or set(found)
        known = sorted(values[member] for member in found if member in normal)
        if not known:
            known = sorted(values[member] for member in found)
        return [lower_median(known, 3 * noise)] * len(found)

    def _normal_of(self, found: list[M], noise: float) -> set[M]:
        """The members that define what is normal in a program."""
        if len(found) < FEW:
            return set(found)
        for of_level, rounds in ((True, RECENT), (False, 64)):
            levels = {m: self._level(self._series[m], recent=of_level) for m in found}
            seen = min(rounds, min((self._series[m].seen for m in found), default=0))
            if seen < 3:
                continue
            apart = max(self._limits.gap_score * noise * LEVEL_ERROR / sqrt(seen), self.least_gap())
            middle = lowest_group(list(levels.values()), apart, self._limits.enough_ratio)
            lowest = {m for m, level in levels.items() if level - middle <= apart}
            if len(lowest) < len(found):
                return lowest
        return self._normal_places(found)

    def _normal_places(self, found: list[M]) -> set[M]:
        """The same by places, whose levels are known better than those of single members."""
        places: dict[Hashable, list[M]] = {}
        for member in found:
            places.setdefault(self.place_of(member), []).append(member)
        seen = min(self._series[member].seen for member in found)
        if len(places) < 2 or min(map(len, places.values())) < 2 or seen < PLACE_ROUNDS:
            return set(found)
        levels = {name: median([self._series[m].long_level for m in members]) for name, members in places.items()}
        apart = self._limits.least_ratio * self._tuning.shift
        middle = lowest_group(list(levels.values()), apart, self._limits.enough_ratio)
        return {m for name, members in places.items() if levels[name] - middle <= apart for m in members}

    def least_gap(self) -> float:
        """Smaller differences of levels do not separate groups."""
        return self._limits.gap_ratio * self._tuning.shift

    @staticmethod
    def _level(series: Series, *, recent: bool) -> float:
        return median(series.last(RECENT)) if recent or series.seen < 24 else series.long_level


def _nowhere(_: object) -> None:
    """The place of a member if places are unknown."""
