"""Turns suspects at a kind of work into verdicts: one for a rank, or for the host or group that explains several."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp

import msgspec

from stepscope.live.detect.comparison import Comparison
from stepscope.live.detect.layout import Layout
from stepscope.live.detect.limits import Limits
from stepscope.live.detect.statistics import median
from stepscope.live.detect.suspect import OFTEN, Suspect
from stepscope.live.verdicts import Cause, Verdict

AGAIN_ROUNDS = 32
"""A verdict is not reported again sooner, unless it is over."""
NEWS_RATIO = 0.3
"""Relative change of an excess, or of the cost as a share of a step, that is worth another report."""
FLAPS_ROUNDS = 400
"""What returns within so many rounds comes and goes."""
MOST_LOG_RATIO = 6.9
"""Ratios are at most a thousand."""
AVERAGED = 32
"""Rounds over which the excess and the cost of what lasts are averaged."""
PAST_ROUNDS = 16
"""Rounds before a verdict in which it is measured what it has cost."""


@dataclass
class Spent:
    """What the ranks spent in a round, ns a step.

    Args:
        time_ns: Of the kind that is judged.
        busy_ns: Of all own work.
        step_ns: A typical step.
        at_ns: When the round ended.
        notes: Figures of ranks for the evidence, by name.
        rest_ns: Part of `time_ns` that was added to what was measured (see `rest`).
        now_ns: A step of this round.
    """

    time_ns: Mapping[int, float]
    busy_ns: Mapping[int, float]
    step_ns: float
    at_ns: int
    notes: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    rest_ns: float = 0.0
    now_ns: float = 0.0


@dataclass
class Record:
    """A verdict with what belongs to it."""

    verdict: Verdict
    members: list[int]
    opened: int
    is_published: bool = False
    published_at: int = 0
    cost_ns: float = 0.0
    rounds: int = 0
    group_hides: bool = False


class Accuser:
    """Verdicts of one kind of work.

    Args:
        cause: Of single ranks.
        of_host: Of whole hosts.
        comparison: Whose suspects are judged.
        is_share: Whether excesses are shares of a step, not differences of logarithms.
    """

    def __init__(
        self, cause: Cause, of_host: Cause, comparison: Comparison[int], limits: Limits, *, is_share: bool = False
    ) -> None:
        self.cause, self.of_host, self.comparison, self.limits = cause, of_host, comparison, limits
        self.is_share = is_share
        self.part_ratio = 1.0
        """Share of the work of this kind that its times cover, about."""
        self.hides_waits = False
        """Whether times may contain waits for members of the same group."""
        self.records: dict[str, Record] = {}
        self.others: list[Accuser] = []
        """Of the same kind of work, measured in another way before or after."""
        self._ended: dict[str, int] = {}
        self._starts: Mapping[int, tuple[int, int]] = {}
        self._until: dict[int, int] = {}
        self._past: deque[tuple[int, Spent]] = deque(maxlen=PAST_ROUNDS)
        """The last rounds."""

    def judge(
        self,
        number: int,
        changed: Iterable[Suspect[int]],
        spent: Spent,
        layout: Layout,
        first_steps: Mapping[int, tuple[int, int]],
    ) -> list[Verdict]:
        """Verdicts that are new, other, or over, after a round of the comparison.

        Args:
            number: Of the round.
            changed: Suspects that are new or have recovered.
            spent: What the ranks spent.
            layout: Of the job.
            first_steps: First step of each remembered round, and about when it was, ns.
        """
        news: list[Verdict] = []
        self._starts = first_steps
        self._past.append((number, spent))
        for suspect in changed:
            if suspect.until is None:
                self._open(number, suspect, spent, layout, news)
            else:
                self._until[suspect.member] = suspect.until
        for key, record in list(self.records.items()):
            self._follow(number, key, record, spent, news)
        return news

    def most_ns(self, rounds: int) -> float:
        """The most that the last rounds took a rank longer than others, beyond what it usually does; ns a step."""
        if not self._past:
            return 0.0
        _, spent = self._past[-1]
        excess = max((self.comparison.grown(rank, min(rounds, AVERAGED)) for rank in spent.time_ns), default=0.0)
        return self._lost_at_times(min(excess, MOST_LOG_RATIO), spent)

    def suspects(self) -> set[int]:
        """The ranks that are blamed at the moment."""
        return {rank for record in self.records.values() if record.is_published for rank in record.members}

    def end(self, number: int, at_ns: int, explanation: str, step: int) -> list[Verdict]:
        """Close all verdicts, as something else explains them."""
        return [
            over
            for key, record in list(self.records.items())
            if (over := self._over(number, key, record, step, at_ns, explanation)) is not None
        ]

    def _open(self, number: int, suspect: Suspect[int], spent: Spent, layout: Layout, news: list[Verdict]) -> None:
        rank = suspect.member
        known = next((record for record in self.records.values() if rank in record.members), None)
        if known is not None:
            return
        key, cause, members, hosts, group = self._unit(suspect, layout)
        for old_key, record in list(self.records.items()):
            if set(record.members) <= set(members):
                over = self._over(number, old_key, record, suspect.opened, spent.at_ns, f"part of {key}")
                if over is not None:
                    news.append(over)
        for member in members:
            self.comparison.open_with(suspect, member)
        step, at_ns = self._starts.get(suspect.since, next(iter(self._starts.values()), (suspect.since, spent.at_ns)))
        before = self._known_before(key, suspect)
        if before is not None and before[0] < step:
            step, at_ns = before
        flaps = number - self._ended.get(key, -(10**9)) <= FLAPS_ROUNDS
        verdict = Verdict(
            key=key,
            cause=cause,
            ranks=sorted(members),
            hosts=hosts,
            group=group,
            since_step=step,
            since_at_ns=at_ns,
            ratio=None,
            cost_ns=None,
            sureness=suspect.sureness,
            intermittent=suspect.how == OFTEN or flaps,
        )
        record = Record(verdict, sorted(members), number, group_hides=bool(group) and self.hides_waits)
        for then, past in self._past if suspect.how != OFTEN else ():
            if suspect.since <= then < number:
                saved = {m: self._lost(suspect.excess, past.time_ns.get(m, 0.0), spent) for m in members}
                record.rounds += 1
                record.cost_ns += (_gain(past.busy_ns, saved) - record.cost_ns) / record.rounds
        if suspect.how == OFTEN:
            # the round at hand is a late one; the mean one costs less
            record.cost_ns = self._lost_at_times(suspect.excess, spent) * suspect.share
            record.rounds = AVERAGED // 2
        self.records[key] = record

    def _known_before(self, key: str, suspect: Suspect[int]) -> tuple[int, int] | None:
        """Step and time since which another measure, which came before, has shown the same."""
        for other in self.others:
            record = other.records.get(key)
            if record is not None:
                return record.verdict.since_step, record.verdict.since_at_ns
            began = other.comparison.slow_since(suspect.member)
            mine = self.comparison.members.get(suspect.member)
            if began is not None and mine is not None and suspect.since <= mine.first + self.limits.least_rounds:
                return self._starts.get(began)
        return None

    def _unit(self, suspect: Suspect[int], layout: Layout) -> tuple[str, Cause, list[int], list[str], str]:
        """The smallest unit that explains a suspect: its key, cause, ranks, hosts and group."""
        rank = suspect.member
        host = layout.hosts.get(rank, "")
        of_host = self._slow_alike(suspect, layout.on_host(host)) if host else []
        for key, members in layout.parts(rank):
            found = self._slow_alike(suspect, members)
            same_place = set(members) >= set(of_host)
            if found and (not of_host or (self.hides_waits and same_place) or len(members) < len(of_host) // 2):
                if of_host and not self.hides_waits:
                    break
                return f"{self.cause.value}:group:{key}", self.cause, found, [], key
        if of_host:
            name = self.of_host.value if self.of_host is not self.cause else f"{self.cause.value}:host"
            return f"{name}:{host}", self.of_host, of_host, [host], ""
        return f"{self.cause.value}:{rank}", self.cause, [rank], [], ""

    def _slow_alike(self, suspect: Suspect[int], unit: Iterable[int]) -> list[int]:
        """The ranks of a unit, if nearly all of them are slow like a suspect; noise may hide the others."""
        compared = self.comparison
        members = [rank for rank in unit if rank in compared.members]
        if not 2 <= len(members) < len(compared.members) or suspect.member not in members:
            return []
        if suspect.how == OFTEN:
            slow = [m for m in members if m in compared.suspects or compared.members[m].often_score > 4]
        else:
            rounds = suspect.opened - suspect.since + 1
            excesses = {m: compared.recent_excess(m, rounds, suspect.how) for m in members}
            middle = sorted(excesses.values())[(len(members) - 1) // 2]
            if middle < 0.4 * suspect.excess:
                return []
            least = max(self.limits.alike_ratio * middle, compared.tuning.shift / 4)
            slow = [m for m, excess in excesses.items() if excess >= least]
        return members if len(slow) >= max(2, self.limits.members_ratio * len(members)) else []

    def _follow(self, number: int, key: str, record: Record, spent: Spent, news: list[Verdict]) -> None:
        """Measure what a verdict costs; report it, or that it is over."""
        still = [rank for rank in record.members if rank in self.comparison.suspects]
        if not still or 2 * len(still) < len(record.members):
            for rank in still:
                self.comparison.suspects.pop(rank, None)
            until = max((self._until.pop(rank, 0) for rank in record.members), default=0) or number
            step = self._starts.get(until, (0, 0))[0] or record.verdict.since_step
            over = self._over(number, key, record, step, spent.at_ns, "")
            if over is not None:
                news.append(over)
            return
        saved = {rank: self._saved(rank, spent) for rank in still}
        gain = _gain(spent.busy_ns, saved)
        record.rounds += 1
        averaged = 8 * AVERAGED if record.verdict.intermittent else AVERAGED
        record.cost_ns += (gain - record.cost_ns) / min(record.rounds, averaged)
        if record.is_published and number - record.published_at < AGAIN_ROUNDS:
            return
        if not record.is_published and (number - record.opened) % 4:
            return
        self._report(number, record, still, spent, news)

    def _report(self, number: int, record: Record, still: list[int], spent: Spent, news: list[Verdict]) -> None:
        old = record.verdict
        excesses = sorted(self._excess(rank, number) for rank in still)
        excess = excesses[len(excesses) // 2]
        shares = [self.comparison.suspects[rank].share for rank in still]
        share = sorted(shares)[len(shares) // 2]
        lately = [past for then, past in self._past if then >= self.comparison.suspects[still[0]].since]
        time = median([past.time_ns[rank] for past in lately for rank in still if rank in past.time_ns])
        now_ns = median([past.now_ns for past in lately]) or spent.step_ns
        is_single = any(self.comparison.suspects[rank].how == OFTEN for rank in still)
        lost = self._lost_at_times(excess, spent) if is_single else self._lost(excess, time, spent)
        if self.is_share and not is_single:  # it was a share of what was typical in these rounds
            lost *= median([past.step_ns for past in lately]) / spent.step_ns
        if (
            not record.is_published
            and lost * share < self.part_ratio * self.comparison.tuning.cost_ratio * spent.step_ns
        ):
            return
        ratio = self._ratio(excess, lost, now_ns, spent, is_single=is_single)
        cost = round(max(0.0, record.cost_ns))
        if record.is_published:
            before = old.evidence.get("excess_ns", lost)
            moved = abs(lost - before) > NEWS_RATIO * max(0.05 * spent.step_ns, before)
            moved_cost = abs(cost - (old.cost_ns or 0)) > NEWS_RATIO * max(old.cost_ns or 0, 0.05 * spent.step_ns)
            if not (moved or moved_cost):
                return
        notes = spent.notes.get(still[0], {})
        evidence = {
            "own_ns": round(time - spent.rest_ns, 0),
            "excess_ns": round(lost, 0),
            "step_ns": round(spent.step_ns, 0),
            "late_share": round(share, 3),
            **{name: round(value, 4) for name, value in notes.items()},
        }
        record.verdict = msgspec.structs.replace(old, ratio=round(ratio, 3), cost_ns=cost, evidence=evidence)
        record.is_published, record.published_at = True, number
        news.append(record.verdict)

    def _lost(self, excess: float, time_ns: float, spent: Spent) -> float:
        """An excess in ns."""
        if self.is_share:
            return max(0.0, excess) * spent.step_ns
        return time_ns * (1 - exp(-max(0.0, min(excess, 20.0))))

    def _lost_at_times(self, excess: float, spent: Spent) -> float:
        """An excess of single rounds in ns, over what the others take."""
        if self.is_share:
            return max(0.0, excess) * spent.step_ns
        return median(list(spent.time_ns.values())) * (exp(max(0.0, min(excess, 20.0))) - 1)

    def _ratio(self, excess: float, lost_ns: float, now_ns: float, spent: Spent, *, is_single: bool) -> float:
        """An excess as a ratio of times. Of work that is a small part of a step, of steps: twice of next to nothing
        says little, and varies."""
        if not self.is_share and not spent.rest_ns:
            return exp(min(excess, MOST_LOG_RATIO))
        without = spent.step_ns if is_single else max(now_ns - lost_ns, now_ns / 1000)
        return (without + lost_ns) / without

    def _excess(self, rank: int, number: int) -> float:
        suspect = self.comparison.suspects[rank]
        if suspect.how == OFTEN:
            return suspect.excess
        rounds = max(number - suspect.since + 1, 1)
        return self.comparison.recent_excess(rank, min(rounds, AVERAGED), suspect.how)

    def _saved(self, rank: int, spent: Spent) -> float:
        """How much less the rank would spend in this round if it were not slow."""
        suspect = self.comparison.suspects[rank]
        excess = suspect.excess
        if suspect.how == OFTEN:
            excess = self.comparison.excesses.get(rank, 0.0)
            return 0.0 if excess < self.comparison.tuning.late else self._lost_at_times(excess, spent)
        time = spent.time_ns.get(rank, 0.0)
        return min(time, self._lost(excess, time, spent))

    def _over(self, number: int, key: str, record: Record, step: int, at_ns: int, explanation: str) -> Verdict | None:
        del self.records[key]
        for rank in record.members:
            self.comparison.suspects.pop(rank, None)
        self._ended[key] = number
        if len(self._ended) > 4096:
            self._ended.pop(next(iter(self._ended)))
        if not record.is_published:
            return None
        return msgspec.structs.replace(
            record.verdict, until_step=max(step, record.verdict.since_step), until_at_ns=at_ns, explanation=explanation
        )


def _gain(busy_ns: Mapping[int, float], saved: Mapping[int, float]) -> float:
    """How much shorter the longest work of a round is without what is saved."""
    if not busy_ns:
        return 0.0
    return max(busy_ns.values()) - max(busy - saved.get(rank, 0.0) for rank, busy in busy_ns.items())
