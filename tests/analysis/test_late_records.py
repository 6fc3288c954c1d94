"""Calls of a CPU whose record ends after their host went on."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.late_records import ended_calls

MS = 1_000_000


def nodes(wait_end: int, record_end: int) -> pl.DataFrame:
    """Rank 0 waits from 10 ms on while its call runs from 8 ms on; the call of rank 1 runs from 90 to 100 ms."""
    rows = [
        (0, 0, "host", "dispatch", 0, 10),
        (1, 0, "communication", "communication", 8, record_end),
        (2, 0, "host", "waiting", 10, wait_end),
        (3, 0, "host", "computing", wait_end, 200),
        (4, 1, "communication", "communication", 90, 100),
    ]
    names = ["node", "rank", "lane", "kind", "start_ns", "end_ns"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.with_columns(pl.col("start_ns", "end_ns") * MS)


MEMBERS = pl.DataFrame({"node": [1, 4], "call": [0, 0], "entered_ns": [90 * MS, 90 * MS]})


def test_a_host_that_goes_on_when_the_call_ended_elsewhere_had_waited_for_it() -> None:
    found, edges = ended_calls(nodes(wait_end=101, record_end=110), MEMBERS)

    assert edges.rows() == [(2, 1)]
    assert found["end_ns"].to_list() == [ns * MS for ns in (10, 101, 101, 200, 100)]
    assert found["start_ns"].to_list() == [ns * MS for ns in (0, 8, 101, 101, 90)]


def test_a_host_that_goes_on_before_the_call_ended_anywhere_did_not_wait_for_it() -> None:
    recorded = nodes(wait_end=95, record_end=110)

    found, edges = ended_calls(recorded, MEMBERS)

    assert edges.is_empty()
    assert found.equals(recorded)


def test_a_host_that_goes_on_just_before_its_own_record_ends_had_waited_for_the_call() -> None:
    """The thread that moves the data sets the host free, and writes its record then: so on all ranks."""
    recorded = nodes(wait_end=99, record_end=100)

    found, edges = ended_calls(
        recorded.with_columns(end_ns=pl.when(node=4).then(103 * MS).otherwise("end_ns")), MEMBERS
    )

    assert edges.rows() == [(2, 1)]
    assert found["end_ns"].to_list() == [ns * MS for ns in (10, 99, 99, 200, 103)]


def test_a_wait_for_another_call_that_had_just_ended_does_not_end_the_next_one() -> None:
    """The wait is cut where the call that it was for ended, 0.1 ms before the host went on."""
    woken = nodes(wait_end=99, record_end=100).with_columns(
        start_ns=pl.when(node=2).then(98_900_000).otherwise("start_ns")
    )
    other = woken.filter(pl.col("node") == 4).with_columns(
        node=pl.lit(5, pl.Int64), rank=pl.lit(0, pl.Int64), end_ns=pl.lit(98_900_000, pl.Int64)
    )
    recorded = pl.concat(
        [woken.with_columns(end_ns=pl.when(node=4).then(103 * MS).otherwise("end_ns")), other.select(woken.columns)]
    )
    members = pl.concat([MEMBERS, pl.DataFrame({"node": [5], "call": [1], "entered_ns": [90 * MS]})])

    assert ended_calls(recorded, members)[1].is_empty()


def test_a_wait_until_the_end_of_the_own_record_is_left_as_it_is() -> None:
    recorded = nodes(wait_end=110, record_end=110)

    assert ended_calls(recorded, MEMBERS)[0].equals(recorded)
