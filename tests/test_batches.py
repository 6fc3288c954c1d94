"""Answers do not depend on how many rows of a table are read at a time."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import asking
from every_format import FORMATS
from stepscope.analysis.methods import batches as module
from stepscope.analysis.methods import excess_places
from stepscope.analysis.methods.batches import batches, batches_by_rank, batches_by_time
from test_same_answers import differing


def test_batches_are_all_rows_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 3)
    rows = pl.DataFrame({"n": range(8)})

    parts = list(batches(rows.lazy()))

    assert [part.height for part in parts] == [3, 3, 2]
    assert pl.concat(parts).equals(rows)


def test_a_table_without_rows_is_one_empty_batch() -> None:
    (part,) = batches(pl.LazyFrame(schema={"n": pl.Int64}))

    assert (part.height, part.schema) == (0, {"n": pl.Int64()})


def test_batches_by_rank_have_all_rows_of_their_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 2)
    rows = pl.DataFrame({"rank": [0, 1, 1, 1, 1, 1, 2, 3, 3], "n": range(9)})

    parts = list(batches_by_rank(rows.lazy()))

    assert [part["rank"].unique().sort().to_list() for part in parts] == [[0], [1, 2], [3]]
    assert pl.concat(parts).equals(rows)
    assert [part.height for part in batches_by_rank(rows.head(0).lazy())] == [0]
    assert [part.height for part in batches_by_rank(rows.tail(1).lazy())] == [1]


def test_excess_is_cut_from_the_same_pieces_however_few_steps_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [(rank, step, step * 100, step * 100 + 10 + 20 * rank) for rank in (0, 1) for step in (1, 2, 3)]
    nodes = pl.DataFrame(pieces, schema=["rank", "step", "start_ns", "end_ns"], orient="row")
    nodes = nodes.with_columns(kind=pl.lit("computing"), name=pl.lit("gemm"))
    excess = nodes.select("rank", "step", "kind", program=0, excess_ns=pl.col("rank") * 20)

    found = [excess_places.cuts(nodes, excess).to_list()]
    monkeypatch.setattr(excess_places, "BATCH_ROWS", 1)
    found.append(excess_places.cuts(nodes, excess).to_list())

    assert found == [[0, 0, 0, 20, 20, 20]] * 2


def test_batches_by_time_keep_equal_times_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 2)
    rows = pl.DataFrame({"time_ns": [5, 1, 1, 4, 1, 9], "n": range(6)})

    parts = list(batches_by_time(rows.lazy(), "time_ns"))

    assert [part.rows() for part in parts] == [[(1, 1), (1, 2), (4, 3), (1, 4)], [(5, 0), (9, 5)]]


@pytest.mark.parametrize("name", FORMATS)
def test_answers_are_those_of_one_batch(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FORMATS[name](tmp_path)
    told = [asking.answers(run) for run in asking.opened(tmp_path)]

    monkeypatch.setattr(module, "BATCH_ROWS", 2)
    again = [asking.answers(run) for run in asking.opened(tmp_path)]

    assert told
    for one, other in zip(told, again, strict=True):
        differing(one, other)
