"""The detector of a running job: digests and pulses in, verdicts out. It reads no clock and no files."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from math import exp, log

from stepscope.live.detect.accuse import Accuser, Spent
from stepscope.live.detect.comparison import Comparison
from stepscope.live.detect.hangs import Hangs
from stepscope.live.detect.layout import Layout
from stepscope.live.detect.lengths import Lengths
from stepscope.live.detect.limits import LIMITS, Limits
from stepscope.live.detect.links import transfers
from stepscope.live.detect.own_times import CALLS, DEVICE, FORWARD, MEASURES, Own, is_sane, own_of
from stepscope.live.detect.rest import Rest
from stepscope.live.detect.rotating import Rotating
from stepscope.live.detect.rounds import Round, Rounds
from stepscope.live.detect.slow_job import SlowJob
from stepscope.live.detect.slow_links import SlowLinks
from stepscope.live.detect.statistics import median
from stepscope.live.messages import Digest, Hello, Pulse
from stepscope.live.verdicts import Cause, Verdict

REMEMBERED = 4096
"""Rounds whose steps and times are remembered, for `since`."""
TYPICAL = 33
"""Rounds whose median is the usual length of a step."""
FORWARD_RATIO = 0.4
"""Share of the work of a step that forward passes are, about: backward passes take twice as long."""
SWITCHED_ROUNDS = 32
"""Rounds after which what another measure of own time has shown no longer counts."""
UNDECIDED_ROUNDS = 256
"""The same, if the present measure shows it too, but is not sure yet."""


class Detector:
    """Finds out who is slow in a running job, and when that is over.

    Args:
        limits: When it accuses.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.layout = Layout()
        self._rounds = Rounds(limits)
        self._hangs = Hangs(limits)
        self._pids: dict[int, tuple[int, int]] = {}
        self._lengths: dict[str, Lengths] = {name: Lengths() for name in MEASURES}
        self._compute: dict[str, Accuser] = {}
        for name in MEASURES:
            self._compute[name] = Accuser(Cause.COMPUTE, Cause.HOST, Comparison(limits.compute, limits), limits)
            self._compute[name].comparison.normal.place_of = self.layout.hosts.get
        self._compute[FORWARD].hides_waits = True
        self._compute[FORWARD].part_ratio = self._compute[DEVICE].part_ratio = FORWARD_RATIO
        for name, accuser in self._compute.items():
            accuser.others = [other for each, other in self._compute.items() if each != name]
        self._rests = {name: Rest(limits.compute, each.part_ratio) for name, each in self._compute.items()}
        self._measured_at = dict.fromkeys(MEASURES, -(10**9))
        data, checkpoint = Comparison[int](limits.data, limits), Comparison[int](limits.checkpoint, limits)
        self._data = Accuser(Cause.DATA, Cause.DATA, data, limits, is_share=True)
        self._checkpoint = Accuser(Cause.CHECKPOINT, Cause.CHECKPOINT, checkpoint, limits)
        self._rotating = {name: Rotating(self._compute[name].comparison, limits) for name in MEASURES}
        self._links = SlowLinks(limits)
        self._job = SlowJob(limits)
        self._starts: dict[int, tuple[int, int]] = {}
        self._steps: deque[float] = deque(maxlen=TYPICAL)
        self._number = 0
        self._step = 0
        self._now_ns = 0
        self._open: dict[str, Verdict] = {}
        self._news: dict[str, Verdict] = {}
        self._calls_known = False
        self.malformed = 0
        """Digests that cannot be true and were left out."""

    @property
    def open(self) -> list[Verdict]:
        """What slows down the job now, by key."""
        return [self._open[key] for key in sorted(self._open)]

    @property
    def wants_communication(self) -> bool:
        """Whether the communication switch, which is off, would show who is to blame."""
        if self._calls_known:
            return False
        of_job = any(one.cause is Cause.JOB for one in self._open.values())
        hidden = any(r.group_hides and r.is_published for a in self._compute.values() for r in a.records.values())
        return of_job or hidden

    @property
    def dropped(self) -> int:
        """Digests that came too late, twice, or made no sense."""
        return self._rounds.dropped + self.malformed

    def hello(self, hello: Hello) -> None:
        """A rank registers, or its groups have changed."""
        if not 0 <= hello.rank < 2**31 or (hello.rank not in self._pids and len(self._pids) >= self.limits.most_ranks):
            return
        process = hello.pid, hello.started_at_ns
        if self._pids.get(hello.rank) != process:
            self._forget(hello.rank)
            self._rounds.announced(hello.rank)
        self._pids[hello.rank] = process
        self.layout.hello(hello)
        self._rounds.world = self.layout.world

    def left(self, rank: int, now_ns: int) -> None:
        """A rank no longer takes part."""
        self._see(now_ns)
        self._pids.pop(rank, None)
        self._rounds.left(rank)
        self._hangs.left(rank)
        self.layout.left(rank)
        self._forget(rank)

    def digest(self, digest: Digest) -> None:
        """A rank has ended a step."""
        if not is_sane(digest):
            self.malformed += 1
            return
        if self._rounds.add(digest):
            self._judge_ready()

    def pulse(self, pulse: Pulse, now_ns: int) -> None:
        """A worker is alive."""
        self._see(now_ns)
        self._hangs.pulse(pulse, now_ns)

    def look(self, now_ns: int) -> list[Verdict]:
        """Verdicts that are new, have changed, or are over since the last look; of one key only its newest state. To be
        called about once a second.

        Args:
            now_ns: On the clock of the caller.
        """
        self._see(now_ns)
        self._judge_ready()
        found = self._hangs.look(now_ns, self._step, self.layout)
        if found is not None:
            self._tell([found])
        news, self._news = list(self._news.values()), {}
        return news

    def _see(self, now_ns: int) -> None:
        self._now_ns = max(self._now_ns, now_ns)
        self._rounds.now_ns = self._now_ns

    def _judge_ready(self) -> None:
        for one in self._rounds.ready():
            self._judge(one)

    def _judge(self, one: Round) -> None:
        """Judge a round: all kinds of work, links, and the job."""
        self._number += 1
        at_ns = one.seen_at_ns or round(median([digest.end_at_ns for digest in one.digests.values()]))
        self._step = one.first_step
        self._starts[self._number] = one.first_step, at_ns
        if len(self._starts) > REMEMBERED:
            del self._starts[next(iter(self._starts))]
        owns = {
            rank: own_of(digest, one.counts[rank])
            for rank, digest in one.digests.items()
            if one.is_single or rank not in one.warm
        }
        self._hangs.progress(median([d.step_ns / one.counts[r] for r, d in one.digests.items()]), self._now_ns)
        if not owns:
            return
        self._calls_known = sum(own.knows_calls for own in owns.values()) > len(owns) / 2
        self._steps.append(median([own.step for own in owns.values()]))
        step_ns = median(list(self._steps))
        round_ns = step_ns * one.steps
        if one.is_single:
            self._judge_job(owns, round_ns, at_ns)
            return
        programs = {rank: self.layout.program(rank) for rank in owns}
        busy = {rank: own.busy for rank, own in owns.items() if own.busy is not None}
        self._tell(self._judge_data(owns, busy, step_ns, round_ns, at_ns))
        self._tell(self._judge_checkpoints(owns, busy, step_ns, round_ns, at_ns))
        self._tell(self._judge_compute(owns, busy, programs, step_ns, round_ns, at_ns))
        found = transfers({rank: (one.digests[rank], own.steps) for rank, own in owns.items()}, self.layout)
        if found:
            late = self._late_ranks()
            self._tell(
                self._links.judge(self._number, found, self.layout, late, step_ns, round_ns, self._starts, at_ns)
            )
        self._judge_job(owns, round_ns, at_ns)

    def _judge_data(
        self, owns: Mapping[int, Own], busy: Mapping[int, float], step_ns: float, round_ns: float, at_ns: int
    ) -> list[Verdict]:
        times = {rank: own.data for rank, own in owns.items() if own.data is not None}
        if not times:
            return []
        values = {rank: min(time / step_ns, 5.0) for rank, time in times.items()}
        same: Mapping[int, Hashable] = dict.fromkeys(values, 0)
        changed = self._data.comparison.update(self._number, values, same, round_ns, sure=True)
        spent = Spent(times, busy, step_ns, at_ns, now_ns=self._steps[-1])
        return self._data.judge(self._number, changed, spent, self.layout, self._starts)

    def _judge_checkpoints(
        self, owns: Mapping[int, Own], busy: Mapping[int, float], step_ns: float, round_ns: float, at_ns: int
    ) -> list[Verdict]:
        times = {rank: own.checkpoint for rank, own in owns.items() if own.checkpoint and own.checkpoint > 1000}
        if not times:
            return []
        values = {rank: log(time) for rank, time in times.items()}
        same: Mapping[int, Hashable] = dict.fromkeys(values, 0)
        long_ns = max(round_ns, self.limits.least_ns / self.limits.least_rounds)
        changed = self._checkpoint.comparison.update(self._number, values, same, long_ns, sure=len(values) > 1)
        spent = Spent(times, busy, step_ns, at_ns, now_ns=self._steps[-1])
        return self._checkpoint.judge(self._number, changed, spent, self.layout, self._starts)

    def _judge_compute(
        self,
        owns: Mapping[int, Own],
        busy: Mapping[int, float],
        programs: Mapping[int, int],
        step_ns: float,
        round_ns: float,
        at_ns: int,
    ) -> list[Verdict]:
        by_measure = {
            name: {rank: own.own for rank, own in owns.items() if own.measure == name and own.own} for name in MEASURES
        }
        name = max(MEASURES, key=lambda each: len(by_measure[each]))
        times = by_measure[name]
        if not times:
            return []
        known = {rank: own.units for rank, own in owns.items() if own.units and rank in times}
        lengths = self._lengths[name]
        corrections = lengths.corrections(known)
        rest = self._rests[name].of_round(self._steps[-1], times.values())
        filled = {rank: time * exp(-corrections.get(rank, 0.0)) + rest for rank, time in times.items()}
        values = {rank: log(time) for rank, time in filled.items()}
        if known:
            lengths.learn(known, times)
        self._measured_at[name] = self._number
        accuser = self._compute[name]
        sure = self.layout.is_sure
        single = {
            rank: log(1 + own.garbage / (times[rank] + rest))
            for rank, own in owns.items()
            if own.garbage and rank in times
        }
        changed = accuser.comparison.update(self._number, values, programs, round_ns, sure=sure, single=single)
        if name != CALLS and len(times) < 4:
            changed = [one for one in changed if one.until is not None or not self._is_wait(one.member, accuser)]
        times = {rank: time + rest for rank, time in times.items()}
        spent = Spent(times, busy, step_ns, at_ns, _Notes(owns), rest_ns=rest, now_ns=self._steps[-1])
        news = accuser.judge(self._number, changed, spent, self.layout, self._starts)
        news += self._rotating[name].judge(self._number, times, step_ns, self._starts, at_ns)
        for other, of_other in self._compute.items():
            if other != name and self._number - self._measured_at[other] > SWITCHED_ROUNDS:
                if self._number - self._measured_at[other] < UNDECIDED_ROUNDS and self._still_shows(of_other, accuser):
                    continue
                step = self._starts[self._number][0]
                ended = of_other.end(self._number, at_ns, "", step)
                news += [over for over in ended if over.key not in accuser.records]
        return news

    @staticmethod
    def _still_shows(before: Accuser, now: Accuser) -> bool:
        """Whether what a measure has shown that is no longer known shows in the one that is, though not surely yet."""
        least = now.comparison.tuning.shift
        ranks = {rank for record in before.records.values() for rank in record.members}
        if ranks & now.suspects():
            return False
        return any(now.comparison.recent_excess(rank, SWITCHED_ROUNDS) > least for rank in ranks)

    def _is_wait(self, rank: int, accuser: Accuser) -> bool:
        """Whether what looks like slow compute may be a wait for a rank that is late for another reason: of few ranks,
        the majority does not show what is normal."""
        late = self._data.comparison.suspected() | self._checkpoint.comparison.suspected()
        if not late or rank in late:
            return False
        accuser.comparison.suspects.pop(rank, None)
        return True

    def _late_ranks(self) -> set[int]:
        """The ranks that are late in their own work."""
        found = self._data.suspects()
        for accuser in self._compute.values():
            found |= accuser.suspects()
        return found

    def _judge_job(self, owns: Mapping[int, Own], round_ns: float, at_ns: int) -> None:
        suspected = self._job.is_suspicious and (self._blames_soon() or self._grown_ns() > self._job.unexplained_ns)
        lengths = next((self._lengths[own.measure] for own in owns.values() if own.measure), None)
        units = {rank: own.units for rank, own in owns.items() if own.units}
        longest = max(lengths.corrections(units).values(), default=0.0) if lengths and units else 0.0
        self._tell(
            self._job.judge(
                self._number, owns, longest, self._open.values(), round_ns, self._starts, at_ns, wait=suspected
            )
        )

    def _grown_ns(self) -> float:
        """The most that a rank takes longer than its peers, or than before, since the job may be slower; ns a step."""
        rounds = max(1, self._number - self._job.since + 1)
        return max(one.most_ns(rounds) for one in self._current())

    def _blames_soon(self) -> bool:
        """Whether some rank or link may soon be blamed."""
        return any(one.comparison.rising() for one in self._current()) or self._links.rising()

    def _current(self) -> list[Accuser]:
        """Those of compute, as it is measured now, and of data."""
        compute = [one for name, one in self._compute.items() if self._number - self._measured_at[name] < 2]
        return [*compute, self._data]

    def _tell(self, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.is_over:
                self._open.pop(verdict.key, None)
            else:
                self._open[verdict.key] = verdict
            self._news.pop(verdict.key, None)
            self._news[verdict.key] = verdict

    def _forget(self, rank: int) -> None:
        """A rank is gone or another process now: what was known of it no longer holds."""
        for accuser in (*self._compute.values(), self._data, self._checkpoint):
            accuser.comparison.forget(rank)
        for lengths in self._lengths.values():
            lengths.forget(rank)
        for rest in self._rests.values():
            rest.restart()
        self._links.forget(rank)


class _Notes(Mapping[int, Mapping[str, float]]):
    """Figures of ranks for the evidence, made when asked for."""

    def __init__(self, owns: Mapping[int, Own]) -> None:
        self._owns = owns

    def __getitem__(self, rank: int) -> Mapping[str, float]:
        own = self._owns[rank]
        names = ("forward_ns", "backward_own_ns", "optimizer_ns", "garbage_ns")
        values = (*own.parts, own.garbage)
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._owns)

    def __len__(self) -> int:
        return len(self._owns)
