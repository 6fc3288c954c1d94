"""The stored records of a job, of all its ranks in order of time, as messages of their workers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.live.messages import Digest, Hello
from stepscope.live.store.as_digests import RecordedRank
from stepscope.live.store.contents import rank_directories
from stepscope.live.store.tail import Tail
from stepscope.recording_format.light_ranges import Problems

_BLOCK = 1 << 20
"""Read of a rank at a time."""


@dataclass(frozen=True)
class Timed:
    """A message, and when it was sent: when its step ended, on the clock of the rank's host."""

    at_ns: int
    message: Hello | Digest


@dataclass
class _Rank:
    tail: Tail
    records: RecordedRank
    at_ns: int = 0

    def read(self) -> Iterator[Timed]:
        """What was appended since the last time."""
        while True:
            took = False
            for appended in self.tail.look():
                took = True
                yield from self._timed(self.records.feed(appended.lines))
            if not took:
                return

    def finish(self) -> Iterator[Timed]:
        yield from self._timed(self.records.finish())

    def _timed(self, messages: Iterator[Hello | Digest]) -> Iterator[Timed]:
        """Times never go back, also where the clock of a host was set back, so that steps stay in their order."""
        for message in messages:
            at_ns = message.end_at_ns if isinstance(message, Digest) else message.started_at_ns
            self.at_ns = max(self.at_ns, at_ns)
            yield Timed(self.at_ns, message)


@dataclass
class Replay:
    """Reads the records of one job.

    Args:
        directory: Of the job, of one of its ranks, or of all jobs if there is only one.

    Raises:
        StepscopeError: If several jobs have records below it.
    """

    directory: Path
    _ranks: dict[Path, _Rank] = field(default_factory=dict)

    def __post_init__(self) -> None:
        jobs = {rank.parent for rank in rank_directories(self.directory)}
        if len(jobs) > 1:
            names = ", ".join(sorted(job.name for job in jobs)[:5])
            raise StepscopeError(f"{self.directory}: has records of {len(jobs)} jobs ({names}...). Give one of these")

    def stored(self) -> Iterator[Timed]:
        """What is there, in order of time."""
        self._find()
        yield from heapq.merge(*(rank.read() for rank in self._ranks.values()), key=lambda timed: timed.at_ns)

    def appended(self) -> list[Timed]:
        """What was appended since the last time, of old and new ranks, in order of time."""
        self._find()
        return sorted((one for rank in self._ranks.values() for one in rank.read()), key=lambda timed: timed.at_ns)

    def finish(self) -> list[Timed]:
        """The last step of each rank."""
        return sorted((one for rank in self._ranks.values() for one in rank.finish()), key=lambda timed: timed.at_ns)

    @property
    def ranks(self) -> list[int]:
        """The ranks that have records, sorted."""
        return sorted(rank.records.rank for rank in self._ranks.values())

    @property
    def rivals(self) -> dict[int, tuple[int, int]]:
        """Ranks for which two processes have written at the same time, with these."""
        found = {each.records.rank: each.records.rivals for each in self._ranks.values()}
        return {rank: pids for rank, pids in sorted(found.items()) if pids is not None}

    @property
    def unread(self) -> list[int]:
        """Ranks of which some record files could not be opened or read, sorted."""
        return sorted(rank.records.rank for rank in self._ranks.values() if rank.tail.unreadable)

    @property
    def problems(self) -> Problems:
        """What could not be read, of all ranks."""
        total = Problems()
        for rank in self._ranks.values():
            found = rank.records.assembler.problems
            total.bad_lines += found.bad_lines + rank.tail.too_long
            total.unended += found.unended
            total.startless += found.startless
            total.others += found.others
        return total

    def _find(self) -> None:
        for directory in rank_directories(self.directory):
            if directory not in self._ranks:
                self._ranks[directory] = _Rank(Tail(directory, _BLOCK), RecordedRank(directory))
