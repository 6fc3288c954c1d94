"""The part of `stepscope live capture` for processes that know nothing of stepscope."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.cli.notes import note
from stepscope.errors import StepscopeError

_LOOK_S = 0.2
_SILENT_AFTER_S = 15.0
"""A process that serves Kineto's daemon asks every few seconds; one that has not asked by then does not."""


def profile_processes(
    text: str,
    steps: int,
    seconds: float | None,
    output: Path,
    *,
    wait_s: float,
    shapes: bool,
    stacks: bool,
    as_json: bool,
) -> int:
    """Profile processes by their ids through Kineto; returns the exit code.

    Raises:
        StepscopeError: If they cannot be profiled, with the reason.
    """
    processes = _parsed(text)
    if seconds is not None and not 0 < seconds <= 600:
        raise StepscopeError(f"--seconds {seconds:g}: give a number above 0, at most 600")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StepscopeError(f"{output}: cannot be created ({error.strerror}). Choose another with --output") from error
    file = output.absolute() / f"kineto_{time.strftime('%Y%m%d%H%M%S')}.json"
    profile: dict[str, Any] = {"file": str(file), "shapes": shapes, "stacks": stacks}
    profile |= {"iterations": steps} if seconds is None else {"duration_ms": round(seconds * 1000)}
    answer = asyncio.run(_profiled(processes, profile, wait_s + (seconds or 0.0)))
    if as_json:
        print(json.dumps(answer))
    else:
        for process, written in answer["files"].items():
            print(f"Process {process}: {written}")
        if answer["files"]:
            print(f"Next: stepscope analyze {' '.join(answer['files'].values())}")
        for process in answer["missing"]:
            print(
                f"Process {process} has written no trace within {wait_s:g} s"
                + ("; if it has no torch optimizer, use --seconds instead of --steps" if seconds is None else "")
            )
    return 1 if answer["missing"] else 0


def _parsed(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) < 1 << 31 for word in words):
        raise StepscopeError(f"--kineto {text}: give the numbers of processes, e.g. 4711,4712")
    processes = [int(word) for word in words]
    for process in processes:
        if not Path(f"/proc/{process}").exists():
            raise StepscopeError(f"--kineto: there is no process {process} on this host")
    return processes


async def _profiled(processes: list[int], profile: dict[str, Any], wait_s: float) -> dict[str, Any]:
    from stepscope.live.capture.dynolog import Ask, Daemon, NameTaken, order, written

    ask = Ask("profile", processes, profile=profile)
    try:
        async with Daemon() as daemon:
            note("waiting for the processes to ask for requests, up to 15 s")
            await _asked(lambda: {one.process for one in daemon.processes()} | _ancestors(daemon), processes)
            outcome = await order(ask)
            files = _files(outcome)
            there, missing = await written(list(files.values()), wait_s)
    except NameTaken:
        outcome = await order(ask)
        if not outcome.get("matched"):
            raise StepscopeError(_silent(processes)) from None
        files = _files(outcome)
        there, missing = await written(list(files.values()), wait_s)
    return {
        "files": {process: file for process, file in files.items() if file in there},
        "missing": [process for process, file in files.items() if file in missing],
    }


def _files(outcome: dict[str, Any]) -> dict[str, str]:
    if outcome.get("error"):
        raise StepscopeError(f"the daemon refuses the request: {outcome['error']}")
    if outcome.get("busy"):
        raise StepscopeError(f"process {outcome['busy'][0]} is still being profiled. Try again when that has ended")
    files: dict[str, str] = outcome.get("files", {})
    return files


def _ancestors(daemon: Any) -> set[int]:
    return {ancestor for one in daemon.processes() for ancestor in one.ancestors}


async def _asked(there: Callable[[], set[int]], processes: list[int]) -> None:
    end = time.monotonic() + _SILENT_AFTER_S
    while not {*processes} <= there():
        if time.monotonic() > end:
            raise StepscopeError(_silent([process for process in processes if process not in there()]))
        await asyncio.sleep(_LOOK_S)


def _silent(processes: list[int]) -> str:
    reason = "was started without KINETO_USE_DAEMON=1, has not imported torch yet, or belongs to another user"
    for process in processes:
        try:
            environment = Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            continue
        if b"KINETO_USE_DAEMON=1" not in environment and process != os.getpid():
            reason = "was started without KINETO_USE_DAEMON=1. Set it when starting the program"
    return f"process {processes[0]} does not ask for requests: it {reason}"
