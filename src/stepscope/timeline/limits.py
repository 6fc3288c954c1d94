"""Keeping a file small: what tells most is kept, and what is left out is counted."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

FIRST_GUESS_BYTES = 40.0
"""Bytes of a row in the file before any was written: more than usual, so that the first family fits."""
SHARE = 0.97
"""Part of the limit that estimates may use up."""


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


def shortest_kept(durations: pl.Series, rows: int) -> int | None:
    """The duration from which ranges are kept, so that at most `rows` are; None if all are.

    Args:
        durations: Of all ranges, ns; points are null and count as 0.
        rows: How many may be kept.
    """
    if len(durations) <= rows:
        return None
    lengths = durations.fill_null(0)
    if rows == 0:
        return int(lengths.max() or 0) + 1  # type: ignore[arg-type]
    threshold = int(lengths.top_k(rows).min())  # type: ignore[arg-type]
    # Of equal lengths all or none are kept.
    return threshold if int((lengths >= threshold).sum()) <= rows else threshold + 1
