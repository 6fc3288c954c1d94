"""How the time of a rank depends on the length of its batches, learned while the job runs.

Logarithms of times are a smooth function of those of lengths, whether the work grows linearly with the length, or by
its square, or has a constant part: a parabola fits within a few percent. It is fitted to how ranks differ within a
round, less how each differs usually. So neither slow ranks nor what changes for all of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

KEEP = 0.998
"""Weight of older rounds."""
LEAST_SPREAD = 0.0009
"""Variance of log(length) below which lengths are equal."""
FIRST_ROUNDS = 4
MOST = 0.7
"""Larger differences from what is usual are cut."""
USUAL_WEIGHT = 0.05


class Lengths:
    """Takes out of times what batches of other lengths explain."""

    def __init__(self) -> None:
        self._rounds = 0
        self._usual: dict[int, tuple[float, float, float]] = {}
        self._sums = [0.0] * 5
        self._weight = 0.0
        self._centre: float | None = None
        self._curve = (0.0, 0.0)

    def forget(self, rank: int) -> None:
        """A rank is gone."""
        self._usual.pop(rank, None)

    def corrections(self, units: Mapping[int, float]) -> dict[int, float]:
        """By how much longer (logarithm) each rank takes because of its lengths. Empty while unknown."""
        linear, square = self._curve
        if self._centre is None or not (linear or square):
            return {}
        found = {}
        for rank, length in units.items():
            u = log(length) - self._centre
            found[rank] = linear * u + square * u * u
        return found

    def learn(self, units: Mapping[int, float], times: Mapping[int, float]) -> None:
        """Take in the lengths and times of the ranks in a round."""
        both = [rank for rank in units if rank in times]
        if len(both) < 2:
            return
        logs = {rank: log(units[rank]) for rank in both}
        middle = sum(logs.values()) / len(logs)
        if self._centre is None:
            self._centre = middle
        rows = [(rank, logs[rank] - self._centre, log(times[rank])) for rank in both]
        count = len(rows)
        mean_u = sum(u for _, u, _ in rows) / count
        mean_q = sum(u * u for _, u, _ in rows) / count
        mean_t = sum(t for _, _, t in rows) / count
        sums = [0.0] * 5
        self._rounds += 1
        for rank, u, t in rows:
            now = (u - mean_u, u * u - mean_q, t - mean_t)
            usual = self._usual.get(rank)
            if usual is None:
                self._usual[rank] = now
                continue
            du, dq, dt = now[0] - usual[0], now[1] - usual[1], max(-MOST, min(MOST, now[2] - usual[2]))
            weight = max(USUAL_WEIGHT, 1 / (self._rounds + 1))
            self._usual[rank] = (
                usual[0] + weight * du,
                usual[1] + weight * dq,
                usual[2] + weight * dt,
            )
            sums = [sums[0] + du * du, sums[1] + du * dq, sums[2] + dq * dq, sums[3] + du * dt, sums[4] + dq * dt]
        self._sums = [KEEP * old + new for old, new in zip(self._sums, sums, strict=True)]
        self._weight = KEEP * self._weight + count
        if self._rounds >= FIRST_ROUNDS:
            self._curve = self._fitted()

    def _fitted(self) -> tuple[float, float]:
        uu, uq, qq, ut, qt = self._sums
        if uu < LEAST_SPREAD * self._weight:
            return 0.0, 0.0
        determinant = uu * qq - uq * uq
        if determinant <= 1e-3 * uu * qq or qq < LEAST_SPREAD * self._weight:
            linear, square = ut / uu, 0.0
        else:
            linear, square = (ut * qq - qt * uq) / determinant, (uu * qt - uq * ut) / determinant
        return max(-0.5, min(3.0, linear)), max(-0.5, min(0.5, square))
