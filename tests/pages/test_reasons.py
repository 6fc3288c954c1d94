"""Reasons for people: why data and answers are missing."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope import Run, open_run
from stepscope.advice import worded
from stepscope.errors import Unavailable
from stepscope.pages.reasons import explain, missing_data, unanswered
from stepscope.report.answers import answers

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"


def test_a_cpu_recording_says_why_it_has_no_kernels_and_links() -> None:
    found = answers(open_run(EXAMPLE))

    assert unanswered(found.unavailable) == [
        "No slow links: the recording has no link figures; PyTorch traces do not contain them.",
        "No kernels: the recording has no accelerator work; "
        "a CPU-only job, or recorded without accelerator activities.",
    ]


def test_answers_that_lack_the_same_data_share_a_sentence() -> None:
    lines = unanswered({"communication": "no calls", "arrival": "no calls", "slow_ranks": "one rank"})

    assert lines == ["No communication or arrival times: no calls.", "No slow ranks: one rank."]


def test_kinds_of_data_that_are_missing_for_one_reason_share_a_line() -> None:
    lines = missing_data(open_run(EXAMPLE))

    assert "stacks: recorded without with_stack=True" in lines
    (none_in_pytorch,) = [line for line in lines if line.endswith("PyTorch traces do not contain them")]
    assert "links" in none_in_pytorch and "kernel_counters" in none_in_pytorch
    assert not any("step_totals" in line for line in lines)


def test_only_the_ranks_that_lack_a_kind_of_data_are_named() -> None:
    stacks = pl.DataFrame({"stack": [0], "text": ["main"]})
    run = Run.from_frames({0: {"stacks": stacks}, 1: {}, 2: {}})

    assert "stacks (ranks 1-2): recorded without with_stack=True" in missing_data(run)


def test_one_rank_is_not_called_typical() -> None:
    run = open_run(EXAMPLE, ranks=2)

    summaries = [worded(finding).summary for finding in answers(run).findings]

    assert any(summary.startswith("This rank waits for input data") for summary in summaries)


def test_a_rank_that_lacks_a_table_is_named_without_the_words_of_the_code() -> None:
    lacking = Unavailable(
        "breakdown needs `steps`: ranks 1,3 lack `steps` (read as classic). Cut off. Record again",
        question="breakdown",
        table="steps",
        ranks=(1, 3),
        why="Cut off. Record again",
    )
    causes = [Unavailable("no compute kernels"), lacking, Unavailable("no steps")]
    both = Unavailable(". ".join(map(str, causes)), causes=causes)

    assert explain(open_run(EXAMPLE), "step_trace", lacking) == "ranks 1,3 have no steps. Cut off. Record again"
    assert explain(open_run(EXAMPLE), "step_trace", both) == (
        "no compute kernels; ranks 1,3 have no steps. Cut off. Record again. no steps"
    )
