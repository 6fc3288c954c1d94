"""Whether a difference is more than noise: exact probabilities, and their adjustment."""

from __future__ import annotations

from itertools import combinations
from math import comb
from random import Random

import pytest

from stepscope.compare import noise
from stepscope.compare.noise import adjusted, are_apart, probability, probability_of_steps


def counted(base: list[float], new: list[float]) -> float:
    """The probability by going through all ways to divide the values."""
    values = [*base, *new]
    rank = {value: sum(v < value for v in values) + (sum(v == value for v in values) + 1) / 2 for value in values}
    middle = len(base) * (len(values) + 1) / 2
    apart = abs(sum(rank[value] for value in base) - middle)
    ways = [abs(sum(rank[value] for value in chosen) - middle) for chosen in combinations(values, len(base))]
    return sum(way >= apart - 1e-9 for way in ways) / comb(len(values), len(base))


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]),
        ([1.0, 6.0, 3.0, 8.0], [5.0, 2.0, 7.0]),
        ([1.0, 1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 3.0, 4.0]),
    ],
)
def test_the_probability_of_few_steps_is_that_of_all_ways_to_divide_them(base: list[float], new: list[float]) -> None:
    assert probability(base, new) == pytest.approx(counted(base, new))
    assert probability(new, base) == pytest.approx(counted(base, new))


def test_the_approximation_for_many_steps_is_near_the_exact_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    base, new = [float(n) for n in range(12)], [n + 4.5 for n in range(12)]
    exact = probability(base, new)
    monkeypatch.setattr(noise, "EXACT", 0)

    assert probability(base, new) == pytest.approx(exact, rel=0.25)
    assert exact < 0.05


def test_equal_values_are_no_difference() -> None:
    assert probability([3.0] * 5, [3.0] * 40) == 1.0


def test_adjusted_probabilities_keep_their_order_and_what_was_not_tested() -> None:
    assert adjusted([0.001, None, 0.5, 0.02]) == pytest.approx([0.003, None, 0.5, 0.03])


def test_noise_is_rarely_called_significant() -> None:
    state, found = 7, 0
    for _ in range(400):
        values = []
        for _ in range(12):
            state = (1103515245 * state + 12345) % 2**31
            values.append(state / 2**31)
        found += probability(values[:6], values[6:]) <= 0.05

    assert found <= 32  # 5 % of 400 and three standard deviations


def drifting(seed: int, steps: int, alike: float = 0.8) -> list[float]:
    """Steps each of which resembles the one before."""
    random, found = Random(seed), [0.0]
    for _ in range(steps + 50):
        found.append(alike * found[-1] + random.gauss(0, 1))
    return found[-steps:]


def test_steps_that_resemble_their_neighbours_are_rarely_called_significant() -> None:
    pairs = [(drifting(2 * seed, 30), drifting(2 * seed + 1, 30)) for seed in range(200)]

    assert sum(probability(base, new) <= 0.05 for base, new in pairs) > 60
    assert sum(probability_of_steps(base, new) <= 0.05 for base, new in pairs) <= 25


def test_independent_steps_are_tested_nearly_as_if_their_order_were_unknown() -> None:
    pairs = [(drifting(2 * seed, 20, 0), [x + 1 for x in drifting(2 * seed + 1, 20, 0)]) for seed in range(100)]

    assert sum(probability_of_steps(base, new) <= 0.05 for base, new in pairs) >= 70
    assert sum(probability(base, new) <= 0.05 for base, new in pairs) >= 80


def test_sides_far_apart_differ_although_their_steps_drift() -> None:
    base = [100 + step / 10 for step in range(10)]

    assert probability_of_steps(base, [step + 0.4 for step in base]) > 0.05
    assert probability_of_steps(base, [step + 30 for step in base]) < 0.001


def test_the_order_of_sides_does_not_matter() -> None:
    base, new = drifting(1, 12), [x + 1 for x in drifting(2, 9)]

    assert probability_of_steps(base, new) == pytest.approx(probability_of_steps(new, base))


def test_sides_that_do_not_overlap_are_apart() -> None:
    assert are_apart([1, 2], [3, 4])
    assert not are_apart([1, 3], [3, 4])
