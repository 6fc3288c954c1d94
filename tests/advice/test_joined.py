"""Findings are joined where one follows from the other by what is known, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stepscope.advice import RULES, Finding, rule
from stepscope.advice.finding import Related
from stepscope.advice.joined import joined, problems
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn
from stepscope.report.sentences import spoken
from stepscope.report.verdict import _found

RANKS = range(4)


def messages(name: str) -> dict[str, Message]:
    message = Message(Text(f"{name}."), Text("Why."), Text("Do."), short=Text(f"{name} costs"))
    return dict.fromkeys(("odd", "slow/reason", "data"), message)


@pytest.fixture(autouse=True)
def rules() -> Iterator[None]:
    before = dict(RULES)
    rule("root", messages("root"), explains=("effect", "idle:data", "slow:slow"))(lambda ranks: [])
    rule("effect", messages("effect"), explains=("last",))(lambda ranks: [])
    rule("last", messages("last"), explains=("root",))(lambda ranks: [])
    rule("idle", messages("idle"), claim=Claim(Turn.SEEN_IDLE, time_in="cause"))(lambda ranks: [])
    rule("slow", messages("slow"), accuses=True, claim=Claim(Turn.SEEN_LATE, time_in="kind"))(lambda ranks: [])
    rule("late", messages("late"), claim=Claim(Turn.STEP_START, "data", yields=("data",)))(lambda ranks: [])
    yield
    RULES.clear()
    RULES.update(before)


def finding(name: str, saving_ns: int = 0, *, ranks: list[int] | None = None, **more: Any) -> Finding:
    where = {**({} if ranks is None else {"ranks": ranks}), **({"steps": more.pop("steps")} if "steps" in more else {})}
    return Finding(name, more.pop("message", "odd"), {}, saving_ns, saving_ns / 1000, where=where, **more)


def order(*findings: Finding) -> list[str]:
    return [one.rule for one in joined(findings, RANKS)]


def test_the_root_comes_first_then_what_follows_from_it() -> None:
    found = joined([finding("effect", 9, ranks=[1]), finding("late", 5), finding("root", ranks=[1, 2])], RANKS)

    assert [one.rule for one in found] == ["root", "effect", "late"]
    assert found[0].effects == (Related("effect", "odd", (1,)),)
    assert found[1].explained_by == (Related("root", "odd", (1, 2)),)
    assert [one.rule for one in problems(found)] == ["root", "late"]


def test_a_cycle_of_explanations_is_cut() -> None:
    found = joined([finding("last", 3), finding("effect", 2), finding("root", 1)], RANKS)

    assert sorted(one.rule for one in found) == ["effect", "last", "root"]
    assert len(problems(found)) == 1


APART = {
    "other ranks": ({"ranks": [1]}, {"ranks": [1, 2]}),
    "few of all ranks": ({"ranks": [1, 2]}, {}),
    "other steps": ({"steps": [3, 4]}, {"steps": [4, 5]}),
    "some steps of all": ({"steps": [3]}, {}),
    "a guess": ({"confidence": "possible"}, {}),
}


@pytest.mark.parametrize("case", APART)
def test_findings_stay_apart(case: str) -> None:
    root, effect = APART[case]

    assert order(finding("effect", 9, **effect), finding("root", **root)) == ["effect", "root"]


@pytest.mark.parametrize(
    ("root", "effect"),
    [({}, {"ranks": [1]}), ({"ranks": [0, 1, 2]}, {}), ({"steps": [3, 4]}, {"steps": [4]}), ({}, {"steps": [4]})],
)
def test_findings_are_joined(root: dict[str, Any], effect: dict[str, Any]) -> None:
    assert order(finding("effect", 9, **effect), finding("root", **root)) == ["root", "effect"]


def test_a_root_that_costs_too_little_explains_nothing() -> None:
    assert order(finding("effect", 9), finding("root", 4)) == ["effect", "root"]
    assert order(finding("effect", 9), finding("root", 1, saving_high_ns=5)) == ["root", "effect"]
    slow = finding("slow", 9, ranks=[1], evidence={"kind": "slow", "excess_ns": 20})
    assert order(slow, finding("root", 6, ranks=[1])) == ["slow", "root"]


def test_a_root_is_as_severe_as_what_follows_from_it() -> None:
    severe = finding("effect", 90)
    found = joined([severe, finding("root", 60, most="medium"), finding("late", 2)], RANKS)

    assert [one.severity for one in found] == ["medium", "high", "low"]


@pytest.mark.parametrize(
    ("effect", "is_joined"),
    [
        ({"evidence": {"cause": "data"}}, True),
        ({"evidence": {"cause": "dispatch"}}, False),
        ({"evidence": {"cause": "dispatch"}, "message": "data"}, True),
    ],
)
def test_only_the_kind_of_time_that_the_rule_names_is_explained(effect: dict[str, Any], is_joined: bool) -> None:
    assert (order(finding("idle", 9, **effect), finding("root")) == ["root", "idle"]) is is_joined


def test_a_message_with_a_reason_is_of_the_kind_before_it() -> None:
    slow = finding("slow", 9, ranks=[1], message="slow/reason", evidence={"kind": "other"})

    assert order(slow, finding("root", ranks=[1], steps=[2])) == ["root", "slow"]


def test_what_another_finding_claims_whole_is_joined_to_it() -> None:
    idle = finding("idle", 9, evidence={"cause": "data"})
    claimed = {"saving_high_ns": 5, "evidence": {"claimed_by": ["idle"]}}

    assert joined([idle, finding("late", **claimed)], RANKS)[1].explained_by == (Related("idle", "odd", (), "part"),)
    assert not joined([idle, finding("late", 2, **claimed)], RANKS)[1].explained_by
    assert not joined([idle, finding("late", evidence={"claimed_by": ["idle"]})], RANKS)[1].explained_by


@pytest.mark.parametrize(
    ("root_ns", "expected"), [(20, ["root."]), (5, ["root.", "slow costs"]), (0, ["root.", "slow costs"])]
)
def test_a_finding_that_follows_from_another_is_no_problem_of_its_own_unless_it_has_the_cost(
    root_ns: int, expected: list[str]
) -> None:
    slow = finding("slow", 9, ranks=[1], evidence={"kind": "slow"})
    lines = _found(joined([slow, finding("root", root_ns, ranks=[1])], RANKS))

    assert [spoken(line).partition(" (")[0].lower() for line in lines] == expected


def test_the_answer_is_the_same_twice() -> None:
    found = joined([finding("effect", 9), finding("root", 9), finding("late", 3)], RANKS)

    assert joined(found, RANKS) == found
