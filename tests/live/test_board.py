"""The state of a job's switches: kept, acknowledged, passed on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stepscope.live.control.board import Board, CannotKeep, Requested
from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, DEFAULT

COMMUNICATION = {Kind.COMMUNICATION: True}


def test_a_request_is_on_disk_when_it_is_answered(tmp_path: Path) -> None:
    file = tmp_path / "room" / "job.json"

    asked = asyncio.run(Board(file).request(COMMUNICATION, "cli"))

    assert asked.revision == 1
    assert Board(file).requested == asked
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_same_state_again_is_no_new_revision() -> None:
    async def twice() -> tuple[Requested, Requested]:
        board = Board()
        return await board.request(COMMUNICATION, "cli"), await board.request(COMMUNICATION, "grpc")

    first, second = asyncio.run(twice())

    assert (second.revision, second.switches) == (first.revision, first.switches)


def test_who_asks_for_the_same_state_again_owns_it(tmp_path: Path) -> None:
    async def twice() -> Requested:
        board = Board(tmp_path / "job.json")
        await board.request(COMMUNICATION, "escalation")
        return await board.request(COMMUNICATION, "cli")

    owned = asyncio.run(twice())

    assert owned.by == "cli"
    assert Board(tmp_path / "job.json").requested == owned


def test_the_initial_state_can_be_asked_for() -> None:
    asked = asyncio.run(Board().request({Kind.STEP: True}, "cli"))

    assert (asked.revision, asked.switches) == (1, DEFAULT)


def test_a_state_that_cannot_be_kept_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "room").write_text("a file where a directory should be")
    board = Board(tmp_path / "room" / "job.json")

    with pytest.raises(CannotKeep, match="it is unchanged"):
        asyncio.run(board.request(COMMUNICATION, "cli"))

    assert board.requested == Requested()


def test_a_damaged_file_is_no_state(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for content in ("", "{", "[]", '{"revision": 1, "switches": ["x"], "by": "", "at_ns": 0}'):
        (tmp_path / "job.json").write_text(content)

        assert Board(tmp_path / "job.json").requested == Requested()
    assert caplog.text.count("not a state of switches") == 4


def test_ranks_are_pending_until_they_have_applied_the_state() -> None:
    async def run() -> list[list[int]]:
        board, seen = Board(), []
        for rank in (2, 0):
            await board.acknowledge(rank, 0, [])
        await board.request({Kind.COMMUNICATION: True}, "cli")
        seen.append(board.pending())
        await board.acknowledge(0, 1, ALL.as_names())
        await board.acknowledge(2, 1, [], error="no hooks")
        seen.append(board.pending())
        board.left(2)
        seen.append(board.pending())
        return seen

    assert asyncio.run(run()) == [[0, 2], [2], []]


def test_waiting_ends_when_the_last_rank_has_applied_the_state() -> None:
    async def run() -> tuple[bool, bool]:
        board = Board()
        await board.acknowledge(0, 0, [])
        await board.request(COMMUNICATION, "cli")
        early = await board.settled(0.01)
        waiting = asyncio.create_task(board.settled(60))
        await asyncio.sleep(0)
        await board.acknowledge(0, 1, ALL.as_names())
        return early, await waiting

    assert asyncio.run(run()) == (False, True)


def test_an_older_acknowledgement_does_not_undo_a_newer_one() -> None:
    async def run() -> int:
        board = Board()
        await board.acknowledge(0, 2, ALL.as_names())
        await board.acknowledge(0, 1, [])
        return board.acknowledged[0].revision

    assert asyncio.run(run()) == 2


def test_a_newer_state_of_a_worker_is_adopted() -> None:
    async def run() -> Requested:
        board = Board()
        await board.learn(7, ["step"], "rank 0")
        await board.learn(6, [], "rank 1")
        return board.requested

    adopted = asyncio.run(run())

    assert (adopted.revision, adopted.switches.as_names()) == (7, ["step"])


def test_followers_see_the_present_state_and_each_later_one() -> None:
    async def run() -> list[int]:
        board, seen = Board(), []

        async def follow() -> None:
            async for state in board.states():
                seen.append(state.revision)
                if len(seen) == 3:
                    return

        following = asyncio.create_task(follow())
        for state in (True, False):
            await asyncio.sleep(0.01)
            await board.request({Kind.COMMUNICATION: state}, "cli")
        await asyncio.wait_for(following, 5)
        return seen

    assert asyncio.run(run()) == [0, 1, 2]


def test_what_was_requested_here_stays_in_force_when_an_older_state_is_learnt() -> None:
    async def run() -> Requested:
        board = Board()
        await board.request({Kind.COMMUNICATION: True}, "cli")
        await board.learn(7, ["step"], "node a")
        return board.requested

    state = asyncio.run(run())

    assert (state.revision, state.switches.as_names(), state.by) == (8, ["step", "communication"], "cli")


def test_a_board_that_gets_a_file_later_goes_on_from_what_the_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "job.json"

    async def run() -> Requested:
        before = Board(file)
        await before.request({Kind.STEP: False}, "cli")
        await before.request({Kind.DATA: False}, "cli")
        board = Board()
        await board.request({Kind.COMMUNICATION: True}, "file")
        await board.keep_in(file)
        return board.requested

    state = asyncio.run(run())

    assert (state.revision, state.switches.as_names()) == (3, ["fp", "checkpoint", "communication"])
    assert Board(file).requested == state


def test_a_state_from_which_nobody_could_count_on_is_not_learnt() -> None:
    async def scenario() -> None:
        board = Board()
        await board.learn(2**63 - 1, ["step"], "node broken")
        assert board.requested.revision == 0
        asked = await board.request({Kind.STEP: False}, "cli")
        assert asked.revision == 1

    asyncio.run(scenario())


def test_until_somebody_switches_the_state_is_what_workers_were_started_with() -> None:
    async def scenario() -> None:
        board = Board()
        await board.acknowledge(0, 0, ["step", "communication"])
        await board.acknowledge(1, 0, ["step"])
        assert board.requested.revision == 0
        assert board.requested.switches.as_names() == ["step", "communication"]

        asked = await board.request({Kind.CHECKPOINT: True}, "cli")

        assert (asked.revision, asked.switches.as_names()) == (1, ["step", "checkpoint", "communication"])
        await board.acknowledge(2, 0, ["fp"])
        assert board.requested == asked

    asyncio.run(scenario())
