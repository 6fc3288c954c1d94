"""Communication by rank, operator and link."""

from __future__ import annotations

import polars as pl
import pytest
from rank_tables import MS, calls, job, links

from builders import make_run
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, COMMUNICATION_TOTALS, LINKS

BOTH = {(0, 1): (20_000_000, MS), (0, 0): (8_000_000, MS)}


def test_stated_totals_of_steps_go_before_the_calls_that_a_step_table_lists() -> None:
    run = job(communication_totals={0: calls(), 1: calls()})

    rows = run.analyse("rank_communication")

    assert rows.select("rank", "calls", "total_ns", "wait_ns", "transmit_ns").rows() == [
        (rank, 2.0, 12 * MS, 7 * MS, 5 * MS) for rank in (0, 1)
    ]
    assert run.analyse("rank_communication", by_step=True)["step"].to_list() == [1, 2, 1, 2]
    assert run.analyse("rank_communication", stage="1").is_empty()


def uneven(*transmit_ms: int) -> pl.DataFrame:
    """Stated totals of a rank's steps from 1 on."""
    return COMMUNICATION_TOTALS.frame(
        step=range(1, len(transmit_ms) + 1),
        name=[None] * len(transmit_ms),
        duration_ns=[one * MS for one in transmit_ms],
        wait_ns=[0] * len(transmit_ms),
    )


def test_means_leave_out_the_first_step_and_one_behind_the_last_known_one() -> None:
    run = job(communication_totals={0: uneven(2000, 4, 6, 1), 1: uneven(2000)})  # of three known steps

    told = ("rank", "steps", "total_ns", "left_out")
    assert run.analyse("rank_communication").select(told).rows() == [(0, 2, 5 * MS, "1, 4"), (1, 1, 2000 * MS, None)]
    every = run.analyse("rank_communication", with_first=True)
    assert every.select(told).rows() == [(0, 4, 502_750_000, None), (1, 1, 2000 * MS, None)]
    chosen = run.select(steps="1-2").analyse("rank_communication")
    assert chosen.select(told).rows() == [(0, 2, 1002 * MS, None), (1, 1, 2000 * MS, None)]


def test_operators_are_averaged_over_the_same_steps_unless_they_have_no_other() -> None:
    times = {"first": [(1, 2000)], "both": [(1, 2000), (2, 4), (4, 1)]}
    every = [(step, name, value * MS) for name, values in times.items() for step, value in values]
    steps, names, lengths = zip(*every, strict=True)
    run = job(communication_totals={0: COMMUNICATION_TOTALS.frame(step=steps, name=names, duration_ns=lengths)})

    told = ("name", "steps", "total_ns")
    assert run.analyse("rank_calls").select(told).rows() == [("first", 1, 2000 * MS), ("both", 1, 4 * MS)]
    assert run.analyse("rank_calls", with_first=True).select(told).rows()[1] == ("both", 3, 668_333_333)


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


def marked(*rows: tuple[int | None, int, int | None]) -> Run:
    """A rank's calls: step, length and how long of it they wait (null if unknown)."""
    calls = pl.DataFrame(rows, schema=["step", "duration_ns", "wait_ns"], orient="row")
    calls = calls.with_row_index("collective").with_columns(
        sequence="collective",
        start_ns=pl.col("collective").cast(pl.Int64) * 1000,
        transmit_ns=pl.col("duration_ns") - pl.col("wait_ns"),
        operation=pl.lit("all_reduce"),
        name=pl.lit("all_reduce"),
        group=pl.lit("g"),
        group_size=pl.lit(2),
        on_device=pl.lit(value=True),
    )
    return Run.from_frames({0: {"collectives": COLLECTIVES.conform(calls)}})


@pytest.mark.parametrize("name", ["rank_communication", "rank_calls"])
def test_calls_before_the_first_mark_are_no_step(name: str) -> None:
    run = marked((None, 100, 10), (1, 200, 20), (2, 200, 20))

    assert run.analyse(name).select("steps", "calls", "total_ns", "wait_ns").rows() == [(2, 1, 200, 20)]
    assert sorted(run.analyse(name, by_step=True)["step"]) == [1, 2]
    alone = marked((None, 100, 10)).analyse(name)
    assert alone.select("step", "steps", "total_ns").rows() == [(None, 1, 100)]


@pytest.mark.parametrize("name", ["rank_communication", "rank_calls"])
def test_a_first_step_that_means_of_steps_leave_out_is_left_out(name: str) -> None:
    usual = make_run(steps=4)
    frames = {rank.rank: {table: rank.table(table).collect() for table in rank.rows} for rank in usual.ranks}
    early = pl.when(pl.col("step") == 1).then(2000 * MS).otherwise(0)
    for tables in frames.values():
        tables["steps"] = tables["steps"].with_columns(pl.col("start_ns", "window_start_ns") - early)
    run = Run.from_frames(frames)

    assert run.analyse("left_out_steps")["step"].to_list() == [1] * 4
    assert set(run.analyse(name)["steps"]) == {3}
    assert set(run.analyse(name, by_step=True)["step"]) == {1, 2, 3, 4}


def test_time_in_which_calls_overlap_is_told() -> None:
    run = marked((1, 1500, None), (1, 2500, None), (1, 100, None), (2, 10, None))

    rows = run.analyse("rank_communication", by_step=True)

    # from 1000 to 1500 beside the first call, and the third wholly beside the second
    assert rows.select("step", "total_ns", "overlap_ns").rows() == [(1, 4100, 600), (2, 10, 10)]


@pytest.mark.parametrize("name", ["rank_communication", "rank_calls"])
def test_the_parts_of_a_mean_add_up_where_the_waiting_of_a_step_is_unknown(name: str) -> None:
    rows = marked((1, 10, 4), (2, 4, None)).analyse(name)

    assert rows.select("total_ns", "wait_ns", "transmit_ns", "unsplit_ns").rows() == [(7, 2, 3, 2)]


@pytest.mark.parametrize(("name", "call"), [("link_totals", None), ("call_links", "op")])
def test_what_went_over_links_before_the_first_mark_is_no_step(name: str, call: str | None) -> None:
    rows = {"source": [0] * 3, "destination": [1] * 3, "size_bytes": [6, 20, 40], "duration_ns": [6, 20, 40]}
    run = job(links={0: LINKS.frame(step=[None, 1, 2], name=[call] * 3, **rows)})

    assert run.analyse(name).select("steps", "size_bytes").rows() == [(2, 30)]
    assert sorted(run.analyse(name, by_step=True)["step"]) == [1, 2]


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
