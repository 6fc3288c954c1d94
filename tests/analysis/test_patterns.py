"""When ranks are late: change points, periods, single steps, each time another one; and random stalls."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.analysis.methods.patterns import PATTERNS, patterns
from stepscope.analysis.methods.references import references
from stepscope.analysis.methods.timing import Timing, timing
from tests.analysis.own_times import MS, cells

STEP_NS = 60.0 * MS


def found(own: pl.DataFrame) -> pl.DataFrame:
    return patterns(references(own), STEP_NS)


@pytest.mark.parametrize(
    ("steps", "late", "facts"),
    [
        (10, range(1, 11), ("steady", None, None, None)),
        (10, range(7, 11), ("since", 7, None, None)),
        (10, range(3, 11), ("since", 3, None, None)),
        (20, range(1, 7), ("until", None, 6, None)),
        (20, range(4, 9), ("until", 4, 8, None)),
        (10, (1, 4, 7, 10), ("periodic", None, None, 3)),
        (10, (2, 3, 9), ("sometimes", None, None, None)),
    ],
)
@pytest.mark.parametrize("factor", [1.1, 1.3])
def test_a_late_rank(steps, late, facts, factor) -> None:
    rows = found(cells("computing", 8, steps, {(5, step): factor for step in late}))

    assert rows.select("rank", "pattern", "since_step", "until_step", "period").rows() == [(5, *facts)]
    row = rows.row(0, named=True)
    assert row["steps"] == list(late)
    assert (row["slow_steps"], row["compared_steps"], row["ranks"]) == (len(late), steps, [5])
    assert row["excess_ns"] == pytest.approx((factor - 1) * 50 * MS, rel=0.25)
    assert row["loss_ns"] == pytest.approx(row["excess_ns"] * len(late) / steps, rel=1e-6)
    assert row["typical_ns"] == pytest.approx(50 * MS, rel=0.1)
    assert row["score"] > 5
    assert row["chance"] < 0.008


@pytest.mark.parametrize("slow", [range(8, 16), range(16), range(8, 32)])
def test_many_ranks_slow_since_a_step_are_no_chance(slow) -> None:
    rows = found(cells("computing", 32, 10, {(rank, step): 1.3 for rank in slow for step in range(7, 11)}))

    assert sorted(rows.select("rank", "pattern", "since_step").rows()) == [(rank, "since", 7) for rank in slow]


def test_a_few_stalls_of_one_rank_of_a_step_each_are_told_without_accusing_it() -> None:
    rows = found(cells("dispatch", 4, 8, {(2, 5): 3.0, (2, 8): 2.8}))

    assert rows.select("rank", "steps", "is_stall").rows() == [(2, [5, 8], True)]
    assert rows["loss_ns"].item() == pytest.approx(190 * MS / 8, rel=0.1)


def test_all_steps_of_what_is_marked_count_however_much_each_costs() -> None:
    """A checkpoint may take ten times as long as the next one, as the disk is busy."""
    costs = {2: 344, 7: 39, 12: 212, 17: 76, 22: 322, 27: 32}
    rows = [(rank, step, "checkpoint", costs.get(step, 0) * MS * rank) for step in range(1, 31) for rank in range(2)]
    schema = {"rank": pl.Int32, "step": pl.Int32, "kind": pl.String, "own_ns": pl.Int64}

    row = found(pl.DataFrame(rows, schema=schema, orient="row")).row(0, named=True)

    assert (row["rank"], row["steps"], row["pattern"], row["period"]) == (1, list(costs), "periodic", 5)
    assert row["loss_ns"] == round(sum(costs.values()) * MS / 30)


def test_stalls_that_strike_several_ranks_name_nobody() -> None:
    assert found(cells("dispatch", 4, 8, {(2, 5): 3.0, (2, 8): 2.8, (0, 2): 2.9, (3, 6): 2.7})).is_empty()


def test_stalls_that_cost_little_of_a_long_recording_name_nobody() -> None:
    assert found(cells("dispatch", 2, 60, {(1, 5): 2.5, (1, 48): 2.5})).is_empty()


def test_the_order_and_the_names_of_ranks_do_not_matter() -> None:
    own = cells("computing", 8, 20, {(5, step): 1.2 for step in range(7, 21)}, stalls=0.05)
    renamed = own.with_columns(rank=(3 * pl.col("rank") + 1) % 8)

    assert_frame_equal(found(own.sample(fraction=1, shuffle=True, seed=1)), found(own))
    assert found(renamed).drop("ranks", "rank").rows() == found(own).drop("ranks", "rank").rows()
    assert found(renamed)["rank"].to_list() == [(3 * rank + 1) % 8 for rank in found(own)["rank"]]


@pytest.mark.parametrize("ranks", [4, 8, 32])
def test_each_step_another_rank(ranks) -> None:
    late = {((step * 7 + step // 4) % ranks, step): 1.6 for step in range(1, 11)}

    row = found(cells("computing", ranks, 10, late)).row(0, named=True)

    assert (row["rank"], row["pattern"], row["slow_steps"]) == (None, "rotating", 10)
    assert row["ranks"] == sorted({rank for rank, _ in late})
    assert row["loss_ns"] == pytest.approx(30 * MS, rel=0.1)


@pytest.mark.parametrize(("slow", "rank", "ranks"), [([3], 3, [3]), (range(4), None, [0, 1, 2, 3])])
def test_one_very_long_step_of_one_rank_or_of_all(slow, rank, ranks) -> None:
    rows = found(cells("computing", 4, 12, {(one, 6): 90 for one in slow}))

    assert rows.select("rank", "pattern", "steps", "ranks").rows() == [(rank, "once", [6], ranks)]
    assert rows["excess_ns"][0] == pytest.approx(4450 * MS, rel=0.2)


def test_kinds_and_peers_are_apart() -> None:
    first = cells("computing", 4, 10, {(1, step): 1.3 for step in range(1, 11)}).with_columns(peers=pl.lit("0"))
    second = cells("dispatch", 4, 10, {(2, step): 1.3 for step in range(7, 11)}).with_columns(peers=pl.lit("1"))

    rows = found(pl.concat([first, second]))

    assert rows.select("kind", "peers", "rank", "pattern").rows() == [
        ("computing", "0", 1, "steady"),
        ("dispatch", "1", 2, "since"),
    ]


def test_healthy_jobs_name_nobody_even_with_random_stalls() -> None:
    for ranks, steps in ((2, 10), (4, 3), (8, 20), (32, 10)):
        jobs = 40
        calm = pl.concat(cells(f"calm {n}", ranks, steps) for n in range(jobs))
        stalling = pl.concat(cells(f"stalling {n}", ranks, steps, stalls=0.05) for n in range(jobs))

        assert found(calm).is_empty()
        assert found(stalling)["kind"].n_unique() <= 1


def test_some_rank_in_every_one_of_few_steps_may_be_chance() -> None:
    """Of 8 ranks that stall at random, one or two do in each of 8 steps: no rank in turn."""
    stalls = {((step * 3) % 8, step): 1.1 for step in range(1, 9)} | {(5, 3): 1.1}

    assert found(cells("dispatch", 8, 8, stalls)).is_empty()


def test_late_ranks_are_found_among_random_stalls() -> None:
    late = {(3, step): 1.3 for step in range(11, 21)}
    rows = found(pl.concat(cells(f"job {n}", 8, 20, late, stalls=0.05) for n in range(40)))

    right = rows.filter((pl.col("rank") == 3) & (pl.col("pattern") == "since"))
    assert right.height >= 38
    assert rows.height - rows.filter(pl.col("rank") == 3).height <= 1


def test_nothing_to_compare_is_no_pattern() -> None:
    assert found(cells("computing", 1, 5)).schema == PATTERNS
    assert found(cells("computing", 4, 5).clear()).is_empty()


def test_one_step_shows_who_is_slow_in_it() -> None:
    rows = found(cells("computing", 8, 1, {(5, 1): 1.5}))

    assert rows.select("rank", "pattern", "compared_steps", "chance").rows() == [(5, "steady", 1, None)]


@pytest.mark.parametrize(
    ("late", "when"),
    [
        ({5}, Timing("once")),
        ({1, 2, 3, 4, 5, 6, 7, 9, 10}, Timing("steady")),
        ({4, 5, 7, 8, 9, 10}, Timing("since", since_step=4)),
        ({2, 6, 10}, Timing("periodic", period=4)),
        ({2, 3, 9}, Timing("sometimes")),
    ],
)
def test_timing(late, when) -> None:
    assert timing(range(1, 11), late) == when
