"""Arithmetic on time ranges."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.methods.intervals import pieces, union

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
