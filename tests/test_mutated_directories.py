"""Damaged directories of every format: each is answered or refused with a reason, in bounded time and memory."""

from __future__ import annotations

import os
import warnings

import pytest

from mutated_directories import ask, mutant

COUNT = int(os.environ.get("STEPSCOPE_MUTATED_DIRECTORIES", "100"))
"""How many directories; the first hundred are asked one question each, the others all."""


def test_a_seed_gives_the_same_directory_again() -> None:
    assert [mutant(seed) for seed in range(20)] == [mutant(seed) for seed in range(20)]


@pytest.mark.parametrize("part", range(4))
def test_no_damaged_directory_ends_in_an_internal_error(part: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = [ask(seed, questions=1 if seed < 100 else 3) for seed in range(part, COUNT, 4)]

    assert [f"seed {one.seed}: {one.failure}" for one in asked if one.failure] == []
