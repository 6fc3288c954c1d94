"""Which groups transmit more slowly than their like."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis import slow_groups
from stepscope.tables import LINKS


def arrivals(transmit: dict[str, int], size: int | None = 100) -> pl.DataFrame:
    rows = [
        {
            "rank": 2 * n + member,
            "group": group,
            "sequence": call,
            "step": call,
            "operation": "all_reduce",
            "name": f"{group} {call}",
            "size_bytes": size,
            "members": 2,
            "point_to_point": False,
            "transmit_ns": ns + call,
        }
        for n, (group, ns) in enumerate(transmit.items())
        for member in range(2)
        for call in range(3)
    ]
    return pl.DataFrame(rows, schema_overrides={"size_bytes": pl.Int64})


def links(sent: dict[str, int], *, by_call: bool = True) -> pl.LazyFrame:
    """What the two members of each group of `arrivals` send each other, for each call or for the group in a step."""
    ends = [
        (2 * n + m, 2 * n + 1 - m, group, size, call)
        for n, (group, size) in enumerate(sent.items())
        for m in (0, 1)
        for call in range(3)
    ]
    return LINKS.frame(
        rank=[a for a, *_ in ends],
        source=[a for a, *_ in ends],
        destination=[b for _, b, *_ in ends],
        step=[call for *_, call in ends],
        group=[None if by_call else group for _, _, group, *_ in ends],
        name=[f"{group} {call}" if by_call else None for _, _, group, _, call in ends],
        operation=["all_reduce"] * len(ends),
        transport=["RDMA"] * len(ends),
        size_bytes=[size for *_, size, _ in ends],
        duration_ns=[100] * len(ends),
    ).lazy()


def test_a_group_that_takes_twice_as_long_is_named_with_its_ranks() -> None:
    found = slow_groups(arrivals({"a": 1000, "b": 1010, "c": 2000, "d": 990}), None, None)

    assert found.select("group", "ranks").rows() == [("c", "4, 5")]
    assert found["cost_ns"].item() == 995


def test_groups_that_agree_are_not_named() -> None:
    assert slow_groups(arrivals({"a": 1000, "b": 1010, "c": 1050}), None, None).is_empty()


def test_groups_that_send_other_sizes_are_not_compared() -> None:
    both = pl.concat([arrivals({"a": 1000, "b": 1000, "c": 1000}), arrivals({"x": 9000}, size=900)])

    assert slow_groups(both, None, None).is_empty()


def test_groups_of_unknown_size_are_not_called_equal() -> None:
    assert slow_groups(arrivals({"a": 1000, "b": 1010, "c": 2000}, size=None), None, None).is_empty()


@pytest.mark.parametrize("by_call", [True, False])
def test_a_group_that_sends_three_times_as_much_over_its_links_is_not_slow(by_call: bool) -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 1700}, size=None)

    assert slow_groups(calls, None, links({"a": 40, "b": 40, "c": 120}, by_call=by_call)).is_empty()


@pytest.mark.parametrize("by_call", [True, False])
def test_a_group_that_sends_as_much_over_its_links_and_takes_longer_is_slow(by_call: bool) -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 1700}, size=None)

    found = slow_groups(calls, None, links({"a": 4000, "b": 4001, "c": 4002}, by_call=by_call))

    assert found.select("group", "size_bytes", "sent_bytes").rows() == [("c", None, 4002)]


def test_the_size_of_a_call_is_that_of_the_members_that_know_it() -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 1700})
    half_known = calls.with_columns(size_bytes=pl.when(pl.col("rank") % 2 == 0).then("size_bytes"))

    assert slow_groups(half_known, None, None).rows() == slow_groups(calls, None, None).rows()
