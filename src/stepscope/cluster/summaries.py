"""Summaries: a host reads its recordings itself, and only what was read is copied."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stepscope.cluster.hosts import Host
from stepscope.cluster.listing import Notes, expanded
from stepscope.cluster.local_place import LocalPlace
from stepscope.cluster.places import HostFailed, NoAnswer, Place, Ran
from stepscope.present import printable

_SCRATCH = re.compile(r"/[A-Za-z0-9_./-]*stepscope-[A-Za-z0-9]{8}")
_STATUS_NOT_FOUND, _STATUS_NOT_RUN = 127, 126
_ANSWER_S = 60.0
_PLAIN = "or collect the recordings themselves, without --summaries"


class _Unread(msgspec.Struct):
    file: str
    problem: str


class _Answer(msgspec.Struct):
    packed: list[Any]
    unread: list[_Unread] = []


@dataclass
class PackedThere:
    """What a host has packed.

    Args:
        folder: A temporary directory of the host with packed recordings.
        count: Files that it says it has packed.
        unread: What it could not read.
    """

    folder: str
    count: int = 0
    unread: Notes = field(default_factory=Notes)


async def packed_on(place: Place, host: Host, patterns: Sequence[str]) -> PackedThere:
    """Have a host read what matches some patterns and pack it.

    Raises:
        HostFailed: If it has no stepscope, or that fails.
    """
    paths = await expanded(place, patterns)
    if not paths:
        raise HostFailed(f"nothing there matches {', '.join(map(printable, patterns))}. Check --source")
    if isinstance(place, LocalPlace):
        program = [sys.executable, "-m", "stepscope"] if host.stepscope == "stepscope" else [host.stepscope]
        paths = [str(place.root / path) for path in paths]
    else:
        program = [host.stepscope]
    made = await place.run(["mktemp", "-d", "-t", "stepscope-XXXXXXXX"], _ANSWER_S)
    folder = _last(made.out)  # what a login prints comes before
    if made.status != 0 or not _SCRATCH.fullmatch(folder):
        raise HostFailed(f"it has no room for temporary files ({_last(made.err)})")
    try:
        await _pack(
            place,
            host,
            [*program, "pack", "--json", "--output", f"{folder}/packed", "--", *paths],
            found := PackedThere(folder),
        )
    except BaseException:
        await place.run(["rm", "-rf", "--", folder], _ANSWER_S)
        raise
    return found


async def _pack(place: Place, host: Host, words: Sequence[str], found: PackedThere) -> None:
    try:
        ran = await place.run(words, host.timeout_s)
    except NoAnswer:
        raise HostFailed(
            f"its stepscope took longer than {host.timeout_s:.0f} s to read the recordings. State more as `timeout_s` "
            f"in the hosts file, {_PLAIN}"
        ) from None
    if ran.status in (_STATUS_NOT_FOUND, _STATUS_NOT_RUN):
        raise HostFailed(
            f"there is no command `{host.stepscope}` on it. Install stepscope there, state its path as `stepscope` in "
            f"the hosts file, {_PLAIN}"
        )
    if ran.status != 0 and ("No such command" in ran.err or "no such command" in ran.err.lower()):
        raise HostFailed(f"its stepscope is too old to pack recordings. Install this version there, {_PLAIN}")
    try:
        answer = msgspec.json.decode(ran.out.rstrip().rpartition("\n")[2].encode(), type=_Answer)
    except msgspec.MsgspecError:
        raise HostFailed(f"{_no_answer(ran)}. Run `stepscope pack` there to see why, {_PLAIN}") from None
    found.count = len(answer.packed)
    for one in answer.unread:
        found.unread.add(one.file, f"could not be read there: {printable(one.problem)[:200]}")


def _no_answer(ran: Ran) -> str:
    """Why there is no list of what was packed."""
    if ran.status is None:
        return "a signal ended its stepscope: often it had too little memory"
    if ran.status != 0:
        return f"its stepscope could not read the recordings ({_last(ran.err)})"
    return "its stepscope gave no answer, or one that was cut off"


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return printable(lines[-1])[:300] if lines else "no reason given"
