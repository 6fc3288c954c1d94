"""Compares the ranges that a rank has run with those that its live worker has written, switch by switch."""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ("step", "fp", "dataloader", "checkpoint", "communication")
CLOCKS_NS = 200_000
"""How far the clock of the records may be off that of the notes."""
_NAMES = {"forward": "fp", "dataloader": "dataloader", "save_checkpoint": "checkpoint"}


@dataclass(frozen=True)
class Toggle:
    """A state of the switches: when it was asked for, and when each rank began to follow it (ns since the epoch)."""

    on: frozenset[str]
    asked_ns: int
    followed_ns: dict[int, int]


@dataclass
class Tally:
    """Ranges of one kind, summed over ranks.

    Args:
        on: Run while the kind was on.
        written: Of those, on disk.
        off: Run while it was off.
        stray: Of those, on disk.
        in_flight: Run while it was switched; either is right.
        unknown: On disk, but not run.
    """

    on: int = 0
    written: int = 0
    off: int = 0
    stray: int = 0
    in_flight: int = 0
    unknown: int = 0

    @property
    def is_right(self) -> bool:
        """Whether exactly what should be on disk is."""
        return self.on == self.written and not self.stray and not self.unknown


@dataclass
class _Ran:
    """A range that was run: it began between two times, and ended before another."""

    began_ns: int
    begun_ns: int
    ended_ns: int
    ending_ns: int
    found: bool = field(default=False)


def compared(room: Path, records: Path, ranks: int, toggles: list[Toggle]) -> dict[str, Tally]:
    """What was run and what is on disk, by kind."""
    tallies = {kind: Tally() for kind in KINDS}
    for rank in range(ranks):
        ran = json.loads((room / f"ran-{rank}.json").read_text())["ran"]
        written = written_by(records, rank)
        for kind in KINDS:
            events = list(_steps(ran[kind]) if kind == "step" else (_Ran(*pair, *pair) for pair in ran[kind]))
            _tally(tallies[kind], kind, rank, events, written[kind], toggles)
    return tallies


def written_by(records: Path, rank: int) -> dict[str, list[tuple[int, int]]]:
    """Start and end of each range on disk, by kind."""
    starts: dict[int, tuple[str, int]] = {}
    found: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
    for file in sorted(records.glob(f"*/{rank}/[0-9]*"), key=lambda one: int(one.name)):
        for line in file.read_text().splitlines():
            marker = json.loads(line)
            if marker["SourceKind"] != 0:
                continue
            number, at_ns = marker["Id"], marker["Timestamp"]
            if marker["Flag"] in (2, 16):
                starts[number] = _kind(marker["Name"], marker["Domain"]), at_ns
            elif number in starts:
                kind, start_ns = starts.pop(number)
                found[kind].append((start_ns, at_ns))
    return found


def _kind(name: str, domain: str) -> str:
    if domain == "communication":
        return "communication"
    return "step" if name.startswith("step ") else _NAMES[name]


def _steps(ends: list[tuple[int, int]]) -> Iterator[_Ran]:
    """Steps, which last from one call of the optimizer to the next."""
    for before, after in itertools.pairwise(ends):
        yield _Ran(before[0], before[1], after[0], after[1])


def _tally(
    tally: Tally, kind: str, rank: int, ran: list[_Ran], written: list[tuple[int, int]], toggles: list[Toggle]
) -> None:
    starts = [one.began_ns for one in ran]
    first_ns, last_ns = (starts[0], ran[-1].ending_ns) if ran else (0, 0)
    for start_ns, end_ns in written:
        at = bisect.bisect_right(starts, start_ns + CLOCKS_NS)
        near = [one for one in ran[max(0, at - 3) : at] if not one.found and _is(one, start_ns, end_ns, kind)]
        if near:
            near[0].found = True
        elif first_ns <= start_ns <= last_ns:
            tally.unknown += 1
    for one in ran:
        states = _states(toggles, rank, one.began_ns, one.begun_ns)
        on = {kind in state for state in states}
        if len(on) > 1:
            tally.in_flight += 1
        elif on == {True}:
            tally.on += 1
            tally.written += one.found
        else:
            tally.off += 1
            tally.stray += one.found


def _is(one: _Ran, start_ns: int, end_ns: int, kind: str) -> bool:
    if start_ns < one.began_ns - CLOCKS_NS or end_ns > one.ending_ns + CLOCKS_NS:
        return False
    return kind != "step" or (start_ns <= one.begun_ns + CLOCKS_NS and end_ns >= one.ended_ns - CLOCKS_NS)


def _states(toggles: list[Toggle], rank: int, from_ns: int, to_ns: int) -> list[frozenset[str]]:
    """The states that may have been in force in a rank between two times; before the first, nothing was on."""
    found: list[frozenset[str]] = []
    for number, toggle in enumerate((Toggle(frozenset(), 0, {rank: 0}), *toggles)):
        follower = toggles[number] if number < len(toggles) else None
        until_ns = follower.followed_ns[rank] if follower is not None else to_ns + 1
        if toggle.asked_ns <= to_ns and from_ns <= until_ns:
            found.append(toggle.on)
    return found


def print_tallies(tallies: dict[str, Tally]) -> None:
    """A table."""
    names = ("run while on", "on disk", "run while off", "on disk", "in flight", "unknown")
    print(f"{'kind':14}" + "".join(f"{name:>15}" for name in names))
    for kind, one in tallies.items():
        figures = (one.on, one.written, one.off, one.stray, one.in_flight, one.unknown)
        print(f"{kind:14}" + "".join(f"{figure:15,}" for figure in figures) + ("" if one.is_right else "  WRONG"))
