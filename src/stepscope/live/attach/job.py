"""Attaching to one or more processes of a job at once, and leading a recording of the same steps in all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from stepscope.limits import limit
from stepscope.live.attach.injection import Method
from stepscope.live.attach.permission import CannotAttach
from stepscope.live.attach.session import RECORDING, WORKER, Session, Told, wait_for
from stepscope.recording_format.marks import STEP
from stepscope.recording_format.rows import MARKS

Report = Callable[[str], None]
"""Called with sentences about the progress."""
_LOOK_S = 0.25
_DEATH_S = 2.0


@dataclass(frozen=True)
class Patience:
    """How long things may take."""

    wait_s: float = limit(300.0, "s", "chosen by us")
    """Without a step for so long, the recording ends."""
    slow_s: float = limit(3.0, "s", "chosen by us")
    """After this time, report what the process is waiting for."""
    removal_s: float = limit(60.0, "s", "chosen by us")
    """How long to wait for a process to remove the recorder."""
    ahead_s: float = limit(1.5, "s", "chosen by us: several times as long as messages take")
    """Several ranks are given their first step this early."""
    apart_ratio: float = limit(0.35, "of a step", "chosen by us: at a half, the nearest step is any")
    """If ranks end their steps further apart, numbers of steps may be wrong."""


PATIENCE = Patience()


@dataclass
class Outcome:
    """What came of one process.

    Args:
        pid: The process.
        rank: Its rank, if known.
        directory: Its recording; empty if there is none.
        first: Number of the first recorded step.
        steps: How many steps were recorded.
        problem: What went wrong; empty if nothing did.
    """

    pid: int
    rank: int | None = None
    directory: str = ""
    first: int = 0
    steps: int = 0
    problem: str = ""


@dataclass
class _Member:
    """One process of the job, as far as it has come."""

    session: Session
    outcome: Outcome
    ends: dict[int, int] = field(default_factory=dict)
    """When steps ended, by number; ns of a clock that all processes of the host share."""
    is_ready: bool = False
    begun: Told | None = None
    is_done: bool = False
    is_left: bool = False
    last_s: float = field(default_factory=time.monotonic)
    """When the last step ended here."""

    @property
    def name(self) -> str:
        """For people."""
        return str(self.session.pid) if self.outcome.rank is None else f"{self.session.pid} (rank {self.outcome.rank})"


class Job:
    """Some processes of this host.

    Args:
        pids: Their numbers.
        report: Takes sentences about the progress.
        method: How to attach.
        patience: How long to wait.
    """

    def __init__(
        self, pids: Sequence[int], report: Report, method: Method = "auto", patience: Patience = PATIENCE
    ) -> None:
        self._pids = pids
        self._report = report
        self._method = method
        self._patience = patience
        self._members: dict[int, _Member] = {}
        self._stack = ExitStack()

    def record(self, steps: int, options: dict[str, Any]) -> list[Outcome]:
        """Record some steps in each, and leave no trace there. Ctrl-C ends the recording early.

        Args:
            steps: How many.
            options: Of `stepscope.Profiler`.

        Raises:
            CannotAttach: If one of the processes cannot be attached to; the others are left as they were.
        """
        with self._stack:
            try:
                self._enter(RECORDING, options=options)
                self._begin(steps)
                self._follow(steps)
            except KeyboardInterrupt:
                self._report("ending the recording (Ctrl-C again: do not wait for the process)")
            self._finish()
        return [member.outcome for member in self._members.values()]

    def work(self, **order: Any) -> dict[int, Told]:
        """Start or stop a live worker in each; returns what each process answers.

        Raises:
            CannotAttach: If one of the processes cannot be attached to, or cannot do it.
        """
        aligns = order["what"] == "live" and len(self._pids) > 1
        with self._stack:
            self._enter(WORKER, **order, aligns=aligns)
            if aligns:
                self._align()
            answers = {pid: member.begun for pid, member in self._members.items() if member.begun is not None}
            self._finish()
        return answers

    def _enter(self, module: str, **order: Any) -> None:
        for pid in self._pids:
            session = self._stack.enter_context(Session(pid))
            self._members[pid] = _Member(session, Outcome(pid))
        for member in self._members.values():
            self._report(f"attaching to {member.session.process.shown()}")
            member.session.attach(self._method)
        waiting = list(self._members.values())
        began_s, said = time.monotonic(), False
        while waiting:
            for member in list(waiting):
                hello = member.session.connect(_LOOK_S / len(waiting))
                if hello is not None:
                    major, minor, *_ = hello["version"]
                    member.session.work(module, (major, minor), **order)
                    waiting.remove(member)
            waited_s = time.monotonic() - began_s
            if waiting and waited_s > self._patience.slow_s and not said:
                said = True
                for member in waiting:
                    self._report(_slow(member))
            if waiting and waited_s > self._patience.wait_s:
                raise CannotAttach(f"{waiting[0].name}: {_slow(waiting[0])}. Gave up after {waited_s:.0f} s")
        while not all(member.is_ready for member in self._members.values()):
            self._look()

    def _begin(self, steps: int) -> None:
        """Say which steps to record: the next ones, or of several ranks the same ones."""
        members = list(self._members.values())
        if len(members) == 1:
            members[0].session.send("begin", first=None, shift=0, steps=steps)
            return
        while any(len(member.ends) < 2 for member in members):
            self._look(watch_steps=True)
        shifts, length_ns = self._shifts(members)
        ahead = 2 + math.ceil(self._patience.ahead_s * 1e9 / length_ns)
        first = max(max(member.ends) + shift for member, shift in zip(members, shifts, strict=True)) + ahead
        for member, shift in zip(members, shifts, strict=True):
            member.session.send("begin", first=first, shift=shift, steps=steps)
            member.begun = {"shift": shift, "steps": steps}

    def _align(self) -> None:
        """Give steps of live workers the same numbers in all ranks."""
        members, until_s = list(self._members.values()), time.monotonic() + self._patience.wait_s
        while any(len(member.ends) < 2 for member in members):
            self._look()
            if time.monotonic() > until_s or not all(member.session.is_open for member in members):
                self._report("warning: not all ranks make steps, so numbers of steps differ between ranks")
                return
        shifts, _ = self._shifts(members)
        for member, shift in zip(members, shifts, strict=True):
            member.session.send("shift", shift=shift - min(shifts))

    def _shifts(self, members: Sequence[_Member]) -> tuple[list[int], float]:
        """What to add to the numbers of steps of each rank, and the length of a step, ns."""
        shifts, length_ns, apart = aligned([member.ends for member in members])
        if apart > self._patience.apart_ratio:
            self._report(
                f"warning: the ranks end their steps {apart:.0%} of a step apart, so numbers of steps may differ by "
                "one between ranks"
            )
        return shifts, length_ns

    def _follow(self, steps: int) -> None:
        """Wait until all have recorded their steps."""
        said_s, before = -math.inf, 0
        while not all(member.is_done or not member.session.is_open for member in self._members.values()):
            self._look(watch_steps=True)
            first = min((member.outcome.first for member in self._members.values()), default=0)
            if not first:
                continue
            number = min(max(member.ends, default=0) for member in self._members.values()) - first + 2
            if before < number <= steps and number > 0 and time.monotonic() - said_s > self._patience.slow_s:
                said_s, before = time.monotonic(), number
                self._report(f"recording step {number} of {steps}")

    def _finish(self) -> None:
        """Wait until all processes are as they were."""
        until_s = time.monotonic() + self._patience.removal_s
        for member in self._members.values():
            if member.session.is_open and not member.is_done:
                member.session.send("end")
        try:
            while self._open():
                self._look()
                if time.monotonic() > until_s:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            names = ", ".join(member.name for member in self._members.values() if member.session.is_open)
            self._report(f"{names}: the recorder removes itself as soon as the main thread runs Python again")
        for member in self._members.values():
            if not member.is_left and not member.session.is_open and _ends(member.session):
                member.outcome.problem = member.outcome.problem or "the process has ended"
                if not member.is_done and member.outcome.first:
                    member.outcome.steps = _written(Path(member.outcome.directory))

    def _open(self) -> bool:
        return any(member.session.is_open for member in self._members.values())

    def _look(self, *, watch_steps: bool = False) -> None:
        """Take what the processes say."""
        for session, told in wait_for({pid: one.session for pid, one in self._members.items()}, _LOOK_S):
            self._take(self._members[session.pid], told)
        for member in self._members.values():
            member.session.look()
            if not member.session.is_open and not member.is_ready:
                raise CannotAttach(f"{member.name}: {member.outcome.problem or 'the process has ended'}")
            quiet_s = time.monotonic() - member.last_s
            if watch_steps and member.session.is_open and quiet_s > self._patience.wait_s:
                self._no_step(member, quiet_s)

    def _take(self, member: _Member, told: Told) -> None:
        outcome, kind = member.outcome, told["type"]
        if kind == "ready":
            member.is_ready, outcome.rank, member.last_s = True, told["rank"], time.monotonic()
            size = f" of {told['world_size']}" if told.get("world_size") else ""
            who = f"rank {outcome.rank or 0}{size}, " if size or outcome.rank is not None else ""
            self._report(
                f"attached to {member.session.pid} ({who}{told['framework']}; its main thread stood still for "
                f"{told['stopped_ms']:.0f} ms); waiting for a step to begin"
            )
        elif kind in ("live", "stopped"):
            member.is_ready, member.begun = True, told
        elif kind == "steps":
            member.last_s = time.monotonic()
            member.ends.update((int(number), int(now_ns)) for number, now_ns in told["ends"])
        elif kind == "begun":
            outcome.first, outcome.directory = told["first"], told["directory"]
            shift = (member.begun or {}).get("shift", 0)
            member.ends = {number + shift: now_ns for number, now_ns in member.ends.items()}
        elif kind == "late" and member.begun is not None:
            member.session.send("begin", first=None, shift=member.begun["shift"], steps=member.begun["steps"])
        elif kind == "waiting":
            self._report(
                f"{member.name}: the main thread is busy ({told['where']}); going on when it runs Python again"
            )
        elif kind == "log":
            self._report(f"{member.name}: {str(told['text']).removeprefix('Profiler: ')}")
        elif kind == "error":
            outcome.problem = _explained(told)
        elif kind == "done":
            member.is_done = True
            outcome.directory, outcome.steps, outcome.first = told["directory"], told["steps"], told["first"]
            if told["failed"]:
                outcome.problem = "the recorder failed; see above"
        elif kind == "place":
            outcome.problem += f"; its main thread is at {told['where']}"
        elif kind == "left":
            member.is_left = True

    def _no_step(self, member: _Member, quiet_s: float) -> None:
        """A process makes no step: find out what it does, and end."""
        what = f"no step ended for {quiet_s:.0f} s" if member.ends else f"no step was seen within {quiet_s:.0f} s"
        member.outcome.problem, member.last_s = what, math.inf
        member.session.send("where")
        until_s = time.monotonic() + 2
        while member.session.is_open and time.monotonic() < until_s and "main thread" not in member.outcome.problem:
            self._look()
        member.session.send("end")


def aligned(ends: Sequence[dict[int, int]]) -> tuple[list[int], float, float]:
    """How to move the numbers of the steps of several ranks so that the same step has the same number.

    All processes of a host share the clock of these times, and ranks that train together end a step at about the same
    time.

    Args:
        ends: When steps ended, by number, of each rank; ns. At least two of each.

    Returns:
        What to add to the numbers of each rank, the usual length of a step (ns), and how far the ranks end the same
        step apart, in lengths of a step.

    Examples:
        >>> aligned([{1: 1000, 2: 2000, 3: 3000}, {8: 2050, 9: 3050}])
        ([0, -6], 1000, 0.05)
    """
    reference = ends[0]
    length_ns = max(median(_lengths(one) or [1]) for one in ends)
    shifts, apart = [], 0.0
    for one in ends:
        offsets = []
        for number, now_ns in one.items():
            nearest = min(reference, key=lambda other: abs(reference[other] - now_ns))
            offsets.append((abs(reference[nearest] - now_ns), nearest - number))
        nearest_half = sorted(offsets)[: max(len(offsets) // 2, 1)]
        distance_ns = median(distance for distance, _ in nearest_half)
        votes = [shift for _, shift in nearest_half]
        shifts.append(max(set(votes), key=votes.count))
        apart = max(apart, distance_ns / length_ns)
    return shifts, length_ns, apart


def _ends(session: Session) -> bool:
    """Whether a process that has closed its connection is gone, or about to be: a killed one closes its files first."""
    until_s = time.monotonic() + _DEATH_S
    while not session.has_ended and time.monotonic() < until_s:
        time.sleep(_LOOK_S / 10)
    return session.has_ended


def _written(recording: Path) -> int:
    """Steps on disk: a process that is killed loses the last second."""
    try:
        lines = (recording / MARKS.name).read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return sum(line.startswith(f"{STEP},") for line in lines)


def _lengths(ends: dict[int, int]) -> list[int]:
    numbers = sorted(ends)
    return [ends[b] - ends[a] for a, b in pairwise(numbers) if b == a + 1]


def _slow(member: _Member) -> str:
    place = member.session.injected.place
    where = f"its main thread is in compiled code ({place})" if place else "its main thread runs no Python now"
    return f"{member.name}: {where}; attaching will complete as soon as that returns"


def _explained(told: Told) -> str:
    """The error of a process, with what to install there."""
    text, module = str(told["text"]), str(told.get("module", "")).partition(".")[0]
    if module == "stepscope":
        return f"its user cannot read the files of stepscope ({text}). Make them readable, or install stepscope there"
    if text.startswith("ModuleNotFoundError") and module:
        return f"its Python lacks {module}. Install it there: pip install {module}"
    kind, _, rest = text.partition(": ")
    return rest if kind in ("StepscopeError", "RuntimeError") and rest else text
