"""Which links are slower than others of their kind."""

from __future__ import annotations

from itertools import permutations

import polars as pl
import pytest

from stepscope.analysis.communication.slow_links import slow_links as described
from stepscope.analysis.communication.suspected_links import suspected_links
from stepscope.tables import LINKS


def slow_links(rows: pl.LazyFrame, ranks: pl.LazyFrame | None = None) -> pl.DataFrame:
    return described(rows, suspected_links(rows, ranks))


def links(ranks: int, slow: dict[tuple[int, int], float], *, transport: str | None = "HCCS") -> pl.LazyFrame:
    pairs = list(permutations(range(ranks), 2))
    speeds = [20.0 * slow.get(p, slow.get(p[::-1], 1.0)) * (1 + 0.01 * (i % 3)) for i, p in enumerate(pairs)]
    return LINKS.frame(
        rank=[a for a, _ in pairs],
        step=[1] * len(pairs),
        source=[a for a, _ in pairs],
        destination=[b for _, b in pairs],
        transport=[transport] * len(pairs),
        size_bytes=[20_000_000] * len(pairs),
        duration_ns=[round(20_000_000 / speed) for speed in speeds],
    ).lazy()


def test_a_slow_link_is_named_once_with_its_bandwidth() -> None:
    found = slow_links(links(8, {(0, 1): 0.35}))

    assert found.select("rank_a", "rank_b").rows() == [(0, 1)]
    assert abs(found["bandwidth_ratio"].item() - 0.35) < 0.02
    assert found["cost_ns"].item() > 1_000_000


def test_what_went_over_links_outside_of_steps_is_no_step() -> None:
    rows = links(8, {(0, 1): 0.35})
    before = rows.with_columns(pl.lit(None, pl.Int32).alias("step"), pl.col("duration_ns") * 3)

    assert slow_links(pl.concat([before, rows])).equals(slow_links(rows))
    assert slow_links(before)["steps"].to_list() == [1]


def test_two_slow_links_are_both_named() -> None:
    found = slow_links(links(8, {(0, 1): 0.5, (4, 6): 0.4}))

    assert sorted(found.select("rank_a", "rank_b").rows()) == [(0, 1), (4, 6)]


def test_equal_links_accuse_nobody() -> None:
    assert slow_links(links(8, {})).is_empty()


def test_a_transport_that_is_slower_by_nature_is_not_a_slow_link() -> None:
    both = pl.concat([links(4, {}), links(4, dict.fromkeys(permutations(range(4), 2), 0.2), transport="RDMA")])

    assert slow_links(both).is_empty()


def two_links(rates: tuple[float, float], sizes: tuple[int, int] = (10**9, 10**9)) -> pl.LazyFrame:
    """Two links of a transport, 0-1 and 2-3, with their bytes per ns."""
    return LINKS.frame(
        rank=[0, 2],
        step=[1, 1],
        source=[0, 2],
        destination=[1, 3],
        transport=["RDMA"] * 2,
        size_bytes=list(sizes),
        duration_ns=[round(size / rate) for size, rate in zip(sizes, rates, strict=True)],
    ).lazy()


def test_of_two_links_the_one_that_is_five_times_slower_is_named() -> None:
    found = slow_links(two_links((20.0, 4.0)))

    assert found.select("rank_a", "rank_b", "cost_ns").rows() == [(2, 3, 200_000_000)]
    assert abs(found["bandwidth_ratio"].item() - 0.2) < 1e-6
    assert found["score"].item() is None


def test_of_two_links_neither_is_named_for_a_small_difference() -> None:
    assert slow_links(two_links((20.0, 12.0))).is_empty()


def test_of_two_links_one_with_little_data_is_not_named() -> None:
    assert slow_links(two_links((20.0, 4.0), sizes=(10**9, 10**6))).is_empty()


def test_links_of_unknown_transport_are_not_called_alike() -> None:
    assert slow_links(links(8, {(0, 1): 0.35}, transport=None)).is_empty()


def of_nic(ranks: int, *slow: int, ratio: float = 0.5) -> dict[tuple[int, int], float]:
    """All links of some ranks, slow."""
    return {pair: ratio for pair in permutations(range(ranks), 2) if {*pair} & {*slow}}


@pytest.mark.parametrize(("ranks", "slow"), [(3, 1), (4, 0), (8, 5), (32, 9)])
def test_all_links_of_a_rank_are_one_finding_of_its_interface(ranks: int, slow: int) -> None:
    found = slow_links(links(ranks, of_nic(ranks, slow)))

    assert found.select("unit", "rank_a", "rank_b", "ranks", "links").rows() == [
        ("nic", slow, None, str(slow), ranks - 1)
    ]
    assert abs(found["bandwidth_ratio"].item() - 0.5) < 0.02


def test_two_slow_interfaces_share_what_they_cost() -> None:
    one, two = (slow_links(links(8, of_nic(8, *slow))) for slow in ((1,), (1, 6)))

    assert two.select("unit", "rank_a").rows() == [("nic", 1), ("nic", 6)]
    assert abs(two["cost_ns"].sum() - one["cost_ns"].sum()) < 0.03 * one["cost_ns"].sum()


def test_a_slow_link_of_a_slow_interface_is_named_besides() -> None:
    found = slow_links(links(8, {**of_nic(8, 3, ratio=0.8), (3, 4): 0.2, (4, 3): 0.2}))

    assert sorted(found.select("unit", "ranks").rows()) == [("link", "3, 4"), ("nic", "3")]


def hosts(ranks: int, each: int) -> pl.LazyFrame:
    return pl.LazyFrame({"rank": range(ranks), "host": [f"h{rank // each}" for rank in range(ranks)]})


def test_all_links_of_all_ranks_of_a_host_are_one_finding() -> None:
    slow = of_nic(12, 4, 5, 6, 7)

    found = slow_links(links(12, slow), hosts(12, 4))

    assert found.select("unit", "host", "ranks", "rank_a").rows() == [("host", "h1", "4, 5, 6, 7", None)]
    assert slow_links(links(12, of_nic(12, 4)), hosts(12, 4))["unit"].to_list() == ["nic"]


@pytest.mark.parametrize("others", [2, 3])
def test_all_links_between_two_hosts_are_one_finding(others: int) -> None:
    slow = {(one, other): 0.5 for one in range(4) for other in range(8, 12)}
    all_ranks = 4 * (others + 1)

    found = slow_links(links(all_ranks, slow), hosts(all_ranks, 4))

    assert found.select("unit", "host", "ranks", "links").rows() == [
        ("hosts", "h0, h2", "0, 1, 2, 3, 8, 9, 10, 11", 16)
    ]
    alone = slow_links(links(all_ranks, {(0, 8): 0.5, (1, 9): 0.5}), hosts(all_ranks, 4))
    assert alone.select("unit", "ranks").rows() == [("link", "0, 8"), ("link", "1, 9")]


def test_many_slow_links_that_form_no_unit_are_one_finding() -> None:
    slow = {(rank, rank + 1): 0.5 for rank in range(0, 12, 2)}

    assert slow_links(links(16, slow)).select("unit", "links").rows() == [("links", 6)]


def test_links_inside_a_host_may_be_those_that_are_slow() -> None:
    slow = dict.fromkeys(permutations(range(4), 2), 0.5)
    inside = links(12, slow).filter(pl.col("source") // 4 == pl.col("destination") // 4)

    assert slow_links(inside, hosts(12, 4)).select("unit", "host", "links").rows() == [("host", "h0", 6)]


def test_sizes_that_are_slow_by_nature_are_not_slow_links() -> None:
    known = {"operation": pl.lit("broadcast"), "size_bytes": pl.lit(1000, pl.Int64)}
    small = links(4, {}).with_columns(**known, duration_ns=pl.lit(10_000, pl.Int64))
    only_first = small.filter((pl.col("source") < 2) & (pl.col("destination") > 1))

    assert slow_links(pl.concat([links(4, {}), only_first])).is_empty()


def test_the_links_of_a_call_work_side_by_side() -> None:
    """Only the slowest link of a group counts: 1 ms more. A rank is in one group after the other."""
    one = links(4, {(0, 1): 0.5}).with_columns(group=pl.lit("a"))

    cost = slow_links(pl.concat([one, one.with_columns(group=pl.lit("b"))]))["cost_ns"].item()

    assert abs(cost - 2 * 1_000_000) < 0.03 * 2_000_000


def over_steps(count: int, **slow: float) -> pl.LazyFrame:
    """Steps in which link 0-1 has a share of its usual bandwidth, e.g. `at_3=0.5`."""
    each = [
        links(4, {(0, 1): slow.get(f"at_{step}", 1.0)}).with_columns(step=pl.lit(step, pl.Int32))
        for step in range(1, count + 1)
    ]
    return pl.concat(each)


def test_a_link_that_is_slow_in_some_steps_is_named_with_them() -> None:
    found = slow_links(over_steps(8, at_3=0.5, at_6=0.5))

    assert found.select("ranks", "pattern", "slow_steps", "steps").rows() == [("0, 1", "sometimes", [3, 6], 8)]
    assert abs(found["bandwidth_ratio"].item() - 0.5) < 0.02
    assert abs(found["cost_ns"].item() - 2 * 1_000_000 / 8) < 0.03 * 250_000
    assert slow_links(over_steps(4, at_3=0.5, at_4=0.5)).select("pattern", "slow_steps").row(0)[1] == [3, 4]


def test_a_link_that_is_slow_in_one_step_of_many_may_be_chance() -> None:
    assert slow_links(over_steps(8, at_3=0.5)).is_empty()
    assert slow_links(over_steps(3, at_3=0.25))["slow_steps"].to_list() == [[3]]


def test_links_that_cost_much_only_together_are_one_answer() -> None:
    rows = links(8, {(0, 1): 0.5, (2, 3): 0.5})
    costs = pl.DataFrame(
        {
            **{"ranks": [[]], "links": [[0, 1]], "cost_ns": [700_000], "cost_ratio": [0.1], "saving_low_ns": [1]},
            **{"saving_high_ns": [2], "alone_ns": [3], "error_ratio": [0.0]},
        },
        schema_overrides={"ranks": pl.List(pl.Int32), "links": pl.List(pl.Int32)},
    )

    found = described(rows, suspected_links(rows), costs)

    assert found.select("unit", "ranks", "links", "exposed_ns").rows() == [("links", "0, 1, 2, 3", 2, 700_000)]
    for unknown in (costs.clear(), None):
        assert described(rows, suspected_links(rows), unknown)["exposed_ns"].to_list() == [None, None]
