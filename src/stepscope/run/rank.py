"""One rank of a run: its recording and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import StepscopeError, Unavailable
from stepscope.run.supplements import Supplement
from stepscope.selection import Selection
from stepscope.store.recording import Recording, StoredRecording, read_together, scan_together
from stepscope.tables import ISSUES, RANKS, TABLES


class Rank:
    """One rank of a run.

    Args:
        rank: Its global rank in the run.
        origin: Where that number comes from: `content`, `file name` or `numbered`.
        steps: The steps to which its tables are narrowed.
        supplement: What another recording of it supplies.
    """

    def __init__(
        self,
        rank: int,
        origin: str,
        recording: Recording,
        steps: Selection | None = None,
        supplement: Supplement | None = None,
    ) -> None:
        self.rank = rank
        self.recording = recording
        self.steps = steps
        self.supplement = supplement
        self.facts: Mapping[str, Any] = {**recording.facts, "rank": rank, "rank_origin": origin}
        self.rows: Mapping[str, int] = {RANKS.name: 1, **recording.rows}
        """Number of rows of each non-empty table, before steps are selected."""
        if supplement is not None:
            self.rows = {**self.rows, **{name: supplement.recording.rows[name] for name in supplement.tables}}

    def __repr__(self) -> str:
        return f"Rank({self.rank}, {str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The trace file or directory from which it was read."""
        return self.recording.path

    def recording_of(self, name: str) -> Recording:
        """The recording that has a table."""
        supplement = self.supplement
        return self.recording if supplement is None or name not in supplement.tables else supplement.recording

    def has(self, name: str) -> bool:
        """Whether the rank has any rows of a table."""
        return known_table(name) in self.rows

    def table(self, name: str) -> pl.LazyFrame:
        """A table with all its columns, including `rank`.

        Raises:
            Unavailable: If the rank has no rows of it.
        """
        if not self.has(name) and name != ISSUES.name:
            raise Unavailable(f"rank {self.rank} has no `{name}` ({self.path})")
        schema = TABLES[name].schema
        if name == RANKS.name:
            return pl.LazyFrame([dict(self.facts)], schema=schema)
        rows = self.recording_of(name).scan(name).with_columns(rank=pl.lit(self.rank, pl.Int32))
        return narrowed(rows.select(list(schema)), name, self.steps)

    @property
    def supplied_issues(self) -> pl.LazyFrame | None:
        """What is doubtful about the tables that another recording supplies: without what is said of its other tables,
        and without notes."""
        if self.supplement is None or ISSUES.name not in self.supplement.recording.rows:
            return None
        place = pl.col("place").fill_null("")
        others = [name for name in TABLES if name not in self.supplement.tables]
        rows = self.supplement.recording.scan(ISSUES.name).filter(pl.col("severity") != "note", ~place.is_in(others))
        return rows.with_columns(rank=pl.lit(self.rank, pl.Int32)).select(list(ISSUES.schema))

    @property
    def whole(self) -> Rank:
        """The same rank with all its steps."""
        return self._with_steps(None)

    def narrowed(self, steps: Selection) -> Rank:
        """The same rank with its tables narrowed to those of its steps that are chosen."""
        kept = steps if self.steps is None else self.steps & steps
        return self._with_steps(kept)

    def _with_steps(self, steps: Selection | None) -> Rank:
        return Rank(self.rank, self.facts["rank_origin"], self.recording, steps, self.supplement)


def stacked(ranks: Sequence[Rank], name: str) -> pl.LazyFrame:
    """A table of several ranks of one run, in order, with all its columns.

    Raises:
        Unavailable: If one of them has no rows of it.
    """
    if name == RANKS.name:
        return pl.LazyFrame([dict(rank.facts) for rank in ranks], schema=RANKS.schema)
    stored = _stored(ranks, name)
    if not stored:
        return pl.concat([rank.table(name) for rank in ranks])
    rows = scan_together(stored, name).select(list(TABLES[name].schema))
    return narrowed(rows, name, ranks[0].steps)  # the ranks of a run are narrowed to the same steps


def read_stacked(ranks: Sequence[Rank], name: str) -> pl.DataFrame:
    """The same rows of ranks with all their steps, in memory.

    Small tables are read without a query, so that this may be called by one.
    """
    stored = _stored(ranks, name)
    rows = read_together(stored, name) if stored else None
    return stacked(ranks, name).collect() if rows is None else rows


def _stored(ranks: Sequence[Rank], name: str) -> list[tuple[int, StoredRecording]]:
    """The recordings of ranks in the store; none if rows are in memory, or one recording has two names."""
    stored = {
        recording.directory: (rank.rank, recording)
        for rank in ranks
        if isinstance(recording := rank.recording_of(name), StoredRecording) and rank.has(name)
    }
    return [] if len(stored) < max(len(ranks), 2) else list(stored.values())


def narrowed(rows: pl.LazyFrame, name: str, steps: Selection | None) -> pl.LazyFrame:
    """The rows of a table in the chosen steps; all rows if the table has no steps."""
    if steps is None or "step" not in TABLES[name].schema:
        return rows
    return rows.filter(steps.expression("step"))


def known_table(name: str) -> str:
    """`name`, if there is such a table; otherwise raises `StepscopeError`."""
    if name not in TABLES:
        raise StepscopeError(f"there is no table {name!r}. There are: {', '.join(TABLES)}")
    return name
