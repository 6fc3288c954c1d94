"""What a family of tracks is, and what it is made of.

A family is declared once: which ranges or samples it shows, of which tables and answers, on which tracks. It knows no
file format; a writer knows no family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import polars as pl

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.selection import parse_selection
from stepscope.tables import TABLES
from stepscope.timeline.options import Kind, TimelineOptions

T = TypeVar("T")

Shape = Literal["ranges", "samples"]

RANGE_COLUMNS: Mapping[str, Any] = {
    "rank": pl.Int32,
    "track": pl.String,
    "order": pl.Int64,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "name": pl.String,
    "category": pl.String,
}
"""What the rows of a family of ranges have: the track's title, unique in its rank and family; its place among them; the
duration is null for a point in time. All other columns are arguments of the range, or flows."""

SAMPLE_COLUMNS: Mapping[str, Any] = {
    "rank": pl.Int32,
    "track": pl.String,
    "order": pl.Int64,
    "start_ns": pl.Int64,
    "value": pl.Float64,
}
"""What the rows of a family of counters have: a value holds until the next one on its track."""

TABLE = "table"
"""Where the times of a family come from several tables: the column that says from which, as these may have different
clocks. It is no argument."""

JOB = -1
"""`rank` of rows that are about the whole job."""

AS_STORED = "light_ranges"
"""Table with all ranges of a rank as they are stored; others, which analyses use, have some of them once more."""

FLOW, FLOW_OUT, FLOW_IN = "flow_", "flow_out_", "flow_in_"
"""How columns begin that say which arrow (UInt64) a range is the tail (`out`) or head (`in`) of; null for none. The
rest of the column's name says what the arrow means."""


@dataclass(frozen=True)
class Family:
    """A family of tracks.

    Args:
        name: Its name.
        title: What a viewer calls it.
        doc: What it shows.
        kind: `summary` if it is part of the summary, too.
        rows: Its rows of some ranks (see `RANGE_COLUMNS`, `SAMPLE_COLUMNS`); None if there are none.
        shape: Ranges, or samples of counters.
        tables: The tables from which its times come.
        paged: Those of them whose rows may be too many for memory; they are then asked a window of time at a time.
        priority: What is kept first if a file must stay small: the lowest numbers.
        single: It is one track, and no group of tracks.
        wanted: Whether these options ask for it.
    """

    name: str
    title: str
    doc: str
    kind: Kind
    rows: Callable[[Part], pl.LazyFrame | None]
    shape: Shape = "ranges"
    tables: tuple[str, ...] = ()
    paged: tuple[str, ...] = ()
    priority: int = 5
    single: bool = False
    wanted: Callable[[TimelineOptions], bool] = lambda _: True


@dataclass(frozen=True)
class Part:
    """Some ranks of a run, and a window of time, for which a family is asked.

    Args:
        run: The run, narrowed to these ranks.
        job: The run with all ranks that are shown; None if these are all.
        options: What the timeline shows.
        window: Tables that a family pages have only rows that start in it: `[from, to)`; None for all.
        paged: These tables.
        shifts_ns: What is subtracted from the times of a rank, so that all are on one clock; 0 for others.
    """

    run: Run
    options: TimelineOptions
    job: Run | None = None
    window: tuple[int | None, int | None] | None = None
    paged: tuple[str, ...] = ()
    shifts_ns: Mapping[int, int] = field(default_factory=dict)
    _found: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def ranks(self) -> list[int]:
        """Its ranks."""
        return [each.rank for each in self.run.ranks]

    def within(self, window: tuple[int | None, int | None], paged: tuple[str, ...]) -> Part:
        """The same in a window of time."""
        return replace(self, window=window, paged=paged)

    def once(self, find: Callable[[Part], T]) -> T:
        """What a function finds out about these ranks, whatever the window of time; asked once."""
        if find not in self._found:
            self._found[find] = find(self.within((None, None), ()))
        found: T = self._found[find]
        return found

    @property
    def whole(self) -> Part:
        """All ranks that are shown."""
        return self if self.job is None else replace(self, run=self.job, job=None, window=None, _found={})

    @property
    def is_first(self) -> bool:
        """Whether it has the first of all ranks that are shown: what is about the job is asked once."""
        return self.job is None or self.job.ranks[0].rank in self.ranks

    def has(self, name: str) -> bool:
        """Whether any rank has rows of a table."""
        return self.run.has(name)

    def table(self, name: str) -> pl.LazyFrame:
        """A table; empty, with its columns, if no rank has it."""
        if not self.run.has(name):
            return pl.LazyFrame(schema={"rank": pl.Int32, **TABLES[name].schema})
        table = self._of_graphs(self.run.table(name))
        if self.window is None or name not in self.paged:
            return table
        start, end = self.window
        for condition in (
            None if start is None else pl.col("start_ns") >= start,
            None if end is None else pl.col("start_ns") < end,
        ):
            table = table if condition is None else table.filter(condition)
        return table

    def _of_graphs(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows without those of steps that are of other graphs than the wanted ones: a step may be of one on a rank,
        and of another one elsewhere."""
        if self.options.graphs is None or not {"rank", "step"} <= {*rows.collect_schema().names()}:
            return rows
        others = self.once(_of_other_graphs)
        return (
            rows.join(others.lazy(), on=["rank", "step"], how="anti", maintain_order="left") if others.height else rows
        )

    def answer(self, question: str | Callable[..., pl.DataFrame], **options: Any) -> pl.DataFrame | None:
        """The answer to a question, or of a function that asks like one, about these ranks; None if there is none."""
        try:
            found: pl.DataFrame = self.run.analyse(question, **options)
        except Unavailable:
            return None
        found = self._of_graphs(found.lazy()).collect() if self.options.graphs is not None else found
        if self.run.whole is self.run or "rank" not in found.columns:
            return found
        return found.filter(pl.col("rank").is_in(self.ranks))


def _of_other_graphs(part: Part) -> pl.DataFrame:
    """The `rank` and `step` of what is of another graph than those that are wanted."""
    chosen = parse_selection(part.options.graphs, "graphs")
    if chosen is None or not part.run.has("steps"):
        return pl.DataFrame(schema={"rank": pl.Int32, "step": pl.Int32})
    steps = part.run.table("steps").select("rank", "step", "graph")
    return steps.filter(~chosen.expression("graph").fill_null(True)).select("rank", "step").unique().collect()


def drawn_here(part: Part, name: str) -> pl.LazyFrame:
    """A table without ranks whose ranges are drawn as they are stored (`tracks/light.py`)."""
    as_stored = [each.rank for each in part.run.ranks if each.has(AS_STORED)]
    rows = part.table(name)
    return rows.filter(~pl.col("rank").is_in(as_stored)) if as_stored else rows
