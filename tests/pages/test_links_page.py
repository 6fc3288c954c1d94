"""The page of links: a matrix as long as it fits a screen."""

from __future__ import annotations

from typing import Any, cast

import polars as pl
import pytest

from stepscope.pages.links import MOST, _matrix, _too_many


def rows(ranks: int) -> pl.DataFrame:
    """A link from each rank to each other, of as many bytes as the numbers of both; none takes time to the last."""
    ends = [[end for end in range(ranks) if end != source] for source in range(ranks)]
    return pl.DataFrame(
        {
            "source": range(ranks),
            "destinations": ends,
            "sizes_bytes": [[source + end for end in each] for source, each in enumerate(ends)],
            "durations_ns": [[0 if end == ranks - 1 else 10 for end in each] for each in ends],
        },
        schema_overrides={"source": pl.Int32, "destinations": pl.List(pl.Int32)},
    )


def test_a_matrix_of_few_ranks_is_shown() -> None:
    derived = _matrix(cast(Any, None), rows(4))
    assert derived.rows["source"].to_list() == [0, 1, 2, 3]
    assert derived.rows.columns == ["source", "to_0_bytes_per_s", "to_1_bytes_per_s", "to_2_bytes_per_s"]
    assert derived.rows["to_1_bytes_per_s"].to_list() == [1e8, None, 3e8, 4e8]
    assert not list(_too_many(rows(4)))


@pytest.mark.parametrize("ranks", [MOST + 2, 600])
def test_of_more_ranks_than_fit_it_is_said_how_many_there_are(ranks: int) -> None:
    assert _matrix(cast(Any, None), rows(ranks)).rows.is_empty()
    assert f"between {ranks} ranks" in "".join(_too_many(rows(ranks)))
