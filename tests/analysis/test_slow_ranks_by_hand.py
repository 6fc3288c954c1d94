"""Which ranks hold the others up, by how much: small cases, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import comb
from typing import Any

import polars as pl
import pytest

from stepscope.analysis.job.segments import STEP_GROUP, WORK
from stepscope.analysis.job.slow_ranks import Limits, binomial_tail, slow_ranks
from stepscope.errors import Unavailable
from stepscope.tables import RANKS, STEPS
from stepscope.tables.steps import WHOLE_RECORDING

WORK_NS = 1000
"""What an ordinary rank needs for one call."""

Rows = list[dict[str, Any]]


def call(
    works: Mapping[int, int | Mapping[str, int]],
    *,
    step: int = 1,
    sequence: int | None = None,
    group: str | None = "dp",
) -> Rows:
    """One collective: each member's work before it in ns, either computing or by kind; by default one in each step."""
    rows = []
    sequence = 100 * step if sequence is None else sequence
    for rank, work in works.items():
        kinds = {"computing": work} if isinstance(work, int) else dict(work)
        times = {f"{kind}_ns": kinds.pop(kind, 0) for kind in WORK}
        assert not kinds
        rows.append({"rank": rank, "step": step, "group": group, "sequence": sequence, **times})
    return rows


def late(excess: Mapping[int, int | Mapping[str, int]], *, ranks: int = 5, **where: Any) -> Rows:
    """One collective of a few ranks that all compute for `WORK_NS`, and some of them longer, or do something else."""
    works: dict[int, Mapping[str, int]] = {}
    for rank in range(ranks):
        more = excess.get(rank, 0)
        more = {"computing": more} if isinstance(more, int) else more
        works[rank] = {**more, "computing": WORK_NS + more.get("computing", 0)}
    return call(works, **where)


def every_step(excess: Mapping[int, int | Mapping[str, int]], *, steps: int = 1, ranks: int = 5) -> Rows:
    """A collective in each of some steps, all of them alike."""
    return [row for step in range(1, steps + 1) for row in late(excess, ranks=ranks, step=step)]


def arrivals(
    times: Mapping[int, tuple[int, int]], *, members: int = 4, size: int | None = None, point_to_point: bool = False
) -> pl.DataFrame:
    """For each rank, how often it came last, in how many collectives."""
    rows = [(rank, number < last) for rank, (last, calls) in times.items() for number in range(calls)]
    return pl.DataFrame(
        {
            "rank": pl.Series([rank for rank, _ in rows], dtype=pl.Int32),
            "is_last": [is_last for _, is_last in rows],
            "members": pl.Series([members] * len(rows), dtype=pl.Int32),
            "group": ["dp"] * len(rows),
            "group_size": pl.Series([size] * len(rows), dtype=pl.Int32),
            "point_to_point": [point_to_point] * len(rows),
        }
    )


def marked(where: Iterable[tuple[int, int]], *, unmarked: Iterable[int] = ()) -> pl.LazyFrame:
    """Steps, by rank and number; those of some ranks stand for a recording without any."""
    pairs, without = sorted(set(where)), set(unmarked)
    times = dict.fromkeys(("start_ns", "end_ns", "window_start_ns", "window_end_ns"), [0] * len(pairs))
    return STEPS.frame(
        rank=[rank for rank, _ in pairs],
        step=[step for _, step in pairs],
        window=[WHOLE_RECORDING if rank in without else "device" for rank, _ in pairs],
        **times,
    ).lazy()


def found(
    rows: Rows,
    *,
    arrival: pl.DataFrame | None = None,
    windows: Iterable[tuple[int, int]] = ((1, 10_000),),
    world_sizes: Iterable[int | None] = (None,),
    steps: pl.LazyFrame | None = None,
    limits: Limits | None = None,
) -> list[dict[str, Any]]:
    """The answer about some calls; `windows` are step and length, of any rank."""
    types = {"rank": pl.Int32, "step": pl.Int32, "group": pl.String, "sequence": pl.Int64}
    segments = pl.DataFrame(rows, schema={**types, **{f"{kind}_ns": pl.Int64 for kind in WORK}})
    breakdown = pl.DataFrame(list(windows), schema={"step": pl.Int32, "window_ns": pl.Int64}, orient="row")
    ranks = RANKS.frame(rank=range(len(list(world_sizes))), world_size=list(world_sizes)).lazy()
    if steps is None:
        steps = marked((row["rank"], row["step"]) for row in rows)
    others = {} if limits is None else {"limits": limits}
    return slow_ranks(segments, breakdown, arrival, ranks, steps, **others).to_dicts()


def named(rows: Rows, **options: Any) -> list[tuple[int, str]]:
    return [(row["rank"], row["kind"]) for row in found(rows, **options)]


def costs(rows: Rows, **options: Any) -> dict[int, float]:
    """What each rank costs in ns, not rounded, with limits that let all through that cost anything."""
    all_through = Limits(cost_ratio=2**-30, score=0.0, steps_late_ratio=0.0, floor_ratio=2**-30)
    answer = found(rows, windows=[(1, 1)], limits=options.pop("limits", all_through), **options)
    return {row["rank"]: row["cost_ratio"] for row in answer}


def test_the_answer_has_the_cost_the_excess_and_what_is_typical() -> None:
    rows = every_step({2: 100}, steps=4)

    assert found(rows, arrival=arrivals({2: (3, 4), 0: (1, 4)})) == [
        {
            "rank": 2,
            "kind": "computing",
            "cost_ns": 100,
            "cost_ratio": 0.01,
            "excess_ns": 100,
            "typical_ns": 1000,
            "steps": 4,
            "steps_late": 4,
            "times_last": 3,
            "calls": 4,
            "score": 33.33,
            "unrecorded_ranks": 0,
        }
    ]


def test_without_matched_arrivals_nobody_is_known_to_come_last() -> None:
    (row,) = found(every_step({2: 100}))

    assert (row["times_last"], row["calls"]) == (0, 0)


def test_nothing_slow_is_an_empty_answer_with_all_columns() -> None:
    assert found(every_step({})) == []


# Who can be compared


def test_one_rank_is_not_enough() -> None:
    with pytest.raises(Unavailable, match=r"^slow ranks need the recordings of at least two ranks of one job$"):
        found(every_step({}, ranks=1))


@pytest.mark.parametrize(
    ("excess", "unmarked", "slow"),
    [
        pytest.param({4: 500, 3: 100}, [4], 3, id="a rank without marked steps is not compared with others"),
        pytest.param({4: 500}, range(5), 4, id="ranks are compared if none has marked steps"),
        pytest.param({1: 100}, range(2, 5), 1, id="two ranks with marked steps are compared"),
    ],
)
def test_only_ranks_that_mark_their_steps_are_compared_unless_none_does(excess, unmarked, slow) -> None:
    steps = marked([(rank, 1) for rank in range(5)], unmarked=unmarked)

    assert named(every_step(excess), steps=steps) == [(slow, "computing")]


def test_a_single_rank_with_marked_steps_has_none_to_be_compared_with() -> None:
    steps = marked([(rank, 1) for rank in range(5)], unmarked=range(1, 5))

    with pytest.raises(Unavailable, match=r"^only one rank has marked steps, so there is none to compare it with$"):
        found(every_step({}), steps=steps)


def steps_only(world_sizes: Iterable[int | None]) -> list[tuple[int, str]]:
    """Slow ranks of a job without collectives."""
    return named(late({2: 100}, group=STEP_GROUP), world_sizes=world_sizes)


def test_ranks_that_share_no_communication_are_compared_if_one_states_that_the_job_has_several() -> None:
    assert steps_only([1, 2]) == [(2, "computing")]


@pytest.mark.parametrize("world_sizes", [[1, 1], [None, None]])
def test_ranks_that_share_no_communication_are_not_compared_unless_they_are_known_to_be_of_one_job(world_sizes) -> None:
    problem = r"^the ranks share no communication, so none of them can hold another up$"
    with pytest.raises(Unavailable, match=problem):
        steps_only(world_sizes)


def test_one_shared_collective_is_enough_to_compare_ranks() -> None:
    rows = [*late({2: 100}, group=STEP_GROUP, step=2), *late({2: 100}, step=1)]

    assert named(rows, world_sizes=[1]) == [(2, "computing")]


def test_calls_of_a_group_without_a_name_are_compared() -> None:
    rows = [*late({2: 100}, group=None, sequence=1), *late({}, sequence=2)]

    assert named(rows) == [(2, "computing")]


# Recordings that were cut


def partial(*calls: tuple[int, int], others: int = 4, steps: int = 1) -> Rows:
    """Calls of which rank 4, late in each, has some only (step and how many), and the others `others` in each step."""
    kept = dict(calls)
    return [
        row
        for step in range(1, steps + 1)
        for number in range(others)
        for row in late({4: 100}, step=step, sequence=10 * step + number)
        if row["rank"] != 4 or number < kept.get(step, 0)
    ]


def test_a_rank_with_less_than_half_the_calls_of_the_others_is_not_compared() -> None:
    assert named(partial((1, 2))) == [(4, "computing")]
    assert named(partial((1, 1))) == []


def test_calls_are_counted_over_all_steps_that_the_rank_marks() -> None:
    steps = marked((rank, step) for rank in range(5) for step in (1, 2))

    assert named(partial((1, 2), (2, 2), steps=2), steps=steps) == [(4, "computing")]
    assert named(partial((1, 3), steps=2), steps=steps) == []


def test_the_calls_of_a_rank_are_counted_against_its_own_steps() -> None:
    rows = [row for row in partial((1, 3), steps=2) if (row["rank"], row["step"]) != (0, 2)]
    steps = marked({(rank, step) for rank in range(5) for step in (1, 2)} - {(0, 2)})

    assert named(rows, steps=steps) == []


def test_steps_that_a_rank_does_not_mark_are_not_missing() -> None:
    assert named(partial((1, 3), steps=2)) == [(4, "computing")]


def test_a_rank_with_far_more_calls_does_not_make_those_of_the_others_too_few() -> None:
    alone = [row for number in range(20) for row in call({0: WORK_NS}, sequence=100 + number)]

    assert named([*partial((1, 2)), *alone]) == [(4, "computing")]


def test_only_the_group_of_which_calls_are_missing_is_left_out() -> None:
    few = [{**row, "group": "tp"} for row in partial((1, 1))]
    whole = late({4: 500})

    (row,) = found([*few, *whole])

    assert (row["rank"], row["excess_ns"]) == (4, 500)


def test_groups_need_not_have_equally_many_calls() -> None:
    many = [row for number in range(6) for row in late({}, sequence=number, group="tp")]
    one = late({4: 200}, group="dp")

    assert named([*many, *one]) == [(4, "computing")]


def test_a_call_that_one_rank_alone_was_seen_in_counts_for_nothing() -> None:
    rows = [*late({2: 100}), *call({2: 700}, sequence=1, group="alone")]

    (row,) = found(rows)

    assert (row["typical_ns"], row["excess_ns"], row["cost_ns"]) == (1000, 100, 100)


# How much a rank is late and what that costs


@pytest.mark.parametrize(
    ("works", "slow"), [((1000, 1300), 1), ((700, 1000, 1300), 2)], ids=["the other of two", "the middle one of three"]
)
def test_each_member_is_compared_with(works, slow) -> None:
    (row,) = found(call(dict(enumerate(works))), limits=Limits(score=0.0) if len(works) == 3 else None)

    assert (row["rank"], row["excess_ns"], row["typical_ns"], row["cost_ns"]) == (slow, 300, 1000, 300)


def test_half_of_a_large_job_is_compared_with_the_median_not_with_the_mean() -> None:
    (row,) = found(late({4: 5000}, ranks=7))

    assert (row["excess_ns"], row["typical_ns"]) == (5000, 1000)


MADE_UP_FOR = [*late({1: {"dispatch": 100}}, sequence=1), *late({1: -200}, sequence=2)]

COSTS: dict[str, tuple[Rows, dict[int, float]]] = {
    "equally late ranks share the cost": (late({5: 120, 6: 120}, ranks=7), {5: 60, 6: 60}),
    "a delay beyond another is borne by those only that are so late": (
        late({4: 60, 5: 100, 6: 130}, ranks=8),
        {4: 20, 5: 40, 6: 70},
    ),
    "ranks that come early neither pay nor gain": (call({0: 400, 1: 900, 2: 1000, 3: 1050, 4: 1100}), {3: 25, 4: 75}),
    "costs of calls add up over a step": (
        [*late({1: 40}, sequence=1), *late({1: 60, 2: 60}, sequence=2)],
        {1: 70, 2: 30},
    ),
    "calls are told apart by their group": (
        [*late({1: 40}, group="dp"), *late({2: 60}, group="tp")],
        {1: 40, 2: 60},
    ),
    "only what is left of a delay at the end of a step is lost": (
        [*late({1: 100}, sequence=1), *late({1: -60}, sequence=2)],
        {1: 40},
    ),
    "what is left of several delays is less in the same proportion": (
        [*late({1: 100}, sequence=1), *late({1: 100, 2: 100}, sequence=2), *late({1: -150}, sequence=3)],
        {1: 150 * 50 / 200, 2: 50},
    ),
    "a delay is not made up for in another step": (
        [*late({1: 100}, step=1), *late({1: -60}, step=2), *late({1: 100}, step=3)],
        {1: 100},
    ),
    "a delay that is more than made up for costs nothing": (MADE_UP_FOR, {}),
    "nor does it in the median step": ([*MADE_UP_FOR, *late({1: {"dispatch": 100}}, step=2)], {1: 50}),
    "a step in which a rank is not late costs nothing": (
        [*late({1: {"dispatch": 100}}, step=1), *late({1: {"dispatch": 100, "computing": -100}}, step=2)],
        {1: 50},
    ),
    "a step in which nothing took longer costs nothing": ([*late({1: 100}, step=1), *late({}, step=2)], {1: 50}),
    "a single nanosecond counts if the limits let it through": (late({1: 1}), {1: 1}),
}


@pytest.mark.parametrize(("rows", "cost"), COSTS.values(), ids=COSTS)
def test_what_each_rank_costs(rows: Rows, cost: dict[int, float]) -> None:
    assert costs(rows) == cost


def test_time_that_is_made_up_for_with_another_kind_of_work_costs_nothing() -> None:
    assert named(late({1: {"dispatch": 100, "computing": -200}})) == []


def test_cost_excess_and_typical_time_are_those_of_the_median_step() -> None:
    rows = [row for step, excess in ((1, 50), (2, 80), (3, 500)) for row in late({1: excess}, step=step)]
    rows = [{**row, "computing_ns": row["computing_ns"] + 7000 * (row["step"] == 3)} for row in rows]

    (row,) = found(rows)

    assert (row["cost_ns"], row["excess_ns"], row["typical_ns"]) == (80, 80, 1000)


# Kinds of work


def test_the_cost_is_shared_out_over_kinds_by_how_much_longer_each_took() -> None:
    answer = found(late({1: {"dispatch": 300, "data_loading": 100}, 2: {"dispatch": 400}}, ranks=7))

    assert [(row["rank"], row["kind"], row["cost_ns"]) for row in answer] == [
        (2, "dispatch", 200),
        (1, "dispatch", 150),
        (1, "data_loading", 50),
    ]


def test_a_kind_that_took_less_time_than_usual_has_no_part_in_the_cost() -> None:
    (row,) = found(late({1: {"dispatch": 300, "computing": -100}}))

    assert (row["kind"], row["cost_ns"], row["excess_ns"], row["typical_ns"]) == ("dispatch", 200, 300, 0)


def test_a_kind_costs_no_more_than_it_took_longer() -> None:
    kinds = {0: (100, 0), 1: (0, 100), 2: (100, 130)}
    rows = call({rank: {"computing": a, "dispatch": b} for rank, (a, b) in kinds.items()})

    (row,) = found(rows, limits=Limits(score=0.0))

    assert (row["rank"], row["kind"], row["cost_ns"]) == (2, "dispatch", 30)


@pytest.mark.parametrize("kind", WORK)
def test_each_kind_of_work_is_looked_at(kind: str) -> None:
    assert named(every_step({3: {kind: 50}})) == [(3, kind)]


# When a rank is called slow


def test_two_hundredths_of_the_work_in_a_step_are_worth_naming_and_less_are_not() -> None:
    assert named(late({1: 20})) == [(1, "computing")]
    assert named(late({1: 19})) == []


def test_the_work_is_that_of_all_calls_of_a_step() -> None:
    def rows(excess: int) -> Rows:
        return [*late({1: excess}, sequence=1), *late({}, sequence=2)]

    assert named(rows(40)) == [(1, "computing")]
    assert named(rows(39)) == []


def test_the_work_of_a_step_is_the_median_over_ranks_and_steps() -> None:
    rows = [*every_step({1: 20}, steps=4), *late({1: 20}, step=5)]
    rows = [{**row, "memory_ns": 10**6 * (row["step"] == 5)} for row in rows]

    assert named(rows) == [(1, "computing")]


def test_a_delay_shared_with_another_counts_as_much_as_its_part_of_the_cost() -> None:
    assert named(late({1: 39, 2: 39})) == []
    assert named(late({1: 40, 2: 40})) == [(1, "computing"), (2, "computing")]


def test_a_rank_late_in_six_tenths_of_its_steps_is_slow() -> None:
    rows = [row for step in range(1, 6) for row in late({1: 50 * (step <= 3)}, step=step)]

    (row,) = found(rows, limits=Limits(score=0.0))

    assert (row["steps"], row["steps_late"]) == (5, 3)


def test_a_rank_late_in_half_of_its_steps_is_not_slow_unless_a_limit_allows_it() -> None:
    rows = [row for step in range(1, 5) for row in late({1: 100 * (step <= 2)}, step=step)]

    assert named(rows, limits=Limits(score=0.0)) == []
    assert named(rows, limits=Limits(score=0.0, steps_late_ratio=0.5)) == [(1, "computing")]


def test_a_delay_as_long_as_the_noise_does_not_make_a_step_late() -> None:
    limits = Limits(floor_ratio=0.25, score=0.0)

    assert named(late({1: 250}), limits=limits) == []
    assert named(late({1: 251}), limits=limits) == [(1, "computing")]


def test_less_than_three_thousandths_of_the_work_are_noise() -> None:
    (row,) = found(late({1: 30}))

    assert row["score"] == 10.0
    (row,) = found(late({1: 100}), limits=Limits(floor_ratio=1 / 1024))
    assert row["score"] == 102.4


def test_a_rank_is_slow_from_three_and_a_half_deviations() -> None:
    limits = Limits(floor_ratio=0.25)

    assert named(late({1: 875}), limits=limits) == [(1, "computing")]
    assert named(late({1: 874}), limits=limits) == []


def test_where_even_the_limits_let_no_noise_pass_there_is_no_score() -> None:
    limits = Limits(floor_ratio=0.0)

    assert named(late({1: 100}), limits=limits) == []
    (row,) = found(every_step({1: 100}, steps=4), arrival=arrivals({1: (4, 4)}), limits=limits)
    assert (row["kind"], row["score"]) == ("computing", 0.0)


def test_a_rank_whose_typical_step_is_not_late_is_not_slow_whatever_the_limits() -> None:
    rows = [*late({1: 100}, step=1), *late({1: -100}, step=2)]

    assert named(rows, limits=Limits(cost_ratio=0.0, score=0.0, steps_late_ratio=0.0)) == []


# Noise


def spread_over_ranks(*works: int) -> float:
    """Score of the last of some ranks."""
    (row,) = found(call(dict(enumerate(works))))
    assert row["rank"] == len(works) - 1
    return row["score"]


def test_ranks_that_differ_from_each_other_make_a_difference_less_telling() -> None:
    assert spread_over_ranks(1000, 1010, 1020, 1030, 1200) == round(180 / (1.4826 * 10), 2)
    assert spread_over_ranks(1000, 1010, 1200) == round(190 / (1.4826 * 10), 2)


def test_ranks_that_are_early_alike_do_not_differ() -> None:
    """Three ranks are 40 ns early, each in one of two calls: that is no noise."""
    rows = [
        *call({0: 1000, 1: 1000, 2: 1040, 3: 1040, 4: 1300}, sequence=1),
        *call({0: 1040, 1: 1040, 2: 1000, 3: 1040, 4: 1300}, sequence=2),
    ]

    (row,) = found(rows)

    assert row["score"] == round(520 / (0.003 * 2040), 2)


@pytest.mark.parametrize(
    ("jitter", "excess", "spread"),
    [
        ({0: (0, 30, -30), 1: (30, -30, 0), 2: (-30, 0, 30), 3: (0, 0, 0), 4: (300, 320, 340)}, 320, 20),
        ({0: (-50, 50), 1: (50, -50), 2: (0, 0), 3: (-50, -20), 4: (300, 340)}, 320, 20),
    ],
)
def test_steps_that_differ_make_a_difference_less_telling(jitter, excess, spread) -> None:
    steps = range(len(jitter[0]))
    rows = [row for step in steps for row in late({rank: j[step] for rank, j in jitter.items()}, step=step)]

    (row,) = found(rows)

    assert (row["excess_ns"], row["score"]) == (excess, round(excess / (1.4826 * spread), 2))


def test_a_rank_with_a_single_step_shows_no_noise_of_steps() -> None:
    jitter = {0: (0, 30, -30), 1: (30, -30, 0), 2: (-30, 0, 30), 4: (300, 320, 340)}
    rows = [row for step in range(3) for row in call({r: WORK_NS + j[step] for r, j in jitter.items()}, step=step)]
    single = [
        row for step in range(3) for row in call({10 + 2 * step: 1000, 11 + 2 * step: 1000}, step=step, group="x")
    ]

    (row,) = found([*rows, *single])

    assert row["rank"] == 4
    assert (row["excess_ns"], row["score"]) == (305, round(305 / (1.4826 * 25), 2))


# Coming last


def no_outlier() -> Limits:
    """Limits with which a rank is slow only if it comes last often enough."""
    return Limits(score=1e9)


def test_a_rank_that_comes_last_more_often_than_chance_explains_is_slow() -> None:
    rows = every_step({1: 100}, steps=4)

    assert named(rows, arrival=arrivals({1: (4, 4)}), limits=no_outlier()) == [(1, "computing")]
    assert named(rows, arrival=arrivals({1: (3, 3)}), limits=no_outlier()) == []
    assert named(rows, arrival=arrivals({0: (4, 4)}), limits=no_outlier()) == []
    assert named(rows, limits=no_outlier()) == []


def test_a_rank_that_comes_last_as_often_as_the_limit_of_chance_is_not_slow() -> None:
    limits = Limits(score=1e9, chance=1 / 16)

    assert named(every_step({1: 100}), arrival=arrivals({1: (2, 2)}), limits=limits) == []
    assert named(every_step({1: 100}), arrival=arrivals({1: (3, 3)}), limits=limits) == [(1, "computing")]


def test_a_rank_that_comes_last_is_named_with_the_kind_of_work_that_costs_most() -> None:
    rows = every_step({1: {"computing": 100, "dispatch": 300}})

    assert named(rows, arrival=arrivals({1: (9, 9)}), limits=no_outlier()) == [(1, "dispatch")]
    assert named(rows) == [(1, "dispatch"), (1, "computing")]


def test_what_costs_most_is_told_by_the_median_step() -> None:
    rows = [row for step, excess in ((1, 100), (2, 100), (3, 900)) for row in late({1: excess}, step=step)]

    assert named(rows, arrival=arrivals({1: (9, 9)}), limits=no_outlier()) == [(1, "computing")]


def test_a_rank_that_comes_last_without_costing_much_is_not_slow() -> None:
    assert named(every_step({1: 19}), arrival=arrivals({1: (9, 9)}), limits=no_outlier()) == []


def test_a_rank_that_comes_last_in_some_steps_only_is_not_slow() -> None:
    rows = [*late({1: 100}, step=1), *late({}, step=2)]

    assert named(rows, arrival=arrivals({1: (9, 9)}), limits=no_outlier()) == []


def test_of_some_members_of_a_call_nobody_is_known_to_come_last_of_all() -> None:
    rows = every_step({1: 100}, steps=4)

    for size, slow in ((None, [(1, "computing")]), (4, [(1, "computing")]), (3, [(1, "computing")]), (5, [])):
        assert named(rows, arrival=arrivals({1: (4, 4)}, size=size), limits=no_outlier()) == slow
    (row,) = found(rows, arrival=arrivals({1: (4, 4)}, size=5))
    assert (row["times_last"], row["calls"]) == (4, 4)


def test_only_calls_of_which_all_members_were_seen_count_for_chance() -> None:
    rows = every_step({1: 100}, steps=4)
    some = arrivals({1: (9, 9)}, size=5)

    assert named(rows, arrival=pl.concat([some, arrivals({1: (4, 4)}, size=4)]), limits=no_outlier()) == [
        (1, "computing")
    ]
    for few in ({1: (3, 3)}, {1: (0, 4)}):
        assert named(rows, arrival=pl.concat([some, arrivals(few, size=4)]), limits=no_outlier()) == []


def test_the_answer_states_how_many_ranks_were_not_recorded() -> None:
    def missing(**options: Any) -> list[int]:
        return [row["unrecorded_ranks"] for row in found(every_step({2: 100}), **options)]

    calls = dict.fromkeys(range(5), (1, 4))
    assert missing(world_sizes=(5,) * 5) == [0]
    assert missing(world_sizes=(None, 8, 8, 8, 8)) == [3]
    assert missing(world_sizes=(3,) * 5) == [0]
    assert missing(arrival=arrivals(calls, size=5)) == [0]
    assert missing(arrival=arrivals(calls, size=7)) == [2]
    assert missing(arrival=arrivals(calls, size=2)) == [0]
    assert missing(arrival=arrivals(calls), world_sizes=(6,) * 5) == [1]
    assert missing(arrival=arrivals(calls, size=7, point_to_point=True)) == [0]
    two = pl.concat(
        [arrivals({0: (1, 4), 1: (1, 4)}, size=4).with_columns(group=pl.lit("tp")), arrivals(calls, size=6)]
    )
    assert missing(arrival=two, world_sizes=(5,) * 5) == [2]


@pytest.mark.parametrize("ignored", [{"members": 1}, {"point_to_point": True}])
def test_calls_without_others_to_wait_for_do_not_count(ignored) -> None:
    arrival = pl.concat([arrivals({1: (2, 3)}), arrivals({1: (5, 5)}, **ignored)])

    (row,) = found(every_step({1: 100}), arrival=arrival)

    assert (row["times_last"], row["calls"]) == (2, 3)


def test_the_chance_of_coming_last_depends_on_how_many_ranks_take_part() -> None:
    """In pairs it is a half, among eight an eighth: 7/32 on average of these eight calls."""
    arrival = pl.concat([arrivals({1: (2, 2)}, members=2), arrivals({1: (3, 6)}, members=8)])
    chance = binomial_tail(5, 8, 7 / 32)

    for limit, slow in ((chance * 0.999, []), (chance * 1.001, [(1, "computing")])):
        assert named(every_step({1: 100}), arrival=arrival, limits=Limits(score=1e9, chance=limit)) == slow


@pytest.mark.parametrize(
    ("successes", "trials", "probability", "tail"),
    [
        (0, 3, 0.25, 1.0),
        (3, 3, 0.25, 1 / 64),
        (2, 3, 0.25, 10 / 64),
        (1, 3, 0.25, 37 / 64),
        (500, 500, 0.5, 2.0**-500),
        (250, 500, 0.5, (1 + comb(500, 250) / 2**500) / 2),
    ],
)
def test_the_tail_of_a_binomial_distribution_is_exact(successes, trials, probability, tail) -> None:
    assert binomial_tail(successes, trials, probability) == pytest.approx(tail, rel=1e-9)


def test_of_more_than_500_trials_it_is_only_told_whether_chance_explains_them() -> None:
    """1024 trials at a half have a mean of 512 and a deviation of 16, 768 at a quarter 192 and 12."""
    assert binomial_tail(512 + 4 * 16, 1024, 0.5) == 1.0
    assert binomial_tail(512 + 4 * 16 + 1, 1024, 0.5) == 0.0
    assert binomial_tail(192 + 4 * 12, 768, 0.25) == 1.0
    assert binomial_tail(192 + 4 * 12 + 1, 768, 0.25) == 0.0
    assert binomial_tail(501, 501, 0.25) == 0.0
    assert binomial_tail(0, 501, 0.25) == 1.0


# The answer


def test_the_cost_is_a_share_of_the_longest_rank_in_the_median_step() -> None:
    windows = [(1, 1000), (1, 800), (2, 2000), (2, 100), (3, 9000), (3, 1)]

    (row,) = found(every_step({1: 100}, steps=3), windows=windows)

    assert row["cost_ratio"] == 100 / 2000


def test_where_no_step_was_split_the_share_is_zero() -> None:
    (row,) = found(every_step({1: 100}), windows=[])

    assert (row["cost_ns"], row["cost_ratio"]) == (100, 0.0)


def test_the_dearest_comes_first_and_of_equals_the_lowest_rank_then_the_kind_by_name() -> None:
    both = {"dispatch": 100, "computing": 100}
    rows = [*late({3: both}, ranks=9, sequence=1), *late({1: both}, ranks=9, sequence=2), *late({2: 900}, ranks=9)]

    assert named(rows) == [
        (2, "computing"),
        (1, "computing"),
        (1, "dispatch"),
        (3, "computing"),
        (3, "dispatch"),
    ]


def test_figures_are_rounded_to_whole_nanoseconds_and_hundredths() -> None:
    rows = late({4: 100, 5: 100, 6: 100}, ranks=8)

    first = found(rows)[0]

    assert (first["cost_ns"], first["score"]) == (33, 33.33)
    assert first["cost_ratio"] == pytest.approx(100 / 3 / 10_000)
