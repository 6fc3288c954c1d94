"""Tables of one input in a form in which they can be compared, however the rows were made."""

from __future__ import annotations

import polars as pl


def comparable(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Rows in one order, with what numbers stand for instead of the numbers."""
    slices = tables["slices"]
    named = slices.select("slice", of=pl.struct("start_ns", "duration_ns", "name", "category", "depth"))
    assert slices["slice"].n_unique() == slices.height
    assert sorted(tables["kernels"]["kernel"]) == list(range(tables["kernels"].height))
    operators = tables["operators"].join(named, on="slice", how="left")
    if "stacks" in tables:
        operators = operators.join(tables["stacks"], on="stack", how="left")
    told = tables | {
        "slices": slices.join(named, left_on="parent", right_on="slice", how="left").drop("parent"),
        "operators": operators,
    }
    return {name: _in_order(frame.drop("slice", "stack", "kernel", strict=False)) for name, frame in told.items()}


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    lists = [column for column, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join(",")).sort(pl.all(), nulls_last=True)
