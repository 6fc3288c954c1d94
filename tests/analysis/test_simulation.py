"""The replay of a graph of pieces of work."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from stepscope.analysis.methods.simulation import Simulation
from stepscope.sources.native import library

MOST = 2**63 - 1

unhurried = settings(deadline=None)  # a busy machine is no failure

Edge = tuple[int, int]

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=14)


def made(spans: Sequence[tuple[int, int]], edges: Sequence[Edge] = ()) -> Simulation:
    """Of nodes (start, duration) and edges (node, before)."""
    times = {"start_ns": pl.Int64, "end_ns": pl.Int64}
    nodes = pl.DataFrame([(start, start + length) for start, length in spans], schema=times, orient="row")
    return Simulation(nodes, pl.DataFrame(edges, schema={"node": pl.Int64, "before": pl.Int64}, orient="row"))


@st.composite
def any_graphs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[Edge]]:
    """Edges between any nodes, so that there are cycles and edges that the times contradict."""
    spans = draw(SPANS)
    node = st.integers(0, len(spans) - 1)
    return spans, draw(st.lists(st.tuples(node, node), max_size=30))


@st.composite
def consistent_graphs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[Edge]]:
    """Edges only from nodes that end before the node starts; of nodes at one moment from lower rows."""
    spans, edges = draw(any_graphs())
    return spans, [
        (node, before)
        for node, before in edges
        if sum(spans[before]) <= spans[node][0] and (spans[before], before) < (spans[node], node)
    ]


@contextmanager
def by_python() -> Iterator[None]:
    """As if there were no compiled code."""
    kept, library._LIBRARY = library._LIBRARY, None
    try:
        yield
    finally:
        library._LIBRARY = kept


def times_of(simulation: Simulation) -> pl.DataFrame:
    return pl.DataFrame([simulation.start_ns, simulation.end_ns])


def test_a_node_waits_for_the_last_of_its_predecessors_and_its_lag() -> None:
    simulation = made([(0, 10), (0, 4), (12, 8)], [(2, 0), (2, 1)])

    assert simulation.lag_ns.to_list() == [0, 0, 2]
    assert simulation.run(pl.Series([3, 4, 5])).rows() == [(0, 3), (0, 4), (6, 11)]
    assert simulation.run(lag_ns=pl.Series([1, 0, 0])).rows() == [(1, 11), (0, 4), (11, 19)]


def test_where_the_trace_contradicts_an_edge_the_replay_waits_and_says_so() -> None:
    simulation = made([(0, 10), (7, 5), (12, 1), (30, 1)], [(1, 0), (2, 1), (3, 2)])

    assert simulation.violated_ns.to_list() == [0, 3, 0, 0]
    assert simulation.lag_ns.to_list() == [0, 0, 0, 17]
    assert simulation.run().rows() == [(0, 10), (10, 15), (15, 16), (33, 34)]


def test_last_ends_of_groups() -> None:
    simulation = made([(0, 10), (0, 4), (12, 8), (1, 1)], [(2, 0)])
    groups = simulation.grouped(pl.DataFrame({"step": [2, 1, 2, None], "rank": [0, 0, 0, 0]}))

    assert groups.keys.rows() == [(1, 0), (2, 0)]
    assert simulation.last_ends(groups).to_list() == [4, 20]
    assert simulation.last_ends(groups, pl.Series([3, 4, 5, 100])).to_list() == [4, 10]


def test_slack_is_what_a_node_may_be_late_without_any_group_being_late() -> None:
    simulation = made([(0, 10), (0, 4), (10, 10), (4, 2), (20, 1)], [(2, 0), (2, 1), (3, 1), (4, 3), (4, 2)])
    steps = simulation.grouped(pl.Series("step", [1, 1, 1, 1, 2]))
    first = simulation.grouped(pl.Series("step", [None, 1, None, 1, None]))

    found = simulation.slack()
    assert found["slack_ns"].to_list() == [0, 6, 0, 14, 0]
    assert found["critical"].to_list() == [True, False, True, False, True]
    assert found["by"].to_list() == [None, None, 0, 1, 2]
    assert_frame_equal(found.select("start_ns", "end_ns"), simulation.run())
    assert simulation.slack(steps)["slack_ns"].to_list() == [0, 6, 0, 14, 0]
    assert simulation.slack(first)["slack_ns"].to_list() == [0, 0, 0, 0, 0]


def test_the_critical_path_leads_from_the_first_node_to_the_last_and_names_its_edges() -> None:
    simulation = made([(0, 10), (0, 4), (12, 8), (4, 2)], [(3, 1), (2, 1), (2, 0)])

    assert simulation.critical_path().rows() == [(0, 0, 10, None), (2, 12, 20, 2)]
    assert simulation.critical_path(3).rows() == [(1, 0, 4, None), (3, 4, 6, 0)]
    assert simulation.critical_path(duration_ns=pl.Series([1, 4, 8, 20])).rows() == [(1, 0, 4, None), (3, 4, 24, 0)]


def test_critical_paths_of_steps_begin_where_the_step_before_ended() -> None:
    spans = [(0, 10), (10, 5), (12, 8), (20, 10), (30, 1), (0, 2)]
    simulation = made(spans, [(1, 0), (2, 0), (3, 2), (4, 3), (4, 1)])
    steps = simulation.grouped(pl.Series("step", [1, 1, 2, 2, 2, None]))

    assert simulation.critical_paths(steps).rows() == [
        (1, 0, 0, 10, None),
        (1, 1, 10, 15, 0),
        (2, 2, 12, 20, None),
        (2, 3, 20, 30, 2),
        (2, 4, 30, 31, 3),
    ]
    assert simulation.critical_paths(steps, pl.Series([10, 1, 0, 1, 1, 50])).columns == [
        "step", "node", "start_ns", "end_ns", "via"
    ]  # fmt: skip


def test_a_critical_path_that_is_cut_begins_with_no_edge() -> None:
    simulation = made([(0, 10), (10, 10), (20, 5)], [(1, 0), (2, 1), (2, 1)])
    steps = simulation.grouped(pl.Series("step", [1, 2, 3]))

    assert simulation.critical_paths(steps)["via"].to_list() == [None, None, None]
    assert simulation.critical_path()["via"].to_list() == [None, 0, 1]


@pytest.mark.parametrize("native", [True, False])
def test_edges_of_a_cycle_that_go_against_the_trace_are_left_out_and_listed(native: bool) -> None:
    spans = [(0, 10), (10, 5), (15, 5), (20, 5)]
    around = [(1, 0), (2, 1), (3, 2), (1, 2), (3, 3)]
    if native:
        simulation = made(spans, around)
    else:
        with by_python():
            simulation = made(spans, around)

    assert simulation.left_out.rows() == [(1, 2), (3, 3)]
    assert_frame_equal(simulation.run(), times_of(simulation))


def test_a_late_edge_that_is_on_no_cycle_is_kept() -> None:
    simulation = made([(0, 5), (3, 5), (3, 0), (3, 0)], [(0, 1), (2, 3), (3, 2)])

    assert simulation.left_out.rows() == [(2, 3)]
    assert simulation.violated_ns.to_list() == [8, 0, 0, 0]


@pytest.mark.parametrize("bad, message", [
    ({"start_ns": [0, None]}, "nodes: start_ns is null in row 1"),
    ({"start_ns": [0, 30]}, "negative or too large in row 1"),
    ({"start_ns": [-MOST, 0]}, "negative or too large in row 0"),
    ({"start_ns": [5, 30]}, "nodes: end_ns - start_ns is negative or too large in row 1"),
    ({"start_ns": [0.5, 1.0]}, "nodes: start_ns: whole numbers"),
    ({"end_ns": [5, 2**63]}, "nodes: end_ns: a number does not fit into 64 bits"),
    ({"node": [2]}, "edges: node is 2 in row 0; there are 2 nodes"),
    ({"node": [0, 1, 2], "before": [0, 0, 0]}, "edges: node is 2 in row 2"),
    ({"before": [-1]}, "edges: before is -1 in row 0"),
    ({"node": [1, 1, 1], "before": [0, -1, 0]}, "edges: before is -1 in row 1"),
    ({"before": [None]}, "edges: before is null in row 0"),
])  # fmt: skip
def test_bad_graphs_are_refused(bad: dict[str, list[float | None]], message: str) -> None:
    columns = {"start_ns": [0, 5], "end_ns": [5, 6], "node": [1], "before": [0]} | bad
    whole = {name: pl.Series(name, values) for name, values in columns.items()}
    if None in columns["before"]:
        whole["before"] = whole["before"].cast(pl.Int64)

    with pytest.raises(ValueError, match=message):
        Simulation(pl.DataFrame([whole["start_ns"], whole["end_ns"]]), pl.DataFrame([whole["node"], whole["before"]]))


def test_numbers_of_other_sizes_will_do() -> None:
    nodes = pl.DataFrame(
        {"start_ns": [0, 12], "end_ns": [10, 20]}, schema=dict.fromkeys(("start_ns", "end_ns"), pl.Int32)
    )
    edges = pl.DataFrame({"node": [1], "before": [0]}, schema=dict.fromkeys(("node", "before"), pl.UInt32))
    simulation = Simulation(nodes, edges)

    assert simulation.run(pl.Series([1, 2], dtype=pl.UInt8)).rows() == [(0, 1), (3, 5)]
    assert simulation.critical_path()["via"].to_list() == [None, 0]


@pytest.mark.parametrize("native", [True, False])
def test_bad_durations_are_refused(native: bool) -> None:
    if native:
        simulation = made([(0, 5), (5, 1)], [(1, 0)])
    else:
        with by_python():
            simulation = made([(0, 5), (5, 1)], [(1, 0)])

    with pytest.raises(ValueError, match="duration_ns is negative or too large in row 1: -2"):
        simulation.run(pl.Series([1, -2]))
    with pytest.raises(ValueError, match="lag_ns is null in row 0"):
        simulation.run(lag_ns=pl.Series([None, 1]))
    with pytest.raises(ValueError, match="1 values for 2 rows"):
        simulation.ends(pl.Series([1]))
    last_ends = partial(simulation.last_ends, simulation.grouped(pl.Series([1, 2])))
    for asked in (simulation.ends, simulation.slack, simulation.critical_path, last_ends):
        with pytest.raises(ValueError, match="64 bits"):
            asked(duration_ns=pl.Series([MOST - 5, 6]))
    with nullcontext() if native else by_python(), pytest.raises(ValueError, match="64 bits"):
        made([(-MOST, 0), (MOST, 0)], [(1, 0)])
    with pytest.raises(ValueError, match="there are 2 nodes"):
        simulation.critical_path(2)
    with pytest.raises(ValueError, match="groups"):
        simulation.grouped(pl.Series([1]))
    with pytest.raises(ValueError, match="groups"):
        simulation.last_ends(made([(0, 1)]).grouped(pl.Series([1])))


def test_nothing_is_replayed_to_nothing() -> None:
    simulation = made([])

    assert simulation.run().rows() == simulation.critical_path().rows() == simulation.slack().rows() == []
    assert simulation.critical_paths(simulation.grouped(pl.Series([], dtype=pl.Int64))).is_empty()
    assert simulation.last_ends(simulation.grouped(pl.Series([], dtype=pl.Int64))).to_list() == []


@unhurried
@given(consistent_graphs())
def test_with_the_durations_of_a_consistent_trace_the_replay_is_the_trace(graph) -> None:
    simulation = made(*graph)

    assert simulation.left_out.is_empty()
    assert simulation.violated_ns.sum() == 0
    assert_frame_equal(simulation.run(), times_of(simulation))


LENGTHS = st.lists(st.integers(0, 20), min_size=14, max_size=14)


@unhurried
@given(any_graphs(), LENGTHS)
def test_the_critical_path_is_as_long_as_the_replay_and_no_chain_is_longer(graph, lengths) -> None:
    simulation = made(*graph)
    durations, lags = pl.Series(lengths[: len(graph[0])], dtype=pl.Int64), simulation.lag_ns
    replayed, path = simulation.run(durations), simulation.critical_path(duration_ns=durations)

    first = path["node"][0]
    own = durations.gather(path["node"]).sum() + lags.gather(path["node"]).sum()
    assert path["end_ns"][-1] == replayed["end_ns"].max() == simulation.start_ns[first] + own
    assert simulation.slack(duration_ns=durations)["critical"].gather(path["node"]).all()
    kept = simulation.edges.join(simulation.left_out, on=["node", "before"], how="anti")
    assert kept.filter(
        replayed["start_ns"].gather(kept["node"])
        < replayed["end_ns"].gather(kept["before"]) + lags.gather(kept["node"])
    ).is_empty()


@unhurried
@given(any_graphs(), LENGTHS)
def test_critical_paths_of_groups_are_the_ends_of_those_of_their_last_nodes(graph, lengths) -> None:
    simulation = made(*graph)
    groups = simulation.grouped(pl.Series("step", [length % 3 for length in lengths[: len(graph[0])]]))
    found, since = simulation.critical_paths(groups), None

    ends = groups.keys.with_columns(simulation.last_ends(groups)).sort("end_ns", "step")
    for step, end_ns in ends.rows():
        path = found.filter(step=step).drop("step")
        whole = simulation.critical_path(path["node"][-1])
        later = whole if since is None else whole.filter((pl.col("end_ns") > since) | (pl.col("end_ns") == end_ns))
        assert path["end_ns"][-1] == end_ns
        assert path["node"].to_list() == later["node"].to_list()[-path.height :]
        assert path.height == later.height or end_ns == since or path.height == 1
        since = end_ns
    assert found["step"].unique(maintain_order=True).to_list() == ends["step"].to_list()


@unhurried
@given(any_graphs(), LENGTHS, LENGTHS)
def test_longer_durations_end_nothing_sooner(graph, lengths, more) -> None:
    simulation, count = made(*graph), len(graph[0])
    short = pl.Series(lengths[:count], dtype=pl.Int64)

    assert (simulation.ends(short) <= simulation.ends(short + pl.Series(more[:count], dtype=pl.Int64))).all()


@unhurried
@given(any_graphs(), LENGTHS)
def test_slack_can_be_used_and_not_more(graph, lengths) -> None:
    simulation, count = made(*graph), len(graph[0])
    groups = simulation.grouped(pl.Series("step", [length % 3 or None for length in lengths[:count]], dtype=pl.Int64))
    found = simulation.slack(groups)
    last, latest = simulation.last_ends(groups), found["end_ns"].max()

    for node, slack in enumerate(found["slack_ns"]):
        later = [
            simulation.duration_ns.clone().scatter(node, simulation.duration_ns[node] + slack + more) for more in (0, 1)
        ]
        assert simulation.last_ends(groups, later[0]).equals(last)
        assert not simulation.last_ends(groups, later[1]).equals(last) or simulation.ends(later[1]).max() > latest


@unhurried
@given(any_graphs(), LENGTHS, st.integers(-(10**18), 10**18), st.randoms(use_true_random=False))
def test_names_of_nodes_and_a_shift_of_all_clocks_change_nothing(graph, lengths, shift, draw) -> None:
    spans, edges = graph
    assume(len(set(spans)) == len(spans))  # else rows decide which edges of a cycle are left out
    renamed = list(range(len(spans)))
    draw.shuffle(renamed)
    moved, durations = [(0, 0)] * len(spans), [0] * len(spans)
    for node, (start, length) in enumerate(spans):
        moved[renamed[node]], durations[renamed[node]] = (start + shift, length), lengths[node]
    others = [(renamed[node], renamed[before]) for node, before in edges]
    draw.shuffle(others)

    expected = made(spans, edges).slack(duration_ns=pl.Series(lengths[: len(spans)], dtype=pl.Int64))
    found = made(moved, others).slack(duration_ns=pl.Series(durations, dtype=pl.Int64))

    back = found[pl.Series(renamed, dtype=pl.Int64)]
    assert_series_equal(back["end_ns"] - shift, expected["end_ns"])
    assert_series_equal(back["slack_ns"], expected["slack_ns"])


def test_threads_can_share_a_simulation() -> None:
    draw, count = random.Random(1), 3000
    spans = [(10 * node, draw.randint(0, 10)) for node in range(count)]
    simulation = made(spans, [(node, max(node - draw.randint(1, 9), 0)) for node in range(1, count)])
    durations = [simulation.duration_ns * factor for factor in range(8)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(simulation.run, durations * 4))

    assert all(one.equals(simulation.run(each)) for one, each in zip(found, durations * 4, strict=True))


def answers(simulation: Simulation, durations: pl.Series, steps: pl.Series) -> list[pl.DataFrame]:
    groups = simulation.grouped(steps)
    return [
        pl.DataFrame([simulation.lag_ns, simulation.violated_ns]),
        simulation.left_out,
        simulation.run(durations),
        simulation.last_ends(groups, durations).to_frame(),
        simulation.slack(groups, durations),
        simulation.slack(),
        simulation.critical_path(duration_ns=durations),
        simulation.critical_path(0),
        simulation.critical_paths(groups, durations),
    ]


@pytest.mark.skipif(not library.is_available(), reason="no compiled code here")
@settings(deadline=None, max_examples=300)
@given(any_graphs(), LENGTHS)
def test_compiled_code_and_python_agree(graph, lengths) -> None:
    durations = pl.Series(lengths[: len(graph[0])], dtype=pl.Int64)
    steps = pl.Series("step", [length % 4 or None for length in lengths[: len(graph[0])]], dtype=pl.Int64)

    found = answers(made(*graph), durations, steps)
    with by_python():
        expected = answers(made(*graph), durations, steps)

    for one, other in zip(found, expected, strict=True):
        assert_frame_equal(one, other)


@pytest.mark.skipif(not library.is_available(), reason="no compiled code here")
@pytest.mark.parametrize("seed", range(4))
def test_compiled_code_and_python_agree_on_larger_graphs(seed: int) -> None:
    draw, count = random.Random(seed), 800
    spans = [(draw.randint(0, 5000), draw.choice((0, 0, 5, 50))) for _ in range(count)]
    edges = [(draw.randrange(count), draw.randrange(count)) for _ in range(draw.choice((300, 900, 3000)))]
    durations = pl.Series([draw.randint(0, 60) for _ in range(count)])
    steps = pl.Series("step", [draw.choice((None, 1, 2, 3)) for _ in range(count)], dtype=pl.Int64)

    found = answers(made(spans, edges), durations, steps)
    with by_python():
        expected = answers(made(spans, edges), durations, steps)

    for one, other in zip(found, expected, strict=True):
        assert_frame_equal(one, other)
