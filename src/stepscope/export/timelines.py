"""What all timelines have: when the rank computed and communicated, and a size limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from stepscope.analysis.methods.intervals import union
from stepscope.analysis.step.activity import split

SEPARATOR = ",\n"

OVERLAPS: dict[str, pl.Expr] = {
    "computing": pl.col("computing"),
    "communication_alone": pl.col("communication") & ~pl.col("computing"),
    "communication": pl.col("communication"),
    "free": ~(pl.col("computing") | pl.col("communication")),
}


def overlaps(activity: pl.DataFrame, windows: pl.LazyFrame) -> dict[str, pl.DataFrame]:
    """The ranges (`start_ns`, `end_ns`) of one rank in which each of `OVERLAPS` holds.

    Args:
        activity: What the rank was doing when.
        windows: Where to look, as for `split`.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    cut = split(activity, windows).with_columns(end_ns=end).collect().lazy()
    return {part: union(cut.filter(where)).collect() for part, where in OVERLAPS.items()}


class CappedList:
    """The text of a JSON list that ends before it grows beyond a limit, and is valid JSON in any case. Iterate it once.

    Args:
        entries: The entries, each as JSON.
        limit: Most bytes of the text; an empty list is always written.
        opening: What the list begins with.
        closing: What it ends with.
    """

    def __init__(self, entries: Iterable[str], limit: int, opening: str = "[", closing: str = "]") -> None:
        self.written = 0
        """Entries written so far."""
        self.cut = 0
        """Entries that did not fit."""
        self._entries, self._limit = entries, limit
        self._opening, self._closing = opening, closing

    def __iter__(self) -> Iterator[str]:
        left = self._limit - len(self._opening) - len(self._closing)
        for entry in self._entries:
            left -= 0 if self.cut else len(entry.encode()) + len(SEPARATOR)
            if left < 0:
                self.cut += 1
                continue
            yield (SEPARATOR if self.written else self._opening) + entry
            self.written += 1
        yield self._closing if self.written else "[]"
