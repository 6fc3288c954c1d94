"""What is said of a compiler: once at the start, or again and again."""

from __future__ import annotations

import polars as pl

from stepscope.advice import Finding, worded
from stepscope.tables import OPERATORS, RANKS, SLICES, STEPS
from tests.advice.examples import found

MS = 1_000_000


def told(compiles: dict[float, int], count: int = 10, ranks: int = 1, *, marked: bool = True) -> list[Finding]:
    """What the rule says of `count` steps of 100 ms of which some (from 1) compile for so many ms."""
    starts = [k * 100 * MS for k in range(count)]
    ends = [start + 100 * MS for start in starts]
    window = {"window_start_ns": starts, "window_end_ns": ends, "window": ["host"] * count}
    steps = STEPS.frame(step=list(range(1, count + 1)), start_ns=starts, end_ns=ends, **window)
    if not marked:
        last = ends[-1]
        window = {"window_start_ns": [0], "window_end_ns": [last], "window": ["recording"]}
        steps = STEPS.frame(step=[0], start_ns=[0], end_ns=[last], **window)
    slices = SLICES.frame(
        slice=list(range(len(compiles))),
        start_ns=[round((step - 1) * 100 * MS) + 5 * MS for step in compiles],
        duration_ns=[length * MS for length in compiles.values()],
        category=["compile"] * len(compiles),
        name=["entire_frame_compile"] * len(compiles),
    )
    operators = OPERATORS.frame(
        slice=[100 + k for k in range(count)],
        start_ns=[start + 96 * MS for start in starts],
        duration_ns=[2 * MS] * count,
        name=["aten::add"] * count,
    )
    tables: dict[str, pl.DataFrame] = {"steps": steps, "slices": slices, "operators": operators}
    tables["ranks"] = RANKS.frame(framework=["pytorch"], device_kind=["cpu"])
    return found(dict.fromkeys(range(ranks), tables), "compile-time")


def test_compiling_at_the_start_saves_nothing_in_a_step() -> None:
    (finding,) = told({1: 90})

    assert worded(finding).summary == "Rank 0 spends 90.00 ms compiling in step 1 (9% of the recorded time), once."
    assert (finding.saving_ns, finding.saving_ratio, finding.severity) == (0, 0.0, "low")


def test_what_is_compiled_after_the_last_step_is_a_part_of_what_was_recorded() -> None:
    (finding,) = told({1: 90, 11: 2000})

    assert worded(finding).summary == (
        "Rank 0 spends 2.09 s compiling in step 1 and outside of steps (70% of the recorded time), once."
    )


def test_a_short_compilation_is_no_finding() -> None:
    assert told({1: 40}) == []


def test_one_later_compilation_belongs_to_the_start() -> None:
    (finding,) = told({1: 60, 2: 30})

    assert "90.00 ms compiling in steps 1-2" in worded(finding).summary


def test_compiling_again_is_claimed_as_its_mean() -> None:
    again, once = told({1: 90, 3: 50, 5: 40, 9: 30})

    assert (
        worded(again).summary
        == "Rank 0 compiles again in 3 steps after the first: 120.00 ms in total, 12% of the recorded time."
    )
    assert (again.saving_ns, again.severity) == (12 * MS, "high")
    assert "mark_dynamic" in worded(again).action
    assert once.evidence["steps"] == [1]


def test_several_ranks_share_a_finding() -> None:
    (finding,) = told({1: 90}, ranks=2)

    assert worded(finding).summary.startswith("Ranks 0-1 spend 90.00 ms compiling in step 1")
    assert finding.where == {"ranks": [0, 1], "steps": [1]}


def test_without_steps_it_is_a_total_of_the_recording() -> None:
    (finding,) = told({1: 90, 3: 50, 5: 40}, marked=False)

    assert worded(finding).summary == "Rank 0 spends 180.00 ms compiling (18% of the recorded time), once."
    assert finding.saving_ns == 0
