"""Which links are slower than others of their kind."""

from __future__ import annotations

from itertools import permutations

import polars as pl

from stepscope.analysis import slow_links
from stepscope.tables import LINKS


def links(ranks: int, slow: dict[tuple[int, int], float], *, transport: str = "HCCS") -> pl.LazyFrame:
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
