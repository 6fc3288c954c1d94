"""What MindInsight answered about ranks and jobs, and what our functions say on the same directories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from all_faults import FAULTS, explain
from all_pages import ELSEWHERE, PAGES
from asked import all_asked
from judged import Judged, judge

PAGE = Path(__file__).parents[2] / "docs" / "mindinsight.md"


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    """Every request with a counterpart, judged."""
    shared = Path(__file__).parents[3] / "shared"
    golden, data = shared / "golden" / "mindinsight", shared / "data" / "mindspore"
    if not golden.is_dir():
        pytest.skip("no folder of reference answers beside the repository")
    asked = [one for one in all_asked(golden) if one.kind not in ELSEWHERE]
    return [judge(one, data, PAGES, explain) for one in asked]


def test_every_difference_is_a_known_fault_of_the_other_tool(judged: list[Judged]) -> None:
    unexplained = {one.asked.name: one.unexplained[:3] for one in judged if one.unexplained}

    assert not unexplained


def test_every_known_fault_occurs(judged: list[Judged]) -> None:
    assert {name for one in judged for name in one.faults} == {fault.name for fault in FAULTS}


def test_the_documentation_counts_them(judged: list[Judged]) -> None:
    counts = Counter(one.verdict for one in judged)
    empty = sum(one.is_empty for one in judged)
    told = (
        f"{len(judged)} requests: {counts['equal'] - empty} equal, {counts['better']} better, "
        f"{empty} with nothing to show on either side, {counts['unexplained']} unexplained"
    )

    assert told in PAGE.read_text().replace("\n", " ")


def test_the_documentation_gives_the_reason_of_each() -> None:
    text = PAGE.read_text()

    for fault in FAULTS:
        assert f"| {fault.name} | {fault.reason} |" in text
