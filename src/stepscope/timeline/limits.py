"""Keeping a file small: what tells most is kept, and what is left out is counted."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope import present

FIRST_GUESS_BYTES = 40.0
"""Bytes of a row in the file before any was written: more than usual, so that the first family fits."""
SHARE = 0.97
"""Part of the limit that estimates may use up."""
PACKED = 5
"""How many times smaller JSON is at least when it is compressed as a whole; measured were 8 to 15."""


@dataclass
class Budget:
    """How much may still be written.

    Args:
        limit_bytes: Of the whole file; None for any size.
    """

    limit_bytes: int | None
    _rows: int = 0
    _bytes: int = 0

    def wrote(self, rows: int, size_bytes: int) -> None:
        """Learn what rows take."""
        self._rows += rows
        self._bytes += size_bytes

    @property
    def row_bytes(self) -> float:
        """What a row takes, as far as is known."""
        return max(self._bytes / self._rows, 4.0) if self._rows > 1000 else FIRST_GUESS_BYTES

    def rows_left(self, written_bytes: int) -> int | None:
        """How many rows still fit; None for any number."""
        if self.limit_bytes is None:
            return None
        return max(int((self.limit_bytes * SHARE - written_bytes) / self.row_bytes), 0)

    def is_spent(self, written_bytes: int, rows: int) -> bool:
        """Whether these rows would make the file larger than allowed."""
        return self.limit_bytes is not None and written_bytes + rows * self.row_bytes > self.limit_bytes and rows > 0

    def window_rows(self, most: int) -> int:
        """Rows that are written at once: few in comparison to what is allowed."""
        return most if self.limit_bytes is None else max(min(most, int(self.limit_bytes / self.row_bytes / 10)), 1000)


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
