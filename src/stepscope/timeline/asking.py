"""The rows of families: some ranks and a window of time after the other, on the common clock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from itertools import zip_longest

import polars as pl

from stepscope.errors import Cancelled, StepscopeError
from stepscope.plugins import FAILURES
from stepscope.run import Run
from stepscope.tables import TABLES
from stepscope.timeline.clocks import Clocks
from stepscope.timeline.left_out import LeftOut
from stepscope.timeline.limits import Budget
from stepscope.timeline.options import TimelineOptions
from stepscope.timeline.tracks.base import JOB, RANGE_COLUMNS, SAMPLE_COLUMNS, TABLE, Family, Part
from stepscope.timeline.writing.base import flow_columns

WINDOW_ROWS = 500_000
"""Rows of a rank that are written at once, in some 200 MB."""
ROWS_AT_ONCE = 250_000
"""Rows of ranks that are asked together."""
RANKS_AT_ONCE = 64


class Asking:
    """Asks families for their rows.

    Args:
        run: The run, narrowed to what is shown.
        options: What is shown.
        clocks: What to subtract from times.
        budget: How much may be written at once.
        left: Where failures of families are noted.
    """

    def __init__(self, run: Run, options: TimelineOptions, clocks: Clocks, budget: Budget, left: LeftOut) -> None:
        self._run, self._options, self._clocks, self._budget, self._left = run, options, clocks, budget, left
        self._ranks = [each.rank for each in run.ranks]

    def parts(self, family: Family) -> Iterator[Part]:
        """Some ranks after the other: many small ones at once, large ones alone."""
        run = self._run
        held: list[int] = []
        rows = 0
        groups = []
        for rank in run.ranks:
            # What is asked whole may be an answer made of any rows of the rank.
            own = sum(rank.rows.get(name, 0) for name in family.paged or rank.rows)
            if held and (rows + own > ROWS_AT_ONCE or len(held) >= RANKS_AT_ONCE):
                groups.append(held)
                held, rows = [], 0
            held.append(rank.rank)
            rows += own
        groups.append(held)
        for group in groups:
            alone = len(groups) == 1
            part = run if alone else run.select(ranks=group)
            yield Part(
                part,
                self._options,
                job=None if alone else run,
                shifts_ns=self._clocks.by_rank,
            )

    def windows(self, family: Family, part: Part) -> Iterator[tuple[pl.DataFrame, int | None]]:
        """The rows of some ranks, a window of time after the other, each with the start of the next one.

        A family that fails costs only its own rows, unless errors are to be seen (`--debug`).
        """
        try:
            cuts = self._cuts(family, part)
            before: dict[str, pl.Series] = {}
            for window in zip_longest([None, *cuts], cuts):
                found = family.rows(part.within(window, family.paged) if cuts else part)
                if found is None:
                    return
                rows = _with_new_arrows(self._checked(family, found.collect()), before)
                until = window[1]
                if until is not None:
                    until -= self._clocks.of(part.ranks[0], family.tables)
                if rows.height or cuts:
                    yield rows, until
        except (*FAILURES, pl.exceptions.PanicException) as error:
            if os.environ.get("STEPSCOPE_DEBUG") or isinstance(error, Cancelled):
                raise
            why = str(error) if isinstance(error, StepscopeError) else f"{type(error).__name__}: {error}"
            self._left.add(family.title, 0, f"it failed: {why}", failed=True)

    def _cuts(self, family: Family, part: Part) -> list[int]:
        """Where windows of a rank with many rows begin, but for the first one."""
        if len(part.ranks) > 1 or not family.paged:
            return []
        if len({self._clocks.of(part.ranks[0], (name,)) for name in family.paged}) > 1:  # they share no window
            return []
        tables = [part.table(name).select("start_ns") for name in family.paged if part.has(name)]
        if sum(part.run.ranks[0].rows.get(name, 0) for name in family.paged) <= WINDOW_ROWS or not tables:
            return []
        times = pl.concat(pl.collect_all(tables)).to_series().drop_nulls().sort()
        every = self._budget.window_rows(family.name, WINDOW_ROWS)
        cuts: list[int] = times.gather_every(every).unique(maintain_order=True).to_list()
        return cuts[1:]

    def _shifted(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows on the common clock, each moved as the table is from which its time comes."""
        ranks, key = [*self._ranks, JOB], ["rank"]
        shifts = self._clocks.frame(ranks, family.tables)
        if TABLE in rows.columns:
            of_tables = [self._clocks.frame(ranks, (name,)).with_columns(table=pl.lit(name)) for name in family.tables]
            shifts, key = pl.concat(of_tables), ["rank", TABLE]
        moved = rows.join(shifts, on=key, how="inner", maintain_order="left")
        return moved.with_columns(pl.col("start_ns") - pl.col("shift_ns")).drop("shift_ns", TABLE, strict=False)

    def _checked(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the columns that all have, on the common clock."""
        declared = SAMPLE_COLUMNS if family.shape == "samples" else RANGE_COLUMNS
        rows = rows.cast({name: kind for name, kind in declared.items() if name in rows.columns})
        rows = self._shifted(family, rows)
        if family.shape == "samples":
            rows = self._in_steps(family, rows)
            return self._in_window(rows.filter(pl.col("value").is_not_null()), pl.col("start_ns"))
        return self._in_window(rows, pl.col("start_ns") + pl.col("duration_ns").fill_null(0).clip(lower_bound=0))

    def _in_steps(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Samples in the time of the chosen steps, where their tables do not say in which step they are."""
        has_steps = any("step" in TABLES[name].schema for name in family.tables)
        if self._chosen_steps is None or has_steps:
            return rows
        placed = rows.join(self._chosen_steps, on="rank", how="left", maintain_order="left")
        is_moved = pl.col("rank").is_in([rank for rank, name in self._clocks.by_table if name in family.tables])
        inside = pl.col("start_ns").is_between("from_ns", "to_ns") | is_moved
        return placed.filter(inside).drop("from_ns", "to_ns")

    @cached_property
    def _chosen_steps(self) -> pl.DataFrame | None:
        """When the chosen steps of each rank begin and end, by the common clock: `rank`, `from_ns`, `to_ns`; None if
        all are chosen."""
        if all(each.steps is None for each in self._run.ranks) or not self._run.has("steps"):
            return None
        steps = self._run.table("steps").group_by("rank")
        spans = steps.agg(
            from_ns=pl.min_horizontal("start_ns", "window_start_ns").min(),
            to_ns=pl.max_horizontal("end_ns", "window_end_ns").max(),
        ).collect()
        shifts = self._clocks.frame(self._ranks, ("steps",))
        return spans.join(shifts, on="rank").select("rank", pl.col("from_ns", "to_ns") - pl.col("shift_ns"))

    def _in_window(self, rows: pl.DataFrame, end: pl.Expr) -> pl.DataFrame:
        """The rows that overlap the window of time that is wanted."""
        first, last = self._options.window_ns or (None, None)
        rows = rows if first is None else rows.filter(end >= first)
        return rows if last is None else rows.filter(pl.col("start_ns") <= last)


def _with_new_arrows(rows: pl.DataFrame, before: dict[str, pl.Series]) -> pl.DataFrame:
    """Rows without the arrows whose end is in the window before, which is noted for the next one: each has one tail and
    one head, and the work of one launch lies close together."""
    for column in flow_columns(rows):
        arrows = rows[column]
        if column in before:
            known = pl.col(column).is_in(before[column].implode())
            rows = rows.with_columns(pl.when(~known).then(column).alias(column))
        before[column] = arrows.drop_nulls()
    return rows
