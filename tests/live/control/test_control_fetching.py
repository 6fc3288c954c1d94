"""Captures are copied from the hosts of ranks to the manager's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from control_rig import Rig, run_rig

from stepscope.live.capture import room
from stepscope.live.capture.transfer import NotSent
from stepscope.live.control.bounds import BOUNDS
from stepscope.live.control.fetching import Fetches
from stepscope.live.control.nodes import Node


def test_a_capture_is_copied_over_the_links_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = room.new_capture(tmp_path / "rank", "c")
    (made / "trace.json").write_bytes(b"0123456789" * 300_000)

    async def scenario(rig: Rig) -> None:
        manager = await rig.start_manager("job")
        await rig.start_node()
        rig.start_worker(0, job="job", directory=str(tmp_path / "rank"))
        await rig.ranks(0)

        await manager.fetch(0, "c", tmp_path / "copy")

        assert (tmp_path / "copy" / "trace.json").read_bytes() == (made / "trace.json").read_bytes()
        with pytest.raises(NotSent, match="no capture"):
            await manager.fetch(0, "other", tmp_path / "none")
        with pytest.raises(NotSent, match="not connected"):
            await manager.fetch(7, "c", tmp_path / "none")
        assert not (tmp_path / "none").exists()

    run_rig(scenario, monkeypatch)


def test_of_a_capture_that_comes_too_late_nothing_is_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(NotSent, match="has not sent it within"):
            await Fetches().fetch(Node("a", "host", BOUNDS), 0, "c", tmp_path / "copy", 0.01)

    asyncio.run(scenario())

    assert not (tmp_path / "copy").exists()
