"""Calls are matched where ranks recorded the operators of different steps."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, OPERATORS, RANKS, STEPS
from tests.analysis.jobs import MS

COUNT, LENGTH = 16, 100 * MS
LATE = 20 * MS
"""By so much rank 1 is late at each call."""


def rank(
    number: int, recorded: list[int], *, calls: int = 2, clock_ns: int = 0, first: int = 0
) -> dict[str, pl.DataFrame]:
    """A rank that communicates in each step and recorded it in some.

    Args:
        number: Which one; rank 1 is late.
        recorded: The steps with operators.
        calls: In each step.
        clock_ns: What the rank's clock shows too much.
        first: Number of the first call; above 0 as a library states it, by all calls and not those recorded.
    """
    starts = [step * LENGTH + clock_ns for step in range(1, COUNT + 1)]
    ends = [start + LENGTH for start in starts]
    places = [(step, call) for step in recorded for call in range(calls)]
    begins = [step * LENGTH + clock_ns + 30 * MS * call + 10 * MS + (LATE if number else 0) for step, call in places]
    until = [step * LENGTH + clock_ns + 30 * MS * call + 35 * MS for step, call in places]
    stated = [(step - 1) * calls + call for step, call in places]
    lengths = [end - begin for begin, end in zip(begins, until, strict=True)]
    return {
        "ranks": RANKS.frame(host=[f"host {number}"], start_ns=[0]),
        "steps": STEPS.frame(
            step=list(range(1, COUNT + 1)),
            start_ns=starts,
            end_ns=ends,
            window_start_ns=starts,
            window_end_ns=ends,
            window=["host"] * COUNT,
            recorded=[step in recorded for step in range(1, COUNT + 1)],
        ),
        "operators": OPERATORS.frame(
            slice=list(range(len(recorded))),
            step=recorded,
            name=["aten::mm"] * len(recorded),
            start_ns=[step * LENGTH + clock_ns for step in recorded],
            duration_ns=[5 * MS] * len(recorded),
            self_ns=[5 * MS] * len(recorded),
        ),
        "collectives": COLLECTIVES.frame(
            collective=list(range(len(places))),
            group=["g"] * len(places),
            sequence=stated if first else list(range(len(places))),
            operation=["all_reduce"] * len(places),
            name=["gloo:all_reduce"] * len(places),
            start_ns=begins,
            duration_ns=lengths,
            on_device=[False] * len(places),
            size_bytes=[8] * len(places),
            step=[step for step, _ in places],
        ),
    }


ODD, FOURTH = list(range(1, COUNT + 1, 2)), [1, 3, 4, 7, 8, 12, 15, 16]
"""Equally many steps, of which 1, 3, 7 and 15 are the same."""


@pytest.mark.parametrize("clock_ns", [0, 7 * MS, 130 * MS, 5000 * MS])
def test_calls_of_the_same_step_are_matched_on_clocks_that_differ(clock_ns: int) -> None:
    run = Run.from_frames({0: rank(0, ODD), 1: rank(1, FOURTH, clock_ns=clock_ns)})

    offsets = run.analyse("clocks").sort("rank")["offset_ns"]
    found = run.analyse("arrival")

    assert offsets[1] - offsets[0] == clock_ns
    together = found.filter(pl.col("members") == 2)
    assert sorted(together["step"].unique()) == [1, 3, 7, 15]
    assert together.height == 4 * 2 * 2
    assert together.filter(rank=0)["wait_ns"].unique().to_list() == [LATE]
    assert found.filter(pl.col("members") == 1).height == 2 * (2 * 8 - 4 * 2)


def test_positions_that_a_library_states_stay() -> None:
    tables = {0: rank(0, ODD[1:], first=1), 1: rank(1, FOURTH[1:], first=1)}

    found = Run.from_frames(tables).analyse("arrival").filter(pl.col("members") == 2)

    assert found["sequence"].unique().sort().to_list() == [4, 5, 12, 13, 28, 29]


def test_a_rank_whose_operators_were_recorded_in_all_steps_is_matched_with_one_that_lacks_some() -> None:
    run = Run.from_frames({0: rank(0, list(range(1, COUNT + 1))), 1: rank(1, FOURTH)})

    found = run.analyse("arrival").filter(pl.col("members") == 2)

    assert sorted(found["step"].unique()) == FOURTH


def test_the_key_of_a_call_is_written_once() -> None:
    repeated = re.compile(r"""[=,] *[\[(]["']group["'], ["']sequence["'][\])]""")
    room = Path(stepscope.__file__).parent / "analysis"
    names = {file.name for file in room.rglob("*.py") if repeated.search(file.read_text(encoding="utf-8"))}

    assert names - {"unfinished_calls.py"} == {"call_positions.py"}  # there, of dumps of calls, not of `collectives`
