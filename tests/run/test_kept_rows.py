"""Tables of many small ranks that are read once."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

from builders import make_run
from stepscope.run.answer_cache import AnswerCache
from stepscope.run.kept_rows import KeptRows
from stepscope.run.rank import stacked


def test_rows_of_any_ranks_are_those_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(ranks=6, steps=2)
    for most_cells in (10_000_000, 10):  # kept, or read each time
        monkeypatch.setattr("stepscope.run.kept_rows.MOST_CELLS", most_cells)
        cache = AnswerCache(1_000_000)
        rows = KeptRows(run.ranks, cache)
        for ranks in ([0, 1, 2, 3, 4, 5], [1, 2, 3, 5], [0, 2, 4], [3]):
            expected = stacked([run.rank(rank) for rank in ranks], "kernels").collect()
            assert_frame_equal(rows.table("kernels", ranks).collect(), expected)
        assert (cache.used_bytes > 0) == (most_cells > 10)


def test_the_rows_of_a_few_ranks_are_not_a_reason_to_read_all() -> None:
    run = make_run(ranks=6, steps=2)
    cache = AnswerCache(1_000_000)

    assert KeptRows(run.ranks, cache).table("kernels", [4]).collect()["rank"].unique().to_list() == [4]
    assert cache.used_bytes == 0


def test_selected_steps_are_of_the_same_rows() -> None:
    run = make_run(ranks=4, steps=3)

    whole = run.analyse("breakdown")

    assert run.select(steps="2").analyse("breakdown")["step"].unique().to_list() == [2]
    assert_frame_equal(run.select(ranks="1,3").analyse("breakdown"), whole.filter(whole["rank"].is_in([1, 3])))
