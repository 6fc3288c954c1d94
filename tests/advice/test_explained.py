"""`stepscope rules explain`: all that is known about a rule, for every rule, in both languages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stepscope.advice import LANGUAGES, RULES, limits_from
from stepscope.advice.explained import explained, sections
from stepscope.advice.messages import Text
from stepscope.advice.placeholders import shown
from stepscope.errors import StepscopeError
from tests.cli.calling import printed

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_is_explained_in_both_languages(name: str) -> None:
    for language in LANGUAGES:
        known = explained(name, language)
        text = "\n".join(line for _, lines in sections(known) for line in lines)

        assert known.does
        assert known.computed in text
        assert {message["message"] for message in known.messages} == set(RULES[name].messages)
        for message in known.messages:
            assert message["summary"] and message["cause"] and message["action"]
        assert not re.search(r":\w+[ }]", "".join(re.findall(r"\{[^}]*\}?", text))), "a formatter is left"


@pytest.mark.parametrize("name", sorted(RULES))
def test_links_to_the_documentation_lead_somewhere(name: str) -> None:
    for place in explained(name).documented:
        file, _, heading = place.partition("#")

        assert re.search(rf"^##+ {re.escape(heading)}$", (DOCS.parent / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_what_may_be_missing_is_named_with_the_reason() -> None:
    known = explained("memory-leak")
    (need,) = known.needs

    assert (need.name, need.kind, need.required) == ("memory_hints", "analysis", True)
    rule = explained("cluster-link")
    assert {need.name: need.required for need in rule.needs} == {
        "communication_totals": True,
        "cluster_advice": True,
        "slow_links": False,
    }
    assert rule.missing["links"]


def test_a_limit_that_is_changed_is_marked() -> None:
    known = explained("low-clock", limits=limits_from({"low-clock": {"below_ratio": 0.2}}))
    changed = [row for row in known.limits if row["overridden"]]

    assert [(row["limit"], row["value"], row["default"]) for row in changed] == [("below_ratio", 0.2, 0.05)]
    assert any("= 0.2 (overridden, default 0.05)" in line for _, lines in sections(known) for line in lines)


def test_what_explains_a_rule_is_found_from_the_other_side() -> None:
    assert "pipeline-bottleneck" in explained("host-queue").explained_by
    assert "host-queue" in explained("pipeline-bottleneck").explains


def test_an_unknown_rule_is_an_error_with_close_matches() -> None:
    with pytest.raises(StepscopeError, match=r"there is no rule 'slow-rnak'. Did you mean slow-rank"):
        explained("slow-rnak")


def test_placeholders_are_readable() -> None:
    rank = "{ranks:Ranks} {ranks:one waits|wait} {mean_wait_ns:ms} {per:each}"
    text = Text(rank + "[ for {count:count call|calls}] ({a_ratio:percent}).")

    assert shown(text) == "Rank(s) {ranks} waits/wait {mean wait} per step[ for {count} calls] ({a ratio})."
    assert shown(text, "zh") == shown(text)


def test_the_command_prints_text_and_data(capfd: pytest.CaptureFixture[str]) -> None:
    text = printed(capfd, "rules", "explain", "long-step", "--language", "zh")
    found = json.loads(printed(capfd, "rules", "explain", "long-step", "--json"))

    assert text.startswith("long-step (overall)\n")
    assert RULES["long-step"].computed is not None
    assert RULES["long-step"].computed.zh in text
    assert found["shows"] == ["outlier_steps", "gaps"]
    assert found["computed"] == RULES["long-step"].computed.en
    assert "Leave out --csv" in printed(capfd, "rules", "explain", "long-step", "--csv", code=2)
    assert "Did you mean" in printed(capfd, "rules", "explain", "long-stp", code=2)


def test_the_list_is_the_same_with_and_without_its_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert printed(capfd, "rules", "--csv") == printed(capfd, "rules", "list", "--csv")
    assert printed(capfd, "rules", "--toml") == printed(capfd, "rules", "list", "--toml")


def test_what_texts_of_messages_share_is_told_once() -> None:
    (lines,) = (lines for heading, lines in sections(explained("slow-rank")) if heading == "Messages")

    assert "  Why: as `computing`, then: Only this rank runs {names}: {named} per step." in lines
    assert sum("It computes for" in line for line in lines) == 1


def test_limits_behind_what_a_rule_is_given_are_named() -> None:
    found = explained("slow-rank")

    assert found.limits == () and {"late_ranks", "excess"} <= {*found.limited}
