"""Bandwidth of collectives, and how evenly all-to-all calls spread their payload."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from stepscope.analysis import uneven_splits
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVE_SPLITS, COLLECTIVES, GROUPS, RANKS


def job(
    operation: str, *calls: list[tuple[int, int]], size: int = 800, size_of: str | None = "whole", **ranks: Any
) -> Run:
    """Ranks that make calls of a group of all of them: start and end of each call, for each rank."""
    frames = {}
    for rank, own in enumerate(calls):
        rows = [{"sequence": at, "start_ns": start, "duration_ns": end - start} for at, (start, end) in enumerate(own)]
        about = {"group": "g", "operation": operation, "name": operation, "size_bytes": size, "on_device": True}
        about["size_of"] = size_of
        collectives = pl.DataFrame(rows).with_row_index("collective").with_columns(
            **{name: pl.lit(value) for name, value in about.items()}, element_type=pl.lit("float")
        )  # fmt: skip
        members = pl.DataFrame({"group": ["g"], "name": ["dp"], "members": [list(range(len(calls)))]})
        facts = {"host": ["h"], **{name: [value] for name, value in ranks.items()}}
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
    ],
)
def test_bandwidth_is_of_the_time_in_which_all_ranks_are_in_the_call(operation: str, factor: float) -> None:
    row = job(operation, *FOUR).analyse("bus_bandwidth").row(0, named=True)

    assert (row["ranks"], row["transmit_ns"], row["skew_ns"], row["end_skew_ns"]) == (4, 100, 100, 10)
    assert row["algorithm_bytes_per_s"] == pytest.approx(8e9)
    assert row["bus_bytes_per_s"] == pytest.approx(8e9 * factor)


@pytest.mark.parametrize("operation", ["broadcast", "reduce", "gather", "scatter", "new_operation"])
def test_calls_that_ranks_may_leave_before_others_enter_have_no_rate(operation: str) -> None:
    row = job(operation, *FOUR).analyse("bus_bandwidth").row(0, named=True)

    assert (row["calls"], row["skew_ns"], row["end_skew_ns"]) == (1, 100, 10)
    rates = ("transmit_ns", "shortest_ns", "algorithm_bytes_per_s", "bus_bytes_per_s", "best_bus_bytes_per_s")
    assert [row[name] for name in rates] == [None] * 5


def test_marks_on_the_host_are_no_transfers_on_ranks_with_calls_on_the_device() -> None:
    calls = [[(0, 100), (200, 201)]] * 2
    run = job("all_reduce", *calls)
    late = (pl.col("collective") == 0).alias("on_device")
    marked = Run.from_frames(changed(run, collectives=lambda rows: rows.with_columns(late)))

    assert marked.analyse("bus_bandwidth").select("calls", "shortest_ns").rows() == [(1, 100)]

    on_host = Run.from_frames(changed(run, collectives=lambda rows: rows.with_columns(on_device=pl.lit(value=False))))
    assert on_host.analyse("bus_bandwidth").select("calls", "shortest_ns").rows() == [(2, 1)]


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
    def size(operation: str, size_of: str | None) -> int | None:
        found: int | None = job(operation, *FOUR, size_of=size_of).analyse("bus_bandwidth")["size_bytes"][0]
        return found

    assert [size("all_gather", of) for of in (None, "part", "whole")] == [None, 3200, 800]
    assert [size("all_to_all", of) for of in (None, "part", "whole")] == [None, None, 800]
    assert [size("all_reduce", of) for of in (None, "part", "whole")] == [800] * 3


def changed(run: Run, **changes: Callable[[pl.DataFrame], pl.DataFrame]) -> dict[int, dict[str, pl.DataFrame]]:
    """The tables of a run, some of them changed."""
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    for tables in frames.values():
        tables.update({name: change(tables[name]) for name, change in changes.items()})
    return frames


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

    assert (row["elements"], row["ranks"], row["pair_rank"], row["pair_receiver"]) == (120, 2, 1, 1)
    assert (row["most_sent_rank"], row["sent_factor"]) == (1, pytest.approx(80 / 60))
    assert (row["most_received_rank"], row["least_received_rank"]) == (1, 0)
    assert row["received_factor"] == pytest.approx(1.5)


@pytest.mark.parametrize("even", ["[]", None])
def test_a_rank_that_splits_evenly_does_not_count_as_sending_nothing(even: str | None) -> None:
    row = splits("[10, 30]", even).analyse("uneven_splits").row(0, named=True)

    assert (row["ranks"], row["elements"]) == (1, 40)
    assert [value for name, value in row.items() if "_factor" in name or "_received_" in name] == [None] * 5


def test_calls_of_a_rank_that_begins_to_record_one_later_are_those_of_the_others() -> None:
    calls = [[(0, 100), (1000, 1100), (2000, 2100)]] * 2
    said = ["[1, 1]", "[10, 30]", "[10, 30]"], ["[20, 60]", "[20, 60]"]
    frames = changed(job("all_to_all", calls[0], calls[1][1:]))
    for rank, texts in enumerate(said):
        rows = pl.DataFrame({"collective": range(len(texts)), "input_splits": texts})
        frames[rank]["collective_splits"] = COLLECTIVE_SPLITS.conform(rows)

    found = Run.from_frames(frames).analyse("uneven_splits").sort("sequence")

    assert found.select("sequence", "ranks", "elements").rows() == [(0, 1, 2), (1, 2, 120), (2, 2, 120)]


def test_pairs_are_summed_up_a_few_calls_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = changed(job("all_to_all", *[[(0, 100), (200, 300), (400, 500)]] * 2))
    for tables in frames.values():
        rows = pl.DataFrame({"collective": [0, 1, 2], "input_splits": ["[1, 2]"] * 3})
        tables["collective_splits"] = COLLECTIVE_SPLITS.conform(rows)
    module = sys.modules[uneven_splits.__module__]
    of_calls, sizes = getattr(module, "_of_calls"), []  # noqa: B009 - of another module

    def counted(sent: pl.DataFrame) -> pl.DataFrame:
        sizes.append(sent.height)
        found: pl.DataFrame = of_calls(sent)
        return found

    monkeypatch.setattr(module, "BATCH_PAIRS", 3)
    monkeypatch.setattr(module, "_of_calls", counted)
    run = Run.from_frames(frames)

    assert run.analyse("split_pairs")["elements"].to_list() == [3, 6, 3, 6]
    assert run.analyse("uneven_splits").select("sequence", "elements").rows() == [(0, 6), (1, 6), (2, 6)]
    assert sizes == [4, 4, 4]


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
