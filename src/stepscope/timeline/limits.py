"""Keeping a file small: what tells most is kept, and what is left out is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from stepscope import present

GUESSED_BYTES = {"perfetto": 20.0, "json": 200.0}
"""Bytes of a row in a file of each form, before any was written; measured were 5 to 30, and 130 to 400."""
SHARE = 0.97
"""Part of the limit that estimates may use up."""
PACKED = 5
"""How many times smaller JSON is at least when it is compressed as a whole; measured were 8 to 15."""
ENOUGH_ROWS = 1000
LEAST_BYTES = 2.0


class Budget:
    """How much may be written.

    Args:
        limit_bytes: Of the whole file; None for any size.
        guess: Bytes of a row of which nothing is known.
        known: Bytes of a row of each family, from writing them before.
    """

    def __init__(
        self, limit_bytes: int | None, guess: float, known: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.limit_bytes = limit_bytes
        self._guess, self._known = guess, known
        self._rows, self._bytes = Counter[str](), Counter[str]()
        self.was_spent = False
        """Whether the file became as large as allowed before all was written that was to be."""

    def wrote(self, family: str, rows: int, size_bytes: int) -> None:
        """Learn what rows take."""
        self._rows[family] += rows
        self._bytes[family] += size_bytes

    @property
    def learned(self) -> dict[str, float]:
        """Bytes of a row of each family of which enough was written."""
        return {
            name: max(self._bytes[name] / rows, LEAST_BYTES) for name, rows in self._rows.items() if rows > ENOUGH_ROWS
        }

    def row_bytes(self, family: str) -> float:
        """What a row takes, as far as is known."""
        return self.learned.get(family) or self._known.get(family) or self._guess

    def rows_left(self, family: str, written_bytes: int) -> int | None:
        """How many rows of a family still fit; None for any number."""
        if self.limit_bytes is None:
            return None
        return max(int((self.limit_bytes * SHARE - written_bytes) / self.row_bytes(family)), 0)

    def is_spent(self, family: str, written_bytes: int, rows: int) -> bool:
        """Whether these rows would make the file larger than allowed."""
        if self.limit_bytes is None or not rows:
            return False
        is_spent = written_bytes + rows * self.row_bytes(family) > self.limit_bytes
        self.was_spent |= is_spent
        return is_spent

    def window_rows(self, family: str, most: int) -> int:
        """Rows that are written at once: few in comparison to what is allowed."""
        if self.limit_bytes is None:
            return most
        return max(min(most, int(self.limit_bytes / self.row_bytes(family) / 10)), 1000)


class Everyth:
    """Keeps one row in so many.

    Args:
        every: How many.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self._seen = 0

    def kept(self, where: pl.Series) -> pl.Series:
        """Of the rows where it holds, the first of all and then each n-th, also over several calls."""
        place = where.cum_sum() - 1 + self._seen
        self._seen += int(where.sum())
        is_kept: pl.Series = where & (place % self.every == 0)
        return is_kept


class Longest:
    """Keeps the longest ranges.

    Args:
        durations: Of all ranges, ns; points are null and count as 0.
        rows: How many may be kept, fewer than there are.
    """

    def __init__(self, durations: pl.Series, rows: int) -> None:
        lengths = durations.fill_null(0)
        self.shortest_ns = int(lengths.top_k(rows).min() if rows else lengths.max() + 1)  # type: ignore[arg-type,operator]
        # Of those that are as long as the shortest, as many as still fit, from all of the recording.
        room = rows - int((lengths > self.shortest_ns).sum())
        equal = int((lengths == self.shortest_ns).sum())
        self._equals = Everyth(max(-(-equal // max(room, 1)), 1))

    def kept(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of the next rows that are kept."""
        lengths = rows["duration_ns"].fill_null(0)
        return rows.filter((lengths > self.shortest_ns) | self._equals.kept(lengths == self.shortest_ns))

    @property
    def left_out(self) -> str:
        """What it leaves out."""
        length, every = present.duration(self.shortest_ns), self._equals.every
        return f"ranges shorter than {length}" + (f"; of those that long, one in {every} is kept" if every > 1 else "")
