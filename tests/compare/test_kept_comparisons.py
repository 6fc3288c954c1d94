"""Comparisons of two sides of one run are kept on disk, like answers about the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from every_format import FORMATS
from stepscope import open_run
from stepscope.compare import COMPARISONS, Pair, compare
from stepscope.compare.noise import LIMITS, NAME
from stepscope.errors import Unavailable


@pytest.fixture(autouse=True)
def keeping(computed: pytest.MonkeyPatch) -> None:
    """Answers are kept."""
    computed.undo()


@pytest.fixture
def supplied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the comparisons that are computed, in order."""
    names: list[str] = []
    supply = Pair._supplied

    def noted(self: Pair, asked: Any) -> Any:
        names.append(asked.name)
        return supply(self, asked)

    monkeypatch.setattr(Pair, "_supplied", noted)
    return names


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A job of several ranks."""
    FORMATS["kineto"](tmp_path / "job")
    return tmp_path / "job"


def everything(pair: Pair) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for question in COMPARISONS:
        try:
            found[question] = pair.analyse(question)
        except Unavailable as reason:
            found[question] = (type(reason), str(reason), reason.table)
    return found


def test_kept_comparisons_are_those_that_are_computed(here: Path, supplied: list[str]) -> None:
    computed = everything(compare(open_run(here, use_store=False)))
    first = everything(compare(open_run(here)))
    supplied.clear()

    kept = everything(compare(open_run(here)))

    assert not [name for name in supplied if not isinstance(kept[name], tuple)]
    for question, expected in computed.items():
        if isinstance(expected, tuple):
            assert first[question] == kept[question] == expected
        else:
            assert_frame_equal(first[question], expected)
            assert_frame_equal(kept[question], expected)


def test_other_sides_steps_or_limits_are_compared_anew(here: Path, supplied: list[str]) -> None:
    question = "time_differences"
    run = open_run(here)
    steps, ranks = run.steps, [rank.rank for rank in run.ranks]
    sides = {"base_ranks": [ranks[0]], "ranks": [ranks[1]]}
    compare(open_run(here), **sides).analyse(question)
    supplied.clear()
    compare(open_run(here), **sides).analyse(question)
    assert not supplied

    others = [
        compare(open_run(here), base_ranks=[ranks[1]], ranks=[ranks[0]]),
        compare(open_run(here), **sides, steps=[steps[0]]),
        compare(open_run(here), base_steps=[steps[0]], steps=[steps[1]]),
        compare(open_run(here).with_limits({NAME: type(LIMITS)(same_ratio=0.5)}), **sides),
    ]
    for count, pair in enumerate(others, 1):
        pair.analyse(question)
        assert supplied.count(question) == count


def test_two_runs_are_compared_each_time(here: Path, tmp_path: Path, supplied: list[str]) -> None:
    FORMATS["kineto"](tmp_path / "other")
    for count in (1, 2):
        compare(here, tmp_path / "other").analyse("time_differences")
        assert supplied.count("time_differences") == count
