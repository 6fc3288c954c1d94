"""Rows that belong to others by a key or by time, compiled or not."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.sources.matching import first_match, holding, neighbours
from stepscope.sources.native import library
from stepscope.sources.native import matching as compiled

# near each other, equal in their low bits, and at the ends of the range
KEY = st.one_of(
    st.none(), st.integers(-8, 30), st.integers(-8, 8).map(lambda n: n << 20), st.integers(-(2**63), 2**63 - 1)
)
TIME = st.one_of(st.none(), st.integers(-10, 80), st.sampled_from([-(2**63), 2**63 - 1]))


def both(function, *arguments) -> list[list[int | None]]:  # type: ignore[no-untyped-def]
    """What the compiled code and the Python code give."""
    results = [function(*arguments)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_LIBRARY", None)
        results.append(function(*arguments))
    assert all(result.dtype == pl.Int64 for result in results)
    return [result.to_list() for result in results]


@given(keys=st.lists(KEY, max_size=40), among=st.lists(KEY, max_size=60), seed=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_the_first_row_with_a_key_is_found(keys: list[int | None], among: list[int | None], seed: int) -> None:
    repeated = [*among, *keys[seed:], *among]

    compiled_rows, plain = both(first_match, pl.Series(keys, dtype=pl.Int64), pl.Series(repeated, dtype=pl.Int64))

    assert plain == [None if key is None or key not in repeated else repeated.index(key) for key in keys]
    assert compiled_rows == plain


@given(times=st.lists(TIME, max_size=40), cuts=st.lists(st.integers(-5, 70), max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_range_that_holds_a_time_is_found(times: list[int | None], cuts: list[int]) -> None:
    cuts = sorted(cuts)
    ranges = pl.DataFrame(
        {"start_ns": cuts[:-1:2], "end_ns": cuts[1::2]}, schema=dict.fromkeys(("start_ns", "end_ns"), pl.Int64)
    )

    compiled_rows, plain = both(holding, pl.Series(times, dtype=pl.Int64), ranges)

    held = [
        [row for row, (start, end) in enumerate(ranges.iter_rows()) if time is not None and start <= time < end]
        for time in times
    ]
    assert plain == [found[-1] if found else None for found in held]
    assert compiled_rows == plain


def test_columns_may_come_in_pieces() -> None:
    keys = pl.concat([pl.Series([9, None]), pl.Series([3, 4])], rechunk=False)[1:]
    among = pl.concat([pl.Series([9, 4]), pl.Series([None, 3])], rechunk=False)[1:]

    compiled_rows, plain = both(first_match, keys, among)

    assert compiled_rows == plain == [None, 2, 0]


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_what_is_not_plain_is_refused() -> None:
    numbers, gaps = pl.Series([1, 2]), pl.Series([1, None])

    assert compiled.match(numbers, gaps).to_list() == [0, None]
    for columns in [
        (numbers.cast(pl.Int32), numbers),
        (numbers, pl.Series(["1"])),
        (numbers[:0], numbers),
        (numbers, numbers[:0]),
    ]:
        with pytest.raises(library.Refused):
            compiled.match(*columns)

    assert compiled.hold(gaps, numbers, pl.Series([2, 3])).to_list() == [0, None]
    for columns_of_ranges in [
        (pl.Series([2, 1]), numbers),
        (gaps, numbers),
        (numbers, gaps),
        (numbers, numbers[:1]),
        (numbers[:0], numbers[:0]),
        (numbers, numbers.cast(pl.Float64)),
    ]:
        with pytest.raises(library.Refused):
            compiled.hold(numbers, *columns_of_ranges)


@given(pairs=st.lists(st.tuples(KEY, st.one_of(st.none(), st.integers(0, 2))), max_size=60))
@settings(max_examples=200, deadline=None)
def test_rows_with_the_same_keys_know_each_other(pairs: list[tuple[int | None, int | None]]) -> None:
    keys = [pl.Series([pair[n] for pair in pairs], dtype=pl.Int64) for n in (0, 1)]
    before = [max((k for k in range(row) if pairs[k] == pairs[row]), default=None) for row in range(len(pairs))]
    behind = [
        min((k for k in range(row + 1, len(pairs)) if pairs[k] == pairs[row]), default=None)
        for row in range(len(pairs))
    ]

    assert both(lambda *given: neighbours(*given)[0], *keys) == [before, before]
    assert both(lambda *given: neighbours(*given)[1], *keys) == [behind, behind]
