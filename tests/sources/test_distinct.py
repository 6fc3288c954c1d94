"""What is asked once for each distinct text is what it would be for every text."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.sources.distinct import Distinct
from stepscope.sources.native import distinct as compiled
from stepscope.sources.native import library

TEXT = st.one_of(st.none(), st.sampled_from(["", "a", "aten::mm", "a" * 12, "a" * 13, "ba" * 40]), st.text(max_size=20))


@given(texts=st.lists(TEXT, max_size=60), first=st.integers(0, 3))
@settings(deadline=None)
def test_each_text_is_judged_as_by_itself(texts: list[str | None], first: int) -> None:
    column = pl.Series([*texts, *texts], dtype=pl.String)[first:]

    asked = Distinct(column)

    assert asked.matching("a$").to_list() == column.str.contains("a$").to_list()
    assert asked.judged(lambda some: some.str.len_bytes()).to_list() == column.str.len_bytes().to_list()


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_texts_are_numbered_as_they_come() -> None:
    numbers, firsts = compiled.distinct(pl.Series([None, "b", "a" * 20, None, "a" * 20, "b", "c"]))

    assert numbers.to_list() == [None, 0, 1, None, 1, 0, 2]
    assert firsts.to_list() == [1, 2, 6]
    for column in (
        pl.Series([1, 2]),
        pl.Series([], dtype=pl.String),
        pl.Series([None], dtype=pl.String),
        pl.Series([f"{n}" for n in range(50_000)]),
        pl.Series(["a" * 300_000]),
    ):
        with pytest.raises(library.Refused):
            compiled.distinct(column)
