"""Hardware counters of kernels in a database, in whatever order they are listed."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.sources.ascend.db_device import _wide

SCHEMA = {"task": pl.Int64, "number": pl.Int64, "value": pl.Float64}
COLUMNS = {5: "cycles", 7: "time"}
REGULAR = [(1, 5, 1.0), (1, 9, 0.5), (1, 7, 2.0), (2, 5, 3.0), (2, 9, 0.5), (2, 7, 4.0)]
EXPECTED = {"task": [1, 2], "cycles": [1.0, 3.0], "time": [2.0, 4.0]}


@pytest.mark.parametrize(
    "rows",
    [REGULAR, REGULAR[::-1], REGULAR[:3] + REGULAR[:2:-1], [*REGULAR, (1, 5, 9.0)], REGULAR + REGULAR],
    ids=["as a rule", "backwards", "another order", "a value again", "all again"],
)
def test_every_counter_is_a_column(rows: list[tuple[int, int, float]]) -> None:
    wide = _wide(pl.DataFrame(rows, SCHEMA, orient="row"), COLUMNS)

    assert_frame_equal(wide, pl.DataFrame(EXPECTED), check_row_order=False, check_column_order=False)


def test_a_kernel_may_lack_counters() -> None:
    rows = [(1, 5, 1.0), (2, 7, 4.0), (3, 9, 1.0)]

    wide = _wide(pl.DataFrame(rows, SCHEMA, orient="row"), COLUMNS)

    assert sorted(wide.select("task", "cycles", "time").rows()) == [(1, 1.0, None), (2, None, 4.0)]
