"""The manager follows the mounted file with the switches of its job."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from stepscope.live.control.board import Board, CannotKeep
from stepscope.live.kinds import Kind
from stepscope.live.switching.declared import Declared
from stepscope.live.switching.mounted import LOOK_EVERY_S, MountedSwitches

log = logging.getLogger("stepscope")


async def follow_file(board: Board, path: Path, *, every_s: float = LOOK_EVERY_S) -> None:
    """Request on the board what the file says, each time its content changes. Runs until it is cancelled.

    At the start it acts if nobody has switched yet, or if it has changed since a manager that kept its state on disk
    has last seen it.

    Args:
        board: Where the state ends.
        path: The file, or the directory in which `profilingSwitch` lies.
        every_s: Time between two looks, in seconds.
    """
    switches, declared = MountedSwitches(path), Declared(board, f"file {path}")
    latest: dict[Kind, bool] | None = None
    failed = False
    while True:
        # a network file system that hangs must not hold up the manager
        seen = await asyncio.to_thread(switches.look)
        latest = seen if seen is not None else latest
        if latest is not None:
            try:
                await declared.declare(latest)
                failed = False
            except CannotKeep as error:
                if not failed:
                    log.error("%s", error)
                failed = True
        await asyncio.sleep(every_s)
