"""Each class of cause is found, at the right ranks, since the right step, and its end is noticed."""

from __future__ import annotations

import random

import pytest
from detect_streams import Stream, blamed, slow, three_dimensional, watched, without

from stepscope.live.verdicts import Cause


@pytest.mark.parametrize(("factor", "steps"), [(1.1, 40), (1.3, 12), (2.0, 12)])
def test_a_rank_that_becomes_slow_is_found(factor: float, steps: int) -> None:
    stream = Stream(steps=80 + steps, compute=slow(3, factor=factor, first=80))

    detector, told = watched(stream.digests())

    assert blamed(told) == {("slow_compute", (3,))}
    verdict = detector.open[0]
    assert verdict.key == "slow_compute:3"
    assert 76 <= verdict.since_step <= 84
    assert verdict.ratio == pytest.approx(factor, rel=0.06)
    assert verdict.sureness > 0.9
    assert verdict.cost_ns is not None and 0 < verdict.cost_ns < (factor - 1) * 400_000_000


def test_a_rank_that_is_slow_from_the_first_step_is_found() -> None:
    _, told = watched(Stream(steps=30, compute=slow(5, factor=1.3)).digests())

    assert blamed(told) == {("slow_compute", (5,))}


def test_of_two_ranks_the_slow_one_is_found() -> None:
    _, told = watched(Stream(ranks=2, steps=60, compute=slow(1, factor=1.3, first=30)).digests())

    assert blamed(told) == {("slow_compute", (1,))}


def test_half_of_the_ranks_may_be_slow_from_the_start() -> None:
    _, told = watched(Stream(ranks=8, steps=60, compute=slow(4, 5, 6, 7, factor=1.4)).digests())

    assert blamed(told) == {("slow_host", (4, 5, 6, 7))}


def test_a_host_whose_ranks_are_all_slow_is_named_once() -> None:
    stream = Stream(ranks=16, steps=120, compute=slow(4, 5, 6, 7, factor=1.2, first=60))

    detector, told = watched(stream.digests())

    assert blamed(told) == {("slow_host", (4, 5, 6, 7))}
    assert detector.open[0].hosts == ["host1"]


def test_a_rank_that_waits_for_its_batches_is_found() -> None:
    detector, told = watched(Stream(steps=100, data=slow(2, factor=1.2, first=60)).digests())

    assert blamed(told) == {("slow_data", (2,))}
    assert detector.open[0].cost_ns == pytest.approx(100_000_000, rel=0.35)


def test_all_ranks_waiting_for_batches_blames_the_data_and_no_rank() -> None:
    _, told = watched(Stream(steps=200, data=slow(*range(8), factor=1.3, first=120)).digests())

    assert blamed(told) == {("slow_data", ())}


def test_a_rank_that_saves_checkpoints_slowly_is_found() -> None:
    stream = Stream(steps=300, checkpoint_every=10, checkpoint=slow(6, factor=2.5, first=150))

    _, told = watched(stream.digests())

    assert blamed(told) == {("slow_checkpoint", (6,))}


def test_checkpoints_that_become_slow_on_all_ranks_blame_none() -> None:
    stream = Stream(steps=700, checkpoint_every=5, checkpoint=slow(*range(8), factor=3.0, first=400))

    _, told = watched(stream.digests())

    assert blamed(told) == {("slow_checkpoint", ())}


def test_a_whole_job_that_becomes_slow_asks_for_communication() -> None:
    stream = Stream(steps=160, compute=slow(*range(8), factor=1.3, first=100))

    detector, told = watched(stream.digests())

    assert blamed(told) == {("slow_job", ())}
    assert detector.wants_communication
    assert detector.open[0].ratio == pytest.approx(1.25, abs=0.08)


def test_a_job_that_recovers_is_reported() -> None:
    stream = Stream(steps=260, compute=slow(*range(8), factor=1.3, first=100, last=180))

    detector, told = watched(stream.digests())

    assert not detector.open
    assert told[-1].cause is Cause.JOB and told[-1].is_over
    assert told[-1].until_step is not None and 172 <= told[-1].until_step <= 184


def test_recovery_is_reported_with_its_step() -> None:
    stream = Stream(steps=200, compute=slow(3, factor=1.3, first=80, last=139))

    detector, told = watched(stream.digests())

    assert not detector.open
    over = told[-1]
    assert over.key == "slow_compute:3" and over.is_over
    assert over.until_step is not None and 134 <= over.until_step <= 144


def test_several_at_once_are_each_named() -> None:
    both = lambda rank, step: 1.5 if rank == 1 and step >= 60 else 1.2 if rank == 6 and step >= 90 else 1.0  # noqa: E731
    stream = Stream(steps=140, compute=both, data=slow(4, factor=1.3, first=70))

    _, told = watched(stream.digests())

    assert blamed(told) == {("slow_compute", (1,)), ("slow_compute", (6,)), ("slow_data", (4,))}


def test_what_is_slow_behind_another_costs_nothing_by_itself() -> None:
    both = lambda rank, step: {1: 2.0, 6: 1.3}.get(rank, 1.0) if step >= 60 else 1.0  # noqa: E731

    detector, _ = watched(Stream(steps=140, compute=both).digests())

    costs = {verdict.ranks[0]: verdict.cost_ns for verdict in detector.open}
    assert costs[6] == 0
    assert costs[1] == pytest.approx(0.7 * 400_000_000, rel=0.2)


def test_every_fifth_step_is_intermittent() -> None:
    detector, told = watched(Stream(steps=260, compute=slow(2, factor=1.6, first=80, every=5)).digests())

    assert blamed(told) == {("slow_compute", (2,))}
    assert detector.open[0].intermittent


def test_another_slow_rank_in_each_step_is_rotating() -> None:
    stream = Stream(steps=260, compute=lambda rank, step: 1.5 if step > 60 and rank == step % 8 else 1.0)

    detector, told = watched(stream.digests())

    keys = {verdict.key for verdict in told}
    assert "slow_compute:rotating" in keys or len(keys) >= 6
    assert detector.open and detector.open[0].intermittent


def test_garbage_collection_of_one_rank_alone_is_found() -> None:
    def digests():  # type: ignore[no-untyped-def]
        for rows in Stream(steps=260, stall=lambda r, s: 0.4 if r == 5 and s > 80 and s % 6 == 0 else 0.0).digests():
            yield [digest if digest.rank != 5 else _collecting(digest) for digest in rows]

    detector, told = watched(digests())

    assert blamed(told) == {("slow_compute", (5,))}
    assert detector.open[0].intermittent


def _collecting(digest):  # type: ignore[no-untyped-def]
    fields = {name: getattr(digest, name) for name in digest.__struct_fields__}
    collects = digest.step > 80 and digest.step % 6 == 0
    return type(digest)(**{**fields, "garbage_ns": 200_000_000 if collects else 0})


def test_with_calls_the_rank_that_waits_least_is_found() -> None:
    groups, digests = three_dimensional(120, slow(5, factor=1.2, first=60))

    _, told = watched(digests, groups=groups)

    assert blamed(told) == {("slow_compute", (5,))}


def test_without_calls_the_tensor_parallel_group_is_blamed_and_communication_wanted() -> None:
    groups, digests = three_dimensional(120, slow(5, factor=1.3, first=60), communication=False)

    detector, told = watched(digests, groups=groups)

    assert blamed(told) == {("slow_compute", (4, 5))}
    assert detector.open[0].group == "tp2"
    assert detector.wants_communication


def test_calls_switched_on_replace_the_group_by_the_rank() -> None:
    groups, off = three_dimensional(120, slow(5, factor=1.3, first=60), communication=False)
    _, on = three_dimensional(220, slow(5, factor=1.3, first=60))
    rounds = list(off) + [rows for rows in on if rows[0].step > 120]

    detector, told = watched(rounds, groups=groups)

    assert [verdict.key for verdict in detector.open] == ["slow_compute:5"]
    assert any(verdict.group == "tp2" and verdict.is_over for verdict in told)
    assert not detector.wants_communication


def test_a_slow_group_is_a_slow_link() -> None:
    groups, digests = three_dimensional(
        160, lambda rank, step: 1.0, lambda group, step: 3.0 if group == "tp1" and step > 80 else 1.0
    )

    detector, told = watched(digests, groups=groups)

    assert blamed(told) == {("slow_link", (2, 3))}
    assert detector.open[0].group == "tp1"


def test_a_slow_pair_is_a_slow_send() -> None:
    groups, digests = three_dimensional(
        160, lambda rank, step: 1.0, lambda group, step: 3.0 if group == "pp2" and step > 80 else 1.0
    )

    _, told = watched(digests, groups=groups)

    assert blamed(told) == {("slow_send", (2, 6))}


def test_a_late_rank_makes_no_link_slow() -> None:
    draw = random.Random(3)
    groups, digests = three_dimensional(160, lambda rank, step: draw.choice((1.0, 1.6)) if rank == 2 else 1.0)

    _, told = watched(digests, groups=groups)

    assert not [verdict for verdict in told if verdict.cause in (Cause.LINK, Cause.SEND)]


def test_a_slow_device_is_found_by_its_forward_passes() -> None:
    def on_device(digest):  # type: ignore[no-untyped-def]
        fields = {name: getattr(digest, name) for name in digest.__struct_fields__}
        launch = {"forward_ns": 9_000_000, "backward_ns": 15_000_000, "backward_own_ns": 14_000_000}
        return type(digest)(**{**fields, **launch, "device_forward_ns": digest.forward_ns})

    stream = Stream(steps=120, compute=slow(3, factor=1.3, first=80))

    _, told = watched([on_device(digest) for digest in rows] for rows in stream.digests())

    assert blamed(told) == {("slow_compute", (3,))}


def test_steps_and_forward_passes_alone_are_enough() -> None:
    stream = Stream(steps=140, compute=slow(3, factor=1.3, first=80))
    rounds = (
        [without(digest, "backward_ns", "backward_own_ns", "optimizer_ns") for digest in r] for r in stream.digests()
    )

    _, told = watched(rounds)

    assert blamed(told) == {("slow_compute", (3,))}


def test_steps_alone_show_that_the_job_is_slow_but_not_who() -> None:
    stream = Stream(steps=160, compute=slow(3, factor=1.4, first=80))
    names = ("forward_ns", "backward_ns", "backward_own_ns", "optimizer_ns", "data_ns", "checkpoint_ns")

    detector, told = watched([without(digest, *names) for digest in rows] for rows in stream.digests())

    assert blamed(told) == {("slow_job", ())}
    assert detector.wants_communication
