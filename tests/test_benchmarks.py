"""The figures that benchmarks derive from what they measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from cases import COLD, OPENED, PARTS, ROWS
from measure import Cost
from peaks import above_limit, print_peaks
from questions import print_times
from rank_growth import Point, fits, line
from table import Row, limits, rate, stages


def row(case: str, cpu_s: float, failure: str | None = None) -> Row:
    return Row("trace", case, cpu_s, cpu_s, 100_000_000, 3, failure)


CASES = (ROWS, OPENED, *PARTS.values())
MEASURED = [row(case, cpu_s) for case, cpu_s in zip(CASES, (2.5, 0.5, 0.4, 1.0, 2.0, 0.8, 0.9), strict=True)]


def test_the_rate_is_that_of_reading_without_start_up() -> None:
    assert rate(MEASURED, 500_000_000) == "  into the store: 250 MB/s a core (2.00 s of processor time)"
    assert rate([row(ROWS, 2.5, "exit status 1"), row(OPENED, 0.5)], 500_000_000) == ""


def test_stages_are_differences_of_neighbours() -> None:
    expected = (
        "start-up and imports 0.40 s, decoding 0.60 s, rows 1.00 s, writing 0.50 s, answers 0.30 s, advice 0.10 s"
    )
    assert stages(MEASURED).endswith(expected)
    without_decoding = [each for each in MEASURED if each.case != PARTS["decoded"]]
    assert "decoding and rows 1.60 s, writing" in stages(without_decoding)


def test_the_line_on_limits_needs_a_cold_analysis() -> None:
    assert "reading takes 50% of it, so analysis" in limits([*MEASURED, row(COLD, 5.0)])
    assert "unknown" in limits(MEASURED)


def test_p95_is_one_of_the_times(capsys: pytest.CaptureFixture[str]) -> None:
    times = [
        {"kind": "rows", "name": f"q{n}", "first_ms": float(n), "kept_ms": 2.0, "again_ms": 1.0} for n in range(1, 101)
    ]
    print_times("run", times, 2)
    first = capsys.readouterr().out.splitlines()[2].split()
    assert first[3:] == ["100", "first", "50.5", "95.0", "100.0", "q100", "100,", "q99", "99"]


def test_peaks_are_listed_from_the_highest_and_compared_with_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    costs = {
        "read": Cost(60.0, 50.0, 500_000_000, 0, ""),
        "analysis idle": Cost(2.0, 3.0, 701_000_000, 0, ""),
        "command host --csv": Cost(1.0, 1.0, 90_000_000, 2, "error: no\nrank has it"),
    }
    print_peaks("trace", costs)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-3:] for line in lines[1:3]] == [["701", "2.0", "3.0"], ["500", "60.0", "50.0"]]
    assert lines[3].endswith("exit status 2: error: no rank has it")
    assert above_limit(costs, 700) == ["analysis idle"]


def test_growth_over_ranks_is_fitted_and_said_for_ten_thousand() -> None:
    points = [
        Point(ranks, ranks * 3.0, 0.1, 2 + 0.1 * ranks, 1.0, 100 + ranks, 1 + 0.001 * ranks, 80) for ranks in (64, 256)
    ]

    assert line(points[0]).startswith("    64 ranks     192 MB: cold     8.4 s CPU (131 ms a rank, 84 x plain read)")
    cold, memory, *_ = fits(points)
    assert cold.startswith("cold: 2.00 + 0.1000 s CPU a rank") and cold.endswith("10000 ranks: 1002 s CPU")
    assert memory.endswith("10000 ranks: 10100 MB")
    assert fits(points[:1]) == []
