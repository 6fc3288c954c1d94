"""Numbers for rows that are alike in some columns."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.methods import numbering
from stepscope.analysis.methods.numbering import numbered

ROWS = pl.DataFrame(
    {
        "source": [5, 5, None, 7, 5, None],
        "size": [-3, -3, 0, 2**40, -3, 0],
        "transport": ["HCCS", "RDMA", None, "HCCS", "HCCS", None],
    },
    schema={"source": pl.Int32, "size": pl.Int64, "transport": pl.String},
)


@pytest.mark.parametrize("largest", [numbering._LARGEST, 1])
def test_rows_have_one_number_if_they_are_alike_and_null_is_a_value(
    monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr(numbering, "_LARGEST", largest)

    numbers = numbered(ROWS, ["source", "size", "transport"]).to_list()

    assert [numbers[0] == number for number in numbers] == [True, False, False, False, True, False]
    assert numbers[2] == numbers[5]
    assert len({*numbers}) == 4


def test_no_rows_have_no_numbers() -> None:
    assert numbered(ROWS.clear(), ["source", "transport"]).to_list() == []
