"""The comparison itself: a figure of ours that is off by 5 % is noticed, also where MindInsight's is excused.

`STEPSCOPE_PLANTED=1000` changes up to that many figures of each request, one at a time.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from all_faults import explain
from all_pages import ELSEWHERE, PAGES
from asked import Asked, all_asked
from differing import Figure
from judged import judge, ours

from stepscope.run import Run

FIGURES_OF_A_REQUEST = int(os.environ.get("STEPSCOPE_PLANTED", "3"))
SHARED = Path(__file__).parents[3] / "shared"
LEAST_NOTICED = 0.98
Place = tuple[str | int, ...]


def figures(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where the numbers of an answer stand."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from figures(below, (*place, key))
    elif isinstance(value, (list, tuple)):
        for number, below in enumerate(value):
            yield from figures(below, (*place, number))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place


def changed(value: Any, place: Place) -> Any:
    """The answer with the number at a place 5 % larger; a whole number at least 1 larger, 0 becomes 1."""
    if place:
        key, *rest = place
        if isinstance(value, dict):
            return {**value, key: changed(value[key], tuple(rest))}
        return [changed(below, tuple(rest)) if number == key else below for number, below in enumerate(value)]
    if isinstance(value, Figure):
        made = Figure(value * 1.05 if value else 1.0, 0)
        made.within = value.within
        return made
    if isinstance(value, int):
        return value + max(1, round(value * 0.05))
    return value * 1.05 if value else 1.0


def is_noticed(asked: Asked, answer: Any) -> bool:
    """Whether the comparison objects to an answer."""

    def page(run: Run, again: Asked) -> Any:
        return answer

    return bool(judge(asked, SHARED / "data" / "mindspore", {asked.kind: page}, explain).unexplained)


def test_a_changed_figure_is_noticed() -> None:
    golden = SHARED / "golden" / "mindinsight"
    if not golden.is_dir():
        pytest.skip("no folder of reference answers beside the repository")
    source, planted, missed = random.Random(7), 0, Counter[str]()
    for asked in all_asked(golden):
        answer = None if asked.kind in ELSEWHERE else ours(asked, SHARED / "data" / "mindspore", PAGES)
        places = list(figures(answer))
        for place in source.sample(places, min(len(places), FIGURES_OF_A_REQUEST)):
            planted += 1
            if not is_noticed(asked, changed(answer, place)):
                missed[f"{asked.name}: {'/'.join(map(str, place))}"] += 1

    assert planted > 500
    assert 1 - missed.total() / planted >= LEAST_NOTICED, sorted(missed)
