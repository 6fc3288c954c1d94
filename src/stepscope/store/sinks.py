"""Where sources write: Parquet parts in the store, or frames in memory. Both keep to the `Sink` contract."""

from __future__ import annotations

import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import polars as pl

from stepscope.paths import shown
from stepscope.store.manifest import StoredPart, StoredTable
from stepscope.store.small_tables import SMALL_BYTES, write_small_tables
from stepscope.tables import ISSUES, RANKS, Table
from stepscope.tables.issues import Issue, Severity, issue_rows

Advance = Callable[[int], None]
WriteRows = Callable[[pl.DataFrame, Path], None]
"""Writes a frame as a Parquet file."""

_MAX_ISSUES = 1000
_PART_BYTES = 8 << 20
_BUFFER_BYTES = 8 << 20
_UNKNOWN = Path("(unknown file)")


class StoreError(Exception):
    """The store could not take rows: no room, no rights. No `OSError`, lest a reader mistakes it for its own."""


class _Sink:
    """What both kinds of sink share: checking rows, collecting issues and the facts of the rank."""

    def __init__(
        self, source: str, workers: int, advance: Advance | None, path: Path, directory: Path | None = None
    ) -> None:
        self.workers = workers
        self._scratch_parent = directory
        self._scratch: list[Path] = []
        self._advance = advance
        self._path = path
        self.facts: dict[str, Any] = dict.fromkeys(column.name for column in RANKS.columns)
        self.facts["format"] = source
        self._issues: list[Issue] = []
        self._unlisted = 0
        self._refused: dict[str, tuple[int, str]] = {}
        """How many rows of a table did not fit, and what is wrong with one of them."""

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """Add rows to `table`. Those that it refuses are left out, and one issue at the end counts them.

        Raises:
            ValueError: For a column that the table does not have.
        """
        if frame.is_empty():
            return
        is_rank = table.name == RANKS.name
        fitting = table.facts(frame) if is_rank else table.fitting(frame)
        if fitting.lost:  # the first refused row is the example
            lost, example = self._refused.get(table.name, (0, fitting.example))
            self._refused[table.name] = (lost + fitting.lost, example)
        if is_rank:
            self._learn(fitting.rows)
        elif fitting.rows.height:
            self._add(table, fitting.rows)

    def issue(
        self,
        severity: Severity,
        file: Path,
        problem: str,
        remedy: str,
        *,
        place: str | None = None,
        lost: int | None = None,
    ) -> None:
        """Note what was skipped or guessed; after a thousand, the rest is only counted."""
        if len(self._issues) >= _MAX_ISSUES:
            self._unlisted += 1
            return
        self._issues.append(Issue(severity, shown(file), problem, remedy, place, lost))

    def advance(self, count: int) -> None:
        """Report progress: that many more bytes of the input's files were read."""
        if self._advance is not None:
            self._advance(count)

    def scratch(self) -> Path:
        """A private directory for intermediate files, removed when the input is done."""
        self._scratch.append(Path(tempfile.mkdtemp(prefix="stepscope-", dir=self._scratch_parent)))
        return self._scratch[-1]

    def discard(self) -> None:
        """Remove the intermediate files."""
        for directory in self._scratch:
            shutil.rmtree(directory, ignore_errors=True)

    def _write_issues(self) -> None:
        for name, (lost, example) in self._refused.items():
            what = "values" if name == RANKS.name else "rows"
            self.issue(
                "error",
                self._path,
                f"{lost} {what} do not match the table `{name}` and are left out ({example})",
                "Copy the file again, or record again; everything else is read.",
                place=name,
                lost=lost,
            )
        self._refused = {}
        if self._unlisted:
            more = f"{self._unlisted} more issues of these kinds are not listed"
            self._issues.append(replace(self._issues[-1], place=None, problem=more, lost=None))
        if self._issues:
            self._add(ISSUES, issue_rows(self._issues, with_rank=False))
        self._issues = []

    def _learn(self, rows: pl.DataFrame) -> None:
        """Keep the first stated value of each fact."""
        for name, values in rows.to_dict(as_series=False).items():
            stated = next((value for value in values if value is not None), None)
            if stated is not None and (self.facts[name] is None or name == "format"):
                self.facts[name] = stated

    @abstractmethod
    def _add(self, table: Table, frame: pl.DataFrame) -> None:
        """Take rows that fit the table."""


class StoreSink(_Sink):
    """Writes each table as Parquet parts into a directory; holds some 8 MiB of rows back.

    With several workers a part is written by a thread while the source goes on; at most one is under way.

    Args:
        directory: Where the parts go; private to this sink until the input is done.
        source: Name of the source that writes.
        workers: How many processes or threads the source may use.
        advance: Called with the number of bytes read since the last call.
        path: What a user would call the input; the file of issues about rows that a table refuses.
        write: Writes the parts.
    """

    def __init__(
        self,
        directory: Path,
        source: str,
        workers: int = 1,
        advance: Advance | None = None,
        path: Path = _UNKNOWN,
        write: WriteRows | None = None,
    ) -> None:
        super().__init__(source, workers, advance, path, directory)
        self._write_rows = write_compressed if write is None else write
        self.directory = directory
        self._buffers: dict[str, list[pl.DataFrame]] = {}
        self._buffered: dict[str, int] = {}
        self._parts: dict[str, list[StoredPart]] = {}
        self._rows: dict[str, int] = {}
        self._failure: StoreError | None = None
        self._writer = ThreadPoolExecutor(1) if workers > 1 else None
        self._writing: Future[None] | None = None

    def close(self) -> dict[str, StoredTable]:
        """Write the rest and return what was written.

        Raises:
            StoreError: If any of the rows could not be written, also earlier on.
        """
        self.discard()
        self._write_issues()
        try:
            small = [name for name, size in self._buffered.items() if size <= SMALL_BYTES and name not in self._parts]
            for name in [name for name in self._buffers if name not in small]:
                self._flush(name)
            self._await_writer()
            self._write_small(small)
        finally:
            if self._writer is not None:
                self._writer.shutdown()
        self.raise_failure()
        return {name: StoredTable(rows, self._parts[name]) for name, rows in self._rows.items()}

    def raise_failure(self) -> None:
        """Raise `StoreError` again if rows could not be written, for a reader may have swallowed it."""
        if self._failure is not None:
            raise self._failure

    def _add(self, table: Table, frame: pl.DataFrame) -> None:
        name = table.name
        self._buffers.setdefault(name, []).append(frame)
        self._buffered[name] = self._buffered.get(name, 0) + int(frame.estimated_size())
        self._rows[name] = self._rows.get(name, 0) + frame.height
        if self._buffered[name] >= _PART_BYTES:
            self._flush(name)
        elif sum(self._buffered.values()) >= _BUFFER_BYTES:
            self._flush(max(self._buffered, key=lambda n: self._buffered[n]))

    def _flush(self, name: str) -> None:
        """Write the rows held back for a table as its next part."""
        self._await_writer()
        frame = pl.concat(self._buffers.pop(name), rechunk=False)
        self._buffered.pop(name)
        if self._writer is None:
            self._write_part(name, frame)
            self.raise_failure()
        else:
            self._writing = self._writer.submit(self._write_part, name, frame)

    def _write_small(self, names: Sequence[str]) -> None:
        """Write the tables that have few rows."""
        frames = {name: _with_values(pl.concat(self._buffers.pop(name))) for name in names}
        try:
            parts = write_small_tables(self.directory, frames)
        except (OSError, pl.exceptions.PolarsError) as error:
            self._failure = StoreError(str(error))
        else:
            self._parts |= {name: [part] for name, part in parts.items()}

    def _await_writer(self) -> None:
        """Let the part that is under way be finished."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None
        self.raise_failure()

    def _write_part(self, name: str, frame: pl.DataFrame) -> None:
        parts = self._parts.setdefault(name, [])
        file = self.directory / (f"{name}.parquet" if not parts else f"{name}.{len(parts)}.parquet")
        try:
            self._write_rows(_with_values(frame), file)
            file.chmod(0o600)
            parts.append(StoredPart(file.name, file.stat().st_size))
        except (OSError, pl.exceptions.PolarsError) as error:
            self._failure = StoreError(str(error))


def write_compressed(frame: pl.DataFrame, file: Path | IO[bytes]) -> None:
    """Write a Parquet file by Polars, which takes columns of all types."""
    # zstd 1 costs the CPU time of lz4 on such columns and makes files less than half as large.
    frame.write_parquet(file, compression="zstd", compression_level=1, statistics=False)


def _with_values(frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` without columns that hold no value; one is kept at least, for it carries the number of rows."""
    rows = frame.height
    counts = zip(frame.columns, frame.null_count().row(0), strict=True) if rows else ()
    names = [name for name, nulls in counts if nulls < rows]
    return frame if len(names) == frame.width else frame[names or frame.columns[:1]]


class MemorySink(_Sink):
    """Keeps the rows in memory."""

    def __init__(self, source: str, workers: int = 1, advance: Advance | None = None, path: Path = _UNKNOWN) -> None:
        super().__init__(source, workers, advance, path)
        self._frames: dict[str, list[pl.DataFrame]] = {}

    def close(self) -> dict[str, pl.DataFrame]:
        """The rows of each table that has any."""
        self.discard()
        self._write_issues()
        return {name: pl.concat(frames) for name, frames in self._frames.items()}

    def _add(self, table: Table, frame: pl.DataFrame) -> None:
        self._frames.setdefault(table.name, []).append(frame)
