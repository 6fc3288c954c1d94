"""What people see of a comparison: names of sides, what verdicts mean, and calls that wait apart."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.compare import Pair, compare
from stepscope.pages.answering import Request, answer
from stepscope.pages.compare import PAGE
from stepscope.pages.compared_summary import opening
from stepscope.pages.showing import ShownSection, shown_sections
from stepscope.pages.side_titles import with_side_names
from stepscope.present import Language
from stepscope.run import Run
from stepscope.tables import KERNELS, STEPS
from tests.analysis.jobs import MS, job

STEP = 100 * MS
LANGUAGES: tuple[Language, Language] = ("en", "zh")


def run(lengths: Sequence[float], window: str = "device") -> Run:
    """A rank that runs one kernel in each step, of some ms."""
    starts = [STEP * (1 + step) for step in range(len(lengths))]
    steps = list(range(1, len(lengths) + 1))
    ends = [start + round(ms * MS) for start, ms in zip(starts, lengths, strict=True)]
    return Run.from_frames(
        {
            0: {
                "kernels": KERNELS.frame(
                    kernel=steps, step=steps, start_ns=starts,
                    name=["MatMul"] * len(steps), kind=["compute"] * len(steps),
                    duration_ns=[end - start for start, end in zip(starts, ends, strict=True)],
                ),
                "steps": STEPS.frame(
                    step=steps, start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
                    window=[window] * len(steps),
                ),
            }
        }
    )  # fmt: skip


def sections(pair: Pair, language: Language = "en", **request: str) -> list[ShownSection]:
    return list(shown_sections(answer(pair, PAGE, Request(**request)), language=language))  # type: ignore[arg-type]


def said(pair: Pair) -> list[str]:
    return [sentence for section in sections(pair) for sentence in section.sentences]


def test_ranks_of_one_run_stand_in_titles_with_their_roles() -> None:
    pair = compare(job(4, 5, compute={2: 1.5}))
    (typical,) = (rank.rank for rank in pair.base.ranks)

    english, chinese = (
        {column.name: column.title for column in sections(pair, language)[0].tables[0].columns}
        for language in ("en", "zh")
    )

    assert (english["base_ns"], english["new_ns"]) == (f"rank {typical} (typical)", "rank 2 (slow)")
    assert (chinese["base_ns"], chinese["new_ns"]) == (f"rank {typical}（典型）", "rank 2（慢）")
    meanings = " ".join(column.doc for column in sections(pair)[0].tables[0].columns)
    assert "the base" not in meanings and "new side" not in meanings


@pytest.mark.parametrize("window", ["device", "repetition"])
def test_which_steps_are_compared_is_said_once(window: str) -> None:
    pair = compare(run([20.0] * 4 + [30.0] * 4, window), base_steps="1-4", steps="5-8")

    told = [sentence for sentence in opening(pair) if "1-4" in sentence and "5-8" in sentence]
    assert not [sentence for sentence in told if sentence.startswith("Compared")]
    assert pair.names[0].label.endswith("s 1-4")


def test_two_runs_are_the_base_and_the_new_side() -> None:
    pair = compare(run([20.0] * 5), run([30.0] * 5))

    titles = [column.title for column in sections(pair)[0].tables[0].columns]
    assert titles[1:3] == ["base", "new"]


def test_what_runs_on_one_side_only_is_said_with_its_name() -> None:
    pair = compare(job(4, 5, compute={2: 1.5}), base_ranks="0", ranks="2")
    rows = pl.DataFrame({"verdict": ["added", "removed", "more"]})

    shown = [with_side_names("kernel_differences", [], rows, pair, language)[1]["verdict"] for language in LANGUAGES]

    assert [verdicts.to_list() for verdicts in shown] == [
        ["only rank 2", "only rank 0", "more"],
        ["仅 rank 2", "仅 rank 0", "more"],
    ]


def test_a_table_that_a_side_lacks_is_named_as_people_call_it() -> None:
    answered = answer(compare(run([20.0] * 5), run([30.0] * 5)), PAGE)

    assert answered.unavailable["operator_differences"] == "the recording has no framework operators"
    assert answered.unavailable["module_differences"] == "the recording has no timed ranges"


def test_each_verdict_of_a_page_is_explained_once() -> None:
    sentences = said(compare(run([20, 21, 22]), run([30, 31, 32])))

    (too_few,) = [text for text in sentences if text.startswith("too few: ")]
    assert "at least 4 steps on each side, here are 3 and 3; these differences are shown untested" in too_few
    assert len(sentences) == len(set(sentences))
    assert not any(text.startswith(("p: ", "noise: ")) for text in sentences)


def test_too_few_steps_that_drift_are_said_to_resemble_each_other() -> None:
    drift = [20 + step / 10 for step in range(10)]
    sentences = said(compare(run(drift), run([ms + 0.95 for ms in drift])))

    assert any("resemble each other, so that 10 and 10 of them tell too little" in text for text in sentences)


def test_the_first_sentence_about_ranks_is_what_the_slow_one_does_longer() -> None:
    first, second, *_ = opening(compare(job(4, 5, compute={2: 1.5})))

    assert first.startswith("Own work of rank 2 (slow) takes 10.") and "computing +10." in first
    assert "waits: its exposed communication takes" in second


def test_swapped_ranks_are_told_alike() -> None:
    found = job(4, 5, compute={2: 1.5})
    there = next(iter(opening(compare(found, base_ranks="0", ranks="2"))))
    back = next(iter(opening(compare(found, base_ranks="2", ranks="0"))))

    assert there == back
    assert there.startswith("Own work of rank 2 takes")


def test_sides_with_steps_in_common_are_pointed_out() -> None:
    texts = list(opening(compare(run([20, 21, 22, 23, 24, 25]), base_steps="1-4", steps="3-6")))

    assert any(text.startswith("Some ranks and {steps} belong to both sides") for text in texts)
    assert any(text == "Differences are steps 3-6 less steps 1-4." for text in texts)
