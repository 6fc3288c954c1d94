"""What the modules of this format share: one rank, its tables, and the numbers that stand for its threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.export.ascend_db.database import Database
from stepscope.export.ascend_db.schema import NO_NUMBER
from stepscope.export.communicators import key_of
from stepscope.export.rank_export import RankExport
from stepscope.export.run_tables import table_of
from stepscope.tables import TABLES

_MOST_NS = 2**63 - 1
_MADE_UP = 1 << 31
"""Numbers of threads that have a name only, or a number that is too large: beyond those of operating systems."""


@dataclass
class RankDatabase:
    """One rank, and the database of its events.

    Args:
        export: The rank.
        out: The database.
    """

    export: RankExport
    out: Database
    left_out: dict[str, int] = field(default_factory=dict)
    """What has no place in the format, and how many rows of it there are."""
    impossible: int = 0
    """Ranges that end before they start, or beyond all times."""
    aliased: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Int64))
    """Ranges of the host with the number of a communication call that are not its launch."""
    _threads: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """The number of the rank."""
        return self.export.rank

    @cached_property
    def process(self) -> int:
        """The process id; the number of the rank if it is not recorded."""
        known = self.export.facts.get("process")
        return known if known is not None and 0 <= known < _MADE_UP else self.rank

    @cached_property
    def device(self) -> int:
        """The device; the number of the rank if it has none."""
        known = self.export.facts.get("device")
        return self.rank if known is None else known

    @cached_property
    def places(self) -> pl.DataFrame:
        """Members of groups: `group`, its `key`, `member` and its `place` in the group, from 0."""
        groups = self.export.rows("groups").select("group", member="members").drop_nulls()
        keys = {group: key_of(group) for group in groups["group"].to_list()}
        listed = (
            groups.explode("member")
            .drop_nulls()
            .with_columns(
                key=pl.col("group").replace_strict(keys, default=None, return_dtype=pl.String),
                place=pl.int_range(pl.len(), dtype=pl.Int64).over("group"),
            )
        )
        return listed.unique(["group", "member"], keep="first", maintain_order=True)

    def has(self, table: str) -> bool:
        """Whether the rank has rows of a table."""
        return self.export.run.has(table)

    def lazy(self, table: str) -> pl.LazyFrame:
        """A table of the rank, to be read a part at a time; empty if it has none."""
        found = table_of(self.export.run, table)
        return pl.LazyFrame(schema=TABLES[table].schema) if found is None else found

    def parts(self, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Rows of a query, a batch at a time."""
        for batch in batches(rows):
            if batch.height:
                yield batch

    def ranges(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with `startNs` and `endNs`. Durations below 0 become 0, and ends beyond int64 the last possible time."""
        duration = pl.col("duration_ns")
        is_possible = (duration >= 0) & (pl.col("start_ns") <= _MOST_NS - duration.clip(lower_bound=0))
        self.impossible += rows.height - int(rows.select(is_possible.sum()).item())
        end = pl.col("start_ns") + duration.clip(lower_bound=0)
        last = pl.when(duration < 0).then("start_ns").otherwise(_MOST_NS)
        return rows.with_columns(startNs=pl.col("start_ns"), endNs=pl.when(is_possible).then(end).otherwise(last))

    def lose(self, what: str, rows: int) -> None:
        """Note that rows have no place in the format."""
        if rows:
            self.left_out[what] = self.left_out.get(what, 0) + rows

    def global_threads(self, rows: pl.DataFrame) -> pl.Series:
        """`globalTid` of the `process` and `thread` of each row: process id << 32 | thread id.

        Threads without a number get one beyond those of operating systems, and processes without one that of the rank.
        """
        places = rows.select("process", "thread").unique(maintain_order=True)
        numbers = [self._global_thread(process, thread) for process, thread in places.iter_rows()]
        numbered = places.with_columns(pl.Series("globalTid", numbers, dtype=pl.Int64))
        on = ["process", "thread"]
        joined = rows.select(on).join(numbered, on=on, how="left", nulls_equal=True, maintain_order="left")
        return joined["globalTid"]

    def _global_thread(self, process: str | None, thread: str | None) -> int:
        number = int(process) if process is not None and process.isdecimal() else -1
        if not 0 < number < _MADE_UP:
            number = self.process
        return number << 32 | self.thread(number, thread)

    def thread(self, process: int, name: str | None) -> int:
        """The number of a thread."""
        if name is None:
            return 0
        if name.isdecimal() and int(name) < _MADE_UP:
            return int(name)
        return self._threads.setdefault((process, name), _MADE_UP + len(self._threads))


def connection(column: str = "correlation") -> pl.Expr:
    """The number that a launch shares with its device work."""
    return pl.col(column).fill_null(NO_NUMBER).alias("connectionId")
