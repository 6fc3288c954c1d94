"""Time that several rules speak of is claimed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from stepscope.advice import Finding, advise, worded
from stepscope.advice.claims import claimed_once, replayed_kinds, within_replay
from stepscope.advice.finding import Platform
from stepscope.advice.registry import RULES, Claim, Turn
from stepscope.advice.rules.exposed_communication import exposed_communication
from stepscope.report.findings import plain_finding
from tests.analysis.jobs import GAP, MS, job


def finding(rule: str, saving_ns: int, rank: int | None = None, **evidence: Any) -> Finding:
    where = {} if rank is None else {"rank": rank}
    return Finding(rule, rule, {}, saving_ns, saving_ns / 1000, where=where, evidence=evidence)


def savings(*findings: Finding) -> dict[str, int]:
    return {one.rule: one.saving_ns for one in claimed_once(findings)}


def test_a_late_start_claims_what_the_causes_of_idle_time_leave() -> None:
    start = finding("iteration-interval", 90)

    assert savings(start, finding("idle-time", 60, cause="dispatch"))["iteration-interval"] == 30
    assert savings(start, finding("idle-time", 95, cause="data_loading"))["iteration-interval"] == 0
    (_, less) = claimed_once([start, finding("idle-time", 60, cause="dispatch")])
    assert less.saving_ratio == pytest.approx(0.03)
    assert less.evidence["claimed_by"] == ["idle-time"]


def test_a_finding_that_saves_nothing_claims_nothing() -> None:
    (_, start) = claimed_once([finding("iteration-interval", 90), finding("host-queue", 0)])

    assert (start.saving_ns, start.evidence) == (90, {})


def test_waits_for_input_are_claimed_one_after_the_other() -> None:
    told = savings(finding("iteration-interval", 90), finding("data-queue", 50), finding("host-queue", 20))

    assert told == {"host-queue": 20, "data-queue": 30, "iteration-interval": 40}


def test_findings_of_one_rule_are_about_different_times() -> None:
    two = [finding("data-queue", 50), finding("data-queue", 20)]

    assert claimed_once(two) == two


def test_a_slow_host_is_no_wait_for_input() -> None:
    assert savings(finding("data-queue", 50), finding("idle-time", 60, cause="dispatch"))["data-queue"] == 50


@pytest.mark.parametrize(("rule", "kind"), [("compile-time", "compile"), ("checkpoint", "checkpoint")])
def test_what_a_slow_rank_stops_for_is_claimed_once(rule: str, kind: str) -> None:
    slow = finding("slow-rank", 60, 3, kind=kind)

    assert savings(slow, finding(rule, 50, 3))[rule] == 0
    assert savings(slow, finding(rule, 50, 2))[rule] == 50
    assert savings(finding("slow-rank", 60, 3, kind="dispatch"), finding(rule, 50, 3))[rule] == 50
    assert savings(finding(rule, 60, 3), finding("host-queue", 50, 3))["host-queue"] == 50


def test_a_slow_rank_claims_nothing_of_others() -> None:
    slow = finding("slow-rank", 60, 3, kind="data_loading")

    assert savings(slow, finding("data-queue", 50, 3))["data-queue"] == 0
    assert savings(slow, finding("data-queue", 50, 2))["data-queue"] == 50
    assert savings(slow, finding("idle-time", 50, cause="data_loading"))["idle-time"] == 50  # of the typical rank
    assert savings(finding("slow-rank", 60, 3, kind="computing"), finding("data-queue", 50, 3))["data-queue"] == 50


@pytest.mark.parametrize("ranks", [2, 3])
def test_waiting_of_one_rank_is_not_that_of_the_typical_one_where_the_others_are_never_idle(ranks: int) -> None:
    waits = dict.fromkeys(range(ranks), -GAP) | {1: 33 * MS}

    found = [one for one in advise(job(ranks, data_ns=waits)) if "data_loading" in one.evidence.values()]

    assert [(one.rule, one.ranks) for one in found] == [("slow-rank", [1])]
    assert found[0].saving_ns == pytest.approx(34 * MS, rel=0.01)


def test_other_findings_stay_as_they_are() -> None:
    others = [finding("pipeline-bottleneck", 0, kind="map"), finding("slow-link", 7), finding("memory-copies", 40)]

    assert claimed_once([*others, finding("iteration-interval", 90)])[:3] == others
    assert savings(*others, finding("iteration-interval", 90))["iteration-interval"] == 90


def at(rule: str, saving_ns: int, ranks: list[int], **evidence: Any) -> Finding:
    return Finding(rule, rule, {}, saving_ns, saving_ns / 1000, where={"ranks": ranks}, evidence=evidence)


def replayed(kinds: dict[str, int], error_ratio: float = 0.0, **alone: int) -> pl.DataFrame:
    found = pl.DataFrame({"kind": list(kinds), "saving_ns": list(kinds.values())})
    alone_ns = pl.Series([alone.get(kind, saving) for kind, saving in kinds.items()])
    return found.with_columns(alone_ns=alone_ns, error_ratio=error_ratio)


def test_findings_claim_no_more_than_the_job_saves_without_their_time() -> None:
    given = [finding("compile-time", 50), finding("checkpoint", 20), finding("slow-rank", 60, 3, kind="compile")]

    assert replayed_kinds(given) == ["checkpoint", "compile"]
    less, same, slow = within_replay(given, replayed({"checkpoint": 20, "compile": 10}))

    assert (less.saving_ns, less.saving_low_ns, less.saving_high_ns) == (10, 10, 50)
    assert less.saving_ratio == pytest.approx(0.01)
    assert less.evidence == {"replayed_ns": 10}
    assert (same, slow) == (replace(given[1], replayed=True), given[2])


def test_what_one_kind_of_time_leaves_of_its_share_another_claims_up_to_what_it_saves_alone() -> None:
    given = [finding("checkpoint", 16), finding("compile-time", 34), finding("memory-copies", 9)]
    shares = {"checkpoint": 28, "compile": 23, "memory": 2}

    told = [within_replay(given, replayed(shares, compile=alone, memory=2)) for alone in (35, 30, 20)]
    assert [[one.saving_ns for one in each] for each in told] == [[16, 34, 2], [16, 30, 2], [16, 23, 2]]

    little = within_replay(given, replayed({**shares, "checkpoint": 20}, compile=35))
    assert [one.saving_ns for one in little] == [16, 27, 2]  # together, no more than all three save


def test_words_say_what_a_replay_showed() -> None:
    unknown = dict.fromkeys(("share_ratio", "kind", "rate"))
    given = Finding("memory-copies", "exposed", {"exposed_ns": 9, "step_ns": 90, "ratio": 0.1, **unknown}, 9, 0.1)
    known = {"saving_low_ns": 0, "replayed": True}
    shown = [replace(given, **known, saving_ns=left, evidence={"replayed_ns": left}) for left in (5, 0)]
    shown = [replace(one, platform=Platform("pytorch", "cuda")) for one in shown]

    assert "at most what a replay of the job without this time saves" in worded(shown[0]).saving
    assert worded(shown[1]).saving.startswith("Saves nothing: other work takes as long meanwhile")
    assert (plain_finding(shown[1])["saving_ns"], plain_finding(replace(shown[1], evidence={}))["saving_ns"]) == (
        0,
        None,
    )


def test_findings_about_one_kind_of_time_share_what_it_saves() -> None:
    given = [
        finding("data-queue", 20),
        finding("host-queue", 30),
        finding("data-loader", 25),
        finding("memory-copies", 9),
    ]

    found = within_replay(given, replayed({"data_loading": 40, "memory": 3}))
    assert [one.saving_ns for one in found] == [0, 30, 10, 3]


def test_what_no_replay_shows_is_a_cost_and_no_saving() -> None:
    shown = [plain_finding(one) for one in advise(job(gap_ns={3: 5 * MS}), strict=True) if one.saving_ns]
    known = {"exposed_ns": 9, "step_ns": 90, "ratio": 0.1, **dict.fromkeys(("share_ratio", "kind", "rate"))}
    given = Finding("memory-copies", "exposed", known, 9, 0.1)

    assert shown and all(one["saving_ns"] and one["cost_ns"] is None for one in shown)
    costs = plain_finding(given)
    assert (costs["saving_ns"], costs["saving_ratio"], costs["cost_ns"], costs["cost_ratio"]) == (None, None, 9, 0.1)
    assert (costs["severity"], costs["replayed"]) == ("high", False)
    assert worded(given).saving == "Costs about 9 ns per step (10%); how much of that could be saved is unknown"


def test_a_replay_that_is_far_off_cuts_nothing() -> None:
    given = [finding("compile-time", 50)]

    assert within_replay(given, replayed({"compile": 10}, error_ratio=-0.06)) == given
    assert replayed_kinds([finding("compile-time", 0), finding("slow-rank", 60, 3, kind="compile")]) == []


def test_no_finding_is_lost_and_those_without_a_claim_come_first() -> None:
    given = [
        finding("iteration-interval", 9),
        finding("cpu-busy", 0),
        finding("data-queue", 5),
        finding("slow-link", 3),
    ]

    assert [one.rule for one in claimed_once(given)] == ["cpu-busy", "slow-link", "data-queue", "iteration-interval"]
    assert claimed_once([]) == []


def test_findings_of_one_turn_keep_their_order() -> None:
    given = [finding("checkpoint", 1), finding("compile-time", 2), finding("checkpoint", 3)]

    assert claimed_once(given) == given


def test_the_turn_decides_and_not_the_order_in_which_findings_come() -> None:
    queue, idle = finding("host-queue", 50), finding("idle-time", 20, cause="data_loading")

    assert savings(queue, idle) == savings(idle, queue) == {"idle-time": 20, "host-queue": 30}


@pytest.mark.parametrize(("claimed", "left"), [(49, 1), (50, 0), (51, 0)])
def test_what_is_left_is_never_below_nothing(claimed: int, left: int) -> None:
    (_, less) = claimed_once([finding("idle-time", claimed, cause="data_loading"), finding("host-queue", 50)])

    assert (less.saving_ns, less.saving_ratio) == (left, pytest.approx(left / 1000))


def test_a_saving_of_one_nanosecond_claims() -> None:
    assert savings(finding("idle-time", 1, cause="data_loading"), finding("host-queue", 50))["host-queue"] == 49


def test_all_that_was_claimed_before_counts_and_each_claimant_is_named_once() -> None:
    idle = [finding("idle-time", 7, cause="data_loading"), finding("idle-time", 5, cause="dispatch")]
    slow = finding("slow-rank", 3, kind="data_loading")

    start = claimed_once([*idle, slow, finding("iteration-interval", 50)])[-1]

    assert start.saving_ns == 50 - 7 - 5 - 3
    assert start.evidence == {"claimed_by": ["slow-rank", "idle-time"]}


def test_evidence_is_kept_and_the_given_finding_is_not_changed() -> None:
    queue = finding("host-queue", 50, empty=4)

    (_, less) = claimed_once([finding("idle-time", 20, cause="data_loading"), queue])

    assert less.evidence == {"empty": 4, "claimed_by": ["idle-time"]}
    assert queue.evidence == {"empty": 4}


def test_the_least_saving_is_lowered_and_the_most_stays() -> None:
    queue = Finding("host-queue", "empty", {}, 50, 0.05, 30, 80)

    (_, less) = claimed_once([finding("idle-time", 20, cause="data_loading"), queue])
    (_, none) = claimed_once([finding("idle-time", 40, cause="data_loading"), queue])

    assert (less.saving_low_ns, less.saving_ns, less.saving_high_ns) == (10, 30, 80)
    assert (none.saving_low_ns, none.saving_ns, none.saving_high_ns) == (0, 10, 80)


def test_a_finding_that_saves_nothing_has_no_share_left() -> None:
    queue = Finding("host-queue", "empty", {}, 0, 0.5)

    (_, less) = claimed_once([finding("idle-time", 20, cause="data_loading"), queue])

    assert (less.saving_ns, less.saving_ratio, less.evidence["claimed_by"]) == (0, 0.0, ["idle-time"])


@pytest.mark.parametrize(
    ("one", "other", "left"), [([0, 1], [1, 2], 30), ([0, 1], [2, 3], 50), ([], [2], 30), ([0], [], 30), ([], [], 30)]
)
def test_only_findings_that_may_share_a_rank_share_time(one: list[int], other: list[int], left: int) -> None:
    (_, less) = claimed_once([at("idle-time", 20, one, cause="data_loading"), at("host-queue", 50, other)])

    assert less.saving_ns == left


def test_a_rank_is_the_same_alone_and_among_others() -> None:
    assert savings(finding("slow-rank", 20, 1, kind="data_loading"), at("host-queue", 50, [0, 1]))["host-queue"] == 30


def test_time_of_another_kind_is_not_taken() -> None:
    for cause in ("dispatch", "python", "garbage_collection", "compile", "checkpoint", "other"):
        assert savings(finding("idle-time", 20, cause=cause), finding("host-queue", 50))["host-queue"] == 50


@pytest.mark.parametrize("cause", ["data_loading", "dispatch", "synchronisation", "garbage_collection", "python"])
def test_a_late_start_yields_to_all_that_makes_a_step_start_late(cause: str) -> None:
    assert savings(finding("idle-time", 20, cause=cause), finding("iteration-interval", 50))["iteration-interval"] == 30


@pytest.mark.parametrize("cause", ["compile", "checkpoint", "other", "not_recorded"])
def test_a_late_start_yields_to_nothing_else(cause: str) -> None:
    assert savings(finding("idle-time", 20, cause=cause), finding("iteration-interval", 50))["iteration-interval"] == 50


def test_the_kind_of_time_is_fixed_or_in_the_evidence() -> None:
    assert Claim(Turn.STOPPED, "compile").time_of(finding("compile-time", 1, kind="once")) == "compile"
    assert Claim(Turn.SEEN_LATE, time_in="kind").time_of(finding("slow-rank", 1, kind="memory")) == "memory"


def test_each_claim_yields_to_its_own_kind_of_time_or_to_none() -> None:
    claims = {name: rule.claim for name, rule in RULES.items() if rule.claim is not None}

    assert sorted(claims, key=lambda name: (claims[name].turn, name)) == [
        *(
            "expert-load",
            "slow-group",
            "slow-link",
            "slow-rank",
            "uneven-work",
            "host-stall",
            "launch-wait",
            "memory-calls",
            "sync-batch-norm",
            "idle-time",
            "memory-copies",
            "slowed-steps",
            "ai-cpu",
            "checkpoint",
            "compile-time",
            "garbage-collection",
            "host-synchronisation",
            "low-clock",
            "retransmission",
            "tensor-cores",
            "long-step",
        ),
        *("host-queue", "data-queue", "data-loader", "exposed-communication", "iteration-interval"),
        *("block-dim", "data-parallel", "operator-bound", "operator-efficiency"),
    ]
    assert all(claim.time in claim.yields for claim in claims.values() if claim.yields)
    first = {
        "expert-load",
        "slow-group",
        "slow-link",
        "slow-rank",
        "uneven-work",
        "host-stall",
        "launch-wait",
        "idle-time",
        "memory-copies",
        "slowed-steps",
        "retransmission",
        "exposed-communication",
        "long-step",
    }
    assert {name for name, claim in claims.items() if not claim.yields} == first
    assert [name for name, claim in claims.items() if claim.own] == ["long-step"]


def test_idle_time_that_calls_known_by_name_cost_is_told_of_them() -> None:
    idle = finding("idle-time", 90, cause="dispatch")

    assert savings(idle, finding("memory-calls", 85)) == {"memory-calls": 85}
    assert savings(idle, finding("memory-calls", 30)) == {"memory-calls": 30, "idle-time": 60}
    assert savings(finding("idle-time", 90, cause="python"), finding("memory-calls", 85))["idle-time"] == 90


def test_a_long_step_that_another_finding_explains_is_dropped_and_else_keeps_the_rest() -> None:
    long = finding("long-step", 90, 3, kind="dispatch")

    assert savings(long, finding("idle-time", 85, cause="dispatch")) == {"idle-time": 85}
    assert savings(long, finding("idle-time", 30, cause="dispatch"))["long-step"] == 60
    assert savings(long, finding("idle-time", 85, cause="python"))["long-step"] == 90
    assert savings(long, finding("checkpoint", 85, 2))["long-step"] == 90


def test_transmission_of_a_slow_group_is_not_claimed_again() -> None:
    breakdown = pl.DataFrame({"rank": [0], "step": [1], "window_ns": [1000]})
    segments = pl.DataFrame({"rank": [0], "step": [1], "transmit_ns": [400], "wait_ns": [0], "unsplit_ns": [0]})
    slow = {"ranks": ["0, 1", "1, 2"], "transmit_ns": [9, 9], "best_ns": [5, 5], "exposed_ns": [150, 200]}
    groups = pl.DataFrame({"group": ["a", "a"], "cost_ns": [200, 100]})

    (alone,) = exposed_communication(segments, breakdown, pl.DataFrame(slow), None, None, None, None)
    (beside,) = exposed_communication(segments, breakdown, pl.DataFrame(slow), None, None, groups, None)

    assert (alone.saving_ns, beside.saving_ns, alone.saving_high_ns) == (350, 50, 400)


def test_transmission_as_fast_as_ever_is_stated_but_not_claimed() -> None:
    breakdown = pl.DataFrame({"rank": [0], "step": [1], "window_ns": [1000]})
    segments = pl.DataFrame({"rank": [0], "step": [1], "transmit_ns": [400], "wait_ns": [90], "unsplit_ns": [0]})
    sent = pl.DataFrame({"ranks": ["0, 1"], "transmit_ns": [6], "best_ns": [5], "exposed_ns": [80]})

    for transmission in (sent, None):
        (found,) = exposed_communication(segments, breakdown, transmission, None, None, None, None)
        assert (found.message, found.saving_ns, found.saving_high_ns, found.severity) == ("exposed", 0, 400, "low")
