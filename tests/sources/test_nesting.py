"""Ranges are nested by thread, whether they nest cleanly or overlap."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.sources.native import library
from stepscope.sources.native import nesting as compiled_nesting
from stepscope.sources.nesting import enclosing, nest, time_in_children

RANGE = st.tuples(st.integers(-20, 60), st.integers(0, 25), st.sampled_from(["a", "b", None]))


def frame(ranges: list[tuple[int, int, str | None]]) -> pl.DataFrame:
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "thread": pl.String}
    return pl.DataFrame(ranges, schema=schema, orient="row")


def test_children_are_taken_off_their_parent_only() -> None:
    ranges = frame([(0, 100, "a"), (10, 30, "a"), (15, 5, "a"), (50, 10, "a"), (20, 10, "b")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [None, 0, 1, 0, None]
    assert nested["depth"].to_list() == [0, 1, 2, 1, 0]
    assert nested["self_ns"].to_list() == [60, 25, 5, 10, 10]


def test_of_equal_starts_the_longer_is_outside_and_neighbours_do_not_nest() -> None:
    ranges = frame([(0, 5, "a"), (0, 10, "a"), (10, 3, "a")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [1, None, None]


def test_an_overhang_is_not_taken_off_the_parent() -> None:
    ranges = frame([(0, 10, "a"), (5, 10, "a")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [None, 0]
    assert nested["self_ns"].to_list() == [5, 10]


def test_no_ranges_give_no_rows() -> None:
    assert nest(frame([])).height == 0


def test_times_near_the_limits_of_int64_do_no_harm() -> None:
    ranges = frame([(-(2**61), 5, "a"), (2**61, 5, "b"), (2**61 + 1, 1, "b")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [None, None, 1]


def test_a_range_that_ends_beyond_int64_is_still_open() -> None:
    last = 2**63 - 1
    ranges = frame([(last - 5, 100, "a"), (last, 1, "a"), (-(2**63), 2**63 - 1, "b"), (-1, 5, "b"), (last, 1, "c")])

    places = enclosing(ranges)

    assert places["parent"].to_list() == [None, 0, None, None, None]


def test_a_parent_that_is_no_row_is_an_error() -> None:
    ranges = frame([(0, 5, "a"), (1, 2, "a")])

    with pytest.raises(pl.exceptions.PolarsError):
        time_in_children(ranges, pl.Series([None, 2]))


@given(ranges=st.lists(RANGE, max_size=40))
@settings(max_examples=200, deadline=None)
def test_nesting_is_that_of_a_simple_search(ranges: list[tuple[int, int, str | None]]) -> None:
    nested = nest(frame(ranges))

    assert nested["parent"].to_list() == [simple_parent(ranges, row) for row in range(len(ranges))]
    durations = [duration for _, duration, _ in ranges]
    assert all(0 <= own <= total for own, total in zip(nested["self_ns"], durations, strict=True))
    for row, parent in enumerate(nested["parent"]):
        assert nested["depth"][row] == (0 if parent is None else nested["depth"][parent] + 1)


def simple_parent(ranges: list[tuple[int, int, str | None]], row: int) -> int | None:
    """The last range before `row`, in order of start and length, that is open when it starts and was not hidden."""
    order = sorted(range(len(ranges)), key=lambda i: (ranges[i][0], -ranges[i][1], i))
    stack: list[int] = []
    for i in order:
        if ranges[i][2] != ranges[row][2]:
            continue
        while stack and ranges[stack[-1]][0] + ranges[stack[-1]][1] <= ranges[i][0]:
            stack.pop()
        if i == row:
            return stack[-1] if stack else None
        stack.append(i)
    return None


SPANS = {
    "plain": (0, 10**6, 5000),
    "tied": (0, 5, 5),
    "equal": (7, 7, 3),
    "epoch": (1_700_000_000 * 10**9, 1_700_000_060 * 10**9, 10**9),
    "absurd": (-(2**63), 2**63 - 1, 2**63 - 1),
}
"""First and last start, and longest duration."""
THREADS: dict[str, Callable[[pl.Series], pl.Series]] = {
    "int8": lambda t: t.cast(pl.Int8) - 100,
    "int32": lambda t: t.cast(pl.Int32),
    "uint32": lambda t: t.cast(pl.UInt32),
    "wide": lambda t: t * 2**60 - 2**62,
    "uint64": lambda t: t.cast(pl.UInt64) + 2**63,
    "float": lambda t: t / 4,
    "bool": lambda t: t > 2,
    "text": lambda t: "thread " + t.cast(pl.String),
    "category": lambda t: t.cast(pl.String).cast(pl.Categorical),
    "enum": lambda t: t.cast(pl.String).cast(pl.Enum([str(n) for n in range(8)])),
    "binary": lambda t: t.cast(pl.String).cast(pl.Binary),
    "date": lambda t: t.cast(pl.Date),
    "list": lambda t: t.to_frame("t").select(pl.concat_list("t")).to_series(),
    "struct": lambda t: pl.DataFrame({"p": (t % 2).cast(pl.String), "t": t // 2, "u": t * 2**50}).to_struct(),
    "null": lambda t: pl.Series([None] * len(t)),
}


def made_up(rows: int, span: str, seed: int, *, nulls: bool) -> pl.DataFrame:
    rng = random.Random(seed)
    first, last, longest = SPANS[span]
    threads = [0, 1, 2, 3, 4, 5, *([None, None] if nulls else [])]
    made = [(rng.randint(first, last), rng.randint(0, longest), rng.choice(threads)) for _ in range(rows)]
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "thread": pl.Int64}
    return pl.DataFrame(made, schema=schema, orient="row")


def in_order(ranges: pl.DataFrame, order: str) -> pl.DataFrame:
    if order == "as they come":
        return ranges
    keys = ["start_ns", "duration_ns"]
    by_time = ranges.sort(keys, descending=[False, True], maintain_order=True)
    if order == "by time":
        return by_time
    return by_time.sort("thread", maintain_order=True)


def results(ranges: pl.DataFrame, counted: pl.Series) -> list[Any]:
    places = enclosing(ranges)
    spent = time_in_children(ranges, places["parent"])
    some = time_in_children(ranges, places["parent"], counted)
    return [*places.get_columns(), *nest(ranges).get_columns(), spent, some]


def compiled_and_plain(ranges: pl.DataFrame, counted: pl.Series) -> tuple[list[Any], list[Any]]:
    compiled = results(ranges, counted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_LIBRARY", None)
        return compiled, results(ranges, counted)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("order", ["as they come", "by time", "by thread and time"])
def test_compiled_or_not_the_result_is_the_same(order: str, span: str, nulls: bool) -> None:
    for rows in (1, 30, 400, 5000):
        ranges = in_order(made_up(rows, span, rows, nulls=nulls), order)
        rng = random.Random(rows)
        counted = pl.Series([rng.choice([True, False, None]) for _ in range(rows)], dtype=pl.Boolean)

        compiled, plain = compiled_and_plain(ranges, counted)

        for one, other in zip(compiled, plain, strict=True):
            assert one.name == other.name
            assert one.dtype == other.dtype
            assert one.to_list() == other.to_list()


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", THREADS)
def test_threads_may_be_of_any_type(kind: str, nulls: bool) -> None:
    ranges = made_up(300, "plain", 1, nulls=nulls)
    threads = THREADS[kind](ranges["thread"])
    plain = [threads.to_list().index(thread) for thread in threads.to_list()]
    expected = nest(ranges.with_columns(thread=pl.Series(plain)))

    nested = nest(ranges.with_columns(threads.alias("thread")))

    assert nested.equals(expected)


def test_a_null_is_no_thread_of_nulls() -> None:
    thread = pl.Series(
        [{"p": None, "t": None}, None, {"p": None, "t": None}], dtype=pl.Struct({"p": pl.Int64, "t": pl.Int64})
    )
    ranges = pl.DataFrame({"start_ns": [0, 1, 2], "duration_ns": [9, 9, 9], "thread": thread})

    assert nest(ranges)["parent"].to_list() == [None, None, 0]


def test_columns_may_come_in_pieces() -> None:
    ranges = made_up(1000, "plain", 2, nulls=True)
    pieces = pl.concat([ranges[:10], ranges[10:700], ranges[700:]], rechunk=False)
    parent = nest(ranges)["parent"]
    counted = pl.concat([parent.is_not_null()[:333], parent.is_null()[333:]], rechunk=False)

    assert nest(pieces).equals(nest(ranges))
    assert nest(ranges[5:]).equals(nest(ranges[5:].clone().rechunk()))
    spent = time_in_children(pieces[3:], nest(pieces[3:])["parent"], counted[3:])
    expected = time_in_children(ranges[3:], nest(ranges[3:])["parent"], counted.rechunk()[3:])
    assert spent.to_list() == expected.to_list()


def test_self_time_counts_some_children_only() -> None:
    ranges = frame([(0, 100, "a"), (10, 30, "a"), (15, 5, "a"), (50, 10, "a")])
    parent = nest(ranges)["parent"]

    spent = time_in_children(ranges, parent, pl.Series([True, False, True, None]))
    all_spent = time_in_children(ranges, parent)

    assert spent.to_list() == [0, 5, 0, 0]
    assert all_spent.to_list() == [40, 5, 0, 0]


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_the_compiled_walk_refuses_what_it_cannot_take() -> None:
    numbers, times, gaps = pl.Series([0, 1]), pl.Series([5, 6]), pl.Series([5, None])

    assert compiled_nesting.nest(numbers, times, times)["depth"].to_list() == [0, 0]
    for columns in [
        (pl.Series([0, -1]), times, times),
        (gaps, times, times),
        (numbers, gaps, times),
        (numbers, times, times.cast(pl.Int32)),
        (numbers, times, pl.Series([5])),
        (numbers[:0], times[:0], times[:0]),
    ]:
        with pytest.raises(library.Refused):
            compiled_nesting.nest(*columns)
    for columns in [
        (times, times, pl.Series([None, 2])),
        (times, times, pl.Series([None, -1])),
        (times, gaps, pl.Series([None, 0])),
        (times, times, pl.Series([0])),
        (times[:0], times[:0], times[:0]),
    ]:
        with pytest.raises(library.Refused):
            compiled_nesting.time_inside(*columns)
