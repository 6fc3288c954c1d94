"""What our functions say, in the words and roundings of MindInsight's answers."""

from __future__ import annotations

from typing import Any

import polars as pl
from differing import Figure

from stepscope.run import Run


class Row(dict[str, Any]):
    """A row of an answer of ours; a column that the answer lacks is unknown."""

    def __missing__(self, column: str) -> None:
        return None


Rows = list[Row]


def rows(run: Run, question: str, **options: Any) -> Rows:
    """The rows of an answer."""
    answer: pl.DataFrame = run.analyse(question, **options)
    return [Row(row) for row in answer.to_dicts()]


def ms(value_ns: float, parts: int = 1) -> Figure:
    """Milliseconds as on the page of steps; averages are of ticks of 10 ns.

    Args:
        value_ns: The time.
        parts: Of how many figures, rounded each, theirs is made.
    """
    return Figure(value_ns / 1e6, 4, slack=1e-5 + (parts - 1) * 0.5e-4)


def us(value_ns: float | None) -> Figure | None:
    """Microseconds as on the pages of operators."""
    return None if value_ns is None else figure(value_ns / 1e3)


def figure(value: float) -> Figure:
    """A figure as on the pages of operators: six decimals below 1, else three."""
    return Figure(value, 6 if abs(value) < 1 else 3)


def percent(part: float, whole: float) -> Figure:
    """A share as on the page of steps, made of rounded times."""
    return Figure(part / whole * 100, 2, slack=1e-2 * 100 / whole * 1e-2)
