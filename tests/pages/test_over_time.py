"""Values over time as rows of blocks."""

from __future__ import annotations

import polars as pl

from stepscope.pages.over_time import CELLS, drawn


def test_values_are_drawn_as_parts_of_the_highest_of_the_rank() -> None:
    rows = pl.DataFrame(
        {"rank": [0] * 8, "stream": [1] * 4 + [2] * 4, "start_ns": [0, 1, 2, 3] * 2, "value": [0, 1, 8, 3, 0, 0, 0, 2]}
    )

    assert drawn(rows, ["rank", "stream"], "value")["over_time"].to_list() == ["·░█▒", "···░"]


def test_many_moments_share_the_cells() -> None:
    rows = pl.DataFrame({"rank": [0] * 200, "start_ns": range(200), "value": [0] * 199 + [1]})

    (text,) = drawn(rows, ["rank"], "value")["over_time"]

    assert text == "·" * (CELLS - 1) + "█"


def test_nothing_is_drawn_of_nothing() -> None:
    rows = pl.DataFrame({"rank": [0, 0], "start_ns": [0, 5], "value": [0.0, 0.0]})

    assert drawn(rows, ["rank"], "value")["over_time"].to_list() == ["··"]
