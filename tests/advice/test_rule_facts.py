"""Every rule says what it is about, how it decides, which answers are its evidence, and what it explains."""

from __future__ import annotations

import inspect
import re

import pytest

from stepscope.advice import RULES, Rule, rule
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import DIMENSIONS
from stepscope.analysis import ANALYSES
from stepscope.errors import StepscopeError
from tests.advice.test_words import check

RULES_HERE = sorted(name for name, one in RULES.items() if one.function.__module__.startswith("stepscope."))


def declaration(one: Rule) -> str:
    """The source of a rule from its decorator to the first line of its function."""
    return inspect.getsource(one.function).partition("\ndef ")[0]


@pytest.mark.parametrize("name", RULES_HERE)
def test_a_rule_says_which_part_of_training_it_is_about(name: str) -> None:
    assert "dimension=" in declaration(RULES[name]), f"add `dimension=`, one of {', '.join(DIMENSIONS)}, to @rule"
    assert RULES[name].dimension in DIMENSIONS


@pytest.mark.parametrize("name", RULES_HERE)
def test_a_rule_says_in_both_languages_how_it_decides(name: str) -> None:
    computed = RULES[name].computed

    assert computed is not None, "add `computed=Text(en, zh)` to @rule: how it decides, and what its saving is made of"
    assert computed.zh, "its `computed` needs a Chinese text"
    assert 40 < len(computed.en) < 500, "`computed` is one to three sentences"
    check(computed.en, "en")
    check(computed.zh, "zh")
    assert computed.en.endswith(".")
    assert computed.zh.endswith("。")


@pytest.mark.parametrize("name", RULES_HERE)
def test_the_limits_and_answers_that_it_names_exist(name: str) -> None:
    computed = RULES[name].computed
    assert computed is not None
    named = re.findall(r"`([\w.-]+)`", computed.en)

    assert named == re.findall(r"`([\w.-]+)`", computed.zh), "both languages name the same"
    known = {*ANALYSES, *RULES, *RULES[name].messages, *re.findall(r"\w+", inspect.getsource(RULES[name].function))}
    known.update(field for one in owners(name) for field in vars(one))
    assert set(named) <= known


def owners(name: str) -> list[object]:
    """The sets of limits of a rule and of the analyses that it asks."""
    from stepscope.advice.limit_sets import limit_sets
    from stepscope.analysis.parameters import parameters_of

    sets = limit_sets()
    return [sets[one] for one in (name, *parameters_of(name, RULES[name].function, ANALYSES).needs) if one in sets]


@pytest.mark.parametrize("name", RULES_HERE)
def test_the_evidence_of_a_rule_are_rows_of_analyses(name: str) -> None:
    shown = RULES[name].shows

    assert shown, "add `shows=(...)` to @rule: the analyses whose rows are its evidence"
    assert set(shown) <= ANALYSES.keys(), "`shows` names analyses: tables are not shown with a finding"
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("name", RULES_HERE)
def test_a_rule_explains_rules_that_exist_by_kind_where_they_have_several(name: str) -> None:
    for explained in RULES[name].explains:
        other, _, kind = explained.partition(":")

        assert other in RULES, f"`explains` names {other!r}, which is no rule"
        assert other != name
        claim, mine = RULES[other].claim, RULES[name].claim
        several = claim is not None and claim.time_in
        assert kind or not several or mine is not None, (
            f"{other} is about several kinds of time: write `{other}:kind`, e.g. with a key of its messages, or give "
            "this rule a `claim`"
        )


def test_a_rule_that_shows_no_analysis_is_refused() -> None:
    message = Message(Text("Odd."), Text("Why."), Text("Do."))

    with pytest.raises(StepscopeError, match=r"rule bad: it shows `break_down`, .*Did you mean break"):
        rule("bad", {"odd": message}, shows=("break_down",))(lambda breakdown: [])
    assert "bad" not in RULES
