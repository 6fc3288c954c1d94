"""What a catalogue finds out beforehand: the findings of each run, kept for the next start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kineto_job import RankTrace
from stepscope.advice import advise
from stepscope.web.catalogue.helpers import Helper, HelperDied
from web_jobs import catalogue_of, settled, wait_for, write_job, write_rank


@pytest.fixture(autouse=True)
def kept(computed: pytest.MonkeyPatch) -> None:
    """Answers are kept on disk, as for users."""
    computed.undo()


def test_findings_are_those_of_advise_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_job(tmp_path / "job", 4)
    with catalogue_of(tmp_path, analyse=True) as catalogue:
        states: set[str] = set()

        def watched() -> Any:
            states.update(one.state for one in catalogue.entries())
            return _ready(catalogue)

        (entry,) = wait_for(watched)
        found = advise(catalogue.open(entry.id))
    assert found, "the example needs a finding"
    assert entry.top == found[0]
    assert {name: count for name, count in entry.findings.items() if count} == _counts(found)
    assert "analysing" in states

    def refused(*_: Any) -> Any:
        raise AssertionError("what is kept is analysed anew")

    monkeypatch.setattr(Helper, "analyse", refused)
    with catalogue_of(tmp_path, analyse=True) as catalogue:
        (again,) = settled(catalogue, 1).values()
        assert (again.top, again.findings, again.stamp) == (entry.top, entry.findings, entry.stamp)


def test_a_run_can_be_opened_while_it_is_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_job(tmp_path / "job")
    analyse = Helper.analyse

    def checked(helper: Helper, *given: Any) -> Any:
        (entry,) = catalogue.entries()
        seen.append((entry.state, len(catalogue.open(entry.id).ranks)))
        return analyse(helper, *given)

    monkeypatch.setattr(Helper, "analyse", checked)
    seen: list[tuple[str, int]] = []
    with catalogue_of(tmp_path, analyse=True) as catalogue:
        settled(catalogue, 1)
    assert seen == [("analysing", 2)]


def test_an_analysis_that_dies_costs_the_findings_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_job(tmp_path / "bad")
    write_rank(tmp_path / "good", day=1)
    analyse = Helper.analyse

    def dying(helper: Helper, order: Any, *given: Any) -> Any:
        if order.name == "bad":
            raise HelperDied("SIGKILL")
        return analyse(helper, order, *given)

    monkeypatch.setattr(Helper, "analyse", dying)
    with catalogue_of(tmp_path, analyse=True) as catalogue:
        entries = settled(catalogue, 2)
        assert "findings are missing" in entries["bad"].problem
        assert entries["bad"].top is None
        assert len(catalogue.open(entries["bad"].id).ranks) == 2
        assert entries["good/rank0.pt.trace.json"].problem == ""


def _ready(catalogue: Any) -> Any:
    entries = catalogue.entries()
    return entries if entries and all(one.state == "ready" for one in entries) else None


def _counts(found: Any) -> dict[str, int]:
    severities = [finding.severity for finding in found]
    return {severity: severities.count(severity) for severity in {*severities}}


def test_batches_of_a_dataset_are_not_listed_as_steps(tmp_path: Path) -> None:
    folder = tmp_path / "job" / "profiler"
    folder.mkdir(parents=True)
    lines = [f"0 {kind} {batch} 3 {100 + 10 * batch}\n" for batch in range(1, 5) for kind in range(3)]
    (folder / "dataset_iterator_profiling_0.txt").write_text("".join(lines))

    with catalogue_of(tmp_path, analyse=True) as catalogue:
        (entry,) = wait_for(lambda: _ready(catalogue))
        assert len(catalogue.open(entry.id).steps) == 4
    assert entry.steps is None


def test_listed_steps_are_those_of_all_ranks_and_a_whole_recording_is_none(tmp_path: Path) -> None:
    for rank, steps in ((0, (1, 2)), (1, (2, 3))):
        _write(tmp_path / "marked", RankTrace(rank, 2), steps)
    _write(tmp_path / "whole", RankTrace(0, 1), ())

    with catalogue_of(tmp_path, analyse=True) as catalogue:
        entries = settled(catalogue, 2)
    assert {path.split("/")[0]: entry.steps for path, entry in entries.items()} == {"marked": 3, "whole": None}


def _write(directory: Path, trace: RankTrace, steps: Iterable[int]) -> None:
    for step in steps:
        trace.step(step, step * 10_000, 9_900)
    trace.kernel("gemm", 20_100, 400)
    trace.write(directory)
