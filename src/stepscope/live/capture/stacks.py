"""Python stacks of training processes, taken from outside by py-spy, and merged over ranks."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stepscope.errors import StepscopeError
from stepscope.live.capture.child import output_of
from stepscope.selection import describe_numbers, named_numbers

PATIENCE_S = 20.0
"""How long py-spy may take; it reads the symbols of a large process in about a second."""
MOST_BYTES = 8 << 20
MOST_THREADS, MOST_FRAMES = 64, 100
"""Of each process; outer frames and further threads are left out."""
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen", "<string>")
_OURS = ("/stepscope/record/", "/stepscope/live/")
"""Our hooks around functions of a framework are left out of stacks."""
_BACKWARD = "_engine_run_backward"
"""What runs a backward pass in torch."""
_WRAPPERS = ("wrapper", "inner", "decorate_context")
"""What functions of decorators are called in torch."""


class NoStacks(StepscopeError):
    """The stacks of a process cannot be taken; the text is the reason."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """A call: function, file and line (0 if unknown)."""

    function: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """File and line, without the directory."""
        name = self.file.rsplit("/", 1)[-1]
        return f"{name}:{self.line}" if self.line else name

    @property
    def is_of_library(self) -> bool:
        """Whether it belongs to Python or an installed package, not to the user's own code."""
        return any(part in self.file for part in _LIBRARIES)


class Thread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thread: its frames, the innermost first."""

    name: str
    frames: list[Frame]
    is_main: bool = False


async def take_stacks(process: int) -> str:
    """The stacks of a process on this host as text, to be read by `threads_in`. It pauses for some milliseconds.

    Raises:
        NoStacks: If py-spy is missing, or may not read the process.
    """
    tool = _tool()
    try:
        code, out, problems = await output_of([tool, "dump", "--json", "--pid", str(process)], PATIENCE_S)
    except asyncio.TimeoutError as error:
        raise NoStacks(f"py-spy took more than {PATIENCE_S:g} s for process {process}") from error
    if code or len(out) > MOST_BYTES:
        raise NoStacks(_reason(process, problems))
    try:
        return text_of(_threads(json.loads(out), process))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NoStacks(f"what py-spy printed for process {process} is not understood ({error})") from error


def text_of(threads: list[Thread]) -> str:
    """Threads as JSON."""
    return msgspec.json.encode(threads).decode()


def threads_in(text: str) -> list[Thread]:
    """The threads of a process, from `take_stacks` or from what a worker has written about itself.

    Raises:
        NoStacks: If it is neither.
    """
    try:
        return msgspec.json.decode(text, type=list[Thread])
    except msgspec.MsgspecError:
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            return _threads(json.loads(text), 0)
    raise NoStacks("not the stacks of a process")


@dataclass(frozen=True)
class Place:
    """Ranks whose training threads are in the same call of the user's code.

    Args:
        ranks: Sorted.
        function: The call of a library that they are in, or the user's own function.
        place: File and line of the innermost code of the user; empty if there is none.
        frames: The whole stack of the lowest rank, the innermost frame first.
    """

    ranks: list[int]
    function: str
    place: str
    frames: list[Frame]

    @property
    def waits_for_ranks(self) -> bool:
        """Whether they are in a call of torch.distributed, or a backward pass, which contains some."""
        user = next((number for number, frame in enumerate(self.frames) if not frame.is_of_library), len(self.frames))
        inner = self.frames[:user]
        return any("/torch/distributed/" in frame.file or frame.function == _BACKWARD for frame in inner)

    def sentence(self) -> str:
        """Where they are, e.g. `ranks 0-6 in all_reduce at train.py:88`."""
        where = f" at {self.place}" if self.place else ""
        return f"{named_numbers('rank', self.ranks)} in {self.function}{where}"


def merged(stacks: Mapping[int, list[Thread]]) -> list[Place]:
    """Where the training threads of ranks are. Places with few ranks come last: others often wait for those."""
    found: dict[tuple[str, str], Place] = {}
    for rank in sorted(stacks):
        frames = _frames(stacks[rank])
        if not frames:
            continue
        user = next((number for number, frame in enumerate(frames) if not frame.is_of_library), None)
        called = _called(frames[: len(frames) if user is None else user])
        function = called.function if called else frames[0].function
        place = "" if user is None else frames[user].place
        if (function, place) in found:
            found[function, place].ranks.append(rank)
        else:
            found[function, place] = Place([rank], function, place, frames)
    return sorted(found.values(), key=lambda one: (-len(one.ranks), one.ranks))


def elsewhere(places: list[Place]) -> list[int]:
    """The ranks, at most half of them, that are not where all others wait for ranks; none if that is not clear.

    Only for ranks whose calls block on the host.
    """
    waiting = [place for place in places if place.waits_for_ranks]
    others = sorted(rank for place in places if not place.waits_for_ranks for rank in place.ranks)
    return others if len(waiting) == 1 and len(others) <= len(waiting[0].ranks) else []


def sentence(places: list[Place], most: int = 6) -> str:
    """All places in one sentence; the first and the last ones if they are many."""
    shown = places if len(places) <= most else [*places[: most - 2], *places[-2:]]
    texts = [place.sentence() for place in shown]
    if len(places) > most:
        ranks = sum(len(place.ranks) for place in places[most - 2 : -2])
        texts.insert(most - 2, f"{ranks} more ranks in {len(places) - most} other places")
    return "; ".join(texts)


def tree(stacks: Mapping[int, list[Thread]]) -> Iterator[tuple[int, Frame, list[int]]]:
    """The stacks of all ranks as one tree: depth, call and the ranks in it, the outermost call first."""
    paths = {rank: [*reversed(_frames(threads))] for rank, threads in stacks.items()}
    yield from _branches(paths, 0)


def _branches(paths: Mapping[int, list[Frame]], depth: int) -> Iterator[tuple[int, Frame, list[int]]]:
    below: dict[Frame, dict[int, list[Frame]]] = {}
    for rank in sorted(paths):
        if len(paths[rank]) > depth:
            below.setdefault(paths[rank][depth], {})[rank] = paths[rank]
    for frame, ranks in sorted(below.items(), key=lambda one: -len(one[1])):
        yield depth, frame, list(ranks)
        yield from _branches(ranks, depth + 1)


def lines_of_tree(stacks: Mapping[int, list[Thread]]) -> Iterator[str]:
    """The tree as text."""
    for depth, frame, ranks in tree(stacks):
        yield f"{'  ' * depth}{frame.function} ({frame.place})  [{describe_numbers(ranks)}]"


def _called(inner: list[Frame]) -> Frame | None:
    """The call that the user's code is in, of the frames inside it: the innermost public one of an installed package,
    e.g. `all_reduce` and not the wrapper around it."""
    framework = [frame for frame in inner if "-packages/" in frame.file]
    named = [frame for frame in framework if not frame.function.startswith("_") and frame.function not in _WRAPPERS]
    return next(iter([*named, *framework, *inner]), None)


def _frames(threads: list[Thread]) -> list[Frame]:
    """The stack of the training thread without our own hooks, the innermost frame first."""
    main = next((one for one in threads if one.is_main), threads[0] if threads else Thread("", []))
    return [frame for frame in main.frames if not any(part in frame.file for part in _OURS)]


def _threads(dumped: list[dict[str, Any]], process: int) -> list[Thread]:
    """From the JSON of py-spy."""
    found = []
    for one in dumped[:MOST_THREADS]:
        frames = [
            Frame(str(frame["name"]), str(frame["filename"]), int(frame.get("line") or 0))
            for frame in one["frames"][:MOST_FRAMES]
        ]
        own = one.get("os_thread_id")
        is_main = own is not None and own == (process or one.get("pid"))
        found.append(Thread(str(one.get("thread_name") or own or ""), frames, is_main=is_main))
    return found


def _tool() -> str:
    """Where py-spy is."""
    beside = Path(sys.executable or "").with_name("py-spy")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")
    if not found:
        raise NoStacks("py-spy is not installed on this host. Install it with: pip install py-spy")
    return found


def _reason(process: int, problems: str) -> str:
    if "No such file" in problems or "No such process" in problems:
        return f"process {process} has ended"
    if "ermission denied" in problems or "not permitted" in problems:
        return (
            f"py-spy may not read process {process}. Run the proxy as the user that trains, and allow it to trace: "
            "sysctl kernel.yama.ptrace_scope=0, or in a container the capability SYS_PTRACE"
        )
    first = next((line for line in problems.splitlines() if line.strip()), "no output")
    return f"py-spy cannot read process {process}: {first.removeprefix('Error: ')[:200]}"
