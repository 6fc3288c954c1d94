"""The command that changes a job: what it saves in words, what it rests on, and what can be named."""

from __future__ import annotations

import pytest

from stepscope.pages.answering import Request, answer, document
from stepscope.pages.showing import shown_sections
from stepscope.pages.what_if import PAGE
from stepscope.run import Run
from tests.analysis.jobs import job
from tests.cli.calling import EXAMPLE, printed
from tests.cli.calling import document as printed_document

REPLAYED = (
    "Without changes, the replay is within 0.01% of the recording. Here, a step lasts from the end of the one before "
    "to the end of its last work on any rank."
)


def sentences(run: Run, **options: object) -> list[str]:
    shown = shown_sections(answer(run, PAGE, Request(options=options)))
    return [sentence for section in shown for sentence in section.sentences]


def test_a_saving_is_stated_with_the_error_of_the_replay() -> None:
    assert sentences(job(compute={1: 1.3}, jitter=0), without="rank=1") == [
        "With this, the mean step takes 29.00 ms instead of 35.00 ms: 17.1% shorter.",
        REPLAYED,
    ]


def test_of_one_step_nothing_is_a_mean() -> None:
    found = sentences(job(steps=1, compute={1: 1.3}, jitter=0), without="rank=1")

    assert found[0] == "With this, the step takes 29.00 ms instead of 35.00 ms: 17.1% shorter."


def test_what_saves_nothing_says_why() -> None:
    run = job(compute={1: 1.3, 5: 1.3}, jitter=0)

    assert sentences(run, without="rank=1")[0] == (
        "This hardly changes the steps, although 6.00 ms of work are taken away in a step, summed over ranks: "
        "other work takes as long at the same time."
    )
    assert "although 2.00 ms of work are added" in sentences(run, scale="rank=2,kind=computing,1.1")[0]
    assert sentences(run, without="rank=2")[0].startswith("Nothing changes: what was named takes no longer than usual")


def test_a_healthy_job_has_nobody_to_mend() -> None:
    assert sentences(job())[0].startswith("No rank is clearly slower than its peers.")


def test_a_lone_rank_says_what_it_cannot_know() -> None:
    assert "Only rank 0 was recorded." in sentences(job(ranks=1), scale="op=gemm,0.5")[-1]


def test_without_a_change_the_suspects_and_all_names_are_listed() -> None:
    found = document(answer(job(compute={1: 1.3}), PAGE, Request()))

    assert list(found["tables"]) == ["slow_ranks", "work_names"]
    assert found["notes"] == [REPLAYED]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed_document(capsys, "what-if", EXAMPLE, "--without", "rank=2")

    assert found["notes"] == [REPLAYED]
    assert all(row["saving_ns"] > 0 for row in found["tables"]["what_if"])
    assert "there is no rank 9. There are ranks 0-3" in " ".join(
        printed(capsys, "what-if", EXAMPLE, "--without", "rank=9", code=2).split()
    )
