"""Which links are slower than others of their kind."""

from __future__ import annotations

from itertools import permutations

import polars as pl

from stepscope.analysis import slow_links
from stepscope.tables import LINKS


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
