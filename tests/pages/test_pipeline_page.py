"""The pipeline page: passes of each rank as blocks in time, and what is said of how they are known."""

from __future__ import annotations

from dataclasses import replace

from stepscope.pages.answering import Request, answer
from stepscope.pages.pipeline import CELLS, PAGE
from stepscope.pages.showing import ShownSection, shown_sections
from stepscope.run import Run
from tests.pipelines import MS, Pipeline

JOB = Pipeline(stages=2, micro_batches=2, forward_ns=100 * MS, backward_ns=200 * MS, marked=True, step_ns=2000 * MS)


def section(run: Run, table: str) -> ShownSection:
    return next(iter(shown_sections(answer(run, PAGE, Request(table=table)))))


def test_passes_are_drawn_in_time() -> None:
    table = section(JOB.run(), "lanes").tables[0]

    assert table.heading == "Passes of each rank in time, step 2: ▒ forward, █ backward"
    first, second = table.rows["by_time"].to_list()
    assert {len(first), len(second)} == {CELLS}
    assert [first[0], second[0]] == ["▒", "·"]  # the second stage waits for its first input
    assert [first[-1], second[-1]] == ["█", "·"]
    assert first.count("█") > first.count("▒") > 0


def test_of_passes_with_one_known_end_that_end_is_drawn() -> None:
    found = section(replace(JOB, marked=False, micro_batches=4, step_ns=3000 * MS).run(), "lanes")

    first, second = found.tables[0].rows["by_time"].to_list()
    assert first.count("█") == 4 - 1  # the last one begins after a pass whose end is unknown
    assert "█" in second and "▒" in second
    assert any("guess" in one and "1F1B" in one for one in found.sentences)


def test_the_schedule_is_told() -> None:
    notes = " ".join(section(replace(JOB, factor={1: 2.0}).run(), "stages").sentences)

    assert "2 stages, 2 micro-batches a step" in notes
    assert "Even stages that do nothing else would wait 33.3%" in notes
    assert "stage 1 works 1.33 times as long" in notes


def test_a_job_without_stages_says_so() -> None:
    alone = section(replace(JOB, sizes=False, named=False).run(), "timeline")

    assert "No pipeline stages are known: stage 0 stands for all ranks." in alone.sentences
    assert not any("No pipeline stages" in one for one in section(JOB.run(), "timeline").sentences)
