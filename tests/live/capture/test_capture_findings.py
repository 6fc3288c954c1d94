"""Sentences about captures, from what commands have answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stepscope.live.capture import findings
from stepscope.live.capture.findings import NotAnalysed, answer_of, difference, places
from tests.sources.flight_dumps import call, waits, write_job


def row(**more: Any) -> dict[str, Any]:
    return {"base_ns": 0, "new_ns": 0, "difference_ns": 0, "verdict": "more", "base_calls": 1, "new_calls": 1, **more}


def answer(own: dict[str, Any], operators: list[dict[str, Any]], parts: list[dict[str, Any]] | None = None) -> Any:
    return {
        "tables": {
            "own_work_difference": [own],
            "operator_differences": operators,
            "time_differences": [{"level": 1, **part} for part in parts or []],
        }
    }


OWN = row(base_ns=100_000_000, new_ns=140_000_000, difference_ns=40_000_000)


def test_operators_with_most_of_the_difference_are_named_and_waits_are_not() -> None:
    operators = [
        row(path="c10d::allreduce_", kind="communication", difference_ns=90_000_000),
        row(path="aten::linear > aten::addmm", kind="work", base_ns=1, difference_ns=30_000_000),
        row(path="aten::sum", kind="work", difference_ns=1_000_000),
        row(path="aten::relu", kind="work", difference_ns=39_000_000, verdict="noise"),
    ]

    finding = difference(answer(OWN, operators), 3, 0)

    assert finding.text == (
        "In its profile, rank 3 works 40.00 ms (40%) longer per step than rank 0, most of it in aten::addmm (+30.00 ms)"
    )


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ({}, "38.00 ms of it in which no operator runs"),
        ({"data_loading": 30_000_000, "python": 8_000_000}, "38.00 ms of it waiting for data"),
        ({"data_loading": 10_000_000, "other": 28_000_000}, "38.00 ms of it in which no operator runs"),
    ],
)
def test_time_without_operators_is_named_by_its_cause(causes: dict[str, int], expected: str) -> None:
    parts = [
        {"part": "idle", "of": "step", "difference_ns": 38_000_000},
        {"part": "exposed communication", "of": "step", "difference_ns": 10**9},
        *({"part": cause, "of": "idle", "level": 2, "difference_ns": value} for cause, value in causes.items()),
    ]

    finding = difference(answer(OWN, [], parts), 3, 0)

    assert expected in finding.text


@pytest.mark.parametrize(
    "own", [row(difference_ns=-5), row(difference_ns=5, verdict="noise"), row(difference_ns=5, verdict="same")]
)
def test_no_clear_difference_accuses_nobody(own: dict[str, Any]) -> None:
    assert difference(answer(own, []), 5, 0).text == "In its profile, rank 5 shows no clear difference to rank 0"


def test_profiles_without_common_steps_are_an_error() -> None:
    with pytest.raises(NotAnalysed, match="no steps in common"):
        difference({"tables": {}}, 1, 0)


def test_a_command_that_fails_gives_its_reason(tmp_path: Path) -> None:
    with pytest.raises(NotAnalysed, match="nowhere"):
        asyncio.run(answer_of("compare", str(tmp_path / "nowhere"), str(tmp_path)))


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "PATIENCE_S", 0.05)

    with pytest.raises(NotAnalysed, match="took more than"):
        asyncio.run(answer_of("analyze", str(tmp_path)))


def test_dumps_that_are_missing_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotAnalysed, match="no last calls"):
        asyncio.run(findings.hanging({0: str(tmp_path)}))


def test_ranks_that_are_missing_in_a_call_are_named_as_data(tmp_path: Path) -> None:
    job = {0: [call(), waits()], 1: [call()], 2: [call(), waits()]}
    for rank, calls in job.items():
        write_job(tmp_path / str(rank), {rank: calls}, {"0": [0, 1, 2]})

    finding = asyncio.run(findings.hanging({rank: str(tmp_path / str(rank)) for rank in job}))

    assert finding.text.startswith("Rank 1 never made the call all_reduce 2 of default_pg: ranks 0,2 wait in it")
    assert finding.ranks == [1]


def test_places_name_the_first_and_count_the_others() -> None:
    text = places({rank: f"/d/{rank}" for rank in range(5)}, dict.fromkeys(range(5), "h"))

    assert text == "h:/d/0 (rank 0), h:/d/1 (rank 1), h:/d/2 (rank 2) and those of 2 more ranks"
