"""What the Ascend tool wrote about two clusters, and what our answers say on the same files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from known_faults import FAULTS
from our_answers import LEFT_OUT, Answers
from their_tables import Figure, figures

from stepscope import open_run

PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
RUNS = ("db_8rank", "text_8rank")

NS = {"us": 1e-3, "ms": 1e-6}
ROUNDED = 5e-5
"""Half of the last digit of a ratio; bandwidths are rounded alike."""
FLOAT_US = 0.25
"""Distance of two floats that are us since 1970."""


@dataclass(frozen=True)
class Judged:
    """A figure, our value of it, and what became of it: `equal`, the name of a fault, or `unexplained`."""

    run: str
    figure: Figure
    ours: Any
    verdict: str


def _is_equal(figure: Figure, ours: Any, theirs: Any) -> bool:
    """Whether two values are the same within rounding: of ns, of sums of some of them, or of digits."""
    if isinstance(theirs, str) or ours is None:
        return bool(ours == theirs)
    if figure.column == "start_timestamp":
        return abs(ours - theirs) <= FLOAT_US
    digits = ROUNDED if "ratio" in figure.column else 4 * NS["ms"]
    return abs(ours - theirs) <= max(digits, 1e-6 * abs(theirs), ROUNDED if "andwidth" in figure.column else 0)


def _judge(run: str, figure: Figure, ours: Any, data: Path) -> Judged:
    if _is_equal(figure, ours, figure.value):
        return Judged(run, figure, ours, "equal")
    for fault in FAULTS:
        if fault.is_meant(figure) and _is_equal(figure, ours, fault.right(data, figure)):
            return Judged(run, figure, ours, fault.name)
    return Judged(run, figure, ours, "unexplained")


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    """Every figure that is compared, judged."""
    shared = Path(__file__).parents[3] / "shared"
    if not (shared / "golden" / "msprof").is_dir():
        pytest.skip("no folder of reference answers beside the repository")
    found = []
    for name in RUNS:
        data = shared / "data" / "ascend" / name
        answers = Answers(open_run(data, use_store=False))
        for figure in figures(shared / "golden" / "msprof" / name):
            if (figure.table, figure.column) not in LEFT_OUT:
                found.append(_judge(name, figure, answers.value(figure), data))
    return found


def test_every_difference_is_a_known_fault_of_the_other_tool(judged: list[Judged]) -> None:
    unexplained = [one for one in judged if one.verdict == "unexplained"]

    assert not unexplained[:5], f"{len(unexplained)} of {len(judged)}"


def test_every_table_is_compared(judged: list[Judged]) -> None:
    tables = {(one.run, one.figure.table) for one in judged}

    assert len({table for _, table in tables}) == 10
    assert len(tables) == 10 + 7  # the text mode writes neither hosts nor devices nor sizes


def test_every_known_fault_occurs(judged: list[Judged]) -> None:
    assert {fault.name for fault in FAULTS} <= {one.verdict for one in judged}


def test_a_figure_that_is_off_is_noticed(judged: list[Judged]) -> None:
    """Each of ours, changed by 5 %, must differ from theirs and from what is right; 0 stays 0."""
    shared = Path(__file__).parents[3] / "shared" / "data" / "ascend"
    numbers = [
        one for one in judged if isinstance(one.ours, int | float) and one.ours and "index" not in one.figure.column
    ]
    some = numbers[::37]
    changed = [_judge(one.run, one.figure, one.ours * 1.05, shared / one.run).verdict for one in some]

    assert len(some) > 200
    assert set(changed) == {"unexplained"}


def test_the_documentation_counts_them_and_gives_the_reasons(judged: list[Judged]) -> None:
    counts = Counter("equal" if one.verdict == "equal" else "better" for one in judged)
    text = PAGE.read_text(encoding="utf-8").replace("\n", " ")

    assert f"{len(judged)} figures: {counts['equal']} equal, {counts['better']} better, 0 unexplained" in text
    for fault in FAULTS:
        assert f"| {fault.name} | {fault.reason} |" in text
    for (table, column), reason in LEFT_OUT.items():
        assert f"| `{table}.{column}` | {reason} |" in text
