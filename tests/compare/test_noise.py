"""Whether a difference is more than noise: exact probabilities, and their adjustment."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest

from stepscope.compare import noise
from stepscope.compare.noise import adjusted, are_apart, probability


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


def test_sides_that_do_not_overlap_are_apart() -> None:
    assert are_apart([1, 2], [3, 4])
    assert not are_apart([1, 3], [3, 4])
