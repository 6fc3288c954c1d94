"""Words of verdicts: every cause, both languages, hostile names."""

from __future__ import annotations

import pytest
from shown_jobs import slow_rank

from stepscope.live.show.sentences import action, circumstances, headline, surely, who
from stepscope.live.show.words import WORDS, Text
from stepscope.live.verdicts import Cause, Verdict


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_words_in_both_languages(cause: Cause) -> None:
    words = WORDS[cause]

    texts = [words.one, words.many, *words.action.values(), *(words.explained or {}).values()]

    assert (None, None) in words.action
    assert words.explained is None or (None, None) in words.explained
    assert all(text.en and text.zh for text in texts)
    assert all(any("\u4e00" <= c <= "\u9fff" for c in text.zh) for text in texts)


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("ranks", [[], [3], [2, 3]])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_verdict_is_a_sentence(cause: Cause, ranks: list[int], language: str) -> None:
    verdict = Verdict("k", cause, ranks, 7, 0, None, None, 0.9)

    texts = [
        headline(verdict, language),
        circumstances(verdict, language),
        action(verdict, "mindspore", "npu", language),
    ]

    assert all(text and "{" not in text and "None" not in text for text in texts)


def test_a_headline_says_who_what_and_how_much() -> None:
    assert headline(slow_rank()) == "Rank 2 computes slowly: 1.50x the normal time, 62.00 ms more per step"
    assert headline(slow_rank(), "zh") == "Rank 2 计算慢：耗时为正常的 1.50 倍，每步多 62.00 ms"


def test_several_ranks_and_hosts_are_named_in_short() -> None:
    assert who(slow_rank(ranks=[0, 1, 2, 7])) == "Ranks 0-2,7"
    assert who(slow_rank(ranks=[8, 9], hosts=["node1"])) == "Host node1 (ranks 8-9)"
    assert headline(slow_rank(cause=Cause.JOB, ranks=[], ratio=None, cost_ns=None)) == (
        "All ranks are slower than before, and none can be blamed"
    )


def test_circumstances_say_since_when_and_how_sure() -> None:
    assert circumstances(slow_rank(intermittent=True)) == "since step 40; comes and goes; 98 % sure"
    assert circumstances(slow_rank(until_step=90, until_at_ns=5)) == "from step 40 to 90; over; 98 % sure"


def test_certainty_is_never_claimed() -> None:
    assert [surely(value) for value in (1.0, 0.9951, 0.99, 0.5)] == ["over 99 %", "over 99 %", "99 %", "50 %"]
    assert [surely(value, "zh") for value in (1.0, 0.5)] == ["超过 99 %", "50 %"]


def test_the_advice_fits_device_and_framework() -> None:
    assert "nvidia-smi" in action(slow_rank(), "pytorch", "cuda")
    assert "npu-smi" in action(slow_rank(), "mindspore", "npu")
    assert "num_parallel_workers" in action(slow_rank(cause=Cause.DATA), "mindspore", "cpu")
    assert "num_workers" in action(slow_rank(cause=Cause.DATA))


def test_a_rank_that_was_profiled_need_not_be_profiled_again() -> None:
    profiled = slow_rank(explanation="In its profile, rank 2 works 20.00 ms longer per step than rank 0")

    assert "stepscope live capture" in action(slow_rank(), "pytorch", "cpu")
    assert "stepscope compare" in action(profiled, "pytorch", "cpu")
    assert "stepscope live capture" not in action(profiled, "pytorch", "cpu")


def test_hostile_host_names_are_made_harmless() -> None:
    said = headline(slow_rank(hosts=["evil\x1b[2J[red]{x}\n" + "a" * 10_000]))

    assert "\x1b" not in said and "\n" not in said
    assert len(said) < 250


def test_braces_in_parameters_are_no_fields() -> None:
    assert Text("{a}", "").of("en", a="{b}") == "{b}"
