"""Sentences of pages name fields, tables and pages, not what is typed on a command line."""

from __future__ import annotations

import re

import pytest

from stepscope.errors import StepscopeError
from stepscope.present import LANGUAGES, Language
from stepscope.references import references_in
from stepscope.web.api.problems import in_words_of_queries, problem_of
from stepscope.web.ui.wording import named, worded
from worded_texts import OPTIONS, texts

MARKED = re.compile("«[^»]*»")


@pytest.mark.parametrize(
    ("marked", "language", "shown"),
    [
        ("To see only one: «--filter» \"unit = 'X'\".", "en", "To see only one: “Condition” \"unit = 'X'\"."),
        ("用 «--peak-tflops» 给出后可显示占比。", "zh", "用 “峰值（TFLOP/s）” 给出后可显示占比。"),
        ("«`stepscope memory`» lists all.", "en", "“Memory” lists all."),
        ("«`stepscope memory`» 列出全部。", "zh", "“内存” 列出全部。"),
        ("Compare them («`stepscope ops --step`»).", "en", "Compare them (“Operators”, “Step”)."),
        ('«--table transfers --filter» "a"', "zh", '“发送与接收”、“条件” "a"'),
        ("3 of 5 are 0; «--json» has them.", "en", "3 of 5 are 0; the downloaded JSON has them."),
        ("record with `stepscope record --stacks`", "en", "record with `stepscope record --stacks`"),
        ("Turn off Megatron's `--overlap-grad-reduce`", "en", "Turn off Megatron's `--overlap-grad-reduce`"),
        ("«--of-a-plugin» 1: give 2", "en", "`--of-a-plugin` 1: give 2"),
        ("Nothing -- really « »", "en", "Nothing -- really « »"),
    ],
)
def test_sentences_name_what_the_pages_have(marked: str, language: Language, shown: str) -> None:
    assert named(marked, language) == shown


def test_a_sentence_and_an_error_are_put_into_the_readers_language_first() -> None:
    text = "The peak of this device is unknown; give it with «--peak-tflops» to see the share."
    error = StepscopeError("no rank of X is slower than the others. Choose «--ranks» and «--base-ranks»")

    assert worded(text, "zh") == "该设备的峰值未知；用 “峰值（TFLOP/s）” 给出后可显示占比。"
    assert worded(error.marked, "zh") == "X 中没有比其他更慢的 rank；请用 “Rank” 和 “基准的 rank” 选择"
    assert in_words_of_queries(problem_of(error).marked) == (
        "no rank of X is slower than the others. Choose ranks and base_ranks"
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pages_have_all_that_sentences_refer_to_and_change_nothing_else(language: Language) -> None:
    for file, text in texts():
        if references_in(text) and "«--table» " not in text:  # said only where one of several tables is printed
            shown = named(text, language)
            around = ".+?".join(map(re.escape, MARKED.split(text)))

            assert re.fullmatch(around, shown, re.DOTALL), (file, shown)
            assert not any(one.typed in shown for one in references_in(text) if one.typed not in around), (file, shown)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_option_of_a_page_has_a_name_there(language: Language) -> None:
    unnamed = {option for option in OPTIONS if named(f"«{option}»", language) == f"`{option}`"}

    assert unnamed == {"--page", "--table"}


def test_what_a_recording_is_called_stays_escaped() -> None:
    from stepscope.web.ui.html import _environment

    coded = _environment("zh").filters["coded"]

    assert str(coded("<b> «--ranks»")) == "&lt;b&gt; “Rank”"
