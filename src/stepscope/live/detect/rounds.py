"""Digests of all ranks put together by step, in order of steps, whatever order they arrive in.

A round is a step, or, where steps are short, several. It is complete when all ranks that take part have sent theirs.
If some is missing, the round is judged without it once a later one is complete that is farther ahead than digests can
be out of order, or after some seconds.

Steps are counted by process, so a restarted rank counts from 1 again, and ranks that were attached to count from
wherever they were. Ranks whose numbers are close belong together; others are aligned with the newest round when they
arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from stepscope.live.detect.limits import Limits
from stepscope.live.detect.own_times import summed
from stepscope.live.messages import Digest

NEAR = 64
"""Steps within which the numbers of ranks belong together."""
TYPICAL = 8
"""Complete rounds from which the usual length of a step is taken."""
GONE_WAITS = 20
"""So many times as long as for a late digest, it is waited for ranks of which nothing arrives."""
MISSED = 8
"""Rounds in a row without a rank, after which nobody waits for it."""


@dataclass
class Round:
    """The digests of the ranks for the same steps.

    Args:
        first_step: Its first step, aligned.
        steps: How many steps are summed in it.
        seen_at_ns: When its first digest arrived, on the clock that `look` is given.
    """

    first_step: int
    steps: int
    seen_at_ns: int
    digests: dict[int, Digest] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    """How many steps of each rank are in."""
    warm: set[int] = field(default_factory=set)
    """Ranks that are not judged, as they have just started."""
    is_single: bool = False
    """Whether it is a single step before steps are summed, which shows the pace of the job only."""
    ages: dict[int, int] = field(default_factory=dict)
    """How many steps each rank had done before."""
    full: int = 0


@dataclass
class _Cohort:
    """Ranks whose step numbers differ from the aligned ones by the same offset."""

    offset: int
    latest: int


@dataclass
class _Track:
    """How far a rank is."""

    cohort: _Cohort
    last: int
    begin: int = 0
    """Its first step."""
    at_ns: int = 0
    """When its last digest arrived."""
    missed: int = 0


class Rounds:
    """Collects digests and gives complete rounds, in order."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tracks: dict[int, _Track] = {}
        self._announced: set[int] = set()
        self._cohorts: list[_Cohort] = []
        self._pending: dict[int, Round] = {}
        self._beyond: set[int] = set()
        self._settled: set[int] = set()
        """Ranks that have done enough steps to be judged."""
        self._next = 0
        self._latest = 0
        self._judged = 0
        self._size = 1
        self._grouped_from = 0
        self._lengths: list[float] | None = []
        self._expected = 0
        self.world = 0
        """Number of ranks that the job has, as far as known."""
        self.now_ns = 0
        self.dropped = 0
        """Digests that came too late or made no sense."""

    def announced(self, rank: int) -> None:
        """A rank has registered: it is another process now, whose steps are counted anew, and will send digests."""
        self.left(rank)
        if len(self._announced) < self._limits.most_ranks:
            self._announced.add(rank)
        self._count()

    def left(self, rank: int) -> None:
        """A rank no longer takes part."""
        self._tracks.pop(rank, None)
        self._settled.discard(rank)
        self._announced.discard(rank)
        self._count()

    def add(self, digest: Digest) -> bool:
        """Take in a digest; return whether rounds may be ready."""
        track = self._tracks.get(digest.rank)
        if track is None and len(self._tracks) >= self._limits.most_ranks:
            self.dropped += 1
            return False
        if track is None or not -self._limits.reorder_steps <= digest.step - track.last <= 10 * NEAR:
            track = self._joined(digest)
        step = digest.step + track.cohort.offset
        number, first = self._number(step)
        known_round = self._pending.get(number)
        if number < self._next or number >= self._next + self._limits.pending_rounds:
            self.dropped += 1
            if number < self._next:
                self._advance(track, digest.step)
                return False
            self._beyond.add(digest.rank)
            return 2 * len(self._beyond) > self._expected
        if known_round is None:
            known_round = self._pending[number] = Round(first, self._steps(number), self.now_ns)
        self._advance(track, digest.step)
        self._latest = max(self._latest, step)
        return self._put(known_round, digest, track)

    def ready(self) -> Iterator[Round]:
        """The rounds that can be judged now, in order."""
        while self._pending:
            number = min(self._pending)
            if not self._is_due(number):
                return
            found = self._pending.pop(number)
            self._next = number + 1
            self._beyond.clear()
            if len(found.digests) < len(self._tracks) + len(self._announced):
                self._miss(found)
            if 2 * len(found.digests) < self._expected:
                self.dropped += len(found.digests)
                continue
            self._judged += 1
            self._learn(found)
            yield found

    def _put(self, found: Round, digest: Digest, track: _Track) -> bool:
        rank = digest.rank
        known, count = found.digests.get(rank), found.counts.get(rank, 0)
        if count >= found.steps:
            self.dropped += 1
            return False
        found.digests[rank] = digest if known is None else summed(known, digest)
        found.counts[rank] = count + 1
        if track.missed:
            track.missed = 0
            self._count()
        track.at_ns = self.now_ns
        found.ages[rank] = min(digest.step - track.begin, found.ages.get(rank, digest.step))
        if count + 1 < found.steps:
            return False
        found.full += 1
        return found.full >= self._expected or found.full == self._expected - _lost(self._expected)

    def _is_due(self, number: int) -> bool:
        found = self._pending[number]
        ahead = number + max(1, ceil(self._limits.reorder_steps / self._size))
        if found.full >= self._expected:
            # at first others may not have registered yet
            complete = len(self._tracks) >= self.world > 0 or self._judged >= NEAR or max(self._pending) >= ahead
            if complete:
                return True
        if 2 * len(self._beyond) > self._expected:
            return True
        enough = self._expected - _lost(self._expected)
        if any(n >= ahead and one.full >= enough for n, one in self._pending.items()):
            return True
        waited_ns = self.now_ns - found.seen_at_ns if found.seen_at_ns > 0 else 0
        if waited_ns < self._limits.late_digest_ns or self._latest < found.first_step + found.steps:
            return False
        # one rank that is far ahead closes no rounds for the others, unless these are gone
        if 2 * len(found.digests) >= self._expected:
            return True
        gone_ns = GONE_WAITS * self._limits.late_digest_ns
        here = sum(self.now_ns - track.at_ns < gone_ns for track in self._tracks.values() if track.missed < MISSED)
        return waited_ns >= gone_ns and 2 * here < self._expected

    def _miss(self, found: Round) -> None:
        """Some ranks have not sent theirs; after some rounds nobody waits for them any more."""
        for rank in [rank for rank in self._announced if rank not in self._tracks]:
            # its first digest is still to come: it has a track from the first round that it misses
            self._tracks[rank] = _Track(_Cohort(0, -(10**18)), -(10**18))
        self._announced.clear()
        for rank, track in self._tracks.items():
            if rank not in found.digests:
                track.missed += 1
        self._count()

    def _count(self) -> None:
        tracked = sum(track.missed < MISSED for track in self._tracks.values())
        self._expected = tracked + sum(rank not in self._tracks for rank in self._announced)

    def _joined(self, digest: Digest) -> _Track:
        """Where a new or restarted rank belongs."""
        due = self._next - self._limits.reorder_steps
        near = [
            one
            for one in self._cohorts
            if abs(one.latest - digest.step) <= NEAR and self._number(digest.step + one.offset)[0] >= due
        ]
        if near:
            cohort = near[-1]
        else:
            offset = self._latest + 1 - digest.step if self._cohorts else 0
            cohort = _Cohort(offset, digest.step)
            if not self._cohorts:
                self._next = max(0, digest.step - NEAR)
            self._cohorts = [*self._cohorts[-7:], cohort]
        begin = 1 if digest.step <= self._limits.reorder_steps + 1 else digest.step
        track = self._tracks[digest.rank] = _Track(cohort, digest.step, begin)
        self._settled.discard(digest.rank)
        self._announced.discard(digest.rank)
        self._count()
        return track

    @staticmethod
    def _advance(track: _Track, step: int) -> None:
        track.last = max(track.last, step)
        track.cohort.latest = max(track.cohort.latest, step)

    def _number(self, step: int) -> tuple[int, int]:
        """The round of a step, and the first step in it."""
        if self._size == 1 or step < self._grouped_from:
            return step, step
        number = (step - self._grouped_from) // self._size
        return self._grouped_from + number, self._grouped_from + number * self._size

    def _steps(self, number: int) -> int:
        return self._size if self._size > 1 and number >= self._grouped_from else 1

    def _learn(self, found: Round) -> None:
        """From how long steps are: how many make a round, and which ranks have just started."""
        lengths = sorted(digest.step_ns / found.counts[rank] for rank, digest in found.digests.items())
        middle, limits = lengths[len(lengths) // 2], self._limits
        for rank, age in found.ages.items():
            if rank not in self._settled and age >= limits.warm_steps and age * middle >= limits.warm_ns:
                self._settled.add(rank)
        # single steps vary more than sums of several, so they do not show the noise of these
        found.is_single = self._size > 1 and found.first_step < self._grouped_from
        found.warm = found.ages.keys() - self._settled
        if self._lengths is None or min(found.ages.values()) < limits.warm_steps:
            return
        self._lengths.append(middle)
        if len(self._lengths) < TYPICAL:
            return
        typical, self._lengths = sorted(self._lengths)[TYPICAL // 2], None
        if typical < self._limits.round_ns / 2:
            # far enough ahead that it is the same whatever order digests arrive in
            far = min(NEAR, self._limits.reorder_steps + ceil(self._limits.late_digest_ns / typical))
            self._grouped_from = max(found.first_step + far, self._latest + 1)
            self._size = min(1000, ceil(self._limits.round_ns / typical))


def _lost(ranks: int) -> int:
    """How many ranks of a round may be missing for it to show that earlier digests are lost."""
    return ranks // 8
