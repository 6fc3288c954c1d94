"""Processes as `/proc` shows them: whose they are, what they run, and which of them train."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stepscope.errors import StepscopeError

PROC = Path("/proc")
_LIBRARY = re.compile(r"/libpython(3\.\d+)[a-z]*\.so|/lib-dynload/|\.cpython-3(\d+)[a-z]*-|/python(3\.\d+)[a-z]*$")
_FRAMEWORKS = re.compile(r"/(libtorch_python\.so|torch/_C\.|mindspore/_c_expression\.)")
_RANK_VARIABLES = ("RANK", "RANK_ID", "LOCAL_RANK")
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "msrun", "deepspeed", "accelerate")


@dataclass(frozen=True)
class Process:
    """What `/proc` shows of a process.

    Args:
        pid: Its number.
        parent: Its parent's number.
        users: Real, effective and saved user.
        tracer: The process that traces it, 0 for none.
        state: One letter, e.g. `S` (sleeping), `Z` (ended).
        command: Its command line.
    """

    pid: int
    parent: int
    users: tuple[int, ...]
    tracer: int
    state: str
    command: tuple[str, ...]

    @property
    def is_launcher(self) -> bool:
        """Whether it is a well-known program that starts training processes."""
        return (
            any(name in word for word in self.command[:4] for name in _LAUNCHERS) and "RANK" not in self.environment()
        )

    def shown(self) -> str:
        """Number and command for people."""
        command = " ".join(self.command)
        return f"{self.pid} ({command if len(command) <= 60 else command[:57] + '...'})"

    def environment(self) -> dict[str, str]:
        """The variables that it was started with; empty if they may not be read."""
        try:
            content = (PROC / str(self.pid) / "environ").read_bytes()
        except OSError:
            return {}
        pairs = (entry.partition(b"=") for entry in content.split(b"\0") if entry)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}

    def rank(self) -> int | None:
        """Its rank as stated by a launcher."""
        text = self.environment().get("RANK", self.environment().get("RANK_ID", ""))
        return int(text) if text.isdecimal() else None

    def mapped(self) -> str:
        """Its memory map, whose lines end with the files it has loaded; empty if it may not be read."""
        try:
            return (PROC / str(self.pid) / "maps").read_text(errors="replace")
        except OSError:
            return ""

    def python(self) -> tuple[int, int] | None:
        """Version of the Python that it runs; (0, 0) if it is Python of unknown version, None if it is no Python."""
        found = None
        lines = self.mapped().splitlines()
        files = {line.rpartition(" ")[2] for line in lines}
        for file in [*sorted(files), self.executable()]:
            match = _LIBRARY.search(file)
            if match is None:
                continue
            text = match[1] or match[3] or (f"3.{match[2]}" if match[2] else "")
            if text:
                return 3, int(text.partition(".")[2])
            found = 0, 0
        return found

    def executable(self) -> str:
        """The program that it runs; empty if unknown."""
        try:
            return str((PROC / str(self.pid) / "exe").readlink())
        except OSError:
            return ""

    def has_framework(self) -> bool:
        """Whether it has loaded torch or mindspore."""
        return _FRAMEWORKS.search(self.mapped()) is not None

    def namespace(self, name: str) -> str:
        """Its namespace of mounts (`mnt`) or processes (`pid`)."""
        try:
            return str((PROC / str(self.pid) / "ns" / name).readlink())
        except OSError:
            return ""


def look(pid: int) -> Process:
    """A process.

    Raises:
        StepscopeError: If there is none of this number.
    """
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
        command = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError as error:
        raise StepscopeError(
            f"no process with PID {pid} runs here. List them: ps -ef | grep python. If it runs in a container, run "
            "stepscope inside the container"
        ) from error
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Process(
        pid,
        int(fields.get("PPid", "0")),
        tuple(int(word) for word in fields.get("Uid", "").split()[:3]),
        int(fields.get("TracerPid", "0")),
        fields.get("State", "?").strip()[:1],
        tuple(os.fsdecode(word) for word in command.split(b"\0") if word),
    )


def below(pid: int) -> list[Process]:
    """All descendants of a process, parents first."""
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [pid]
    while waiting:
        mine = sorted(children.get(waiting.pop(0), []), key=lambda one: one.pid)
        found += mine
        waiting += [one.pid for one in mine]
    return found


def training_below(pid: int) -> list[Process]:
    """The descendants that train, by rank: those with a framework, but no workers of data loaders or other helpers,
    which have the rank of their parent."""
    candidates = {one.pid: one for one in below(pid) if one.state != "Z" and one.has_framework()}
    identities = {one.pid: _identity(one) for one in candidates.values()}
    helpers = set()
    for one in candidates.values():
        parent = candidates.get(one.parent)
        if parent is not None and (parent.pid in helpers or identities[parent.pid] == identities[one.pid]):
            helpers.add(one.pid)
    chosen = [one for one in candidates.values() if one.pid not in helpers and not one.is_launcher]
    ranked = [one for one in chosen if one.rank() is not None]
    return sorted(ranked or chosen, key=lambda one: (one.rank() or 0, one.pid))


def _identity(process: Process) -> tuple[str | None, ...]:
    environment = process.environment()
    return tuple(environment.get(name) for name in _RANK_VARIABLES)


def _all() -> Iterator[Process]:
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            try:
                yield look(int(entry.name))
            except StepscopeError:
                continue  # it has ended meanwhile
