"""Arithmetic on time ranges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.analysis.methods.intervals import lengths, pieces, union
from stepscope.sources.native import library, sweeping

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=12)


def frame(ranges: list[tuple[int, int]]) -> pl.LazyFrame:
    schema = {"start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.LazyFrame([(s, s + d) for s, d in ranges], schema=schema, orient="row")


def covered(ranges: list[tuple[int, int]]) -> set[int]:
    """Every whole nanosecond that some range covers: the slow and obvious way."""
    return {t for s, d in ranges for t in range(s, s + d)}


@given(RANGES, RANGES, st.integers(0, 30), st.integers(1, 30), st.integers(0, 10))
def test_pieces_agree_with_counting_every_nanosecond(a, b, start, length, distance) -> None:
    windows = [(start, start + length), (start + length + distance, start + 2 * length + distance)]
    table = pl.LazyFrame({"window": [0, 1], "start_ns": [w[0] for w in windows], "end_ns": [w[1] for w in windows]})

    cut = pieces({"a": frame(a), "b": frame(b)}, table).collect()

    for number, (lo, hi) in enumerate(windows):
        inside = cut.filter(pl.col("window") == number)
        times = set(range(lo, hi))
        assert inside["duration_ns"].sum() == hi - lo
        assert inside.filter("a")["duration_ns"].sum() == len(covered(a) & times)
        assert inside.filter(pl.col("a") & pl.col("b"))["duration_ns"].sum() == len(covered(a) & covered(b) & times)


@given(RANGES)
def test_union_covers_the_same_nanoseconds_once(ranges) -> None:
    merged = union(frame(ranges)).collect()

    spans = [(s, e - s) for s, e in merged.rows()]
    assert covered(spans) == covered(ranges)
    assert sum(d for _, d in spans) == len(covered(ranges))


RANKED = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(-2, 15)), max_size=30)


def ranked(ranges: list[tuple[int, int, int]]) -> pl.DataFrame:
    schema = {"rank": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame([(rank, s, s + d) for rank, s, d in ranges], schema=schema, orient="row")


@contextmanager
def by_polars() -> Iterator[None]:
    """As if there were no compiled code."""
    kept, library._LIBRARY = library._LIBRARY, None
    try:
        yield
    finally:
        library._LIBRARY = kept


@pytest.mark.skipif(not library.is_available(), reason="no compiled code here")
@settings(deadline=None)
@given(RANKED, RANKED, st.booleans())
def test_compiled_code_and_polars_cut_the_same_pieces(a, b, in_order) -> None:
    a, b = (sorted(a), sorted(b)) if in_order else (a, b)
    windows = [(rank, 10 * n, 10 * n + 8 + n % 3) for rank in range(2) for n in range(4)]
    table = ranked([(rank, start, end - start) for rank, start, end in windows]).with_row_index("window")
    layers = {"a": ranked(a), "b": ranked(b).lazy(), "none": ranked([])}
    keys = ["rank", "window", *layers]

    found = pieces(layers, table, by=["rank"]).collect()
    sums = lengths(layers, table, by=["rank"]).sort(keys)
    with by_polars():
        expected = pieces(layers, table, by=["rank"]).collect()
        expected_sums = lengths(layers, table, by=["rank"]).sort(keys)

    assert_frame_equal(found, expected)
    assert_frame_equal(sums, expected_sums, check_column_order=False)


@pytest.mark.skipif(not library.is_available(), reason="no compiled code here")
@settings(deadline=None)
@given(RANKED, st.sampled_from(["as they are", "by rank", "in order"]))
def test_compiled_code_and_polars_join_the_same_ranges(ranges, order) -> None:
    if order != "as they are":
        ranges = sorted(ranges, key=None if order == "in order" else lambda one: one[0])

    found = union(ranked(ranges), by=["rank"])
    with by_polars():
        expected = union(ranked(ranges), by=["rank"])

    assert_frame_equal(found, expected)


@pytest.mark.skipif(not library.is_available(), reason="no compiled code here")
def test_ranges_in_falling_order_are_joined_by_polars() -> None:
    falling = ranked([(0, 4 * n, 2) for n in reversed(range(3000))])

    with pytest.raises(library.Refused):
        sweeping.union(falling.cast(pl.Int64))

    assert union(falling, by=["rank"]).rows() == [(0, 4 * n, 4 * n + 2) for n in range(3000)]
