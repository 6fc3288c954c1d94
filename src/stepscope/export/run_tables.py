"""The tables of a run as exports have them: narrowed as the run is, with iterations as steps where none are marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl
from polars.io.plugins import register_io_source

from stepscope.analysis.methods.batches import batches
from stepscope.run import Run
from stepscope.run.iterations import Iterations, by_iterations
from stepscope.run.rank import Rank, narrowed
from stepscope.tables import ISSUES, TABLES


def table_of(run: Run, name: str, ranks: Sequence[Rank] | None = None) -> pl.LazyFrame | None:
    """A table of some ranks, in their order, to be read a part at a time.

    Args:
        run: The run.
        name: The table.
        ranks: Of its ranks; None for all, with what concerns the run as a whole.

    Returns:
        The rows with all columns; None if no rank has any. Of a selection of steps there may be none left.
    """
    if name == ISSUES.name and ranks is None:
        return run.issues.lazy() if run.issues.height else None
    having = [rank for rank in (run.ranks if ranks is None else ranks) if rank.has(name)]
    if not having:
        return None
    if run.iterations is None or "step" not in TABLES[name].schema:
        return run.table(name) if ranks is None else pl.concat([rank.table(name) for rank in having])
    parts = partial(_by_iterations, having, name, run.iterations)
    return register_io_source(partial(_given, parts), schema=dict(TABLES[name].schema))


def _by_iterations(ranks: Sequence[Rank], name: str, iterations: Iterations) -> Iterator[pl.DataFrame]:
    """The rows of ranks that mark no steps, a batch at a time: numbering a whole table would need it in memory."""
    if name == "steps":
        rows = by_iterations(ranks[0].whole.table(name), ranks, name, iterations.steps)
        yield narrowed(rows, name, ranks[0].steps).collect()
        return
    for rank in ranks:
        for batch in batches(rank.whole.table(name)):
            yield narrowed(by_iterations(batch.lazy(), [rank], name, iterations.steps), name, rank.steps).collect()


def _given(
    parts: partial[Iterator[pl.DataFrame]],
    columns: list[str] | None,
    predicate: pl.Expr | None,
    most: int | None,
    _: int | None,
) -> Iterator[pl.DataFrame]:
    """What Polars asks a source for: some columns of those of the first rows that meet a condition."""
    for part in parts():
        rows = part if predicate is None else part.filter(predicate)
        rows = rows if most is None else rows.head(most)
        most = None if most is None else most - rows.height
        yield rows if columns is None else rows.select(columns)
        if most == 0:
            return
