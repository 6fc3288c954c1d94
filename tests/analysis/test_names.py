"""Questions about names have the same answers as questions about rows."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.names import named

ROWS = pl.LazyFrame({"name": ["a", None, "b", "ab", "a"]}, schema={"name": pl.String})


def test_names_answer_as_their_rows() -> None:
    asked = {"first": pl.col("name").str.contains("^a"), "none": pl.col("name").str.contains("z")}

    assert ROWS.select(**named(ROWS, **asked)).collect().equals(ROWS.select(**asked).collect())


def test_a_table_without_rows_has_no_names() -> None:
    rows = ROWS.head(0)

    assert rows.filter(named(rows, any=pl.col("name") == "a")["any"]).collect().is_empty()
