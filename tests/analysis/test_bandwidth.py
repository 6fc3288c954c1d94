"""Bandwidth of collectives, and how evenly all-to-all calls spread their payload."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVE_SPLITS, COLLECTIVES, GROUPS, RANKS


def job(operation: str, *calls: list[tuple[int, int]], size: int = 800, **ranks: Any) -> Run:
    """Ranks that make calls of a group of all of them: start and end of each call, for each rank."""
    frames = {}
    for rank, own in enumerate(calls):
        rows = [{"sequence": at, "start_ns": start, "duration_ns": end - start} for at, (start, end) in enumerate(own)]
        about = {"group": "g", "operation": operation, "name": operation, "size_bytes": size, "on_device": True}
        collectives = pl.DataFrame(rows).with_row_index("collective").with_columns(
            **{name: pl.lit(value) for name, value in about.items()}, element_type=pl.lit("float")
        )  # fmt: skip
        members = pl.DataFrame({"group": ["g"], "name": ["dp"], "members": [list(range(len(calls)))]})
        facts = {"host": ["h"], "format": ["kineto"], **{name: [value] for name, value in ranks.items()}}
        frames[rank] = {
            "collectives": COLLECTIVES.conform(collectives),
            "groups": GROUPS.conform(members),
            "ranks": RANKS.conform(pl.DataFrame(facts)),
        }
    return Run.from_frames(frames)


FOUR = ([(0, 200)], [(40, 201)], [(100, 210)], [(90, 205)])
"""All are in the call from 100 to 200."""


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all_reduce", 1.5),
        ("all_gather", 0.75),
        ("reduce_scatter", 0.75),
        ("all_to_all", 0.75),
        ("broadcast", 1),
        ("reduce", 1),
        ("gather", 0.75),
        ("new_operation", None),
    ],
)
def test_bandwidth_is_of_the_time_in_which_all_ranks_are_in_the_call(operation: str, factor: float | None) -> None:
    row = job(operation, *FOUR).analyse("bus_bandwidth").row(0, named=True)

    assert (row["ranks"], row["transmit_ns"], row["skew_ns"], row["end_skew_ns"]) == (4, 100, 100, 10)
    assert row["algorithm_bytes_per_s"] == pytest.approx(8e9)
    assert row["bus_bytes_per_s"] == (None if factor is None else pytest.approx(8e9 * factor))


def test_the_best_call_is_the_shortest() -> None:
    calls = [[(0, 100), (200, 250), (300, 400)]] * 2

    row = job("all_reduce", *calls).analyse("bus_bandwidth").row(0, named=True)

    assert (row["calls"], row["transmit_ns"], row["shortest_ns"]) == (3, 100, 50)
    assert row["best_bus_bytes_per_s"] == 2 * row["bus_bytes_per_s"]


def test_a_call_that_not_all_members_were_seen_in_is_not_used() -> None:
    run = job("all_reduce", *FOUR).select(ranks="0-2")
    whole = Run.from_frames({rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks})

    with pytest.raises(Unavailable, match="all ranks"):
        whole.analyse("bus_bandwidth")


def test_sizes_that_may_be_a_part_of_the_buffer_give_no_bandwidth() -> None:
    """Ascend states what one rank passes to a gather."""
    row = job("all_gather", *FOUR, format="ascend_db").analyse("bus_bandwidth").row(0, named=True)

    assert row["bus_bytes_per_s"] is None
    assert job("all_reduce", *FOUR, format="ascend_db").analyse("bus_bandwidth")["bus_bytes_per_s"][0] is not None


def splits(*sent: str | None) -> Run:
    run = job("all_to_all", *[[(0, 100)]] * len(sent))
    frames = {}
    for rank, text in zip(run.ranks, sent, strict=True):
        rows = pl.DataFrame({"collective": [0], "input_splits": [text]})
        tables = {name: rank.table(name).collect() for name in rank.rows}
        frames[rank.rank] = {**tables, "collective_splits": COLLECTIVE_SPLITS.conform(rows)}
    return Run.from_frames(frames)


def test_uneven_all_to_all_calls_name_who_sends_and_receives_most() -> None:
    row = splits("[10, 30]", "[20, 60]").analyse("uneven_splits").row(0, named=True)

    assert (row["elements"], row["ranks"], row["pair"]) == (120, 2, "1 -> 1")
    assert (row["most_sent_rank"], row["sent_factor"]) == (1, pytest.approx(80 / 60))
    assert (row["most_received_rank"], row["least_received_rank"]) == (1, 0)
    assert row["received_factor"] == pytest.approx(1.5)


def test_what_each_rank_sends_to_each_other_one() -> None:
    found = splits("[10, 30]", "[20, 60]").analyse("split_pairs")

    assert found.select("rank", "receiver", "elements", "share_ratio").rows() == [
        (0, 0, 10, pytest.approx(10 / 120)),
        (0, 1, 30, 0.25),
        (1, 0, 20, pytest.approx(20 / 120)),
        (1, 1, 60, 0.5),
    ]


@pytest.mark.parametrize("text", ["[]", "", None, "[0, 0]"])
def test_calls_without_splits_of_their_own(text: str | None) -> None:
    run = splits(text, text)

    if text == "[0, 0]":
        assert run.analyse("uneven_splits")["received_factor"].to_list() == [None]
    else:
        with pytest.raises(Unavailable, match="no call with recorded splits"):
            run.analyse("uneven_splits")
