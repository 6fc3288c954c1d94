"""Units of axes, numbers as short as they may be, and texts that Plotly shows as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from stepscope.present import printable

DIGITS = 6
"""Significant digits of numbers in a figure: more than anybody sees, few enough to keep it small."""

LONGEST = 48
"""Characters of a name beside a mark; of longer ones the middle is left out."""

_DECIMAL = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_LADDERS: dict[str, tuple[tuple[float, str], ...]] = {
    "_ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")),
    "_bytes_per_s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "_bytes": tuple((factor, f"{prefix}B") for factor, prefix in _DECIMAL),
    "flops_per_s": tuple((f, f"{p}FLOP/s") for f, p in ((1e15, "P"), (1e12, "T"), *_DECIMAL)),
    "flops": tuple((f, f"{p}FLOP") for f, p in ((1e15, "P"), (1e12, "T"), *_DECIMAL)),
    "_ratio": ((0.01, "%"),),
}
"""Units by the suffix of a column, the largest first: those of `stepscope.present`, one for a whole axis."""


FEW = 4
"""Bars up to which each would be as wide as a page, so that they stand apart."""

ROOM = 1.5
"""Length of an axis over that of its longest bar, so that the text beside the bar fits on narrow pages too."""


MOST_TICKS = 20
"""Whole numbers along an axis up to which each has its tick."""


def whole_ticks(values: pl.Series) -> dict[str, Any]:
    """Ticks of an axis of steps or batches: at each number if there are few, else where Plotly puts them.

    What counts is from where to where they go: a browser draws all ticks between two steps that are far apart.
    """
    low, high = values.min(), values.max()
    few = isinstance(low, int) and isinstance(high, int) and high - low < MOST_TICKS
    return {"tickformat": "d", **({"dtick": 1} if few else {})}


@dataclass(frozen=True)
class Unit:
    """The unit of an axis: numbers are divided by the factor."""

    factor: float
    name: str

    def of(self, values: Iterable[float | None]) -> list[float | int | None]:
        """Numbers in this unit."""
        return short(None if value is None else value / self.factor for value in values)

    @property
    def after(self) -> str:
        """What stands after a number."""
        return f" {self.name}" if self.name else ""


def unit_of(column: str, values: pl.Series | Iterable[float | None]) -> Unit:
    """The unit in which the greatest of a column's values reads well; that of `present.cell` for this value."""
    greatest = max((abs(value) for value in values if value is not None), default=0.0)
    for suffix, ladder in _LADDERS.items():
        if column.endswith(suffix):
            return next((Unit(*step) for step in ladder if greatest >= step[0] * 0.9999), Unit(*ladder[-1]))
    return Unit(1.0, "")


def short(values: Iterable[float | None], digits: int = DIGITS) -> list[float | int | None]:
    """Numbers without superfluous digits, whole ones as integers."""
    return [None if value is None else _short(value, digits) for value in values]


def _short(value: float, digits: int) -> float | int | None:
    if not isfinite(value):
        return None
    cut = float(f"{value:.{digits}g}")
    return int(cut) if cut.is_integer() and abs(cut) < 2**53 else cut


def shortened(text: Any, longest: int = LONGEST) -> str:
    """A text without its middle if it is long."""
    whole = printable(str(text))
    if len(whole) <= longest:
        return whole
    half = (longest - 1) // 2
    return f"{whole[:half]}…{whole[-half:]}"


def label(text: Any, longest: int = LONGEST) -> str:
    """A text that Plotly shows as it is, although it interprets tags, entities and formulas between `$`.

    It also interprets `%{...}` in templates of hover texts, so no name of a recording may stand in a template itself.

    Examples:
        >>> label("<b>a&b")
        '&lt;b&gt;a&amp;b'
    """
    escaped = shortened(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("$", "&#36;")


def labels(texts: Iterable[Any], longest: int = LONGEST) -> list[str]:
    """Texts beside marks; those that become alike when shortened get a number."""
    seen: dict[str, int] = {}
    found = []
    for text in texts:
        made = label("-" if text is None else text, longest)
        seen[made] = seen.get(made, 0) + 1
        found.append(made if seen[made] == 1 else f"{made} ({seen[made]})")
    return found


def named_ticks(names: Sequence[str]) -> dict[str, Any]:
    """An axis on which marks stand at 0, 1, 2... and have these names."""
    return {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": list(names)}
