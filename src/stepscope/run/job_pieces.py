"""A recording with the facts by which it is sorted into a job."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stepscope.paths import natural
from stepscope.sources.registry import family_of
from stepscope.store.recording import Recording


@dataclass(frozen=True)
class Piece:
    """A recording with the data needed to group it; times are ns since the epoch.

    Args:
        recording: The recording.
        rank: Its rank; None if not recorded.
        world_size: Recorded number of ranks; None if not recorded.
        window: Its start and end; None unless both are known.
        written: When its newest file was written; 0 if unknown.
    """

    recording: Recording
    rank: int | None
    world_size: int | None
    window: tuple[int, int] | None
    written: int

    @property
    def size(self) -> int:
        """The number of rows of all tables."""
        return sum(self.recording.rows.values())

    @property
    def directory(self) -> Path:
        return self.recording.path.parent

    @property
    def family(self) -> str:
        """Family of its format, also if it was packed; only recordings of one family can be ranks of one job."""
        return family_of(str(self.recording.facts.get("format") or self.recording.source))

    @property
    def who(self) -> Hashable:
        """A key that two recordings of one rank have in common, as far as known."""
        facts = self.recording.facts
        if self.rank is not None:
            return self.rank
        if facts.get("process") is not None:
            return (facts.get("host"), facts["process"])
        return str(self.recording.path)

    @property
    def is_anonymous(self) -> bool:
        """Whether only its path distinguishes it from others."""
        return isinstance(self.who, str)

    @property
    def start(self) -> int:
        """Its start; far in the past if unknown."""
        return 0 if self.window is None else self.window[0]

    @property
    def end(self) -> int:
        """Its end; far in the past if unknown."""
        return 0 if self.window is None else self.window[1]

    @property
    def order(self) -> tuple[int, list[tuple[int, str]]]:
        """Sort key: by time, then by name in natural order."""
        return (self.start, natural(str(self.recording.path)))


def piece_of(recording: Recording) -> Piece:
    """A recording with the facts by which it is sorted."""
    facts = recording.facts
    written = 0
    for file in recording.files:
        with suppress(OSError):
            written = max(written, file.stat().st_mtime_ns)
    start, end = facts.get("start_ns"), facts.get("end_ns")
    window = None if start is None or end is None else (start, end)
    return Piece(recording, facts.get("rank"), facts.get("world_size"), window, written)
