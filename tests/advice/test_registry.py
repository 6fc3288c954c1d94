"""What a rule must have to be registered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from stepscope.advice import RULES, Finding, rule, worded
from stepscope.advice.advise import advise
from stepscope.advice.messages import Message, Text, fill
from stepscope.advice.registry import Claim, Turn, check_messages
from stepscope.errors import StepscopeError
from tests.analysis.jobs import job

MESSAGE = Message(Text("{rank:Ranks} is odd.", "{rank:ranks} 异常。"), Text("Why.", "原因。"), Text("Do.", "措施。"))


@pytest.fixture
def rules() -> Iterator[dict[str, Any]]:
    """The rules, put back afterwards."""
    before = dict(RULES)
    yield RULES
    RULES.clear()
    RULES.update(before)


def test_a_new_rule_is_one_function_with_its_words(rules: dict[str, Any]) -> None:
    @rule("odd-rank", {"odd": MESSAGE}, claim=Claim(Turn.STOPPED, "odd"))
    def odd_rank(breakdown: Any) -> Iterator[Finding]:
        yield Finding("odd-rank", "odd", {"rank": int(breakdown["rank"].max())})

    (found,) = [one for one in advise(job()) if one.rule == "odd-rank"]
    assert (worded(found).summary, worded(found, "zh").summary) == ("Rank 7 is odd.", "rank 7 异常。")
    assert rules["odd-rank"].claim == Claim(Turn.STOPPED, "odd")
    assert not rules["odd-rank"].accuses


def misspelt(break_down: Any) -> list[Finding]:
    return []


def optional(rnks: Any = None) -> list[Finding]:
    return []


@pytest.mark.parametrize(("function", "hint"), [(misspelt, "Did you mean breakdown"), (optional, "Did you mean ranks")])
def test_a_misspelt_table_or_analysis_is_an_error(rules: dict[str, Any], function: Any, hint: str) -> None:
    with pytest.raises(StepscopeError, match=f"rule bad: .*{hint}"):
        rule("bad", {"odd": MESSAGE})(function)

    assert "bad" not in rules


def test_a_rule_of_another_module_does_not_take_a_name_that_is_taken(rules: dict[str, Any]) -> None:
    with pytest.raises(StepscopeError, match=r"rule slow-rank: .*slow_rank has a rule of this name"):
        rule("slow-rank", {})(lambda breakdown: [])


def test_a_module_may_define_its_rule_again(rules: dict[str, Any]) -> None:
    rule("again", {"odd": MESSAGE})(lambda breakdown: [])
    second = rule("again", {"odd": MESSAGE})(lambda ranks: [])

    assert rules["again"].function is second


def test_a_rule_that_accuses_needs_half_a_sentence(rules: dict[str, Any]) -> None:
    with pytest.raises(StepscopeError, match="rule bad: its message 'odd' needs a `short` text"):
        rule("bad", {"odd": MESSAGE}, accuses=True)(lambda breakdown: [])


@pytest.mark.parametrize("name", RULES)
def test_the_texts_of_our_rules_which_no_start_checks_are_whole(name: str) -> None:
    one = RULES[name]

    check_messages(name, one.messages, accuses=one.accuses)


def test_a_finding_without_a_message_is_an_error_that_names_the_rule(rules: dict[str, Any]) -> None:
    rule("odd-rank", {"odd": MESSAGE})(lambda breakdown: [Finding("odd-rank", "even")])

    with pytest.raises(StepscopeError, match="rule odd-rank: it has no message `odd-rank: even`"):
        advise(job())


def test_a_parameter_that_is_not_given_is_an_error(rules: dict[str, Any]) -> None:
    rule("odd-rank", {"odd": MESSAGE})(lambda breakdown: [])

    with pytest.raises(StepscopeError, match="the parameter rank is not given"):
        worded(Finding("odd-rank", "odd"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (Text("{rank is odd", "x"), "each brace or bracket must be part of"),
        (Text("Odd.", "[如"), "each brace or bracket must be part of"),
        (Text("{rank:rnks}", "x"), "there is no formatter `rnks`"),
        (Text("", "x"), "it is empty in English"),
        ({("pytorch", None): Text("Odd.")}, "there is no general text"),
    ],
)
def test_a_text_that_no_finding_can_fill_is_refused(rules: dict[str, Any], text: Any, problem: str) -> None:
    with pytest.raises(StepscopeError, match=f"rule bad: its message 'odd': `cause`: .*{problem}"):
        rule("bad", {"odd": Message(Text("Odd."), text, Text("Do."))})(lambda breakdown: [])

    assert "bad" not in rules


def test_a_text_without_chinese_is_shown_in_english() -> None:
    assert fill(Text("Ranks are odd {per:each}."), {}, "zh") == "Ranks are odd per step."


def fails(breakdown: Any) -> Iterator[Finding]:
    yield Finding("bad", "odd", {"rank": 1})
    raise ZeroDivisionError("oops")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (fails, "ZeroDivisionError: oops"),
        (lambda breakdown: None, "TypeError: 'NoneType' object is not iterable"),
        (lambda breakdown: [Finding("bad", "odd")], "StepscopeError: the text .*: the parameter rank is not given"),
        (lambda breakdown: [Finding("bad", "odd", {"rank": 1.5})], "TypeError: 'float' object is not"),
    ],
)
def test_a_rule_that_fails_costs_only_its_findings_and_is_an_error_in_tests(
    rules: dict[str, Any], function: Any, why: str
) -> None:
    run = job(compute={6: 1.5})
    expected = advise(run)
    rule("bad", {"odd": MESSAGE})(function)

    with pytest.raises((StepscopeError, ZeroDivisionError, TypeError)):
        advise(run)

    found = advise(run, strict=False)
    assert [one for one in found if one.rule != "bad"] == expected != []
    assert advise(run, strict=False) == found
    (warning,) = run.warnings
    assert re.match(rf"the rule bad \(.*test_registry\) failed, so findings are missing: {why}", warning)
