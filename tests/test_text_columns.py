"""Texts made of columns."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.text_columns import filled_in


@pytest.mark.parametrize(
    ("template", "values"),
    [("{}", ["name"]), ("rank {}: {} %", ["rank", pl.col("share")]), ("{}{}", ["name", pl.lit("x")])],
)
def test_values_are_filled_in_as_polars_does(template, values) -> None:
    rows = pl.DataFrame({"name": ["a", None, ""], "rank": [1, 2, None], "share": [0.5, 2.0, 1e9]})

    assert_frame_equal(rows.select(text=filled_in(template, *values)), rows.select(text=pl.format(template, *values)))


def test_nothing_may_be_left_of_the_first_chunk() -> None:
    rows = pl.concat([pl.DataFrame({"step": [step] * 5, "stream": [7] * 5}) for step in (0, 1, 0, 1)], rechunk=False)

    found = rows.lazy().filter(pl.col("step") == 1).select(lane=filled_in("stream {}", "stream")).collect()

    assert found["lane"].to_list() == ["stream 7"] * 10
