"""Which groups transmit more slowly than their like, or than usual in some steps."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from stepscope.analysis.communication.slow_groups import slow_groups as described
from stepscope.analysis.communication.suspected_groups import suspected_groups
from stepscope.tables import LINKS


def slow_groups(
    calls: pl.DataFrame, links: pl.LazyFrame | None = None, ranks: pl.LazyFrame | None = None
) -> pl.DataFrame:
    ranks = on_hosts("a" * 100) if ranks is None else ranks
    return described(suspected_groups(calls, links, None, ranks), None)


def on_hosts(names: str) -> pl.LazyFrame:
    """Ranks with the host and device of each; no host if its name is `?`."""
    hosts = [None if name == "?" else name for name in names]
    devices = [number % 4 for number in range(len(names))]
    frame = {"rank": range(len(names)), "host": hosts, "device": devices}
    return pl.LazyFrame(frame, schema={"rank": pl.Int32, "host": pl.String, "device": pl.Int32})


def arrivals(
    transmit: dict[str, int], size: int | None = 100, *, steps: int = 3, less: Callable[[str, int], int] | None = None
) -> pl.DataFrame:
    """Groups of two ranks with a call in each step, which takes `transmit`, or as `less` says."""
    rows = [
        {
            "rank": 2 * n + member,
            "group": group,
            "sequence": step,
            "step": step,
            "operation": "all_reduce",
            "name": f"{group} {step}",
            "size_bytes": size,
            "members": 2,
            "point_to_point": False,
            "on_device": True,
            "transmit_ns": (ns if less is None else less(group, step)) + step,
        }
        for n, (group, ns) in enumerate(transmit.items())
        for member in range(2)
        for step in range(steps)
    ]
    return pl.DataFrame(rows, schema_overrides={"size_bytes": pl.Int64, "rank": pl.Int32})


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
    found = slow_groups(arrivals({"a": 1000, "b": 1010, "c": 2000, "d": 990}))

    assert found.select("group", "ranks", "beside", "pattern").rows() == [("c", "4, 5", "others", "steady")]
    assert found["cost_ns"].item() == 1000  # less than the lower of the two in the middle


def test_two_slow_groups_of_four_are_both_named() -> None:
    found = slow_groups(arrivals({"a": 2000, "b": 1010, "c": 3000, "d": 990}))

    assert found.select("group", "cost_ns").rows() == [("c", 1990), ("a", 990)]


def test_groups_that_agree_are_not_named() -> None:
    assert slow_groups(arrivals({"a": 1000, "b": 1010, "c": 1050})).is_empty()


@pytest.mark.parametrize(("other", "named"), [(1900, []), (2200, ["b"])])
def test_of_two_groups_one_is_named_for_a_large_difference(other: int, named: list[str]) -> None:
    assert slow_groups(arrivals({"a": 1000, "b": other}))["group"].to_list() == named


def test_groups_that_send_other_sizes_are_not_compared() -> None:
    both = pl.concat([arrivals({"a": 1000, "b": 1000, "c": 1000}), arrivals({"x": 9000}, size=900)])

    assert slow_groups(both.with_columns(pl.col("rank") + 10 * (pl.col("group") == "x"))).is_empty()


def test_groups_between_hosts_are_not_compared_with_those_inside_of_one() -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 5000, "d": 990})
    assert slow_groups(calls, None, on_hosts("aabbccdd"))["group"].to_list() == ["c"]
    assert slow_groups(calls, None, on_hosts("aabbcedd")).is_empty()


def test_unknown_hosts_are_those_that_devices_show() -> None:
    """Devices count up to 3, so ranks 4 to 7 are of another host; group `b` is between both."""
    inside, between = {"a": 1000, "b": 1010, "c": 5000, "d": 990}, {"a": 1000, "b": 5000, "c": 1010}
    apart = arrivals(between).with_columns(rank=pl.col("rank") + 1)
    unknown = on_hosts("????????").with_columns(device=pl.lit(0, pl.Int32))

    assert slow_groups(arrivals(inside), None, on_hosts("????????"))["group"].to_list() == ["c"]
    assert slow_groups(apart, None, on_hosts("????????")).is_empty()
    assert slow_groups(arrivals(inside), None, unknown).is_empty()


def test_groups_of_unknown_size_are_not_called_equal() -> None:
    assert slow_groups(arrivals({"a": 1000, "b": 1010, "c": 2000}, size=None)).is_empty()


def in_steps(*slow: int, factor: int = 3) -> Callable[[str, int], int]:
    """Group `c` takes longer in some steps."""
    return lambda group, step: 1000 * (factor if group == "c" and step in slow else 1)


@pytest.mark.parametrize("groups", ["c", "abcd"])
def test_a_group_that_is_slow_in_some_steps_is_named_with_them(groups: str) -> None:
    calls = arrivals(dict.fromkeys(groups, 0), steps=8, less=in_steps(2, 5))

    found = slow_groups(calls)

    assert found.select("group", "beside", "slow_steps", "steps").rows() == [("c", "steps", [2, 5], 8)]
    assert found["cost_ns"].item() == 2 * 2000 / 8
    assert slow_groups(arrivals(dict.fromkeys(groups, 0), steps=8, less=in_steps(2))).is_empty()


@pytest.mark.parametrize(("steps", "named"), [(8, True), (20, False)])
def test_where_hosts_move_the_data_a_few_slow_steps_name_no_group(steps: int, named: bool) -> None:
    calls = arrivals({"c": 0}, steps=steps, less=in_steps(2, 5)).with_columns(on_device=pl.lit(value=False))

    assert slow_groups(calls).is_empty() is not named


def test_groups_of_which_each_is_slow_now_and_then_are_not_named() -> None:
    def by_turns(group: str, step: int) -> int:
        return 3000 if (ord(group) + step) % 4 == 0 else 1000

    assert slow_groups(arrivals(dict.fromkeys("abcd", 0), steps=8, less=by_turns)).is_empty()


def transfers(ways: dict[tuple[int, int], int]) -> pl.DataFrame:
    """Transfers in one group, by sender and receiver."""
    return pl.concat(
        arrivals({"pipe": ns}).with_columns(
            rank=pl.when(pl.col("rank") == 0).then(one).otherwise(other),
            operation=pl.when(pl.col("rank") == 0).then(pl.lit("send")).otherwise(pl.lit("recv")),
            sequence=len(ways) * pl.col("sequence") + number,
            point_to_point=pl.lit(value=True),
        )
        for number, ((one, other), ns) in enumerate(ways.items())
    )


def test_slow_transfers_are_those_between_two_ranks() -> None:
    """Of a pipeline of four stages in one group, one pair takes longer in both directions."""
    calls = transfers({(0, 1): 1000, (1, 2): 5000, (2, 3): 1000, (1, 0): 1000, (2, 1): 5000, (3, 2): 1000})

    assert slow_groups(calls).select("group", "ranks", "source", "operation", "cost_ns").rows() == [
        ("pipe", "1, 2", None, "transfer", 8000)
    ]


def test_transfers_that_are_slow_in_one_direction_are_told_with_their_sender() -> None:
    calls = transfers({(0, 1): 1000, (1, 2): 1000, (2, 3): 1000, (1, 0): 1000, (2, 1): 5000, (3, 2): 1000})

    assert slow_groups(calls).select("ranks", "source", "cost_ns").rows() == [("1, 2", 2, 4000)]


def test_directions_of_transfers_are_not_compared_with_each_other() -> None:
    """What comes back is sent beside other work."""
    assert slow_groups(transfers({(0, 1): 1000, (1, 2): 1000, (1, 0): 3000, (2, 1): 3000})).is_empty()


@pytest.mark.parametrize("by_call", [True, False])
def test_a_group_that_sends_three_times_as_much_over_its_links_is_not_slow(by_call: bool) -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 1700}, size=None)

    assert slow_groups(calls, links({"a": 40, "b": 40, "c": 120}, by_call=by_call)).is_empty()


@pytest.mark.parametrize("by_call", [True, False])
def test_a_group_that_sends_as_much_over_its_links_and_takes_longer_is_slow(by_call: bool) -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 1700}, size=None)

    assert slow_groups(calls, links({"a": 4000, "b": 4001, "c": 4002}, by_call=by_call))["group"].to_list() == ["c"]


def test_the_size_of_a_call_is_that_of_the_members_that_know_it() -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 1700})
    half_known = calls.with_columns(size_bytes=pl.when(pl.col("rank") % 2 == 0).then("size_bytes"))

    assert slow_groups(half_known).rows() == slow_groups(calls).rows()


def test_where_a_slow_link_is_known_no_group_is_named() -> None:
    calls = arrivals({"a": 1000, "b": 1010, "c": 2000})

    assert suspected_groups(calls, None, pl.DataFrame({"suspect": [0]}), on_hosts("a" * 9)).is_empty()
    assert not suspected_groups(calls, None, pl.DataFrame({"suspect": []}), on_hosts("a" * 9)).is_empty()
