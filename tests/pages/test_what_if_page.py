"""The command that changes a job: what it saves in words, what it rests on, and what can be named."""

from __future__ import annotations

import pytest

from stepscope.pages.answering import Request, answer, document
from stepscope.pages.showing import shown_sections
from stepscope.pages.what_if import PAGE, _link_words
from stepscope.run import Run
from tests.analysis.jobs import MS, job
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
        "With this, the mean step takes 29.00 ms instead of 35.00 ms: it saves 6.00 ms (17.1%).",
        REPLAYED,
    ]


def test_of_one_step_nothing_is_a_mean() -> None:
    found = sentences(job(steps=1, compute={1: 1.3}, jitter=0), without="rank=1")

    assert found[0] == "With this, the step takes 29.00 ms instead of 35.00 ms: it saves 6.00 ms (17.1%)."


def test_what_saves_nothing_says_why() -> None:
    run = job(compute={1: 1.3, 5: 1.3}, jitter=0)

    assert sentences(run, without="rank=1")[0] == (
        "This hardly changes the steps, although 6.00 ms of work are taken away in a step, summed over ranks: "
        "other work takes as long at the same time."
    )
    assert "although 2.00 ms of work are added" in sentences(run, scale="rank=2,kind=computing,1.1")[0]
    assert sentences(run, without="rank=2")[0].startswith("Nothing changes: what was named takes hardly longer")


def test_what_becomes_longer_costs() -> None:
    run = job(steps=3, jitter=0)
    section = next(shown_sections(answer(run, PAGE, Request(options={"scale": "kind=computing,step=1-2,1.5"}))))

    assert section.sentences[0] == (
        "With this, the mean step takes 35.67 ms instead of 29.00 ms: it costs 6.67 ms (23.0%), 0 us to 10.00 ms "
        "depending on the step."
    )
    rows, titles = section.tables[0].rows, [column.title for column in section.tables[0].columns]
    assert rows["saving_ns"].to_list() == [10 * MS, 10 * MS, 0]
    assert "costs" in titles
    assert "work added" in titles


def test_calls_with_unknown_members_save_at_most_what_is_shown() -> None:
    words = sentences(job(ranks=1, jitter=0), bandwidth="2x")

    assert words[0].endswith("takes at least 25.00 ms instead of 29.00 ms: it saves at most 4.00 ms (13.8%).")
    assert words[1].startswith("At most, as calls with members that were not recorded")
    assert "at most" not in sentences(job(ranks=2, jitter=0), bandwidth="2x")[0]


def test_the_words_for_a_suspect_give_the_figures_of_the_list() -> None:
    run = job(compute={1: 1.3, 2: 1.1}, jitter=0, once_ns={("data", step, 5): 9 * MS for step in (2, 4)})
    found = answer(run, PAGE, Request())
    said = sentences(run)[0]
    alone = found.tables["slow_ranks"]["alone_ns"][0]
    words = said.partition("«--without» ")[2].removesuffix(" shows.")

    assert said.startswith("Mending all of them saves ")
    assert round(run.analyse("what_if", without=words)["saving_ns"].mean() or 0) == pytest.approx(alone, abs=10)


def test_a_healthy_job_has_nobody_to_mend() -> None:
    assert sentences(job())[0].startswith("No rank is clearly slower than its peers.")


def test_a_lone_rank_says_what_it_cannot_know() -> None:
    assert "Only rank 0 was recorded." in sentences(job(ranks=1), scale="op=gemm,0.5")[-1]


def test_without_a_change_the_suspects_and_all_names_are_listed() -> None:
    found = document(answer(job(compute={1: 1.3}), PAGE, Request()))

    assert list(found["tables"]) == ["slow_ranks", "work_names"]
    assert found["notes"] == ["--without rank=1,kind=computing shows this by step.", REPLAYED]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed_document(capsys, "what-if", EXAMPLE, "--without", "rank=2")

    assert found["notes"] == [REPLAYED]
    assert all(row["saving_ns"] > 0 for row in found["tables"]["what_if"])
    assert "there is no rank 9. There are ranks 0-3" in " ".join(
        printed(capsys, "what-if", EXAMPLE, "--without", "rank=9", code=2).split()
    )


def test_options_given_twice_are_joined_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    once = printed_document(capsys, "what-if", EXAMPLE, "--without", "rank=2;rank=3")
    twice = printed_document(capsys, "what-if", EXAMPLE, "--without", "rank=2", "--without", "rank=3")

    assert once["tables"] == twice["tables"]
    assert "--steps is given 2 times" in printed(capsys, "what-if", EXAMPLE, "--steps", 3, "--steps", 4, code=2)
    assert "--run is given 2 times" in printed(capsys, "analyze", EXAMPLE, "--run", 1, "--run", 1, code=2)
    assert "Give one or several of" in printed(capsys, "what-if", EXAMPLE, "--without", "", code=2)


def test_a_faster_network_needs_communication() -> None:
    from stepscope.errors import StepscopeError

    run = Run.from_frames(
        {0: {name: job(ranks=1).ranks[0].table(name).drop("rank").collect() for name in ("kernels", "steps", "slices")}}
    )
    with pytest.raises(StepscopeError, match="no communication was recorded, so a faster network changes nothing"):
        answer(run, PAGE, Request(options={"bandwidth": "2x"}))


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ({"unit": "link", "rank_a": 0, "rank_b": 4}, ("link 0-4", "link=0-4")),
        ({"unit": "link", "rank_a": 0, "rank_b": 4, "steps": 5}, ("link 0-4", "link=0-4,step=1-2")),
        ({"unit": "nic", "rank_a": 3}, ("nic of rank 3", "nic=3")),
        ({"unit": "host", "host": "n1"}, ("nic of n1", "nic=n1")),
        ({"unit": "links", "ranks": "0, 1, 2"}, ("links of ranks 0-2", "")),
    ],
)
def test_slow_links_have_words_for_without(link: dict[str, object], named: tuple[str, str]) -> None:
    assert _link_words({"steps": 2, "slow_steps": [1, 2], **link}) == named
