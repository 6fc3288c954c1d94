"""Tables of many small ranks, read once and kept in memory: opening the files of each rank costs more than its rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import polars as pl

from stepscope.run.answer_cache import AnswerCache
from stepscope.run.rank import Rank, stacked
from stepscope.tables import RANKS, TABLES

MOST_CELLS = 8_000_000
"""A table is kept if it has up to this number of cells (about 8 bytes each), of all ranks together."""


class KeptRows:
    """The tables of some ranks, with all their rows.

    Args:
        ranks: The ranks, in order.
        cache: Holds the rows that are kept, like answers.
    """

    def __init__(self, ranks: Sequence[Rank], cache: AnswerCache) -> None:
        self._ranks = [rank.whole for rank in ranks]
        self._numbers = tuple(rank.rank for rank in ranks)
        self._cache = cache
        self._known: dict[str, tuple[list[Rank], dict[int, tuple[int, int]], bool]] = {}

    def table(self, name: str, ranks: Sequence[int]) -> pl.LazyFrame:
        """A table of some ranks, all of which have it, in order."""
        everyone, places, is_small = self._having(name)
        own = [rank for rank in everyone if rank.rank in {*ranks}] if len(ranks) < len(everyone) else everyone
        key = ("rows", name, self._numbers)
        # of a few ranks, reading all would take longer
        if not is_small or (2 * len(own) < len(everyone) and self._cache.known(key) is None):
            return stacked(own, name)
        rows: pl.DataFrame = self._cache.get(key, lambda: stacked(everyone, name).collect())
        if own is everyone:
            return rows.lazy()
        runs: list[tuple[int, int]] = []
        for rank in own:
            start, end = places[rank.rank]
            runs[-1:] = [(runs[-1][0], end)] if runs and runs[-1][1] == start else [*runs[-1:], (start, end)]
        return pl.concat([rows.slice(start, end - start) for start, end in runs]).lazy()

    def _having(self, name: str) -> tuple[list[Rank], dict[int, tuple[int, int]], bool]:
        """The ranks that have a table, the first row of each and that after its last, and whether it may be kept."""
        if name not in self._known:
            everyone = [rank for rank in self._ranks if rank.has(name)]
            ends = list(accumulate(rank.rows[name] for rank in everyone))
            places = {rank.rank: (end - rank.rows[name], end) for rank, end in zip(everyone, ends, strict=True)}
            is_small = len(everyone) > 1 and ends[-1] * len(TABLES[name].schema) <= MOST_CELLS
            self._known[name] = everyone, places, is_small and name != RANKS.name
        return self._known[name]
