"""Communication by rank, operator and link."""

from __future__ import annotations

import pytest
from rank_tables import MS, calls, job, links

from builders import make_run
from stepscope.errors import Unavailable

BOTH = {(0, 1): (20_000_000, MS), (0, 0): (8_000_000, MS)}


def test_stated_totals_of_steps_go_before_the_calls_that_a_step_table_lists() -> None:
    run = job(communication_totals={0: calls(), 1: calls()})

    rows = run.analyse("rank_communication")

    assert rows.select("rank", "steps", "calls", "total_ns", "wait_ns", "transmit_ns").rows() == [
        (rank, 2, 2.0, 12 * MS, 7 * MS, 5 * MS) for rank in (0, 1)
    ]
    assert run.analyse("rank_communication", by_step=True)["step"].to_list() == [1, 2, 1, 2]
    assert run.analyse("rank_communication", stage="1").is_empty()


def test_operators_are_summed_up_by_name_where_they_are_named() -> None:
    rows = job(communication_totals={2: calls()}).analyse("rank_calls")

    assert rows.select("rank", "name", "total_ns", "wait_ratio").rows() == [
        (2, "stream_1_1_Receive-op2", 10 * MS, 0.7),
        (2, "stream_1_0_AllReduce-op1", 2 * MS, 0),
    ]


def test_the_parts_of_a_timelines_calls_add_up() -> None:
    run = make_run(late={1: 10 * MS})

    rows = run.analyse("rank_communication")

    assert rows["wait_ns"].to_list() == [10 * MS, 0, 10 * MS, 10 * MS]
    assert (rows["wait_ns"] + rows["transmit_ns"] + rows["unsplit_ns"] == rows["total_ns"]).all()
    assert run.analyse("rank_calls").select("operation", "size_bytes", "calls").unique().rows() == [
        ("all_reduce", 1 << 20, 1.0)
    ]


def test_bandwidth_is_bytes_over_time_and_compared_with_links_between_ranks() -> None:
    run = job(links={0: links(BOTH), 1: links({(1, 0): (60_000_000, MS)})})

    rows = run.analyse("link_totals")

    assert rows.select("source", "destination", "steps", "size_bytes", "of_mean_ratio").rows() == [
        (0, 0, 2, 8_000_000, None),
        (0, 1, 2, 20_000_000, 0.5),
        (1, 0, 2, 60_000_000, 1.5),
    ]
    assert rows["bandwidth_bytes_per_s"].to_list() == pytest.approx([8e9, 20e9, 60e9])


def test_a_link_that_both_ends_report_counts_once() -> None:
    run = job(links={0: links({(0, 1): (10, MS)}), 1: links({(0, 1): (20, MS)})})

    assert run.analyse("link_totals")["size_bytes"].to_list() == [20]


def test_links_are_chosen_by_their_ends_and_transport() -> None:
    run = job(links={0: links(BOTH), 1: links({(1, 0): (60_000_000, MS)})})

    assert run.analyse("link_totals", source="1")["destination"].to_list() == [0]
    assert run.analyse("link_totals", destination="1-3")["source"].to_list() == [0]
    assert run.analyse("link_totals", transport="rdma").is_empty()
    assert run.analyse("link_totals", transport="sdma", by_step=True)["step"].to_list() == [1, 1, 1, 2, 2, 2]
    assert run.analyse("call_links", source="1")["size_bytes"].to_list() == [60_000_000]


def test_the_matrix_has_a_row_for_each_sender() -> None:
    rows = job(links={0: links(BOTH), 1: links({(1, 0): (60_000_000, MS)})}).analyse("link_matrix")

    assert rows["destinations"].to_list() == [[0, 1], [0]]
    assert rows["sizes_bytes"].to_list() == [[8_000_000, 20_000_000], [60_000_000]]


def test_transports_are_of_links_between_ranks() -> None:
    (row,) = (
        job(links={0: links(BOTH), 1: links({(1, 0): (60_000_000, MS)})}).analyse("transport_totals").rows(named=True)
    )

    assert (row["links"], row["size_bytes"]) == (2, 80_000_000)
    assert (row["bandwidth_bytes_per_s"], row["mean_bytes_per_s"]) == pytest.approx((40e9, 40e9))
    assert (row["slowest_bytes_per_s"], row["fastest_bytes_per_s"]) == pytest.approx((20e9, 60e9))


def test_without_links_there_is_no_answer() -> None:
    with pytest.raises(Unavailable):
        job().analyse("link_totals")
