"""The figures that the benchmark of timelines derives from what it measured."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from cases import ROWS, Case
from table import Row
from timeline import _sized, ratios, told


def row(case: str, wall_s: float, failure: str | None = None) -> Row:
    return Row("trace, 100 MB", case, wall_s, wall_s, 200_000_000, 3, failure)


def test_times_are_of_reading_and_sizes_of_the_source() -> None:
    rows = [row(ROWS, 2.0), row("pftrace", 5.0), row("json", 6.0, "exit status 1"), row("otlp", 8.0)]
    found = ratios(rows, {"pftrace": 25_000_000, "json": 3, "otlp": 150_000_000}, 100_000_000)
    assert [(one.case, one.times, one.size) for one in found] == [("pftrace", 2.5, 0.25), ("otlp", 4.0, 1.5)]
    lines = told(found)
    assert lines[0] == "trace, 100 MB"
    assert [line.split() for line in lines[2:]] == [
        ["pftrace", "2.50", "x", "2.50", "x", "0.250", "200"],
        ["otlp", "4.00", "x", "4.00", "x", "1.500", "200"],
    ]
    assert ratios([row(ROWS, 2.0, "exit status 1"), *rows[1:]], {"pftrace": 1}, 1) == []


def test_the_size_is_noted_before_the_next_case_removes_what_was_written(tmp_path: Path) -> None:
    written, sizes = tmp_path / "out", dict[str, int]()
    given = [Case("first", ()), Case("second", (), prepare=written.unlink)]
    first, second = _sized(given, {case.name: written for case in given}, sizes)
    first.prepare()
    written.write_bytes(b"12345")
    second.prepare()
    assert sizes == {"first": 5}
    assert not written.exists()
