"""Figures that a profile states and its timeline contradicts."""

from __future__ import annotations

import polars as pl

from builders import make_run
from stepscope.pages import communication, job, overlap, ranks
from stepscope.pages.answering import answer, document
from stepscope.pages.base import Page
from stepscope.run import Run
from stepscope.tables import COMMUNICATION_TOTALS, STEP_TOTALS

MS = 1_000_000
STEPS = (1, 2, 3)


def with_stated(*, computing: int = 60, exposed: int = 20, total: int = 20, calls: int = 1) -> Run:
    """A timeline of two ranks, with 60 ms of kernels and one call of 20 ms a step; and what rank 0 states, in ms."""
    run = make_run(ranks=2)
    frames = {
        rank.rank: {name: rank.table(name).collect().drop("rank") for name in ("steps", "kernels", "collectives")}
        for rank in run.ranks
    }
    frames[0]["step_totals"] = STEP_TOTALS.frame(
        step=STEPS, computing_ns=[computing * MS] * 3, communication_not_overlapped_ns=[exposed * MS] * 3
    )
    names = [None, *(f"call {number}" for number in range(calls))]
    frames[0]["communication_totals"] = COMMUNICATION_TOTALS.frame(
        step=[step for step in STEPS for _ in names],
        name=names * 3,
        duration_ns=[total * MS if name is None else MS for _ in STEPS for name in names],
    )
    return Run.from_frames(frames)


def told(run: Run) -> list[tuple[object, ...]]:
    found: pl.DataFrame = run.analyse("differing_sources")
    return found.select("figure", "ranks", "stated_ns", "timeline_ns", "believe").rows()


def test_figures_that_agree_are_not_told() -> None:
    assert told(with_stated()) == []
    assert told(with_stated(exposed=22)) == []  # 9 % of the greater


def test_a_timeline_is_believed_where_it_shows_all_that_is_stated() -> None:
    assert told(with_stated(exposed=10)) == [("exposed communication", "0", 10 * MS, 20 * MS, "timeline")]
    assert told(with_stated(total=30)) == [("communication", "0", 30 * MS, 20 * MS, "timeline")]


def test_a_timeline_that_lacks_work_is_not_believed() -> None:
    # without these kernels, communication that they hid seems exposed
    assert told(with_stated(computing=75, exposed=5)) == [
        ("computing", "0", 75 * MS, 60 * MS, "stated"),
        ("exposed communication", "0", 5 * MS, 20 * MS, "stated"),
    ]
    assert told(with_stated(total=60, calls=3)) == [("communication", "0", 60 * MS, 20 * MS, "stated")]


def notes(run: Run, page: Page) -> list[str]:
    found: list[str] = document(answer(run, page)).get("notes", [])
    return found


def test_pages_say_which_of_two_figures_to_believe() -> None:
    run = with_stated(exposed=10, total=60, calls=3)

    exposed = (
        "Exposed communication of rank 0 differs: 10.00 ms in a step as the profile states it, 20.00 ms in the "
        "timeline. Believe the timeline: it shows when each piece began and ended."
    )
    calls = (
        "Communication of rank 0 differs: 60.00 ms in a step as the profile states it, 20.00 ms in the timeline. "
        "Believe the profile: it has 3 calls a step, the timeline 1."
    )
    assert notes(run, ranks.PAGE) == [exposed]
    assert notes(run, overlap.PAGE) == [exposed]
    assert notes(run, communication.PAGE) == [calls]
    assert notes(run, job.PAGE) == [exposed, calls]
    assert notes(make_run(), job.PAGE) == []
