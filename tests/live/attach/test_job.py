"""Giving the same number to the same step of several ranks."""

from __future__ import annotations

import random

import pytest

from stepscope.live.attach.job import aligned


@pytest.mark.parametrize("seed", range(20))
def test_ranks_that_were_attached_to_one_after_the_other_get_the_same_numbers(seed: int) -> None:
    chance = random.Random(seed)
    now, ends = 0, []
    for _ in range(60):
        now += round(chance.uniform(0.7, 1.3) * 50e6)
        ends.append(now)
    first = [chance.randrange(20) for _ in range(4)]
    ranks = [
        {
            number: ends[place] + round(chance.uniform(-0.15, 0.15) * 50e6)
            for number, place in enumerate(range(start, 40 + chance.randrange(3)), start=1)
        }
        for start in first
    ]

    shifts, length_ns, apart = aligned(ranks)

    assert shifts == [start - first[0] for start in first]
    assert 40e6 < length_ns < 60e6
    assert apart < 0.3


def test_ranks_that_drift_apart_are_noticed() -> None:
    _, _, apart = aligned([{1: 0, 2: 100, 3: 200}, {1: 50, 2: 150, 3: 250}])

    assert apart == pytest.approx(0.5)
