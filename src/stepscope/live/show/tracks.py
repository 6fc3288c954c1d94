"""Ranges on tracks of a viewer: on one track, ranges must follow one another or lie within one another."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_KEPT = 4096
"""Ranges at the end of a track that are remembered; one that began before them gets another track."""


@dataclass
class _Lane:
    """The outermost ranges of a track so far, oldest first, and until when it is known."""

    outer: list[tuple[int, int]] = field(default_factory=list)
    end_ns: int = -(2**63)
    bottom_ns: int = -(2**63)
    """A range that began before this would meet what is remembered no more."""

    def take(self, start_ns: int, end_ns: int) -> bool:
        """Add a range if it fits; ranges come in the order of their ends, otherwise they do not fit."""
        if end_ns < self.end_ns or start_ns < self.bottom_ns:
            return False
        place = len(self.outer)
        while place and self.outer[place - 1][0] >= start_ns:
            place -= 1
        if place and self.outer[place - 1][1] > start_ns:
            return False
        del self.outer[place:]
        self.outer.append((start_ns, end_ns))
        self.end_ns = end_ns
        if len(self.outer) > MOST_KEPT:
            half = MOST_KEPT // 2
            self.bottom_ns = self.outer[half - 1][1]
            del self.outer[:half]
        return True


class Lanes:
    """As many tracks for one kind of range as it needs, so that none is dropped."""

    def __init__(self) -> None:
        self._lanes: list[_Lane] = []

    def place(self, start_ns: int, end_ns: int) -> int:
        """Number of the track for a range, from 0.

        Ranges should come in the order of their ends; those that do not are correct, but need more tracks.

        Examples:
            >>> lanes = Lanes()
            >>> [lanes.place(*each) for each in ((0, 10), (2, 12), (12, 15), (0, 20))]
            [0, 1, 0, 0]
        """
        for number, lane in enumerate(self._lanes):
            if lane.take(start_ns, end_ns):
                return number
        lane = _Lane()
        lane.take(start_ns, end_ns)
        self._lanes.append(lane)
        return len(self._lanes) - 1
