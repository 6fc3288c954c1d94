"""An operation-level trace as a whole: what its ranks share is found once, not for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import polars as pl

from stepscope.sources.operation_trace.columns import IS_SANE, collected, columns_of, faults, operations
from stepscope.sources.operation_trace.layout import Layout, numbers_of, places_of, steps_of

_MOST_ROWS = 1 << 22
"""Operations of all ranks that are kept in memory while one rank after the other is read; of more, each rank is looked
up in the file."""


@dataclass(frozen=True)
class Trace:
    """A file of operations.

    Args:
        path: The file.
        columns: Its columns.
        layout: What its ranks share.
        kept: All operations that can be used, in order of rank; None if they are too many.
    """

    path: Path
    columns: list[str]
    layout: Layout
    kept: pl.DataFrame | None

    def rows_of(self, rank: int) -> pl.DataFrame:
        """The operations of a rank."""
        if self.kept is None:
            rows = operations(self.path, self.columns).filter(IS_SANE & (pl.col("rank") == rank))
            return collected(rows, self.path)
        first, count = self._places.get(rank, (0, 0))
        return self.kept.slice(first, count)

    def faults(self) -> dict[str, int]:
        """How many operations cannot be used, by reason."""
        return faults(operations(self.path, self.columns), self.path)

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """First row and number of rows of each rank."""
        assert self.kept is not None
        counts = self.kept.group_by("rank").len().sort("rank")
        first = counts.select("rank", pl.col("len").cum_sum() - pl.col("len"), count="len")
        return {rank: (at, count) for rank, at, count in first.rows()}


def trace_of(path: Path) -> Trace:
    """A trace; the last one is kept, as its ranks are read one after the other.

    Raises:
        UnreadableInput: If it is damaged.
        OSError: If it is gone.
    """
    info = path.stat()
    return _read(path, info.st_size, info.st_mtime_ns)


@lru_cache(maxsize=1)
def _read(path: Path, size: int, changed_ns: int) -> Trace:  # noqa: ARG001 - they tell files of one name apart
    columns = columns_of(path)
    rows = operations(path, columns).filter(IS_SANE)
    count = collected(rows.select(pl.len()), path).item()
    kept = collected(rows, path).sort("rank", maintain_order=True) if count <= _MOST_ROWS else None
    used = rows if kept is None else kept.lazy()
    steps, places, numbers = (collected(part, path) for part in (steps_of(used), places_of(used), numbers_of(used)))
    return Trace(path, columns, Layout(steps, places, int(numbers.item())), kept)
