"""Which steps a mean over steps counts: not those of a start-up, nor what was recorded beyond the last known step."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.rank_lists import as_rank_list
from stepscope.selection import Choice, parse_selection
from stepscope.tables import STEPS
from stepscope.tables.base import Column


def counted(
    rows: pl.DataFrame,
    keys: list[str],
    left_out_steps: pl.DataFrame | None,
    steps: pl.LazyFrame | None,
    chosen: Choice = None,
) -> pl.DataFrame:
    """Rows (`rank`, `step`) of the steps that count.

    Args:
        rows: One for each step of each key, or several.
        keys: What is averaged, `rank` among it. What was recorded only in steps that do not count keeps these.
        left_out_steps: First steps that do not count.
        steps: The known steps. A step that is not among them was recorded in part, as the recording ended in it.
        chosen: Steps that the user selected, e.g. `1-3`: all of them count, and no others.
    """
    wanted = parse_selection(chosen, "steps")
    if wanted is not None:
        return rows.filter(wanted.expression("step"))
    here = rows.select("rank", "step").unique()
    known = STEPS.or_empty(steps).select("rank", "step").unique().collect()
    places = here.join(known.with_columns(known=pl.lit(value=True)), on=["rank", "step"], how="left")
    if left_out_steps is not None:
        first = left_out_steps.select("rank", "step", first=pl.lit(value=True))
        places = places.join(first, on=["rank", "step"], how="left")
    else:
        places = places.with_columns(first=pl.lit(None, pl.Boolean))
    is_known = pl.col("known").is_not_null() | ~pl.col("known").is_not_null().any().over("rank")
    counts = places.select("rank", "step", counts=is_known & pl.col("first").is_null())
    marked = rows.join(counts, on=["rank", "step"], how="left", nulls_equal=True, maintain_order="left")
    return marked.filter(pl.col("counts") | ~pl.col("counts").any().over(keys)).drop("counts")


def without_start_ups(steps: Sequence[int], time_by_rank: pl.DataFrame | None) -> list[int]:
    """The steps but those that some rank leaves out as its start-up (`time_by_rank`), unless nothing else is left."""
    if time_by_rank is None:
        return [*steps]
    start_ups = {*time_by_rank["left_out_step"].drop_nulls()}
    return [step for step in steps if step not in start_ups] or [*steps]


LEFT_OUT = Column("left_out", "string", "Steps that the mean leaves out, e.g. `1`; null if none.", importance=5)


def steps_left_out(rows: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """The steps of each rank (`rank`, `left_out`) that are among some rows, but not among those that were kept."""
    gone = rows.select("rank", "step").unique().join(kept, on=["rank", "step"], how="anti", nulls_equal=True)
    return gone.drop_nulls().group_by("rank").agg(as_rank_list(pl.col("step")).alias("left_out"))
