"""The graph of a whole job, what mending saves in it, and where the excess of a rank lies: all by hand."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.methods.costs import BusyCosts, ReplayCosts
from stepscope.analysis.methods.excess_places import cuts
from stepscope.analysis.methods.job_graph import JobGraph, job_graph
from stepscope.analysis.methods.shapley import EXACT, ORDERS, shares
from stepscope.analysis.registry import ANALYSES

WORK, DEPENDENCIES, ARRIVAL = (ANALYSES[name].schema for name in ("work", "dependencies", "arrival"))


def graph(
    work: list[tuple[int, int, str, int, int]],
    dependencies: list[tuple[int, int, int]],
    calls: list[list[tuple[int, int]]],
    clocks: dict[int, int] | None = None,
) -> JobGraph:
    """Of pieces (rank, step, kind, start, end), numbered within their rank; dependencies (rank, piece, before); and
    calls: rank and piece of each member."""
    numbers: dict[int, int] = {}
    rows, member = [], {place: number for number, places in enumerate(calls) for place in places}
    for rank, step, kind, start, end in work:
        number = numbers.get(rank, 0)
        numbers[rank] = number + 1
        rows.append({"rank": rank, "work": number, "step": step, "kind": kind, "lane": kind, "start_ns": start,
                     "end_ns": end, "collective": number if (rank, number) in member else None})  # fmt: skip
    matched = [
        {"rank": rank, "collective": number, "group": "g", "sequence": call, "members": len(calls[call])}
        for (rank, number), call in member.items()
    ]
    offsets = [{"rank": rank, "offset_ns": ns} for rank, ns in (clocks or {}).items()]
    edges = [{"rank": r, "work": node, "before": before, "why": "lane"} for r, node, before in dependencies]
    return job_graph(
        pl.DataFrame(rows, schema=WORK),
        pl.DataFrame(edges, schema=DEPENDENCIES),
        pl.DataFrame(matched, schema=ARRIVAL) if calls else None,
        pl.DataFrame(offsets, schema={"rank": pl.Int32, "offset_ns": pl.Int64}) if clocks else None,
    )


COMPUTING, CALL = "computing", "communication"
TWO = [
    (0, 1, COMPUTING, 0, 60), (0, 1, CALL, 60, 120), (0, 2, COMPUTING, 120, 150), (0, 2, CALL, 150, 180),
    (1, 1, COMPUTING, 0, 100), (1, 1, CALL, 100, 120), (1, 2, COMPUTING, 120, 160), (1, 2, CALL, 160, 180),
]  # fmt: skip
CHAIN = [(rank, piece, piece - 1) for rank in (0, 1) for piece in (1, 2, 3)]
CALLS = [[(0, 1), (1, 1)], [(0, 3), (1, 3)]]


def changed(found: JobGraph, *lengths: tuple[int, int, int]) -> list[int]:
    """Lengths of the steps with other durations of pieces (rank, work, ns)."""
    durations = found.simulation.duration_ns.to_list()
    for rank, work, ns in lengths:
        parts = found.nodes.with_row_index("node").filter(rank=rank, work=work)
        durations[parts["node"][-1]] = ns
    return found.step_times(pl.Series(durations)).to_list()


def test_without_changes_steps_take_as_long_as_recorded() -> None:
    found = graph(TWO, CHAIN, CALLS)

    assert found.steps == [1, 2]
    assert found.recorded_step_times().to_list() == found.step_times().to_list() == [120, 60]
    assert found.step_starts().rows() == [(1, 0), (2, 120)]


def test_a_call_is_an_entry_a_hub_for_all_and_a_transmission_of_each_member() -> None:
    found = graph(TWO, CHAIN, CALLS)
    first = found.nodes.filter(call=0).sort("part", "rank", nulls_last=True)

    assert first.select("part", "rank", "start_ns", "end_ns").rows() == [
        ("entry", 0, 60, 60),
        ("entry", 1, 100, 100),
        ("hub", None, 100, 100),
        ("transmission", 0, 100, 120),
        ("transmission", 1, 100, 120),
    ]


def test_the_last_member_decides_when_a_call_begins_for_all() -> None:
    found = graph(TWO, CHAIN, CALLS)

    assert changed(found, (1, 0, 70)) == [90, 60]  # 30 sooner: rank 1 is still the last
    assert changed(found, (1, 0, 20)) == [80, 60]  # now rank 0 is, 40 sooner
    assert changed(found, (0, 0, 10)) == [120, 60]  # rank 0 waited
    assert changed(found, (0, 0, 130), (1, 2, 70)) == [150, 90]


def test_a_member_that_left_before_the_last_one_came_waited_for_nobody() -> None:
    """A buffered send: it ends although the receiver has not come, so only the receiver waits."""
    pieces = [(0, 1, CALL, 10, 20), (0, 1, COMPUTING, 20, 50), (1, 1, COMPUTING, 0, 40), (1, 1, CALL, 40, 60)]
    found = graph(pieces, [(0, 1, 0), (1, 1, 0)], [[(0, 0), (1, 1)]])

    ends = found.simulation.ends(found.simulation.duration_ns + pl.Series([0, 0, 30, 0, 0, 0, 0]))
    own = found.nodes.with_columns(ends).filter(part="transmission")
    assert own.select("rank", "end_ns").rows() == [(0, 20), (1, 90)]
    assert changed(found, (1, 0, 0)) == [50]  # the receiver cannot come before it was sent: at 10, and takes 20


def test_a_call_seen_on_one_rank_is_a_piece_like_any_other() -> None:
    found = graph(TWO[:2], [(0, 1, 0)], [[(0, 1)]])

    assert found.nodes["part"].to_list() == ["whole", "whole"]
    assert changed(found, (0, 0, 10)) == [70]


def test_clocks_are_put_on_one() -> None:
    ahead = [(rank, step, kind, start + 1000 * rank, end + 1000 * rank) for rank, step, kind, start, end in TWO]
    found = graph(ahead, CHAIN, CALLS, {0: 0, 1: 1000})

    assert found.recorded_step_times().to_list() == found.step_times().to_list() == [120, 60]
    assert found.nodes["own_start_ns"].max() == 1160


def test_time_between_steps_belongs_to_none() -> None:
    """Steps 2 and 3 were left out, and last until 900."""
    found = graph([(0, 1, COMPUTING, 0, 60), (0, 4, COMPUTING, 900, 950)], [(0, 1, 0)], [])

    assert found.steps == [1, 4]
    assert found.step_times().to_list() == [60, 50]


def excess(*rows: tuple[int, int, int | None], kind: str = COMPUTING) -> pl.DataFrame:
    """Of rank, step and ns."""
    columns = {"rank": pl.Int32, "step": pl.Int32, "excess_ns": pl.Int64}
    found = pl.DataFrame(rows, schema=columns, orient="row")
    return found.with_columns(kind=pl.lit(kind), program=pl.lit(0, pl.Int32), own_ns=pl.lit(100, pl.Int64))


def nodes(*lengths: tuple[int, int]) -> pl.DataFrame:
    """Computing in step 1, of ranks and lengths."""
    rows = [{"rank": rank, "step": 1, "kind": COMPUTING, "start_ns": 0, "end_ns": ns} for rank, ns in lengths]
    types = {"rank": pl.Int32, "step": pl.Int32}
    return pl.DataFrame(rows, schema_overrides=types).with_columns(name=pl.lit("kernel"))


def test_an_excess_is_taken_from_the_pieces_that_are_longer_than_those_of_peers() -> None:
    pieces = nodes((0, 10), (0, 20), (0, 30), (1, 10), (1, 50), (1, 30), (2, 10), (2, 20), (2, 30))
    others = ((0, 1, 0), (2, 1, 0))

    assert cuts(pieces, excess(*others, (1, 1, 30))).to_list() == [0, 0, 0, 0, 30, 0, 0, 0, 0]
    assert cuts(pieces, excess(*others, (1, 1, 12))).to_list() == [0, 0, 0, 0, 12, 0, 0, 0, 0]


def test_what_longer_pieces_do_not_explain_is_taken_from_all_by_their_length() -> None:
    pieces = nodes((0, 10), (0, 30), (1, 10), (1, 40), (2, 10), (2, 30))

    found = cuts(pieces, excess((0, 1, 0), (1, 1, 30), (2, 1, 0)))

    assert found.to_list() == [0, 0, 5, 25, 0, 0]  # 10 from the longer piece, 20 from 10 and 30 that are left


def test_pieces_without_counterparts_share_the_excess_by_their_length_and_never_get_negative() -> None:
    assert cuts(nodes((0, 10), (1, 30), (1, 10)), excess((0, 1, 0), (1, 1, 20))).to_list() == [0, 15, 5]
    assert cuts(nodes((0, 10), (1, 30), (1, 10)), excess((0, 1, 0), (1, 1, 500))).to_list() == [0, 30, 10]


def test_pieces_are_compared_by_name_within_program_step_and_kind() -> None:
    """Rank 1 takes 30 longer for its second `gemm`; everything else differs from it and is as long as it is."""
    pieces = nodes((0, 10), (0, 90), (0, 20), (1, 10), (1, 90), (1, 50), (2, 10), (2, 90), (2, 20))
    mixed = pieces.with_columns(name=pl.Series(["gemm", "norm", "gemm"] * 3))
    more = excess((0, 1, 0), (1, 1, 30), (2, 1, 0))

    assert cuts(mixed, more).to_list() == [0, 0, 0, 0, 0, 30, 0, 0, 0]
    others = mixed.with_columns(end_ns=pl.col("end_ns") + 100)
    strange = excess((0, 1, 0), (1, 1, 0), (2, 1, 0))
    for far, their in (
        (others.with_columns(step=pl.lit(2, pl.Int32)), strange.with_columns(step=pl.lit(2, pl.Int32))),
        (others.with_columns(kind=pl.lit("memory")), strange.with_columns(kind=pl.lit("memory"))),
        (
            others.with_columns(pl.col("rank") + 5),
            strange.with_columns(pl.col("rank") + 5, program=pl.lit(5, pl.Int32)),
        ),
    ):
        found = cuts(pl.concat([far, mixed, far]), pl.concat([their, more]))
        assert found.to_list() == [*[0] * 9, 0, 0, 0, 0, 0, 30, *[0] * 12]


def test_each_rank_loses_its_own_excess() -> None:
    pieces = nodes((0, 10), (0, 10), (1, 30), (1, 10), (2, 10), (2, 15), (3, 10), (3, 10), (4, 10), (4, 10))

    assert cuts(pieces, excess(*((r, 1, {1: 20, 2: 1}.get(r, 0)) for r in range(5)))).to_list() == [
        *(0, 0, 20, 0, 0, 1, 0, 0, 0, 0)
    ]


@pytest.mark.parametrize("ns", [0, -5, None])
def test_who_has_no_excess_loses_nothing(ns: int | None) -> None:
    assert cuts(nodes((0, 10), (1, 30)), excess((0, 1, 0), (1, 1, ns))).to_list() == [0, 0]
    assert cuts(nodes((0, 10)), excess((0, 2, 5))).to_list() == [0]


def suspects(*rows: tuple[int, int, int]) -> pl.DataFrame:
    """Of number, rank and step."""
    names = {"suspect": pl.Int64, "rank": pl.Int32, "step": pl.Int32}
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(kind=pl.lit(COMPUTING))


def test_what_mending_saves_is_the_difference_of_two_replays() -> None:
    found = graph(TWO, CHAIN, CALLS)
    more = excess((0, 1, 0), (1, 1, 40), (0, 2, 0), (1, 2, 10))
    costs = ReplayCosts(found, more, suspects((0, 1, 1), (0, 1, 2), (1, 1, 2)))

    assert (costs.steps, costs.step_ns.to_list(), costs.recorded_ns.to_list()) == ([1, 2], [120, 60], [120, 60])
    assert costs.saved(frozenset()) == [0.0, 0.0]
    assert costs.saved(frozenset({0})) == [40.0, 10.0]
    assert costs.saved(frozenset({1})) == [0.0, 10.0]
    assert costs.saved(frozenset({0, 1})) == [40.0, 10.0]  # what two suspects share is saved once


def test_of_two_equally_slow_ranks_both_have_to_be_mended() -> None:
    even = [(rank, step, kind, start, end) for rank in (0, 1) for _, step, kind, start, end in TWO[4:]]
    more = excess((0, 1, 40), (1, 1, 40))
    costs = ReplayCosts(graph(even, CHAIN, CALLS), more, suspects((0, 0, 1), (1, 1, 1)))

    assert [costs.saved(frozenset(one)) for one in ({0}, {1}, {0, 1})] == [[0.0, 0.0], [0.0, 0.0], [40.0, 0.0]]
    assert shares(2, costs.saved) == [[20.0, 0.0], [20.0, 0.0]]


def test_without_calls_a_step_is_as_long_as_the_busiest_rank() -> None:
    busy = excess((0, 1, 30), (1, 1, 0), (2, 1, 10)).with_columns(own_ns=pl.Series([130, 100, 110]), on_host=False)
    costs = BusyCosts(busy, suspects((0, 0, 1), (1, 2, 1)))

    assert (costs.steps, costs.step_ns.to_list()) == ([1], [130])
    assert [costs.saved(frozenset(one)) for one in (set(), {0}, {1}, {0, 1})] == [[0.0], [20.0], [0.0], [30.0]]


def test_without_calls_a_host_and_its_device_work_side_by_side() -> None:
    device = excess((0, 1, 0), (1, 1, 0)).with_columns(own_ns=pl.lit(100, pl.Int64), on_host=False)
    host = excess((0, 1, 60), (1, 1, 0)).with_columns(
        own_ns=pl.Series([120, 60]), on_host=True, kind=pl.lit("dispatch")
    )
    late = suspects((0, 0, 1)).with_columns(kind=pl.lit("dispatch"))
    costs = BusyCosts(pl.concat([device, host]), late)

    assert costs.step_ns.to_list() == [120]
    assert costs.saved(frozenset({0})) == [20.0]


def test_shares_sum_to_what_all_save_and_equal_causes_get_as_much() -> None:
    """Each of three causes costs 6 as long as it is the worst one; the fourth costs 1 besides."""
    worst = [6.0, 4.0, 4.0, 1.0]

    def saved(mended: frozenset[int]) -> list[float]:
        left = [worst[cause] for cause in range(3) if cause not in mended]
        return [6.0 - max(left, default=0.0) + (3 in mended)]

    found = [one[0] for one in shares(4, saved)]

    assert found == pytest.approx([2 + 4 / 3, 4 / 3, 4 / 3, 1.0])
    assert sum(found) == pytest.approx(7.0)


def test_of_many_causes_random_orders_give_the_same_shares_at_each_run_and_ask_once_for_each_set() -> None:
    asked: list[frozenset[int]] = []

    def saved(mended: frozenset[int]) -> list[float]:
        asked.append(mended)
        return [float(sum(mended)), float(max(mended, default=0))]

    count = EXACT + 3
    found = shares(count, saved)

    assert [one[0] for one in found] == pytest.approx(list(range(count)))
    assert sum(one[1] for one in found) == pytest.approx(count - 1)
    exact = [sum(1 / (count - level) for level in range(1, cause + 1)) for cause in range(count)]
    assert [one[1] for one in found] == pytest.approx(exact, abs=0.35)
    assert found == shares(count, saved)
    assert len(asked) <= 2 * (ORDERS + 2 * count) * count and len(set(asked[: len(asked) // 2])) == len(asked) // 2


@pytest.mark.parametrize(("count", "sets"), [(3, 8), (EXACT, 16), (EXACT + 1, 28), (30, 566)])
def test_all_sets_of_few_causes_are_asked_for_and_some_of_many(count: int, sets: int) -> None:
    asked: list[frozenset[int]] = []

    def saved(mended: frozenset[int]) -> list[float]:
        asked.append(mended)
        return [float(len(mended))]

    assert shares(count, saved) == [[1.0]] * count
    assert len(asked) == len(set(asked)) == sets


def test_shares_of_four_causes_are_exact() -> None:
    found = shares(4, lambda mended: [float(max(mended, default=0))])

    assert [one[0] for one in found] == pytest.approx([0, 1 / 3, 1 / 3 + 1 / 2, 1 / 3 + 1 / 2 + 1])


def test_each_of_many_causes_is_first_as_often() -> None:
    assert shares(24, lambda mended: [float(bool(mended))]) == [[pytest.approx(1 / 24)]] * 24


def test_no_causes_share_nothing() -> None:
    assert shares(0, lambda mended: [5.0]) == []
