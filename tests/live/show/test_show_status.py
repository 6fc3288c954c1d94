"""The status as data."""

from __future__ import annotations

import time

import pytest
from shown_jobs import MS, MadeManager, digest, made_job, slow_rank, status_of

from stepscope.errors import StepscopeError
from stepscope.live.control.board import Acknowledgement, Requested
from stepscope.live.messages import Captured, Digest, Pulse
from stepscope.live.show.status import from_json, to_json
from stepscope.live.show.view import LATE_NS, WORTH_A_LOOK, view_of
from stepscope.live.switches import ALL, DEFAULT


def test_times_are_medians_of_the_last_steps() -> None:
    manager = made_job(ranks=1, steps=20)
    for step in range(21, 31):
        manager.happen(digest(0, step, 3.0))

    rank = status_of(manager).ranks[0]

    assert rank.forward_ns == 60 * MS  # 10 of 30 ms, 10 of 90 ms
    assert (rank.step, rank.step_ns, rank.communication_ns) == (30, 100 * MS, None)


def test_a_slow_rank_has_a_ratio_to_the_median_rank() -> None:
    status = status_of(made_job(slow={2: 2.0}))

    assert [round(rank.own_ratio or 0, 2) for rank in status.ranks] == [1.0, 1.0, 1.86, 1.0]


def test_of_two_ranks_the_slower_one_is_compared_with_the_faster_one() -> None:
    status = status_of(made_job(ranks=2, slow={1: 2.0}))

    assert [round(rank.own_ratio or 0, 2) for rank in status.ranks] == [1.0, 1.86]


def test_the_name_of_a_job_is_whole_in_the_status() -> None:
    name = "default_task_id_b7ec0aac-cb64-4b91-8921-e73a483bbdae_localhost_44027"

    assert status_of(made_job(job=name)).job == name


def test_the_status_travels_as_json() -> None:
    manager = made_job(slow={2: 2.0})
    manager.happen(slow_rank(), slow_rank(3, until_step=60, until_at_ns=5))
    status = status_of(manager)

    again = from_json(to_json(status))

    assert again == status
    assert [one.verdict.ranks for one in again.open] == [[2]]
    assert [one.verdict.ranks for one in again.over] == [[3]]


def test_other_json_is_no_status() -> None:
    with pytest.raises(StepscopeError, match="same release"):
        from_json(b'{"job": 3}')


def test_ranks_are_alive_late_or_lost() -> None:
    manager = made_job(ranks=3)
    now_ns = time.time_ns()
    manager.ranks[1].last_seen_ns = now_ns - LATE_NS - MS
    manager.ranks[2].alive = False

    status = status_of(manager, now_ns)

    assert [rank.state for rank in status.ranks] == ["alive", "late", "lost"]
    assert (status.nodes[0].alive, status.nodes[0].late, status.nodes[0].lost) == ([0], [1], [2])


def test_switches_name_ranks_that_have_not_applied_them() -> None:
    manager = made_job()
    manager.board.requested = Requested(3, ALL, "cli", 77)
    manager.board.acknowledged = {
        0: Acknowledgement(3, ALL, 80),
        1: Acknowledgement(2, DEFAULT, 70),
        2: Acknowledgement(3, DEFAULT, 81, "no hooks"),
    }

    switches = status_of(manager).switches

    assert (switches.revision, switches.by, switches.at_ns, switches.off) == (3, "cli", 77, [])
    assert (switches.applied, switches.pending) == (1, [1])
    assert [(each.rank, each.error) for each in switches.failed] == [(2, "no hooks")]


def test_a_restarted_rank_does_not_mix_its_steps_with_the_old_ones() -> None:
    manager = made_job(ranks=1, steps=30)
    before = manager.ranks[0].hello
    manager.ranks[0].hello = type(before)(job=before.job, rank=0, pid=2, host="node0", started_at_ns=1)

    manager.happen(digest(0, 1))
    rank = status_of(manager).ranks[0]

    assert [recent[0] for recent in rank.recent] == [1]
    assert view_of(manager).histories[0].totals["step_ns"].count == 31


def test_of_many_ranks_only_those_worth_a_look_have_their_steps() -> None:
    manager = made_job(ranks=1024, steps=3, slow={700: 2.0})
    manager.happen(slow_rank(5))

    status = status_of(manager)
    with_steps = [rank.rank for rank in status.ranks if rank.recent]

    assert len(status.ranks) == 1024
    assert len(with_steps) == WORTH_A_LOOK
    assert {5, 700} <= set(with_steps)
    assert len(to_json(status)) < 1_000_000


def test_storage_names_directories_and_problems() -> None:
    manager = made_job(ranks=2)
    manager.happen(Pulse(rank=1, step=9, idle_ns=0, dropped=12, problem="/rec: No space left on device\x1b[31m"))

    storage = status_of(manager).storage

    assert storage.directories == ["/rec/job-7"]
    assert storage.dropped == 12
    assert [(each.rank, each.problem) for each in storage.problems] == [(1, "/rec: No space left on device\\x1b[31m")]


def test_a_rank_that_never_waited_for_a_batch_has_no_waits() -> None:
    manager = made_job(ranks=2, steps=0)
    for step in range(1, 4):
        manager.happen(Digest(0, step, 0, 100, data_ns=0), Digest(1, step, 0, 100, data_ns=step // 3 * 90))

    without, some = status_of(manager).ranks

    assert (without.data_ns, some.data_ns) == (None, 0)
    assert [recent[2] for recent in without.recent] == [None] * 3
    assert [recent[2] for recent in some.recent] == [0, 0, 90]


def test_captures_are_joined_over_ranks() -> None:
    manager = made_job()
    manager.happen(Captured(rank=1, capture="c1", files=["/a"]), Captured(rank=2, capture="c1", error="no profiler"))

    [capture] = status_of(manager).captures

    assert (capture.ranks, capture.files, capture.state) == ([1, 2], ["/a"], "failed")
    assert capture.error == "rank 2: no profiler"


def test_a_job_without_ranks_has_a_status() -> None:
    status = status_of(MadeManager())

    assert (status.ranks, status.step, status.step_ns, status.world_size) == ([], None, None, None)
