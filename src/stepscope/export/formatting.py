"""How the classic files write times, shares and rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime

TICK_NS = 10
"""Step traces count in ticks of a 100 MHz clock."""


def ms(ns: float) -> float:
    """Milliseconds, exact to the nanosecond."""
    return round(ns / 1e6, 6)


def us(ns: float) -> float:
    """Microseconds, exact to the nanosecond."""
    return round(ns / 1e3, 3)


def us_text(ns: int) -> str:
    """Microseconds as decimal text; a float would lose the nanoseconds of times since the epoch.

    Examples:
        >>> us_text(1795228828517342796), us_text(5)
        ('1795228828517342.796', '0.005')
    """
    return f"{ns // 1000}.{ns % 1000:03d}"


def ratio(part: float, whole: float) -> float:
    """A share from 0 to 1; 0 of nothing."""
    return round(part / whole, 8) if whole else 0.0


def csv_text(header: str, rows: Iterable[Iterable[object]]) -> str:
    """A CSV file; None is an empty cell."""
    text = io.StringIO()
    text.write(header + "\n")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def clock(ns: float | None) -> str:
    """Local date and time to the second, as `profiler_info` has it; empty if unknown."""
    return "" if ns is None else datetime.fromtimestamp(ns / 1e9).strftime("%Y-%m-%d %H:%M:%S")
