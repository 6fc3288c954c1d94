"""Tables of many small ranks, read once and kept: opening the files of each rank costs more than its rows.

They are kept in memory, and in the store as one record a table, beside the answers about the run.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import polars as pl
from polars.io.plugins import register_io_source

from stepscope.run.answer_cache import AnswerCache
from stepscope.run.kept_answers import KeptAnswers
from stepscope.run.rank import Rank, read_stacked, stacked
from stepscope.sources.native.library import Refused
from stepscope.sources.native.parquet import packed
from stepscope.store import StoredRecording
from stepscope.tables import RANKS, TABLES
from stepscope.tables.base import with_schema

MOST_CELLS = 8_000_000
"""A table is kept if it has up to this number of cells (about 8 bytes each), of all ranks together."""

LEAST_RANKS = 16
"""Rows of so many ranks are kept in the store as well, chosen by us: fewer are read as fast from their files."""

SHARE = 0.1
"""Share of what may be kept about a run that the rows of one table may take, chosen by us: a file that is full starts
anew, without the answers in it."""

_PIECE_ROWS = 1 << 16
"""Rows are handed over so many at a time if few of them may be wanted."""


class KeptRows:
    """The tables of some ranks, with all their rows.

    Args:
        ranks: The ranks, in order.
        cache: Holds the rows that are kept, like answers.
        kept: Holds those on disk, if there is a store.
    """

    def __init__(self, ranks: Sequence[Rank], cache: AnswerCache, kept: KeptAnswers | None = None) -> None:
        self._ranks = [rank.whole for rank in ranks]
        self._numbers = tuple(rank.rank for rank in ranks)
        self._cache = cache
        self._kept = kept
        self._known: dict[str, tuple[list[Rank], dict[int, tuple[int, int]], bool]] = {}

    def table(self, name: str, ranks: Sequence[int]) -> pl.LazyFrame:
        """A table of some ranks, all of which have it, in order."""
        everyone, places, is_small = self._having(name)
        wanted = {*ranks}
        own = [rank for rank in everyone if rank.rank in wanted] if len(ranks) < len(everyone) else everyone
        key = self._key(name)
        # of a few ranks, reading all would take longer
        if not is_small or (2 * len(own) < len(everyone) and self._cache.known(key) is None):
            return stacked(own, name)
        rows: pl.DataFrame = self._cache.get(key, lambda: self._read(name))
        if own is everyone:
            return rows.lazy()
        runs: list[tuple[int, int]] = []
        for rank in own:
            start, end = places[rank.rank]
            runs[-1:] = [(runs[-1][0], end)] if runs and runs[-1][1] == start else [*runs[-1:], (start, end)]
        return pl.concat([rows.slice(start, end - start) for start, end in runs]).lazy()

    def scan(self, name: str) -> pl.LazyFrame:
        """A table of all ranks that have it, which is read, and kept, when it is asked for."""
        everyone, _, is_small = self._having(name)
        if not is_small or not all(map(_in_small_tables(name), everyone)):
            return stacked(everyone, name)
        known: pl.DataFrame | None = self._cache.known(self._key(name))
        if known is not None:
            return known.lazy()
        record = self._record(name)
        if record is not None:
            schema = TABLES[name].schema
            rows = pl.scan_parquet(io.BytesIO(record), schema=schema, missing_columns="insert", glob=False)
            return rows.select(list(schema))

        def pieces(
            columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            # without waiting for another thread that reads them: it may wait for the one in which Polars calls this
            rows: pl.DataFrame | None = self._cache.known(self._key(name))
            if rows is None:
                rows = self._read_files(name)
                self._cache.keep(self._key(name), rows)
                if self._kept is not None:
                    self._kept.write()
            # without any column, e.g. of a table whose rows a join only repeats, their number would be lost
            wanted = rows if columns is None else rows.select(columns or rows.columns[:1])
            chosen = wanted.head(rows.height if most is None else most)
            if predicate is None:
                yield chosen
                return
            for piece in chosen.iter_slices(_PIECE_ROWS):
                yield piece.filter(predicate)

        return register_io_source(pieces, schema=dict(TABLES[name].schema))

    def _read(self, name: str) -> pl.DataFrame:
        """All rows of a table."""
        record = self._record(name)
        if record is None:
            return self._read_files(name)
        return with_schema(pl.read_parquet(io.BytesIO(record)), TABLES[name].schema)

    def _read_files(self, name: str) -> pl.DataFrame:
        """All rows of a table from the files of the ranks; they are kept."""
        rows = read_stacked(self._having(name)[0], name)
        key = self._record_key(name)
        if key is not None and self._kept is not None:
            record = _parquet(rows)
            if len(record) <= SHARE * self._kept.limit_bytes:
                self._kept.add(key, record)
        return rows

    def _record(self, name: str) -> bytes | None:
        """A Parquet file of all rows of a table, if it is kept; without columns that have no value."""
        key = self._record_key(name)
        found = None if key is None or self._kept is None else self._kept.find(key)
        return None if found is None else found[0]

    def _record_key(self, name: str) -> bytes | None:
        is_kept = self._kept is not None and len(self._having(name)[0]) >= LEAST_RANKS
        return self._kept.rows_key(name, self._numbers) if is_kept and self._kept is not None else None

    def _key(self, name: str) -> tuple[str, str, tuple[int, ...]]:
        return ("rows", name, self._numbers)

    def _having(self, name: str) -> tuple[list[Rank], dict[int, tuple[int, int]], bool]:
        """The ranks that have a table, the first row of each and that after its last, and whether it may be kept."""
        if name not in self._known:
            everyone = [rank for rank in self._ranks if rank.has(name)]
            ends = list(accumulate(rank.rows[name] for rank in everyone))
            places = {rank.rank: (end - rank.rows[name], end) for rank, end in zip(everyone, ends, strict=True)}
            is_small = len(everyone) > 1 and ends[-1] * len(TABLES[name].schema) <= MOST_CELLS
            self._known[name] = everyone, places, is_small and name != RANKS.name
        return self._known[name]


def _parquet(rows: pl.DataFrame) -> bytes:
    filled = rows[[column.name for column in rows if column.null_count() < rows.height]]
    try:
        return packed(filled)
    except Refused:
        file = io.BytesIO()
        filled.write_parquet(file, compression="zstd", compression_level=1, statistics=False)
        return file.getvalue()


def _in_small_tables(name: str) -> Callable[[Rank], bool]:
    """Whether the rows of a table are among the small tables of a rank, so that they are read without a query."""

    def are_there(rank: Rank) -> bool:
        recording = rank.recording_of(name)
        return isinstance(recording, StoredRecording) and all(part.is_small for part in recording.parts_of(name))

    return are_there
