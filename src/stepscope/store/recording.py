"""One input after reading: its facts and its tables, on disk or in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.paths import shown
from stepscope.store.manifest import Manifest, StoredPart
from stepscope.store.small_tables import Place, read_small_table, scan_small_table
from stepscope.tables import TABLES

_FILE = "stepscope_file"
"""A column's name that no table has."""


class Recording(ABC):
    """One recording of one rank, read and ready to be queried.

    Args:
        source: Name of the source that read it.
        path: What a user would call it, as `shown`.
        files: What was read of it.
        facts: Its row of `ranks`, as the source states it.
        rows: Rows of each table that has any.
    """

    def __init__(
        self, source: str, path: Path, files: tuple[Path, ...], facts: Mapping[str, Any], rows: Mapping[str, int]
    ) -> None:
        self.source = source
        self.path = path
        self.files = files
        self.facts = facts
        self.rows = rows

    def scan(self, table: str) -> pl.LazyFrame:
        """The rows of a table with all its stored columns; empty if there are none."""
        return self._scan(table) if table in self.rows else pl.LazyFrame(schema=TABLES[table].stored_schema)

    @abstractmethod
    def _scan(self, table: str) -> pl.LazyFrame:
        """The rows of a table that has some."""


class StoredRecording(Recording):
    """A recording with its rows in the store."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        rows = {name: table.rows for name, table in manifest.tables.items()}
        super().__init__(manifest.source, Path(manifest.path), manifest.paths(), manifest.facts, rows)
        self.directory = directory
        self.manifest = manifest

    def _scan(self, table: str) -> pl.LazyFrame:
        # Columns without any value are not stored; the schema brings them back as null.
        schema = TABLES[table].stored_schema
        parts = self.parts_of(table)
        if parts[0].is_small:
            return read_small_table([(self.directory, parts[0], None)], schema).lazy()
        files = [self.directory / part.name for part in parts]
        return pl.scan_parquet(files, schema=schema, missing_columns="insert", glob=False)

    def parts_of(self, table: str) -> list[StoredPart]:
        """The parts of a table, in order: Parquet files, or one among the small tables; none if it has no rows."""
        stored = self.manifest.tables.get(table)
        return [] if stored is None else stored.parts


class MemoryRecording(Recording):
    """A recording with its rows in memory: for runs built by Python code, and if no disk is left."""

    def __init__(
        self,
        source: str,
        path: Path,
        files: tuple[Path, ...],
        facts: Mapping[str, Any],
        frames: Mapping[str, pl.DataFrame],
    ) -> None:
        self.frames = {name: frame for name, frame in frames.items() if frame.height}
        rows = {name: frame.height for name, frame in self.frames.items()}
        super().__init__(source, Path(shown(path)), files, facts, rows)

    def _scan(self, table: str) -> pl.LazyFrame:
        return self.frames[table].lazy()


def scan_together(recordings: Sequence[tuple[int, StoredRecording]], table: str) -> pl.LazyFrame:
    """The rows of a table of several recordings, one after the other, with the number of each as `rank`.

    Args:
        recordings: Each with its number; at least one has rows of the table.
        table: The table's name.
    """
    schema = {**TABLES[table].stored_schema, "rank": pl.Int32()}
    places = _places(recordings, table)
    scans = [
        scan_small_table(alike, schema) if are_small else _scan_files(alike, table)
        for are_small, some in groupby(places, key=lambda place: place[1].is_small)
        if (alike := list(some))
    ]
    return scans[0] if len(scans) == 1 else pl.concat(scans)


def read_together(recordings: Sequence[tuple[int, StoredRecording]], table: str) -> pl.DataFrame | None:
    """The same rows at once, with the table's columns in order; None if there are more than small tables have."""
    places = _places(recordings, table)
    are_small = all(part.is_small for _, part, _ in places)
    return read_small_table(places, TABLES[table].schema) if are_small else None


def _places(recordings: Sequence[tuple[int, StoredRecording]], table: str) -> list[Place]:
    return [(own.directory, part, number) for number, own in recordings for part in own.parts_of(table)]


def _scan_files(places: Sequence[Place], table: str) -> pl.LazyFrame:
    """The rows of a table in Parquet files.

    One scan of many files costs a tenth of as many scans, and the rank comes for nothing: Polars keeps the path of a
    file as one value, not as one a row.
    """
    paths = [str(directory / part.name) for directory, part, _ in places]
    numbers = pl.Series([number for *_, number in places], dtype=pl.Int32)
    schema = TABLES[table].stored_schema
    rows = pl.scan_parquet(paths, schema=schema, missing_columns="insert", glob=False, include_file_paths=_FILE)
    place = pl.col(_FILE).cast(pl.Enum(paths)).to_physical()
    return rows.with_columns(rank=pl.lit(numbers).gather(place)).drop(_FILE)
