"""The curve of memory, its peak, and who holds it."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.tables import (
    ALLOCATIONS,
    COUNTERS,
    GRAPH_NODES,
    GRAPH_TENSORS,
    GRAPHS,
    HOST_USAGE,
    MEMORY_CURVE,
    RANK_FIGURES,
)
from tests.analysis.inputs import MS, steps


def graph(*, totals: list[int] | None = None, lifetimes: list[str | None] | None = None) -> dict[str, pl.DataFrame]:
    """A graph of four nodes with a static part of 100 bytes and three tensors."""
    return {
        "graphs": GRAPHS.frame(graph=[7], static_bytes=[100], forward_start=[0], backward_end=[2]),
        "graph_nodes": GRAPH_NODES.frame(
            graph=[7] * 4,
            node=[0, 1, 2, 3],
            name=["Conv2D-op1", "ReLU-op2", "MatMul-op3", "Momentum-op4"],
            size_bytes=[10, 20, 30, 0],
            total_bytes=totals or [None] * 4,
            allocations=[1, 1, 1, 0],
        ),
        "graph_tensors": GRAPH_TENSORS.frame(
            graph=[7] * 3,
            tensor=[0, 1, 2],
            node=[0, 1, 2],
            name=["a", "b", "c"],
            size_bytes=[10, 20, 30],
            lifetime=lifetimes or [None] * 3,
            life_start=[0, 1, 2],
            life_end=[1, 2, 3],
        ),
    }


def curve(values: list[int], *, device: int | None = 0, every_ms: int = 2) -> pl.DataFrame:
    return MEMORY_CURVE.frame(
        time_ns=[k * every_ms * MS for k in range(len(values))],
        device=[device] * len(values),
        allocated_bytes=values,
        reserved_bytes=[2 * value for value in values],
        change_bytes=[b - a for a, b in zip([0, *values], values, strict=False)],
    )


def ask(tables: dict[str, pl.DataFrame], question: str, **options: object) -> pl.DataFrame:
    return Run.from_frames({0: tables}).analyse(question, **options)


def test_memory_at_a_node_is_the_static_part_and_the_tensors_alive() -> None:
    usage = ask(graph(), "memory_usage")

    assert usage["allocated_bytes"].to_list() == [10, 30, 50, 30]
    assert usage["total_bytes"].to_list() == [110, 130, 150, 130]
    assert usage["mark"].to_list() == ["forward_start", None, "backward_end", None]


def test_what_the_source_states_of_a_node_comes_first() -> None:
    usage = ask(graph(totals=[110, 140, 190, 120]), "memory_usage")

    assert usage["total_bytes"].to_list() == [110, 140, 190, 120]
    assert usage["allocated_bytes"].to_list() == [10, 40, 90, 20]


def test_stated_lifetimes_reach_to_the_ends_of_the_graph() -> None:
    usage = ask(graph(lifetimes=["LifeLongGraphAll", "LifeLongGraphStart", "LifeLongGraphEnd"]), "memory_usage")

    assert usage["allocated_bytes"].to_list() == [30, 30, 60, 40]


def test_changes_of_an_allocator_stand_in_their_step_and_phase() -> None:
    marked = steps(2).with_columns(
        forward_start_ns=pl.col("start_ns") + 2 * MS, backward_end_ns=pl.col("start_ns") + 6 * MS
    )

    usage = ask({"memory_curve": curve([1, 2, 3, 4, 5, 6]), "steps": marked}, "memory_usage")

    assert usage["step"].to_list() == [1, 1, 1, 1, 1, 2]
    assert usage["phase"].to_list() == ["interval", *["forward and backward"] * 3, "tail", "interval"]
    assert usage["mark"].to_list() == [None, "forward_start", None, None, "backward_end", None]


def test_each_device_has_its_own_marks() -> None:
    marked = steps(1).with_columns(forward_start_ns=pl.col("start_ns"), backward_end_ns=pl.col("end_ns"))
    both = pl.concat([curve([1, 2]), curve([3, 4], device=1)])

    usage = ask({"memory_curve": both, "steps": marked}, "memory_usage").filter(pl.col("mark") == "forward_start")

    assert sorted(usage["device"].to_list()) == [0, 1]


def test_changes_after_a_step_stand_in_none() -> None:
    usage = ask({"memory_curve": curve([1, 2, 3, 4, 5, 6, 7]), "steps": steps(1)}, "memory_usage")

    assert usage["step"].to_list() == [*[1] * 6, None]


def test_memory_of_chosen_steps_is_what_was_in_use_then() -> None:
    levels = curve([5, 9, 3, 4, 8, 6, 7, 2], every_ms=3)  # steps of 10 ms begin between two changes
    stated = RANK_FIGURES.frame(name=["memory_capacity_bytes", "memory_peak_bytes"], value=[100.0, 90.0])
    run = Run.from_frames({0: {"memory_curve": levels, "steps": steps(3), "rank_figures": stated}})

    for chosen in (run.select(steps=2), run.select(steps="1-2").select(steps="2-3"), None):
        usage = chosen.analyse("memory_usage") if chosen else run.analyse("memory_usage", chosen=2)
        peak = (chosen.analyse("memory_peak") if chosen else run.analyse("memory_peak", chosen=2)).row(0, named=True)
        assert usage.select("step", "time_ns", "size_bytes", "total_bytes").rows() == [
            (2, 10 * MS, None, 4),  # since 9 ms
            (2, 12 * MS, 4, 8),
            (2, 15 * MS, -2, 6),
            (2, 18 * MS, 1, 7),
        ]
        assert (peak["step"], peak["time_ns"], peak["peak_bytes"], peak["allocations"]) == (2, 12 * MS, 8, 2)
        assert (peak["stated_peak_bytes"], peak["used_ratio"]) == (90, 0.16)  # the stated one is of all steps
    assert run.analyse("memory_peak").row(0, named=True)["peak_bytes"] == 9
    assert run.select(steps=3).analyse("memory_peak").row(0, named=True)["peak_bytes"] == 7
    assert run.select(steps=2).analyse("memory_hints").equals(run.analyse("memory_hints"))


def test_memory_that_did_not_change_in_a_chosen_step_was_in_use_all_the_same() -> None:
    run = Run.from_frames({0: {"memory_curve": curve([5, 9]), "steps": steps(3)}})

    assert run.analyse("memory_usage", chosen="2-3").select("time_ns", "total_bytes").rows() == [(10 * MS, 9)]
    assert run.analyse("memory_peak", chosen=3).select("time_ns", "peak_bytes").rows() == [(20 * MS, 9)]


def test_before_the_first_change_no_memory_is_known() -> None:
    late = curve([5, 9]).with_columns(pl.col("time_ns") + 20 * MS)
    run = Run.from_frames({0: {"memory_curve": late, "steps": steps(3)}})

    for question in ("memory_usage", "memory_peak"):
        with pytest.raises(Unavailable, match="in the chosen steps"):
            run.select(steps="1").analyse(question)


def test_no_memory_is_no_answer() -> None:
    for question in ("memory_usage", "memory_peak", "memory_hints", "memory_breakdown"):
        with pytest.raises(Unavailable):
            ask({"steps": steps(1)}, question)


def test_the_peak_says_where_it_is_and_what_the_source_states() -> None:
    stated = RANK_FIGURES.frame(
        name=["memory_capacity_bytes", "memory_peak_bytes", "memory_static_bytes", "memory_allocations"],
        value=[1000.0, 600.0, 100.0, 3.0],
    )

    row = ask({**graph(), "rank_figures": stated}, "memory_peak").row(0, named=True)

    assert (row["peak_bytes"], row["node"], row["name"], row["static_bytes"]) == (150, 2, "MatMul-op3", 100)
    assert (row["stated_peak_bytes"], row["stated_allocations"], row["stated_deallocations"]) == (600, 3, None)
    assert (row["capacity_bytes"], row["used_ratio"]) == (1000, 0.6)


def test_the_first_of_equal_peaks_counts() -> None:
    assert ask({"memory_curve": curve([1, 9, 9, 2])}, "memory_peak")["time_ns"].to_list() == [2 * MS]


def test_releases_are_no_allocations() -> None:
    assert ask({"memory_curve": curve([1, 3, 2])}, "memory_peak")["allocations"].to_list() == [2]


def test_the_capacity_is_that_of_the_device_or_of_the_host() -> None:
    tables = {
        "memory_curve": pl.concat([curve([5, 6]), curve([7, 8], device=None)]),
        "counters": COUNTERS.frame(time_ns=[0], name=["memory_total_bytes"], device=[0], value=[48.0]),
        "host_usage": HOST_USAGE.frame(time_ns=[0], scope=["host"], total_bytes=[64]),
    }

    found = ask(tables, "memory_peak").select("device", "capacity_bytes", "used_ratio").rows()

    assert found == [(None, 64, 0.25), (0, 48, 0.25)]  # of what is reserved: twice what is in use


def test_other_counters_of_a_device_are_not_its_capacity() -> None:
    names = ["memory_total_bytes", "power"]
    counters = COUNTERS.frame(time_ns=[0] * 2, name=names, device=[0] * 2, value=[48.0, 700.0])

    found = ask({"memory_curve": curve([5]), "counters": counters}, "memory_peak")

    assert found["capacity_bytes"].to_list() == [48]


def test_the_size_of_a_device_alone_shows_no_use_of_its_memory() -> None:
    stated = RANK_FIGURES.frame(name=["memory_capacity_bytes"], value=[100.0])

    with pytest.raises(Unavailable, match="no memory was recorded"):
        ask({"rank_figures": stated}, "memory_peak")


def test_a_rank_that_only_states_its_peak_has_one() -> None:
    stated = RANK_FIGURES.frame(name=["memory_peak_bytes"], value=[600.0])

    row = ask({"rank_figures": stated}, "memory_peak").row(0, named=True)

    assert (row["rank"], row["peak_bytes"], row["stated_peak_bytes"], row["used_ratio"]) == (0, None, 600, None)


def test_the_breakdown_at_a_node_lists_what_lives_there() -> None:
    alive = ask(graph(), "memory_breakdown", node=1)

    assert alive.select("name", "size_bytes", "life_start", "life_end", "made_by").rows() == [
        ("b", 20, 1, 2, "ReLU-op2"),
        ("a", 10, 0, 1, "Conv2D-op1"),
    ]
    # of what is in use there, the static part too
    assert alive["share_ratio"].to_list() == pytest.approx([20 / 130, 10 / 130])


def test_without_a_node_the_breakdown_is_that_of_the_peak() -> None:
    assert ask(graph(), "memory_breakdown").select("node", "name").rows() == [(2, "c"), (2, "b")]


def test_of_several_graphs_a_node_is_of_the_lowest_unless_one_is_named() -> None:
    other = {name: table.with_columns(graph=pl.lit(9, pl.Int64)) for name, table in graph().items()}
    other["graph_tensors"] = other["graph_tensors"].with_columns(name=pl.format("{}9", "name"))
    both = {name: pl.concat([table, other[name]]) for name, table in graph().items()}

    assert ask(both, "memory_breakdown", node=1)["name"].to_list() == ["b", "a"]
    assert ask(both, "memory_breakdown", node=1, graph=9)["name"].to_list() == ["b9", "a9"]


def test_the_share_of_a_block_is_of_the_curve_that_holds_it() -> None:
    held, part = curve([8, 2]).with_columns(component=pl.lit("all")), curve([1, 1]).with_columns(component=pl.lit("x"))
    block = ALLOCATIONS.frame(name=["mm"], device=[0], size_bytes=[2], allocation_ns=[0], release_ns=[None])

    found = ask({"memory_curve": pl.concat([held, part]), "allocations": block}, "memory_breakdown", at_ns=MS)

    assert found["share_ratio"].to_list() == [0.25]


def test_memory_of_the_host_is_no_share_of_the_device_nor_the_other_way_round() -> None:
    host = curve([60]).with_columns(device=pl.lit(None, pl.Int32))
    device = RANK_FIGURES.frame(name=["memory_capacity_bytes", "memory_peak_bytes"], value=[200.0, 140.0])
    whole = HOST_USAGE.frame(time_ns=[0], scope=["host"], total_bytes=[600])

    rows = ask(graph() | {"memory_curve": host, "rank_figures": device, "host_usage": whole}, "memory_peak")

    assert rows.select("graph", "capacity_bytes", "stated_peak_bytes", "used_ratio").rows() == [
        (7, 200, 140, 0.75),
        (None, 600, None, 0.2),
    ]
    without = ask(graph() | {"host_usage": whole}, "memory_peak")
    assert without.select("capacity_bytes", "used_ratio").rows() == [(None, None)]


def test_blocks_are_listed_at_the_highest_peak_of_their_device() -> None:
    low = curve([5, 1, 1]).with_columns(component=pl.lit("low"))
    high = curve([1, 9, 2]).with_columns(component=pl.lit("high"))
    block = ALLOCATIONS.frame(name=["mm"], device=[0], size_bytes=[1], allocation_ns=[0], release_ns=[None])

    found = ask({"memory_curve": pl.concat([low, high]), "allocations": block}, "memory_breakdown")

    assert found["time_ns"].to_list() == [2 * MS]


def test_blocks_are_held_from_allocation_to_release() -> None:
    blocks = ALLOCATIONS.frame(
        name=["mm", "relu", "never"],
        device=[0] * 3,
        size_bytes=[30, 20, 10],
        allocation_ns=[0, 5, 10],
        release_ns=[10, 20, None],
    )

    at = {when: ask({"allocations": blocks}, "memory_breakdown", at_ns=when)["name"].to_list() for when in (5, 10, 19)}

    assert at == {5: ["mm", "relu"], 10: ["relu", "never"], 19: ["relu", "never"]}
    # without a curve, the peak is when the blocks held most
    assert ask({"allocations": blocks}, "memory_breakdown")["time_ns"].unique().to_list() == [5]


@pytest.mark.parametrize(
    ("asked", "point"), [({"graph": 1}, "graph 1"), ({"node": 3}, "node 3"), ({"at_ns": 5}, "time 5")]
)
def test_a_point_that_was_not_recorded_is_named(asked: dict[str, int], point: str) -> None:
    block = ALLOCATIONS.frame(name=["mm"], device=[0], size_bytes=[30], allocation_ns=[10], release_ns=[20])

    with pytest.raises(StepscopeError, match=rf"known at {point}\. They are known by time, from 10 to 20 ns"):
        ask({"allocations": block}, "memory_breakdown", **asked)
    with pytest.raises(StepscopeError, match=r"known at time 5\. They are known by graph and node"):
        ask(graph(), "memory_breakdown", at_ns=5)


def test_a_node_that_there_is_not_has_no_breakdown() -> None:
    with pytest.raises(StepscopeError, match=r"graph 7 has no node 99\. It has nodes 0-3"):
        ask(graph(), "memory_breakdown", node=99)
    with pytest.raises(StepscopeError, match=r"no graph 8 was recorded\. Recorded: graph 7"):
        ask(graph(), "memory_breakdown", graph=8)


@pytest.mark.parametrize("question", ["memory_breakdown", "memory_usage", "memory_hints"])
def test_one_reason_stands_for_all_that_no_memory_was_recorded(question: str) -> None:
    with pytest.raises(Unavailable, match=r"^no memory was recorded\.?$"):
        ask({"steps": steps(1)}, question)
