"""Matching of collectives over ranks."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis import arrival, clocks, communication
from stepscope.tables import COLLECTIVES, GROUPS, RANKS
from tests.analysis.jobs import MS, job


def calls(*rows: tuple[int, str | None, int, str, int, int]) -> pl.LazyFrame:
    return COLLECTIVES.frame(
        rank=[r[0] for r in rows],
        collective=list(range(len(rows))),
        group=[r[1] for r in rows],
        sequence=[r[2] for r in rows],
        operation=[r[3] for r in rows],
        name=["n"] * len(rows),
        start_ns=[r[4] for r in rows],
        duration_ns=[r[5] - r[4] for r in rows],
        on_device=[True] * len(rows),
        wait_ns=[None] * len(rows),
        transmit_ns=[None] * len(rows),
        size_bytes=[1] * len(rows),
        step=[0] * len(rows),
    ).lazy()


def hosts(*names: str, start_ns: int | None = 0) -> pl.LazyFrame:
    return RANKS.frame(rank=list(range(len(names))), host=list(names), start_ns=[start_ns] * len(names)).lazy()


def matched(table: pl.LazyFrame, *names: str) -> pl.DataFrame:
    return arrival(table, clocks(table, hosts(*names))).sort("rank", "sequence")


def test_the_last_to_arrive_waits_for_nobody() -> None:
    found = matched(calls((0, "g", 0, "all_reduce", 10, 50), (1, "g", 0, "all_reduce", 40, 50)), "h", "h")

    assert found["wait_ns"].to_list() == [30, 0]
    assert found["transmit_ns"].to_list() == [10, 10]
    assert found["is_last"].to_list() == [False, True]
    assert found["lateness_ns"].to_list() == [-15, 15]


def test_a_call_seen_on_one_rank_only_has_unknown_wait() -> None:
    found = matched(calls((0, "g", 0, "all_reduce", 10, 50)), "h")

    assert found["members"].to_list() == [1]
    assert found["wait_ns"].to_list() == [None]


SEEN = ((0, "g", 0, "all_reduce", 10, 50), (1, "g", 0, "all_reduce", 40, 50))


def of_job(table: pl.LazyFrame, *, world: int | None = 2, members: list[int] | None = None) -> pl.DataFrame:
    """Calls of two recorded ranks of a job, whose recordings may list the members of the group."""
    ranks = RANKS.frame(rank=[0, 1], host=["h", "h"], world_size=[None, world]).lazy()
    groups = GROUPS.frame(rank=[0, 1], group=["g", "g"], members=[None, members]).lazy()
    return arrival(table, clocks(table, ranks), None, groups, ranks).sort("rank", "sequence")


@pytest.mark.parametrize(
    ("size", "members", "world", "found"),
    [(3, None, 2, 3), (None, [0, 1, 2], 2, 3), (2, [0, 1, 2], 2, 3), (None, None, 4, 4)],
)
def test_of_some_members_of_a_group_it_is_unknown_how_long_they_wait(size, members, world, found) -> None:
    table = calls(*SEEN).with_columns(group_size=pl.lit(size, pl.Int32))

    calls_found = of_job(table, world=world, members=members)

    assert calls_found["group_size"].to_list() == [found, found]
    assert calls_found["members"].to_list() == [2, 2]
    assert calls_found["wait_ns"].to_list() == calls_found["transmit_ns"].to_list() == [None, None]
    assert calls_found["lateness_ns"].to_list() == [-15, 15]


@pytest.mark.parametrize(
    ("size", "members", "world", "found"),
    [(2, None, 4, 2), (None, [0, 1], 4, 2), (None, None, 2, None), (None, None, None, None)],
)
def test_a_group_that_was_recorded_as_a_whole_waits_for_its_last_member(size, members, world, found) -> None:
    table = calls(*SEEN).with_columns(group_size=pl.lit(size, pl.Int32))

    calls_found = of_job(table, world=world, members=members)

    assert calls_found["group_size"].to_list() == [found, found]
    assert calls_found["wait_ns"].to_list() == [30, 0]


def test_what_the_source_states_of_waiting_counts_if_members_are_missing() -> None:
    found = of_job(calls(*SEEN).with_columns(wait_ns=pl.lit(3), transmit_ns=pl.lit(7)), world=4)

    assert found.select("wait_ns", "transmit_ns").rows() == [(3, 7), (3, 7)]


def test_two_sides_are_all_of_a_send() -> None:
    found = of_job(calls((0, "g", 0, "send", 30, 50), (1, "g", 0, "recv", 10, 50)), world=4, members=[0, 1, 2, 3])

    assert found["wait_ns"].to_list() == [0, 20]


def test_members_that_disagree_on_the_operation_are_not_matched() -> None:
    found = matched(calls((0, "g", 0, "all_reduce", 10, 50), (1, "g", 0, "all_gather", 40, 50)), "h", "h")

    assert found["members"].to_list() == [1, 1]


def test_a_member_of_unknown_size_is_matched() -> None:
    table = calls((0, "g", 0, "all_reduce", 10, 50), (1, "g", 0, "all_reduce", 40, 50))

    found = matched(table.with_columns(size_bytes=pl.when(pl.col("rank") == 0).then("size_bytes")), "h", "h")

    assert found["members"].to_list() == [2, 2]


def test_what_a_rank_moved_does_not_contradict_the_payload_of_others() -> None:
    table = calls(*SEEN)
    moved = pl.when(pl.col("rank") == 1)
    other = table.with_columns(size_bytes=moved.then(4).otherwise("size_bytes"))

    assert matched(other, "h", "h")["members"].to_list() == [1, 1]
    named = other.with_columns(element_type=moved.then(None).otherwise(pl.lit("bf16")))
    assert matched(named, "h", "h")["members"].to_list() == [2, 2]


def test_a_send_matches_its_receive() -> None:
    found = matched(calls((0, "pp", 0, "send", 30, 50), (1, "pp", 0, "recv", 10, 50)), "h", "h")

    assert found["members"].to_list() == [2, 2]
    assert found["wait_ns"].to_list() == [0, 20]


def transfers(*rows: tuple[int, str, int, int, int], members: list[int] | None = None) -> list[tuple[object, ...]]:
    """Pairs of ranks that were matched with the start of the later one, from rank, operation, other side and times."""
    count: dict[int, int] = {}
    numbered = []
    for rank, operation, _, start, end in rows:
        numbered.append((rank, "w", count.get(rank, 0), operation, start, end))
        count[rank] = count.get(rank, 0) + 1
    table = calls(*numbered).with_columns(peer=pl.Series([row[2] for row in rows], dtype=pl.Int32))
    ranks = RANKS.frame(rank=sorted(count), host=["h"] * len(count)).lazy()
    groups = (
        GROUPS.frame(rank=members, group=["w"] * len(members), members=[members] * len(members)) if members else None
    )
    found = arrival(table, clocks(table, ranks), groups=None if groups is None else groups.lazy(), ranks=ranks)
    pairs = found.filter(pl.col("members") == 2).group_by("group", "sequence", maintain_order=True)
    return pairs.agg(pl.col("rank").sort(), pl.col("start_ns").max()).sort("sequence").select("rank", "start_ns").rows()


def test_sends_and_receives_of_one_group_are_matched_by_sender_and_receiver() -> None:
    stages = [
        (0, "send", 1, 10, 11), (0, "send", 1, 20, 21), (1, "recv", 0, 5, 12), (1, "send", 2, 13, 14),
        (1, "recv", 0, 15, 22), (1, "send", 2, 30, 31), (2, "recv", 1, 6, 15), (2, "recv", 1, 16, 32),
    ]  # fmt: skip

    assert transfers(*stages) == [([0, 1], 10), ([1, 2], 13), ([0, 1], 20), ([1, 2], 30)]


def test_sends_and_receives_of_unknown_sides_are_not_matched_by_position() -> None:
    """Of a pipeline of four stages, the second and third make as many transfers, and so do the first and last."""
    rows = [(0, "g", 0, "send", 10, 12), (0, "g", 1, "recv", 60, 64), (3, "g", 0, "recv", 32, 36)]
    rows += [(3, "g", 1, "send", 40, 42), *((1, "g", k, kind, 10 + k, 12 + k) for k, kind in enumerate(_MIDDLE))]
    rows += [(2, "g", k, kind, 20 + k, 22 + k) for k, kind in enumerate(_MIDDLE)]

    found = matched(calls(*rows), *"hhhh")

    assert found["members"].unique().to_list() == [1]
    assert found["wait_ns"].null_count() == found.height


_MIDDLE = ("recv", "send", "recv", "send")


def test_transfers_of_unknown_sides_leave_the_collectives_of_their_group_alone() -> None:
    rows = [(rank, "g", 0, "all_reduce", 10 + rank, 50) for rank in range(3)]
    rows += [
        (0, "g", 0, "send", 60, 70),
        (1, "g", 0, "recv", 60, 70),
        (1, "g", 1, "send", 80, 90),
        (2, "g", 0, "recv", 60, 90),
    ]

    found = matched(calls(*rows), *"hhh").group_by("operation").agg(pl.col("members").max()).sort("operation")

    assert found.rows() == [("all_reduce", 3), ("recv", 1), ("send", 1)]


def test_two_ranks_that_send_to_each_other_at_once_do_not_match_their_sends() -> None:
    both = [(0, "send", 1, 10, 20), (1, "send", 0, 11, 21), (0, "recv", 1, 12, 30), (1, "recv", 0, 14, 30)]

    assert transfers(*both) == [([0, 1], 14), ([0, 1], 12)]


def test_the_other_side_may_be_named_by_its_place_in_the_group() -> None:
    assert transfers((4, "send", 1, 10, 20), (5, "recv", 0, 12, 20), members=[4, 5]) == [([4, 5], 12)]
    assert transfers((0, "send", 1, 10, 20), (4, "recv", 0, 12, 20), members=[0, 4]) == [([0, 4], 12)]


def test_sends_do_not_take_the_places_of_the_collectives_of_their_group() -> None:
    mixed = [
        (0, "send", 1, 10, 20),
        (1, "recv", 0, 12, 20),
        (0, "all_reduce", None, 30, 50),
        (1, "all_reduce", None, 40, 50),
    ]

    assert transfers(*mixed) == [([0, 1], 40), ([0, 1], 12)]


def test_groups_without_a_name_are_matched_by_position() -> None:
    found = matched(calls((0, None, 0, "all_reduce", 10, 50), (1, None, 0, "all_reduce", 40, 50)), "h", "h")

    assert found["wait_ns"].to_list() == [30, 0]


def test_a_recording_that_begins_a_call_later_is_aligned_at_the_end() -> None:
    rows = [(0, "g", k, "all_reduce", 1000 * k + 10, 1000 * k + 50) for k in range(4)]
    rows += [(1, "g", k - 1, "all_reduce", 1000 * k + 20, 1000 * k + 50) for k in range(1, 4)]

    found = matched(calls(*rows), "h", "h")

    assert found.filter(pl.col("rank") == 1)["sequence"].to_list() == [1, 2, 3]
    assert found.filter(pl.col("rank") == 1)["wait_ns"].to_list() == [0, 0, 0]


def test_clock_offsets_between_hosts_are_recovered() -> None:
    run = job(ranks=4, clock_ns={2: 500 * MS, 3: -20 * MS}, hosts=True)

    offsets = run.analyse("clocks")["offset_ns"].to_list()

    assert abs(offsets[2] - offsets[0] - 500 * MS) < MS
    assert abs(offsets[3] - offsets[0] + 20 * MS) < MS


def test_ranks_of_one_host_share_a_clock() -> None:
    found = job(ranks=4, compute={1: 1.5}).analyse("clocks")

    assert found["offset_ns"].to_list() == [0, 0, 0, 0]


def test_device_counters_of_one_host_are_clocks_of_their_own() -> None:
    rows = [
        (rank, "g", k, "all_reduce", k * 9 * MS + MS * rank, k * 9 * MS + MS * rank + 50)
        for rank in (0, 1)
        for k in range(9)
    ]

    found = clocks(calls(*rows), hosts("a", "a", start_ns=None))

    assert found["offset_ns"].to_list() == [-MS // 2, MS // 2]


def test_calls_within_a_host_do_not_hide_that_clocks_of_hosts_differ() -> None:
    inside = [
        (rank, f"tp{rank // 2}", call, "all_reduce", call * 100, call * 100 + 50)
        for rank in range(4)
        for call in range(9)
    ]
    across = [
        (rank, f"dp{rank % 2}", 0, "all_reduce", 900 + 5 * MS * (rank // 2), 950 + 5 * MS * (rank // 2))
        for rank in range(4)
    ]

    found = clocks(calls(*inside, *across), hosts("a", "a", "b", "b"))

    assert found["offset_ns"].to_list() == [-5 * MS // 2, -5 * MS // 2, 5 * MS // 2, 5 * MS // 2]
    assert found["calls"].to_list() == [1, 1, 1, 1]


def test_clocks_are_connected_by_a_few_calls_although_most_are_between_others() -> None:
    """Hosts a and b, and c and d, call each other often, and all of them once."""
    clock = {"a": 0, "b": 3 * MS, "c": 70 * MS, "d": 71 * MS}
    often = [
        (rank, f"g{rank // 2}", call, "all_reduce", call * MS + off, call * MS + off + 50)
        for rank, off in enumerate(clock.values())
        for call in range(20)
    ]
    once = [
        (rank, "all", 0, "all_reduce", 99 * MS + off, 99 * MS + off + 50) for rank, off in enumerate(clock.values())
    ]

    found = clocks(calls(*often, *once), hosts(*clock))

    first = found["offset_ns"][0]
    assert [offset - first for offset in found["offset_ns"]] == list(clock.values())


def test_machines_that_share_a_name_do_not_share_a_clock() -> None:
    """All are `localhost`; rank 2 would have left every call before the others came."""
    rows = [
        (rank, "g", call, "all_reduce", call * 5 * MS + off + rank, call * 5 * MS + off + 50)
        for rank, off in enumerate((0, 0, -900 * MS, 0))
        for call in range(4)
    ]

    found = matched(calls(*rows), *["localhost"] * 4)

    assert found["wait_ns"].to_list() == [3] * 4 + [2] * 4 + [1] * 4 + [0] * 4
    assert found.unique("rank")["offset_ns"].sort().to_list() == [-900 * MS, 0, 0, 0]


def test_a_rank_that_recorded_fewer_calls_shows_nothing_of_the_clock_of_its_host() -> None:
    rows = [(0, "g", k, "all_reduce", 5 * MS * k, 5 * MS * k + 50) for k in range(4)]
    rows += [(1, "g", k - 1, "all_reduce", 5 * MS * k + 10, 5 * MS * k + 50) for k in range(1, 4)]

    assert matched(calls(*rows), "h", "h")["offset_ns"].unique().to_list() == [0]


def there_and_back(ahead_ns: int, *, back_ns: int = 100) -> pl.LazyFrame:
    """Sends from rank 0 to 1 and back, received 100 ns after they began; the clock of rank 1 is ahead."""
    rows = []
    for number in range(4):
        sent, returned = 1000 * number, 1000 * number + 500
        rows += [
            (0, "0>1", number, "send", sent, sent + 100),
            (1, "0>1", number, "recv", sent - 300 + ahead_ns, sent + 100 + ahead_ns),
            (1, "1>0", number, "send", returned + ahead_ns, returned + 100 + ahead_ns),
            (0, "1>0", number, "recv", returned - 300, returned + back_ns),
        ]
    return calls(*rows)


@pytest.mark.parametrize(
    ("ahead_ns", "back_ns", "offset_ns"),
    [(5 * MS, 100, 5 * MS), (-5 * MS, 100, -5 * MS), (90, 100, 0), (-90, 100, 0), (5 * MS, -200, 0)],
)
def test_clocks_that_only_transfers_connect_differ_if_something_came_before_it_was_sent(
    ahead_ns: int, back_ns: int, offset_ns: int
) -> None:
    found = clocks(there_and_back(ahead_ns, back_ns=back_ns), hosts("a", "b"))

    assert found["offset_ns"].to_list() == [0, offset_ns]


def test_transfers_within_sets_of_clocks_change_nothing() -> None:
    reduced = [(rank, "dp", 0, "all_reduce", 10, 50) for rank in range(2)]
    both = pl.concat([calls(*reduced), there_and_back(5 * MS)])

    assert clocks(both, hosts("a", "b"))["offset_ns"].to_list() == [0, 0]


def test_groups_that_cost_the_same_are_listed_in_a_fixed_order() -> None:
    rows = [(rank, group, 0, "all_reduce", 10, 50) for group in "hgfe" for rank in range(2)]

    found = [communication(matched(calls(*rows), "h", "h"), None)["group"].to_list() for _ in range(5)]

    assert found == [["e", "f", "g", "h"]] * 5
