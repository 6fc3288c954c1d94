"""When a finding costs most, where its rule names no moment."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.advice import Finding
from stepscope.advice.registry import RULES
from stepscope.advice.spans import with_span
from stepscope.report.findings import when_line
from tests.analysis.jobs import MS

STEPS = pl.DataFrame(
    {
        "rank": [0, 0, 0, 1, 1, 1],
        "step": [1, 2, 3] * 2,
        "window_start_ns": [0, 90, 100, 0, 90, 100],
        "window_ns": [90, 10, 20, 90, 30, 11],
    }
)
"""The first steps start things up."""


def span(finding: Finding, steps: pl.DataFrame | None = STEPS) -> tuple[int, int] | None:
    return with_span(finding, RULES[finding.rule], steps).span_ns


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({}, (90, 120)),  # of all ranks' steps, without the first
        ({"rank": 0}, (100, 120)),
        ({"rank": 1, "steps": [3]}, (100, 111)),
        ({"steps": [1]}, (0, 90)),
    ],
)
def test_it_is_the_longest_of_its_steps(where: dict[str, object], told: tuple[int, int]) -> None:
    assert span(Finding("slow-rank", "computing", where=where)) == told


def test_of_several_ranks_it_is_on_the_worst() -> None:
    assert span(Finding("slow-rank", "computing").on([1, 0])) == (90, 120)


def test_a_single_step_is_the_first_as_well() -> None:
    assert span(Finding("slow-rank", "computing", where={"rank": 0}), STEPS.head(1)) == (0, 90)


def test_what_is_no_matter_of_steps_has_no_moment() -> None:
    slow = Finding("slow-rank", "computing", where={"rank": 0})

    assert span(Finding("environment", "x")) is None
    assert span(replace(slow, per="recording")) is None
    assert span(slow, None) is None
    assert span(replace(slow, span_ns=(7, 8))) == (7, 8)


def test_moments_count_from_the_start_of_the_recording_unless_they_are_on_another_clock() -> None:
    found = Finding("slow-rank", "computing", span_ns=(5 * MS, 2005 * MS))

    assert when_line(found, 1 * MS) == "When: 4.00 ms to 2.00 s after the start of the recording"
    assert when_line(found, 1 * MS, "zh") == "时间：记录开始后 4.00 ms 至 2.00 s"
    assert when_line(found, None) == when_line(found, 9000 * MS) == when_line(replace(found, span_ns=None), 0) == ""
