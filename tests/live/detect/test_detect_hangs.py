"""A job that makes no progress, and who is the reason."""

from __future__ import annotations

import pytest
from detect_streams import EPOCH_NS, hello

from stepscope.live.detect import Detector
from stepscope.live.messages import Digest, Group, Inside, Pulse
from stepscope.live.verdicts import Cause, Verdict

S = 1_000_000_000
COLLECTIVE = "collective"


def job(ranks: int = 4) -> Detector:
    """A job that has ended 20 steps of a second."""
    detector = Detector()
    for rank in range(ranks):
        detector.hello(hello(rank, ranks, [Group("world", list(range(ranks)))]))
    for step in range(1, 21):
        for rank in range(ranks):
            detector.digest(Digest(rank, step, EPOCH_NS + step * S, S, forward_ns=S // 3))
            detector.pulse(Pulse(rank, step, 0), EPOCH_NS + step * S)
        detector.look(EPOCH_NS + step * S)
    return detector


def stands(detector: Detector, seconds: int, inside: dict[int, list[Inside]], **more: object) -> list[Verdict]:
    """Pulses without progress, each second."""
    told = []
    steps = more.get("steps", {})
    silent = more.get("silent", set())
    idle = more.get("idle", {})
    for second in range(1, seconds + 1):
        now = EPOCH_NS + (20 + second) * S
        for rank, where in inside.items():
            if rank not in silent:  # type: ignore[operator]
                idle_ns = idle.get(rank, second * S)  # type: ignore[attr-defined]
                shown = [Inside(i.mark, second * S, i.operation, i.group, i.calls_before) for i in where]
                detector.pulse(Pulse(rank, steps.get(rank, 20), idle_ns, shown), now)  # type: ignore[attr-defined]
        told += detector.look(now)
    return told


def waits(before: int = 7, group: str = "world") -> list[Inside]:
    return [Inside(COLLECTIVE, 0, "all_reduce", group, before)]


def test_the_rank_that_is_not_in_the_collective_is_named() -> None:
    detector = job()

    told = stands(detector, 40, {0: waits(), 1: waits(), 2: [], 3: waits()})

    assert [verdict.ranks for verdict in told] == [[2]]
    verdict = told[0]
    assert verdict.cause is Cause.HANG and verdict.group == "world"
    assert verdict.evidence["waiting_ranks"] == 3
    assert verdict.evidence["idle_ns"] >= 30 * S
    assert verdict.since_step == 21


def test_progress_ends_a_hang() -> None:
    detector = job()
    stands(detector, 40, {0: waits(), 1: waits(), 2: [], 3: waits()})

    for rank in range(4):
        detector.pulse(Pulse(rank, 21, 0), EPOCH_NS + 70 * S)
    told = detector.look(EPOCH_NS + 70 * S)

    assert [verdict.is_over for verdict in told] == [True]
    assert not detector.open


def test_a_rank_without_pulses_is_named_while_the_others_wait() -> None:
    told = stands(job(), 40, {rank: waits() for rank in range(4)}, silent={1})

    assert told[0].ranks == [1]


def test_a_rank_in_an_earlier_call_is_named() -> None:
    told = stands(job(), 40, {0: waits(9), 1: waits(9), 2: waits(9), 3: waits(8)})

    assert told[0].ranks == [3]


def test_if_all_are_in_the_same_call_no_rank_is_named() -> None:
    told = stands(job(), 40, {rank: waits() for rank in range(4)})

    assert told[0].ranks == [] and told[0].group == "world"


def test_a_rank_behind_in_steps_is_named() -> None:
    told = stands(job(), 40, {rank: [] for rank in range(4)}, steps={0: 20, 1: 20, 2: 19, 3: 20})

    assert told[0].ranks == [2]


def test_the_rank_that_does_something_else_is_named() -> None:
    backward = [Inside("backward", 0)]

    told = stands(job(), 40, {0: backward, 1: [Inside("data", 0)], 2: backward, 3: backward})

    assert told[0].ranks == [1]


@pytest.mark.parametrize("mark", ["checkpoint", "compile"])
def test_long_checkpoints_and_compilation_are_no_hang(mark: str) -> None:
    assert stands(job(), 200, {0: [Inside(mark, 0)], 1: waits(), 2: waits(), 3: waits()}) == []


def test_an_evaluation_is_no_hang() -> None:
    everyone = {rank: [Inside("forward", 0)] for rank in range(4)}

    assert stands(job(), 300, everyone, idle=dict.fromkeys(range(4), 0)) == []


def test_one_rank_that_evaluates_for_minutes_is_no_hang() -> None:
    inside = {0: [Inside("forward", 0)], 1: waits(), 2: waits(), 3: waits()}

    assert stands(job(), 300, inside, idle={0: 0}) == []


def test_before_the_first_step_there_is_more_time() -> None:
    detector = Detector()
    for rank in range(4):
        detector.hello(hello(rank, 4))
    for second in range(1, 300):
        for rank in range(4):
            detector.pulse(Pulse(rank, 0, second * S), EPOCH_NS + second * S)
        assert detector.look(EPOCH_NS + second * S) == []


def test_silence_of_all_is_no_hang() -> None:
    assert stands(job(), 300, {rank: [] for rank in range(4)}, silent={0, 1, 2, 3}) == []
