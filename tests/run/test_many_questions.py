"""Many threads that ask one run at once get what one thread gets, each answer computed once, within a bound."""

from __future__ import annotations

import sys

import polars as pl
import pytest
from many_questions import asked_by, counted_calls, mixed_questions
from polars.testing import assert_frame_equal

from builders import make_run
from stepscope.run import Run, Threads


@pytest.fixture(autouse=True)
def busy_switching() -> object:
    """Threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def opened(answers_mb: float = 100, threads: int = 4) -> Run:
    run = make_run(ranks=32, steps=3, late={5: 20_000_000})
    return Run(run.name, run.path, run.ranks, engine=Threads(threads), answers_mb=answers_mb)


def assert_same(found: list[pl.DataFrame | str], expected: list[pl.DataFrame | str]) -> None:
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
        else:
            assert_frame_equal(one, other, check_exact=True)


def test_sixteen_threads_get_the_answers_of_one_and_compute_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.run.rank_groups.TOGETHER_ROWS", 100)  # several parts
    questions = mixed_questions(400, seed=1, steps=[1, 2, 3])
    expected = asked_by(1, opened(threads=1), questions)
    run = opened()

    with counted_calls() as calls:
        found = asked_by(16, run, questions)

    assert_same(found, expected)
    assert len(calls) > 100
    assert set(calls.values()) == {1}
    assert run.answers_bytes < 100e6


def test_answers_that_are_forgotten_are_the_same_when_they_are_computed_anew() -> None:
    questions = mixed_questions(100, seed=2, steps=[1, 2, 3])
    expected = asked_by(1, opened(threads=1), questions)
    run = opened(answers_mb=0.05)

    with counted_calls() as calls:
        found = asked_by(16, run, questions)

    assert_same(found, expected)
    assert max(calls.values()) > 1
    assert run.answers_bytes <= 0.05e6
