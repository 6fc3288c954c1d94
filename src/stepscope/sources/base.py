"""What a source is: it recognises its inputs by content and turns one input into table rows.

A source knows nothing of analyses, of the store or of other ranks. Adding one touches its own module,
the list in `stepscope.sources`, and its test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import polars as pl

    from stepscope.tables import Table
    from stepscope.tables.issues import Severity


@dataclass(frozen=True)
class Input:
    """One recording of one rank as found on disk.

    Args:
        source: Name of the source that reads it.
        path: What a user would call it: the trace file, or the rank's directory.
        files: Every file that the source reads of it; a change in any of them is a changed input.
        label: Distinguishes inputs of one path, e.g. `rank 3` if one directory holds the files of all ranks.
    """

    source: str
    path: Path
    files: tuple[Path, ...]
    label: str = ""


@dataclass(frozen=True)
class Found:
    """What a source recognised in a directory.

    Args:
        inputs: The recordings, usually one.
        rest: Names of other entries of the directory; other sources may read them.
    """

    inputs: tuple[Input, ...]
    rest: tuple[str, ...] = ()


class Report(Protocol):
    """Takes an issue; see `Sink.issue`."""

    def __call__(
        self,
        severity: Severity,
        file: Path,
        problem: str,
        remedy: str,
        *,
        place: str | None = None,
        lost: int | None = None,
    ) -> None: ...


class Sink(Protocol):
    """Where a source puts what it reads. Rows may come in any number of batches."""

    workers: int
    """How many processes or threads the source may use; 1 if other inputs are read at the same time."""

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """Add rows to `table`. Missing columns are null; `rank` is not given,
        except in `ranks`, as recorded in the input (or null)."""

    @property
    def issue(self) -> Report:
        """Takes what was skipped or guessed. `error`: data lost; `warning`: doubtful; `note`: for information.

        An issue with the name of a table as `place` is the reason why that table is missing."""

    def advance(self, count: int) -> None:
        """Report progress: that many more bytes of the input's files were read."""

    def scratch(self) -> Path:
        """A private directory for intermediate files, removed when the input is done.

        Raises:
            OSError: If the disk is full; the source then works in memory.
        """


PROFILER_REASONS: Mapping[str, str] = {
    "operators": "recorded without CPU activities",
    **dict.fromkeys(("allocations", "memory_curve"), "recorded without profile_memory=True"),
    "flows": "no flows between forward and backward work were recorded",
    "stacks": "recorded without with_stack=True",
}
"""Why a recording of a framework's profiler lacks a table: options that were off. Shared by several sources."""


class Source(Protocol):
    """A reader of one format."""

    name: str
    version: int
    """Raised whenever the rows that it makes change, so that stored rows of older code are not used."""
    family: str
    """Sources of one family may read the ranks of one job, e.g. the two exports of an Ascend profiler."""
    reasons: Mapping[str, str]
    """Table to the usual reason why an input has no rows of it. What is known of one input, it reports as an issue."""
    own_tables: frozenset[str]
    """Tables that few sources fill: they are not missing from the inputs of sources that do not name them here."""

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """Recognise `directory` as a recording (or several, of one rank each), by the names and files in it."""

    def sniff(self, file: Path, head: bytes) -> Input | Found | None:
        """Recognise one file (JSON, CSV, SQLite, Parquet) by its first bytes (inflated if it is gzip, at most 64 KiB).

        One that holds several ranks is an input for each of them, told apart by their labels.
        """

    def read(self, item: Input, sink: Sink) -> None:
        """Read one input into `sink`.

        Damage that leaves something readable is reported with `sink.issue` and skipped.

        Raises:
            UnreadableInput: If nothing of it can be read.
        """
