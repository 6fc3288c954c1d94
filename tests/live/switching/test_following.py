"""The manager follows the mounted file: the last change wins, whichever way it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from stepscope.live.control.board import Board, CannotKeep
from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, NONE
from stepscope.live.switching.declared import Declared
from stepscope.live.switching.following import follow_file


def text(state: str) -> str:
    return json.dumps((ALL if state == "on" else NONE).as_guide())


def follow(
    board: Board, file: Path, act: Callable[[Callable[[int], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]
) -> None:
    """Follow the file while `act` runs; it gets a function that waits for a revision of the board."""

    async def run() -> None:
        async def reached(revision: int) -> None:
            async for state in board.states():
                if state.revision >= revision:
                    return

        task = asyncio.ensure_future(follow_file(board, file, every_s=0.01))
        try:
            await asyncio.wait_for(act(reached), 20)
        finally:
            task.cancel()

    asyncio.run(run())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profilingSwitch"


async def a_while() -> None:
    """Long enough for several looks."""
    await asyncio.sleep(0.1)


def test_the_file_acts_at_the_start_if_nobody_has_switched_yet(file: Path) -> None:
    board = Board()
    file.write_text(text("on"))

    async def act(reached: Any) -> None:
        await reached(1)

    follow(board, file, act)

    assert board.requested.switches == ALL
    assert board.requested.by == f"file {file}"


def test_the_last_change_wins_whichever_way_it_came(file: Path) -> None:
    board = Board()
    file.write_text(text("on"))
    states = []

    async def act(reached: Any) -> None:
        await reached(1)
        await board.request({Kind.STEP: False}, "cli")
        await a_while()
        states.append(board.requested)
        file.write_text(text("on") + "\n")
        await a_while()
        states.append(board.requested)
        file.write_text(text("off"))
        await reached(3)
        states.append(board.requested)
        await board.request({Kind.STEP: True}, "cli")
        await a_while()
        states.append(board.requested)

    follow(board, file, act)

    assert [state.by for state in states] == ["cli", "cli", f"file {file}", "cli"]
    assert states[0].switches == states[1].switches == ALL.with_changes({Kind.STEP: False})
    assert states[3].switches.as_names() == ["step"]


def test_a_file_that_nobody_changed_does_not_undo_a_request_when_the_manager_restarts(
    file: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "state" / "switches.json"
    file.write_text(text("on"))

    async def first(reached: Any) -> None:
        await reached(1)
        await board.request({Kind.STEP: False}, "cli")

    async def restarted(reached: Any) -> None:
        await a_while()

    board = Board(kept)
    follow(board, file, first)
    board = Board(kept)
    follow(board, file, restarted)

    assert board.requested.by == "cli"
    assert Kind.STEP not in board.requested.switches.on


def test_an_edit_while_no_manager_runs_acts_when_the_next_one_starts(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "switches.json"
    file.write_text(text("on"))

    async def first(reached: Any) -> None:
        await reached(1)
        await board.request({Kind.STEP: False}, "cli")

    async def restarted(reached: Any) -> None:
        await reached(3)

    board = Board(kept)
    follow(board, file, first)
    file.write_text(text("off"))
    board = Board(kept)
    follow(board, file, restarted)

    assert board.requested.switches == NONE


def test_a_file_that_appears_after_others_have_switched_waits_for_a_change(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    caplog.set_level("INFO")

    async def act(reached: Any) -> None:
        await board.request({Kind.STEP: False}, "cli")
        await a_while()
        file.write_text(text("on"))
        while "act when they are changed" not in caplog.text:
            await a_while()
        assert board.requested.revision == 1
        file.write_text(text("off"))
        await reached(2)

    follow(board, file, act)

    assert board.requested.switches == NONE


def test_a_file_that_names_no_switch_leaves_the_workers_their_initial_state(file: Path) -> None:
    board = Board()
    file.write_text("{}")

    async def act(reached: Any) -> None:
        await a_while()

    follow(board, file, act)

    assert board.requested.revision == 0


def test_a_state_that_cannot_be_kept_is_tried_again(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    room = tmp_path / "state"
    board = Board(room / "switches.json")
    file.write_text(text("on"))

    async def act(reached: Any) -> None:
        await reached(1)
        room.rename(tmp_path / "elsewhere")
        room.write_text("in the way of the directory")
        file.write_text(text("off"))
        while not caplog.records:
            await a_while()
        await a_while()
        assert board.requested.switches == ALL
        room.unlink()
        await reached(2)

    follow(board, file, act)

    assert board.requested.switches == NONE
    assert len([record for record in caplog.records if "the state of the switches cannot" in record.getMessage()]) == 1


def test_what_the_file_says_at_the_start_does_not_undo_what_proxies_know(file: Path, tmp_path: Path) -> None:
    board = Board()
    file.write_text(text("on"))

    async def act(reached: Any) -> None:
        await reached(1)
        await board.learn(7, ["step"], "proxy of host1")
        await a_while()

    follow(board, file, act)

    assert (board.requested.revision, board.requested.switches.as_names()) == (7, ["step"])


def test_a_file_of_which_the_job_becomes_known_later_does_not_undo_a_request_of_before(
    file: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "switches.json"
    file.write_text(text("on"))

    async def first(reached: Any) -> None:
        await reached(1)
        await board.request({Kind.STEP: False}, "cli")
        await a_while()

    async def restarted(reached: Any) -> None:
        await reached(1)
        await board.keep_in(kept)
        await a_while()
        assert Kind.STEP not in board.requested.switches.on
        file.write_text(text("off"))
        await reached(board.requested.revision + 1)

    board = Board(kept)
    follow(board, file, first)
    board = Board()
    follow(board, file, restarted)

    assert board.requested.switches == NONE


def test_a_damaged_note_of_what_was_declared_is_as_none(tmp_path: Path) -> None:
    board = Board(tmp_path / "switches.json")
    asyncio.run(board.request({Kind.STEP: False}, "cli"))
    (tmp_path / "switches.declared.json").write_text('{"file x": {"Step": "maybe"}}')

    asyncio.run(Declared(board, "file x").declare({Kind.STEP: True}))

    assert board.requested.by == "cli"


def test_declaring_again_after_a_failure_is_possible(tmp_path: Path) -> None:
    room = tmp_path / "room"
    board = Board(room / "switches.json")
    declared = Declared(board, "file x")
    asyncio.run(declared.declare({Kind.STEP: False}))
    room.rename(tmp_path / "elsewhere")
    room.write_text("")

    for _ in range(2):
        with pytest.raises(CannotKeep):
            asyncio.run(declared.declare({Kind.STEP: True}))
