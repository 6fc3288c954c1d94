"""Ranks that a replay leaves out, since their calls match no others': every page about it says so."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.replay.replayed_steps import Limits
from stepscope.errors import StepscopeError
from stepscope.pages.heat_map import _legend, _notes
from stepscope.pages.replayed import unknowns
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from tests.analysis.jobs import job


@pytest.fixture(scope="module")
def cut() -> Run:
    """A job of which rank 3 recorded calls of its own."""
    run = job(ranks=4, steps=3)
    frames = {rank.rank: {name: rank.table(name).drop("rank").collect() for name in rank.rows} for rank in run.ranks}
    frames[3]["collectives"] = frames[3]["collectives"].with_columns(pl.col("sequence") + 1000)
    return Run.from_frames(frames)


def test_what_is_left_out_is_named(cut: Run) -> None:
    assert next(unknowns(cut)).startswith("Rank 3 is left out of the replay: most of its calls match no others'")
    assert not any("left out" in sentence for sentence in unknowns(job(ranks=4, steps=3)))


def test_a_rank_that_is_left_out_is_not_said_to_be_missing(cut: Run) -> None:
    with pytest.raises(StepscopeError, match=r"rank 3 is left out of the replay.* Ranks 0-2 are replayed"):
        cut.analyse("what_if", scale="rank=3,0.5")
    with pytest.raises(StepscopeError, match=r"there is no rank 9\. There are ranks 0-2"):
        cut.analyse("what_if", scale="rank=9,0.5")


def test_a_rank_that_cannot_be_compared_is_unknown_and_not_healthy(cut: Run) -> None:
    cells = cut.analyse("heat_map")

    assert cut.analyse("compared_ranks")["is_compared"].to_list() == [True, True, True, False]
    assert cells.filter(pl.col("excess_ns").is_null())["rank"].unique().to_list() == [3]
    assert list(_legend(cells))[1] == "No compared rank is slower than its peers in any {step}."
    assert next(iter(_notes(cut, cells))).startswith("Rank 3 could not be compared: steps or calls are missing")
    found = answers(cut)
    assert found.not_compared == [3]
    assert "Rank 3 could not be compared with the others: its steps, calls" in verdict(found)
    assert "rank 3 无法与其他 rank 比较" in verdict(found, "zh")


def test_of_whole_recordings_nobody_is_left_out() -> None:
    run = job(ranks=4, steps=3)
    cells = run.analyse("heat_map")

    assert run.analyse("compared_ranks")["is_compared"].all()
    assert not any("compared" in one for one in (*_legend(cells), *_notes(run, cells), verdict(answers(run))))


def test_steps_that_do_not_fit_into_memory_are_stated_and_not_silently_left_out() -> None:
    whole = job(ranks=4, steps=3)
    operations = whole.analyse("replayed_steps")["operations"].to_list()
    of_two = whole.with_limits({"replayed_steps": Limits(sum(operations[1:]))})
    of_none = whole.with_limits({"replayed_steps": Limits(operations[-1] - 1)})

    assert "looked for in the last 2 of 3 steps only" in verdict(answers(of_two))
    assert "只在最后 2 步（共 3 步）" in verdict(answers(of_two), "zh")
    assert next(unknowns(of_two)).startswith("Only the last 2 of 3 {steps} are replayed")
    assert "a single step of all ranks does not fit into memory" in verdict(answers(of_none))
    assert answers(whole).replayed_steps is None
    assert not any("do not fit" in sentence for sentence in unknowns(whole))
