"""Since when a rank is slow: its score may have begun before, by chance."""

from __future__ import annotations

import pytest

from stepscope.live.detect.statistics import onset

SMALL = 0.05


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([0.02] * 20 + [0.7] * 6, 20),  # small excesses, then a clear one
        ([0.7] * 20, 0),  # all of it
        ([0.3] * 20 + [2.0] * 6, 0),  # slow before as well: since then
        ([0.02] * 20 + [0.7] * 3, 18),  # it has 5 values at least
        ([0.7] * 6 + [0.02] * 20, 0),  # it has become better
        ([], 0),
    ],
)
def test_the_begin_of_a_higher_level_is_found(values: list[float], first: int) -> None:
    assert onset(values, 5, SMALL) == first


def test_noise_does_not_move_the_begin() -> None:
    values = [0.02, -0.1, 0.15, 0.0, 0.03] * 4 + [0.6, 0.9, 0.5, 0.7, 0.65, 0.8]

    assert onset(values, 5, SMALL) == 20
