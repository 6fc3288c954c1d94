"""Whether a job makes no progress, and which ranks are the reason, from the pulses of its workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec

from stepscope.live.detect.layout import Layout
from stepscope.live.detect.limits import Limits
from stepscope.live.messages import Inside, Pulse
from stepscope.live.verdicts import Cause, Verdict
from stepscope.recording_format.marks import CHECKPOINT, COLLECTIVE, COMPILE

KEY = "hang"
SLOW_MARKS = (CHECKPOINT, COMPILE)
"""What may rightly take minutes."""
MAJORITY = 0.6
"""Share of the ranks that do the same, for the others to be the reason."""


@dataclass
class _Seen:
    pulse: Pulse
    at_ns: int


class Hangs:
    """Follows the pulses of all ranks. Times are on the clock of whoever gives them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seen: dict[int, _Seen] = {}
        self._progress_at_ns = 0
        self._longest_ns = 0.0
        self.open: Verdict | None = None

    def left(self, rank: int) -> None:
        """A rank no longer takes part."""
        self._seen.pop(rank, None)

    def pulse(self, pulse: Pulse, now_ns: int) -> None:
        """A worker is alive."""
        known = self._seen.get(pulse.rank)
        if known is None and len(self._seen) >= self._limits.most_ranks:
            return
        if known is None or pulse.step != known.pulse.step:
            self._progress_at_ns = max(self._progress_at_ns, now_ns)
        self._seen[pulse.rank] = _Seen(pulse, now_ns)

    def progress(self, step_ns: float, now_ns: int) -> None:
        """A step has ended that took so long."""
        self._progress_at_ns = max(self._progress_at_ns, now_ns)
        self._longest_ns = max(step_ns, 0.98 * self._longest_ns)

    def look(self, now_ns: int, step: int, layout: Layout) -> Verdict | None:
        """What has changed: a hang that has begun, or is over, or whose culprits are others now."""
        if self._seen and self.open is not None and now_ns - self._progress_at_ns < self._limits.hang_ns / 2:
            over = msgspec.structs.replace(self.open, until_step=self.open.since_step, until_at_ns=self._progress_at_ns)
            self.open = None
            return over
        found = self._found(now_ns, step, layout)
        if found is None or (self.open is not None and found.ranks == self.open.ranks):
            return None
        self.open = found
        return found

    def _found(self, now_ns: int, step: int, layout: Layout) -> Verdict | None:
        if not self._seen:
            return None
        quiet = now_ns - self._progress_at_ns
        limit = max(self._limits.hang_ns, self._limits.hang_steps * self._longest_ns)
        if quiet < limit:
            return None
        silent = sorted(rank for rank, seen in self._seen.items() if now_ns - seen.at_ns >= self._limits.silent_ns)
        pulses = {rank: seen.pulse for rank, seen in self._seen.items() if rank not in set(silent)}
        if not pulses or len(silent) > len(self._seen) / 2:
            return None
        # a rank that is not idle works on something long, such as an evaluation
        active = sorted(rank for rank, pulse in pulses.items() if pulse.idle_ns < min(limit / 2, quiet / 2))
        if not self._longest_ns or active or any(_is_slow(pulse) for pulse in pulses.values()):
            limit = self._limits.long_hang_ns
        if quiet < limit or len(active) > len(pulses) / 2:
            return None
        culprits, group, sureness = (silent, "", 0.9) if silent else _culprits(pulses, active, layout)
        idle = [pulses[rank].idle_ns for rank in culprits if rank in pulses]
        waiting = sum(_call(pulse) is not None for pulse in pulses.values())
        return Verdict(
            key=KEY,
            cause=Cause.HANG,
            ranks=culprits,
            since_step=max(step, *(pulse.step for pulse in pulses.values())) + 1,
            since_at_ns=self._progress_at_ns,
            ratio=None,
            cost_ns=None,
            sureness=sureness,
            group=group,
            evidence={
                "quiet_ns": float(quiet),
                "idle_ns": float(max(idle, default=quiet)),
                "waiting_ranks": float(waiting),
                "silent_ranks": float(len(silent)),
            },
        )


def _culprits(pulses: dict[int, Pulse], active: list[int], layout: Layout) -> tuple[list[int], str, float]:
    """The ranks for which the others wait, the group in which they do, and how sure that is."""
    calls = {rank: call for rank, pulse in pulses.items() if (call := _call(pulse)) is not None}
    free = sorted(pulses.keys() - calls.keys())
    groups = Counter(call.group for call in calls.values())
    for group, _ in sorted(groups.items(), key=lambda item: (-item[1], item[0])):
        members = [rank for rank in layout.members(group) or sorted(pulses) if rank in pulses]
        absent = [rank for rank in members if rank in free]
        if absent and len(absent) < len(members):
            return absent, group, 0.95
    for group, _ in sorted(groups.items(), key=lambda item: (-item[1], item[0])):
        before = {rank: call.calls_before for rank, call in calls.items() if call.group == group}
        known = {rank: count for rank, count in before.items() if count is not None}
        behind = sorted(rank for rank, count in known.items() if count < max(known.values()))
        if behind and len(behind) < len(known):
            return behind, group, 0.9
    if active:
        return active, "", 0.8
    furthest = max(pulse.step for pulse in pulses.values())
    behind = sorted(rank for rank, pulse in pulses.items() if pulse.step < furthest)
    if behind and len(behind) <= len(pulses) / 2:
        return behind, "", 0.85
    places = {rank: pulse.inside[-1].mark if pulse.inside else "" for rank, pulse in pulses.items()}
    usual, count = max(sorted(Counter(places.values()).items()), key=lambda item: item[1])
    others = sorted(rank for rank, place in places.items() if place != usual)
    if others and count >= MAJORITY * len(places):
        return others, "", 0.75
    return [], groups.most_common(1)[0][0] if groups else "", 0.7


def _call(pulse: Pulse) -> Inside | None:
    """The call between ranks that a rank is in."""
    return next((inside for inside in reversed(pulse.inside) if inside.mark == COLLECTIVE), None)


def _is_slow(pulse: Pulse) -> bool:
    return any(inside.mark in SLOW_MARKS for inside in pulse.inside)
