"""The page about slowdowns of jobs of operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from operation_traces import Pipeline, usual, write
from tests.cli.calling import document, printed


@pytest.fixture
def job(tmp_path: Path) -> str:
    """Rank 2 of 4 takes twice as long for its passes."""
    folder = tmp_path / "job"
    folder.mkdir()
    write(folder, Pipeline(4, 1, tensor=1), length=lambda way, one, *_: usual(way) * (2 if one == 2 else 1))
    return str(folder)


def test_the_page_shows_the_figures_and_the_cause(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(printed(capsys, "slowdowns", job).split())

    assert "Main cause: slow ranks (100% of what is lost, worker 2)." in shown
    # 1 s of gathering, 2 s of reducing and the optimizer, and 2 micro-batches of 6 s, or of 3.75 s in the mean
    assert "S = 1.429: the mean step takes 15.000 s without delays between operations, and 10.500 s" in shown
    assert "M_W = 1.0000: the share of the slowdown that is gone with ideal times of the slowest ranks (2)" in shown


def test_json_has_each_rank_in_each_step(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    tables = document(capsys, "slowdowns", job)["tables"]
    ranks = [row for row in tables["step_slowdowns"] if row["kind"] == "rank"]

    assert {"slowdown_causes", "slowdowns", "rank_slowdowns"} <= tables.keys()
    assert {(row["step"], row["unit"]) for row in ranks} == {(step, str(rank)) for step in (3, 5) for rank in range(4)}
