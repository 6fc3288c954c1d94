"""From a verdict to captures and back: what is captured, how often, and what is joined to the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from stepscope.live.capture import Escalation, findings
from stepscope.live.capture.choosing import RankFacts, comparable
from stepscope.live.capture.escalation import BY
from stepscope.live.capture.findings import Finding, NotAnalysed
from stepscope.live.capture.limits import EscalationLimits
from stepscope.live.capture.stacks import Frame, Thread, text_of
from stepscope.live.messages import Captured, Checked, Group
from stepscope.live.show.sentences import headline
from stepscope.live.verdicts import Cause, Verdict

LIMITS = EscalationLimits()


class Fakes:
    """What the manager would do: answers at once, or when `goes_on` is set."""

    def __init__(self, ranks: int = 4) -> None:
        self.there = {rank: RankFacts(rank, f"h{rank // 2}") for rank in range(ranks)}
        self.asked: list[tuple[Any, ...]] = []
        self.published: list[Verdict] = []
        self.on, self.by, self.wants = False, "", False
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.fails: set[int] = set()
        self.directory = ""

    def facts(self) -> Mapping[int, RankFacts]:
        return self.there

    def wants_communication(self) -> bool:
        return self.wants

    def communication(self) -> tuple[bool, str]:
        return self.on, self.by

    async def switch_communication(self, *, on: bool, by: str) -> None:
        self.on, self.by = on, by

    async def capture(self, ranks: Sequence[int], steps: int, timeout_s: float) -> list[Captured]:
        self.asked.append(("capture", *ranks))
        await self.goes_on.wait()
        return [
            Captured(rank, "c", error="busy") if rank in self.fails else Captured(rank, "c", directory=f"/c/{rank}")
            for rank in ranks
        ]

    async def dump(self, ranks: Sequence[int], timeout_s: float) -> list[Captured]:
        self.asked.append(("dump", *ranks))
        return [Captured(rank, "d", directory=f"/d/{rank}") for rank in ranks]

    async def stacks(self, ranks: Sequence[int], timeout_s: float) -> Mapping[int, tuple[str, str]]:
        self.asked.append(("stacks", *ranks))
        waits = text_of([Thread("", [Frame("all_reduce", "/train.py", 8)], is_main=True)])
        loads = text_of([Thread("", [Frame("load", "/data.py", 4)], is_main=True)])
        return {rank: (loads if rank == 1 else waits, "") for rank in ranks if rank != 3} | {3: ("", "no py-spy")}

    async def check(self, ranks: Sequence[int], kinds: Sequence[str], timeout_s: float) -> list[Checked]:
        self.asked.append(("check", *kinds, *ranks))
        if kinds == ["link"]:
            slow = {"link_2_ns": 90_000_000, "link_2_latency_ns": 200_000}
            return [Checked(rank, "k", slow if rank == 1 else {"link_1_ns": 30_000_000}) for rank in ranks]
        return [Checked(rank, "k", {"gemm_ns": 30 if rank == 1 else 10}) for rank in ranks]

    def publish(self, verdict: Verdict) -> None:
        self.published.append(verdict)

    async def read(self, rank: int, directory: str) -> str:
        return self.directory or directory


@pytest.fixture(autouse=True)
def analyses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def compared(healthy: str, suspect: str, rank: int, like: int) -> Finding:
        return Finding(f"rank {rank} differs from {like} ({suspect}, {healthy})", {"profiled_own_work_ns": 5.0})

    async def summed_up(directories: Mapping[int, str], suspects: Sequence[int]) -> Finding:
        return Finding(f"summed up {sorted(directories)} for {list(suspects)}")

    async def hanging(directories: Mapping[int, str]) -> Finding:
        raise NotAnalysed(f"no dumps of {len(directories)}")

    for function in (compared, summed_up, hanging):
        monkeypatch.setattr(findings, function.__name__, function)


def verdict(key: str = "slow_compute:1", cause: Cause = Cause.COMPUTE, ranks: Sequence[int] = (1,), **more: Any) -> Any:
    return Verdict(
        **{
            **{"key": key, "cause": cause, "ranks": [*ranks], "since_step": 5, "since_at_ns": 1},
            **{"ratio": 1.3, "cost_ns": 5, "sureness": 0.99, **more},
        }
    )


def after(*verdicts: Verdict, limits: EscalationLimits = LIMITS, at_s: Sequence[float] = (), **state: Any) -> Fakes:
    """What was done after some verdicts, one after the other, at some times."""

    async def work() -> Fakes:
        fakes, now = Fakes(), [0.0]
        vars(fakes).update(state)
        escalation = Escalation(fakes, limits, lambda: now[0])
        for number, one in enumerate(verdicts):
            now[0] = at_s[number] if at_s else 0.0
            await escalation.on_verdict(one)
        return fakes

    return asyncio.run(work())


def test_a_suspect_is_compared_with_a_healthy_rank_of_another_host() -> None:
    fakes = after(verdict())

    assert fakes.asked == [("capture", 1, 2)]
    (one,) = fakes.published
    assert one.explanation == "rank 1 differs from 2 (/c/1, /c/2). Profiles: h0:/c/1 (rank 1), h1:/c/2 (rank 2)"
    assert one.evidence == {"profiled_own_work_ns": 5.0}


def test_links_are_summed_up_instead() -> None:
    fakes = after(verdict("slow_link:0-3", Cause.LINK, [0, 3]))

    assert fakes.asked == [("capture", 0, 3, 2)]
    assert fakes.published[0].explanation.startswith("summed up [0, 2, 3] for [0, 3]. Profiles: ")


@pytest.mark.parametrize(
    "one",
    [
        verdict(sureness=0.5),
        verdict(ranks=()),
        verdict("slow_job", Cause.JOB),
        verdict(until_at_ns=9),
        verdict(explanation="known"),
        verdict(ranks=(77,)),
    ],
    ids=["unsure", "nobody", "whole job", "over", "explained", "gone"],
)
def test_no_capture_without_a_sure_suspect(one: Verdict) -> None:
    assert after(one).asked == []


def test_one_verdict_leads_to_one_capture_until_it_has_cooled_down() -> None:
    later = after(verdict(), verdict(cost_ns=7), verdict(cost_ns=8), at_s=(0, 599, 601))

    assert later.asked == [("capture", 1, 2)] * 2


def test_captures_an_hour_are_bounded() -> None:
    many = [verdict(f"slow_compute:{rank}", ranks=[rank % 4], cost_ns=rank) for rank in range(10)]

    assert len(after(*many, at_s=range(10)).asked) == LIMITS.most_an_hour
    assert len(after(*many, at_s=[0, 1, 2, 3, 4, 5, 6, 3700, 3701, 3702]).asked) == LIMITS.most_an_hour + 3


def test_never_two_at_once_and_a_hang_does_not_wait_for_a_profile() -> None:
    async def work() -> None:
        fakes = Fakes()
        escalation = Escalation(fakes)
        fakes.goes_on.clear()
        first = asyncio.create_task(escalation.on_verdict(verdict()))
        await asyncio.sleep(0)
        second = asyncio.create_task(escalation.on_verdict(verdict("slow_data:2", Cause.DATA, [2])))
        again = asyncio.create_task(escalation.on_verdict(verdict("slow_data:2", Cause.DATA, [2], cost_ns=9)))
        await escalation.on_verdict(verdict("hang", Cause.HANG, [1]))
        assert [one[0] for one in fakes.asked] == ["capture", "stacks", "dump"]
        fakes.goes_on.set()
        await asyncio.gather(first, second, again)
        assert [one[0] for one in fakes.asked] == ["capture", "stacks", "dump", "capture"]
        assert {one.key for one in fakes.published} == {"slow_compute:1", "slow_data:2", "hang"}

    asyncio.run(work())


def test_what_is_known_is_joined_again_when_the_detector_changes_its_verdict() -> None:
    async def work() -> None:
        escalation = Escalation(Fakes())
        await escalation.on_verdict(verdict(evidence={"own_ns": 3.0}))
        amended = escalation.amended(verdict(cost_ns=99, evidence={"own_ns": 4.0}))
        assert amended.explanation.startswith("rank 1 differs")
        assert amended.evidence == {"own_ns": 4.0, "profiled_own_work_ns": 5.0}
        assert escalation.amended(verdict("slow_data:0", Cause.DATA, [0])).explanation == ""

    asyncio.run(work())


def test_profiles_that_fail_or_lie_elsewhere_are_said(tmp_path: Path) -> None:
    assert after(verdict(), fails={1, 2}).published == []
    lone = after(verdict(), fails={2})
    assert lone.published[0].explanation.startswith("summed up [1] for [1]")

    class Elsewhere(Fakes):
        async def read(self, rank: int, directory: str) -> str:
            return ""

    async def work() -> str:
        fakes = Elsewhere()
        await Escalation(fakes).on_verdict(verdict())
        return fakes.published[0].explanation

    assert "could not be copied to the manager's host" in asyncio.run(work())


def test_a_hang_says_where_all_ranks_are() -> None:
    one = after(verdict("hang", Cause.HANG, [1], sureness=0.6)).published[0]

    assert one.explanation.startswith(
        "Ranks 0,2 in all_reduce at train.py:8; rank 1 in load at data.py:4. No stacks of rank 3: no py-spy. Dumps: "
    )


def test_a_hang_that_blames_nobody_blames_the_rank_that_its_last_calls_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hanging(_: Mapping[int, str]) -> Finding:
        return Finding("Rank 3 never made the call", ranks=[3])

    monkeypatch.setattr(findings, "hanging", hanging)

    (one,) = after(verdict("hang", Cause.HANG, [])).published

    assert one.ranks == [3]
    assert headline(one) == "Rank 3 makes no progress"


def test_a_verdict_that_is_over_meanwhile_stays_over_and_the_next_one_is_not_explained_by_it() -> None:
    async def work() -> None:
        fakes = Fakes()
        fakes.goes_on.clear()
        escalation = Escalation(fakes)
        first = asyncio.create_task(escalation.on_verdict(verdict()))
        await asyncio.sleep(0)
        await escalation.on_verdict(verdict(until_at_ns=9))
        fakes.goes_on.set()
        await first

        (told,) = fakes.published
        assert told.is_over and told.explanation
        assert escalation.amended(verdict(until_at_ns=9)).explanation
        assert not escalation.amended(verdict(since_at_ns=20)).explanation

    asyncio.run(work())


def test_checks_are_only_made_if_asked_for() -> None:
    fakes = after(verdict(), limits=EscalationLimits(checks=True))

    assert fakes.asked[1] == ("check", "gemm", 1, 2)
    assert "a matrix product takes 3.00x as long as on rank 2" in fakes.published[0].explanation


def test_what_a_check_of_links_finds_is_told() -> None:
    fakes = after(verdict("slow_link:1-2", Cause.LINK, [1, 2]), limits=EscalationLimits(checks=True))

    assert fakes.asked[1][:2] == ("check", "link")
    (one,) = fakes.published
    assert "90.00 ms to send 4 MiB from rank 1 to rank 2, the slowest of" in one.explanation
    assert one.evidence["checked_link_ns"] == 90_000_000


def test_a_failure_is_logged_and_the_next_verdict_is_served() -> None:
    class Broken(Fakes):
        async def capture(self, ranks: Sequence[int], steps: int, timeout_s: float) -> list[Captured]:
            self.asked.append(("capture", *ranks))
            raise ValueError("no")

    async def work() -> Fakes:
        fakes = Broken()
        escalation = Escalation(fakes)
        await escalation.on_verdict(verdict())
        await escalation.on_verdict(verdict("slow_data:2", Cause.DATA, [2]))
        return fakes

    assert len(asyncio.run(work()).asked) == 2


def switched(*looks: tuple[float, bool, tuple[bool, str] | None]) -> list[bool]:
    """Whether communication is on after each look: time, what the detector wants, and what a user has set before."""

    async def work() -> list[bool]:
        fakes, now = Fakes(), [0.0]
        escalation = Escalation(fakes, LIMITS, lambda: now[0])
        states = []
        for at_s, wants, user in looks:
            now[0], fakes.wants = at_s, wants
            if user is not None:
                fakes.on, fakes.by = user
            await escalation.communication.look()
            states.append(fakes.on)
        return states

    return asyncio.run(work())


def test_communication_is_switched_on_while_it_is_needed_and_off_again() -> None:
    assert switched((0, False, None), (1, True, None), (30, False, None), (62, False, None)) == [0, 1, 1, 0]
    assert switched((0, True, None), (601, True, None), (700, True, None), (2500, True, None)) == [1, 0, 0, 1]


def test_what_a_user_has_switched_stays() -> None:
    user = "me@host"
    assert switched((0, True, (True, user)), (700, False, None)) == [1, 1]
    assert switched((0, True, None), (10, True, (False, user)), (20, True, None)) == [1, 0, 0]
    assert switched((0, True, None), (10, True, (True, user)), (700, False, None)) == [1, 1, 1]


def test_what_an_earlier_manager_has_switched_on_is_switched_off() -> None:
    assert switched((0, False, (True, BY)), (61, False, None)) == [1, 0]


def test_the_healthy_rank_does_the_same_work() -> None:
    groups = [Group("0", list(range(8))), Group("1", [0, 2, 4, 6], "dp"), Group("2", [0, 1], "pp")]
    facts = {rank: RankFacts(rank, "h", groups=groups if rank == 0 else []) for rank in range(8)}
    facts[2] = RankFacts(2, "h", device="cuda")

    assert comparable(0, facts, {0}) == 4
    assert comparable(0, facts, {0, 4, 6}) == 1
    assert comparable(0, facts, set(range(8))) is None
    assert comparable(9, facts, set()) is None
