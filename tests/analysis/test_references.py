"""What is normal among ranks, and who is slower throughout: groups of slow ranks, noise, random stalls."""

from __future__ import annotations

import random

import polars as pl
import pytest

from stepscope.analysis.methods.chance import chance_of_late
from stepscope.analysis.methods.lateness import lateness
from stepscope.analysis.methods.references import references

MS = 1_000_000
STEP_NS = 60.0 * MS


def own_times(ms: dict[int, list[float]], kind: str = "computing") -> pl.DataFrame:
    """Own times by rank and step, from milliseconds."""
    rows = [(rank, step, kind, round(v * MS)) for rank, values in ms.items() for step, v in enumerate(values)]
    schema = {"rank": pl.Int32, "step": pl.Int32, "kind": pl.String, "own_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def noisy(kind: str, ranks: int, steps: int, slow: dict[int, float], *, stalls: float = 0.0) -> pl.DataFrame:
    """Own times of about 50 ms with noise of 1 % and stalls of 5 ms, the same at every call."""
    chance = random.Random(kind)
    common = [50 * chance.gauss(1, 0.05) for _ in range(steps)]
    return own_times(
        {
            r: [t * slow.get(r, 1) * chance.gauss(1, 0.01) + 5 * (chance.random() < stalls) for t in common]
            for r in range(ranks)
        },
        kind,
    )


def slow_ranks(own: pl.DataFrame) -> list[int]:
    return lateness(references(own), STEP_NS).filter("slow")["rank"].to_list()


def test_excess_is_relative_to_the_typical_rank_of_each_step() -> None:
    own = own_times({0: [10, 20, 30], 1: [10, 20, 33], 2: [11, 20, 30], 3: [10, 21, 30]})

    found = references(own)

    assert found["typical_ns"].to_list() == [t * MS for t in (10, 20, 30)] * 4
    assert [e // MS for e in found["excess_ns"]] == [0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("slow", "normal"),
    [
        ((0,), (1, 2, 3, 4, 5, 6, 7)),
        ((0, 1, 2, 3), (4, 5, 6, 7)),
        ((0, 1, 2, 3, 4, 5), (6, 7)),
        ((0, 1, 2, 3, 4, 5, 6), tuple(range(8))),  # one fast rank of eight is special, and the others normal
    ],
)
def test_the_lowest_group_with_a_quarter_of_the_ranks_is_normal(slow, normal) -> None:
    found = references(noisy("computing", 8, 5, dict.fromkeys(slow, 1.3)))

    special = set(range(8)) - set(slow) if len(slow) == 7 else set()
    assert set(found.filter("normal")["rank"]) == set(normal) - special
    assert slow_ranks(noisy("computing", 8, 5, dict.fromkeys(slow, 1.3))) == ([] if special else list(slow))


def test_three_of_four_ranks_and_one_of_two_are_slow() -> None:
    assert slow_ranks(noisy("computing", 4, 5, dict.fromkeys((0, 1, 3), 1.3))) == [0, 1, 3]
    assert slow_ranks(noisy("computing", 2, 5, {1: 1.3})) == [1]


def test_ranks_are_compared_with_their_peers_only() -> None:
    own = noisy("computing", 8, 5, {**dict.fromkeys(range(4), 1.5), 6: 1.2})
    staged = own.with_columns(peers=pl.when(pl.col("rank") < 4).then(pl.lit("stage 0")).otherwise(pl.lit("stage 1")))

    assert slow_ranks(own) == [0, 1, 2, 3, 6]
    assert slow_ranks(staged) == [6]


def test_a_single_rank_has_nothing_to_be_compared_with() -> None:
    found = references(own_times({3: [10, 20]}))

    assert found.select("typical_ns", "excess_ns", "sigma_ns").null_count().row(0) == (2, 2, 2)
    assert lateness(found, STEP_NS).is_empty()


def test_noise_is_that_of_the_recording() -> None:
    sigma = references(noisy("computing", 16, 20, {3: 1.2}))["sigma_ns"]

    assert sigma.n_unique() == 1
    assert sigma[0] == pytest.approx(0.01 * 50 * MS, rel=0.2)


@pytest.mark.parametrize("stalls", [0.0, 0.05])
@pytest.mark.parametrize(("ranks", "steps"), [(4, 10), (16, 5), (32, 20)])
def test_healthy_jobs_accuse_nobody_and_a_slow_rank_is_found(ranks, steps, stalls) -> None:
    jobs = 60
    healthy = pl.concat(noisy(f"healthy {n}", ranks, steps, {}, stalls=stalls) for n in range(jobs))
    faulty = pl.concat(noisy(f"slow {n}", ranks, steps, {n % ranks: 1.1}, stalls=stalls) for n in range(jobs))

    accused = lateness(references(healthy), STEP_NS).filter("slow")
    found = lateness(references(faulty), STEP_NS).filter("slow")

    assert accused["kind"].n_unique() <= 1
    right = found.filter(pl.col("rank") == pl.col("kind").str.extract(r"(\d+)").cast(pl.Int32) % ranks)
    assert right.height >= 0.95 * jobs
    assert found.height - right.height <= 1


def test_lateness_explains_itself() -> None:
    found = lateness(references(noisy("computing", 8, 10, {5: 1.2})), STEP_NS)
    rank = found.row(5, named=True)

    assert found.columns == [
        *(
            "kind",
            "peers",
            "rank",
            "compared_steps",
            "typical_ns",
            "late_steps",
            "score",
            "chance",
            "slow",
            "centre_ns",
            "healthy_ns",
        )
    ]
    assert (rank["rank"], rank["compared_steps"], rank["late_steps"], rank["slow"]) == (5, 10, 10, True)
    assert rank["centre_ns"] == pytest.approx(10 * MS, rel=0.1)
    assert rank["score"] > 10
    assert rank["chance"] < 1e-6


def test_chance_of_being_late_grows_with_the_rate_of_the_others() -> None:
    chances = [chance_of_late(3, 10, others, 70) for others in (0, 3, 10, 70)]

    assert chances == sorted(chances)
    assert chance_of_late(0, 10, 5, 70) == 1.0
    assert sum(chance_of_late(k, 4, 2, 9) - chance_of_late(k + 1, 4, 2, 9) for k in range(5)) == pytest.approx(1)


VARYING = [190, 800, 230, 570, 210, 310, 350, 590]
"""What a rank that collects garbage loses in each step, in ms."""


def test_a_rank_whose_losses_vary_is_slow_if_it_is_the_last_in_every_step() -> None:
    assert slow_ranks(own_times({0: [2.0] * 8, 1: [2.0 + lost for lost in VARYING]}, "dispatch")) == [1]


@pytest.mark.parametrize("steps", [4, 8])
def test_ranks_whose_losses_vary_as_much_are_no_slow_ones(steps) -> None:
    other = VARYING[3:] + VARYING[:3]

    assert slow_ranks(own_times({0: other[:steps], 1: VARYING[:steps]}, "dispatch")) == []


def test_too_few_steps_show_nothing_of_two_ranks_whose_losses_vary() -> None:
    """That the same of two ranks is the last in four steps is chance once in eight times."""
    assert slow_ranks(own_times({0: [100, 300, 200, 150], 1: [190, 800, 230, 570]}, "dispatch")) == []


def test_two_of_eight_ranks_that_are_always_last_are_no_chance() -> None:
    ms = {rank: [2.0 + 0.01 * rank] * 8 for rank in range(6)} | {6: VARYING, 7: VARYING[::-1]}

    assert slow_ranks(own_times(ms, "dispatch")) == [6, 7]
