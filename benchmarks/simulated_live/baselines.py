"""Published rules on the same streams, written from their descriptions.

Each gets, step by step, the time that each rank spends on its own work and waits for batches, the same figures that
our detector starts from; so what is compared is the decision, not the measurement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from statistics import fmean, median, pstdev
from typing import Protocol

from stepscope.live.messages import Digest

Blamed = tuple[str, int]


class Baseline(Protocol):
    """A rule: takes in a step and returns who it blames now."""

    def step(self, kind: str, times: Mapping[int, float]) -> set[Blamed]: ...


class Bound:
    """MindCluster's first stage, for each rank: slow if three steps in a row exceed a bound from the first 20 samples
    (of which three are left out at each end); later normal samples widen the baseline.

    Args:
        ratio: The bound is so many times the mean; None for the mean and three standard deviations.
    """

    samples, consecutive = 20, 3

    def __init__(self, ratio: float | None) -> None:
        self._ratio = ratio
        self._normal: dict[Blamed, list[float]] = {}
        self._bad: dict[Blamed, int] = {}
        self._sums: dict[Blamed, tuple[int, float, float]] = {}

    def step(self, kind: str, times: Mapping[int, float]) -> set[Blamed]:
        blamed = set()
        for rank, time in times.items():
            key = kind, rank
            sums = self._sums.get(key)
            if sums is None:
                first = self._normal.setdefault(key, [])
                first.append(time)
                if len(first) == self.samples:
                    kept = sorted(first)[self.consecutive : -self.consecutive]
                    self._sums[key] = len(kept), sum(kept), sum(value * value for value in kept)
                continue
            count, total, squares = sums
            mean = total / count
            sigma = max(0.0, squares / count - mean * mean) ** 0.5
            upper = mean * self._ratio if self._ratio else mean + 3 * sigma
            if time > upper:
                self._bad[key] = self._bad.get(key, 0) + 1
                if self._bad[key] >= self.consecutive:
                    blamed.add(key)
            else:
                self._bad[key] = 0
                self._sums[key] = count + 1, total + time, squares + time * time
        return blamed


class Intervals:
    """Times of whole intervals of so many steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._times: dict[str, dict[int, list[float]]] = {}

    def full(self, kind: str, times: Mapping[int, float]) -> dict[int, list[float]]:
        """Take in a step; the times of each rank if that ends an interval, else nothing."""
        known = self._times.setdefault(kind, {})
        for rank, time in times.items():
            known.setdefault(rank, []).append(time)
        if len(next(iter(known.values()))) < self._steps:
            return {}
        return self._times.pop(kind)


class Scores:
    """NVIDIA's resiliency extension: a rank whose median over an interval is more than 1 / 0.75 times the smallest
    median of all ranks, or its own best one."""

    def __init__(self, interval: int = 20, least: float = 0.75) -> None:
        self._intervals, self._least = Intervals(interval), least
        self._best: dict[Blamed, float] = {}

    def step(self, kind: str, times: Mapping[int, float]) -> set[Blamed]:
        medians = {rank: median(values) for rank, values in self._intervals.full(kind, times).items()}
        if not medians:
            return set()
        reference = min(medians.values())
        blamed = set()
        for rank, value in medians.items():
            best = self._best[kind, rank] = min(self._best.get((kind, rank), value), value)
            if value > 0 and min(reference, best) / value < self._least:
                blamed.add((kind, rank))
        return blamed


class TwiceMedian:
    """DLRover's check of nodes: more than twice the median of all, in two intervals."""

    def __init__(self, interval: int = 10, factor: float = 2.0, rounds: int = 2) -> None:
        self._intervals, self._factor, self._rounds = Intervals(interval), factor, rounds
        self._bad: dict[Blamed, int] = {}

    def step(self, kind: str, times: Mapping[int, float]) -> set[Blamed]:
        means = {rank: fmean(values) for rank, values in self._intervals.full(kind, times).items()}
        if not means:
            return set()
        middle = median(means.values())
        blamed = set()
        for rank, value in means.items():
            key = kind, rank
            self._bad[key] = self._bad.get(key, 0) + 1 if value > self._factor * middle else 0
            if self._bad[key] >= self._rounds:
                blamed.add(key)
        return blamed


class Sliding:
    """A sliding window, as papers compare with: the mean of the last 10 steps is 10 % above that of the 40 before, by
    more than three standard errors."""

    def __init__(self, short: int = 10, long: int = 40, least: float = 1.1) -> None:
        self._short, self._long, self._least = short, long, least
        self._window: dict[Blamed, deque[float]] = {}

    def step(self, kind: str, times: Mapping[int, float]) -> set[Blamed]:
        blamed = set()
        size = self._short + self._long
        for rank, time in times.items():
            window = self._window.setdefault((kind, rank), deque(maxlen=size))
            window.append(time)
            if len(window) < size:
                continue
            values = list(window)
            before, now = values[: self._long], values[self._long :]
            mean, spread = fmean(before), pstdev(before)
            if fmean(now) > self._least * mean and fmean(now) > mean + 3 * spread / self._short**0.5:
                blamed.add((kind, rank))
        return blamed


RULES: dict[str, Callable[[], Baseline]] = {
    "mean + 3 sigma": lambda: Bound(None),
    "fixed 30 %": lambda: Bound(1.3),
    "NVRx 0.75": Scores,
    "DLRover 2x median": TwiceMedian,
    "sliding window 10 %": Sliding,
}
FIRST_STEPS = 3
"""Of warm-up, which no rule sees."""


class Beside:
    """Feeds the rules with the digests of a job."""

    def __init__(self, onset: int) -> None:
        self._onset = onset
        self.rules: dict[str, Baseline] = {name: make() for name, make in RULES.items()}
        self.early: dict[str, set[Blamed]] = {name: set() for name in RULES}
        """By rule: who was blamed before the first fault."""
        self.blamed: dict[str, dict[Blamed, int]] = {name: {} for name in RULES}
        """By rule: who is blamed since, and the first step in which."""

    def step(self, step: int, digests: list[Digest]) -> None:
        if step <= FIRST_STEPS:
            return
        own = {digest.rank: _own(digest) for digest in digests}
        # waits of milliseconds vary by any factor: rules of ratios get them with a tenth of a step added to each
        floor = 0.1 * median([digest.step_ns for digest in digests])
        data = {digest.rank: float(digest.data_ns or 0) + floor for digest in digests}
        for name, rule in self.rules.items():
            for key in rule.step("compute", own) | rule.step("data", data):
                if step < self._onset:
                    self.early[name].add(key)
                else:
                    self.blamed[name].setdefault(key, step)


def _own(digest: Digest) -> float:
    """Own time without waits, as far as known; else the forward pass."""
    if digest.calls:
        waits = sum(call.device_ns if call.device_ns is not None else call.time_ns for call in digest.calls)
        hidden = (digest.backward_ns or 0) - (digest.backward_own_ns or digest.backward_ns or 0)
        return float(digest.step_ns - waits - hidden - (digest.data_ns or 0) - (digest.checkpoint_ns or 0))
    if digest.backward_own_ns is not None:
        return float((digest.forward_ns or 0) + digest.backward_own_ns + (digest.optimizer_ns or 0))
    return float(digest.device_forward_ns or digest.forward_ns or digest.step_ns)
