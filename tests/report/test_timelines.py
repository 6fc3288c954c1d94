"""Where in a trace file a finding shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stepscope.advice import Finding
from stepscope.report.answers import answers
from stepscope.report.json_report import document
from stepscope.report.timelines import Timeline, Timelines
from stepscope.run import open_run
from tests.analysis.jobs import MS
from tests.traces import EPOCH_NS, RankTrace, Span, Work, write_kineto

FOUND = Finding("slow-rank", "computing", where={"rank": 2}, span_ns=(50 * MS, 80 * MS), span_rank=2)
FILES = Timelines({2: [(10 * MS, "first.json"), (40 * MS, "second.json"), (90 * MS, "third.json")]}, {3: "rank3.db"})


def test_it_counts_from_the_first_event_of_the_file_that_had_begun() -> None:
    place = FILES.at(FOUND)

    assert place == Timeline(2, "second.json", 10 * MS, 40 * MS)
    assert place.line() == "Timeline: rank 2, second.json, 10.000 ms to 40.000 ms"
    assert place.line("zh") == "时间线：rank 2，second.json，10.000 ms 至 40.000 ms"


def test_long_times_are_in_seconds_to_the_microsecond() -> None:
    assert Timeline(0, "a.json", 2_000_001_000, 12_345_678_900).words() == "rank 0, a.json, 2.000001 s to 12.345679 s"


def test_without_a_trace_file_times_are_those_of_the_clock() -> None:
    start = 1_760_000_000 * 10**9
    place = FILES.at(replace(FOUND, span_ns=(start + 1_234_000, start + 10**9), span_rank=3))

    assert place is not None
    assert place.words() == (
        "rank 3, 2025-10-09 08:53:20.001234 to 2025-10-09 08:53:21.000000 UTC (no trace file in rank3.db)"
    )
    assert place.plain() is None


@pytest.mark.parametrize(
    "finding",
    [
        replace(FOUND, span_ns=None),
        replace(FOUND, span_rank=None),
        replace(FOUND, span_rank=7),
        replace(FOUND, span_ns=(5 * MS, 8 * MS)),
    ],
)
def test_what_is_unknown_is_left_out(finding: Finding) -> None:
    assert FILES.at(finding) is None


def test_a_finding_names_the_file_of_its_rank_and_what_a_viewer_shows_there(tmp_path: Path) -> None:
    for rank in range(2):
        write_kineto(tmp_path, _trace(rank))
    run = open_run(tmp_path)

    found = [finding for finding in document(run, answers(run, strict=True))["findings"] if finding["timeline"]]

    assert found
    for finding in found:
        place, (start, end) = finding["timeline"], finding["span_ns"]
        assert place["rank"] == finding["span_rank"]
        assert (tmp_path / place["file"]).exists()
        assert place["start_ns"] == start - (EPOCH_NS - EARLY_NS[place["rank"]])
        assert place["end_ns"] - place["start_ns"] == end - start


EARLY_NS = (7 * MS, 2 * MS)
"""How long before the first step each rank's file begins."""


def _trace(rank: int) -> RankTrace:
    """Steps of one kernel, which the host launches late."""
    steps, work = [], []
    for step in range(5):
        start = EPOCH_NS + step * 60 * MS
        steps.append((step, Span(f"ProfilerStep#{step}", start, 60 * MS)))
        for late in (0, 30):
            launch = Span("cudaLaunchKernel", start + late * MS, 1000)
            work.append(Work("compute", "gemm", start + late * MS + 10_000, 10 * MS, launch=launch))
    early = [Span("warm-up", EPOCH_NS - EARLY_NS[rank], 1000)]
    return RankTrace(rank, 2, steps, annotations=early, work=work)
