"""What is compared with HTA, value by value, and what excuses a difference."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepscope import Run
from tests.golden_hta.raw_traces import RawRank

FAULTS = {
    "totals as single values": "The ten longest kernels of a type have totals as mean, minimum and maximum.",
    "operator of the same name": "The time of a host operator with the name of a kernel is added to the kernel's.",
    "no spread of one": "The standard deviation of a single value is 0; ours is unknown.",
    "order within a microsecond": "Times are rounded to microseconds, so a start can be counted before its launch.",
    "operators that begin together": "Of operators that begin in the same microsecond the outer gets all launches.",
    "launch not recorded": "Idle time before work whose launch is not in the trace counts as the host's; ours is the "
    "device's if it is short, else unknown.",
    "overlap as idle time": "Work that begins before the last has ended reduces idle time.",
    "driver calls": "Launches by calls of the driver (`cuLaunchKernel`) are left out.",
    "rate of other times": "The rate is the one that the profiler wrote, from times that are not in the trace; ours is "
    "from bytes and recorded times, with its bounds.",
    "communication by name": "Communication without `nccl` in its name, here of symmetric memory, counts as computing.",
}
"""Faults of HTA by name, and why ours is right."""


@dataclass(frozen=True)
class Value:
    """One value of HTA and ours.

    Args:
        of: File and row.
        column: Column.
        theirs: HTA's value; None if it has none.
        ours: Ours; None if it is unknown.
        within: How far both may differ, by rounding.
        fault: Name of the fault that makes it differ.
        right: What the trace says, without our functions; only with a fault.
        wrong: What the fault makes of the trace; only with a fault.
    """

    of: str
    column: str
    theirs: float | None
    ours: float | None
    within: float = 1e-6
    fault: str = ""
    right: float | None = None
    wrong: float | None = None

    @property
    def is_equal(self) -> bool:
        return _same(self.theirs, self.ours, self.within)

    @property
    def is_explained(self) -> bool:
        """Whether the fault makes their value of the trace, and ours is right."""
        named = self.fault in FAULTS
        return named and _same(self.ours, self.right, self.within) and _same(self.theirs, self.wrong, self.within)


def _same(one: float | None, other: float | None, within: float) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=within)


@dataclass
class Given:
    """What a comparison gets: HTA's rows, the run as HTA reads it, and the raw traces."""

    name: str
    file: Path
    run: Run
    raw: Mapping[int, RawRank]

    def rows(self, *, skip: int = 0) -> list[dict[str, str]]:
        """The rows of the file; of two header lines the first is skipped."""
        with self.file.open(newline="", encoding="utf-8") as text:
            for _ in range(skip):
                next(text)
            return list(csv.DictReader(text))


Comparison = Callable[[Given], Iterable[Value]]


def number(text: str) -> float | None:
    """A cell as a number; None if it is empty."""
    return float(text) if text else None


def us(value: int | float | None) -> float | None:
    """ns as us."""
    return None if value is None else value / 1000


def quantile(values: list[float], share: float) -> float:
    """A quantile with linear interpolation."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def described(values: list[float]) -> dict[str, float | None]:
    """Count, mean, standard deviation, extremes and quartiles of some values."""
    count = len(values)
    mean = sum(values) / count
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1)) if count > 1 else None
    quartiles = {f"{share}%": quantile(values, share / 100) for share in (25, 50, 75)}
    return {"count": count, "mean": mean, "std": spread, "min": min(values), **quartiles, "max": max(values)}
