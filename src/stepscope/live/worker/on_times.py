"""When each kind of mark was on: decides which ranges are recorded, whatever the hooks report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stepscope.live.kinds import NAMES, Kind
from stepscope.recording_format.marks import BACKWARD, COLLECTIVE, GARBAGE, OPTIMIZER, STEP, MarkKind

ALWAYS = 2**63 - 1
"""The end of a time that lasts."""
Times = tuple[tuple[int, int], ...]
"""When a kind was on, the newest first: from, and until before."""
NEVER: Times = ((ALWAYS, ALWAYS),)
_MOST = 16
"""Times remembered for each kind."""
_ALONG = {
    STEP: frozenset((BACKWARD, OPTIMIZER, GARBAGE)),
    COLLECTIVE: frozenset((BACKWARD,)),  # the gradients of DDP are exchanged within it
}
"""Marks that are also wanted when a kind is on: a digest of steps needs them."""


def marks_of(kinds: Iterable[Kind]) -> frozenset[MarkKind]:
    """The marks that are needed to record these kinds."""
    own = [NAMES[kind].mark for kind in kinds]
    return frozenset(own).union(*(_ALONG.get(mark, frozenset()) for mark in own))


def switched(times: Mapping[MarkKind, Times], on: frozenset[MarkKind], now_ns: int) -> dict[MarkKind, Times]:
    """The times when from now on exactly these kinds are on."""
    result = dict(times)
    for kind in on | times.keys():
        known = times.get(kind, NEVER)
        (from_ns, until_ns), *earlier = known
        is_on = until_ns == ALWAYS != from_ns
        if kind in on and not is_on:
            result[kind] = ((now_ns, ALWAYS), *known[: _MOST - 1])
        elif kind not in on and is_on:
            result[kind] = ((from_ns, now_ns), *earlier)
    return result


def was_on(times: Times, at_ns: int) -> bool:
    """Whether the kind was on at some time: a range that began then is recorded, also if it ends later."""
    return any(from_ns <= at_ns < until_ns for from_ns, until_ns in times)


def was_on_throughout(times: Times, start_ns: int, end_ns: int) -> bool:
    """Whether the kind was on all the time."""
    return any(from_ns <= start_ns and end_ns <= until_ns for from_ns, until_ns in times)
