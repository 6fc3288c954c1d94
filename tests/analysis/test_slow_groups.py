"""Which groups transmit more slowly than their like."""

from __future__ import annotations

import polars as pl

from stepscope.analysis import slow_groups


def arrivals(transmit: dict[str, int], size: int = 100) -> pl.DataFrame:
    rows = [
        {
            "rank": 2 * n + member,
            "group": group,
            "sequence": call,
            "step": call,
            "operation": "all_reduce",
            "size_bytes": size,
            "members": 2,
            "point_to_point": False,
            "transmit_ns": ns + call,
        }
        for n, (group, ns) in enumerate(transmit.items())
        for member in range(2)
        for call in range(3)
    ]
    return pl.DataFrame(rows)


def test_a_group_that_takes_twice_as_long_is_named_with_its_ranks() -> None:
    found = slow_groups(arrivals({"a": 1000, "b": 1010, "c": 2000, "d": 990}), None)

    assert found.select("group", "ranks").rows() == [("c", "4, 5")]
    assert found["cost_ns"].item() == 995


def test_groups_that_agree_are_not_named() -> None:
    assert slow_groups(arrivals({"a": 1000, "b": 1010, "c": 1050}), None).is_empty()


def test_groups_that_send_other_sizes_are_not_compared() -> None:
    both = pl.concat([arrivals({"a": 1000, "b": 1000, "c": 1000}), arrivals({"x": 9000}, size=900)])

    assert slow_groups(both, None).is_empty()
