"""Groups and pairs of ranks whose calls transfer more slowly than comparable ones, or than before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

import msgspec

from stepscope.live.detect.comparison import Comparison
from stepscope.live.detect.layout import Layout
from stepscope.live.detect.limits import Limits
from stepscope.live.detect.links import Link, Transfer, alike, transfers, value
from stepscope.live.detect.suspect import OFTEN, Suspect
from stepscope.live.verdicts import Cause, Verdict

__all__ = ["SlowLinks", "transfers"]
AVERAGED = 16
UNSEEN_ROUNDS = 64
"""Rounds without calls of a link, e.g. as communication was switched off, after which it is no longer blamed."""


@dataclass
class _Record:
    verdict: Verdict
    link: Link
    seen: int
    lost_ns: float = 0.0
    rounds: int = 0
    is_published: bool = False


class SlowLinks:
    """Compares transfers round by round."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._comparison: Comparison[Link] = Comparison(limits.link, limits)
        self._records: dict[str, _Record] = {}
        self._members: dict[Link, tuple[int, ...]] = {}

    def forget(self, rank: int) -> None:
        """A rank is another process now: its links may be other ones."""
        for link in [link for link, members in self._members.items() if rank in members]:
            self._comparison.forget(link)
            del self._members[link]

    def rising(self) -> bool:
        """Whether some link may soon be blamed."""
        return self._comparison.rising()

    def judge(
        self,
        number: int,
        found: Mapping[Link, Transfer],
        layout: Layout,
        late: set[int],
        step_ns: float,
        round_ns: float,
        starts: Mapping[int, tuple[int, int]],
        at_ns: int,
    ) -> list[Verdict]:
        """Verdicts that are new or over after a round.

        Args:
            number: Of the round.
            found: Transfers of the round.
            layout: Of the job.
            late: Ranks that are late in their own work.
            step_ns: A typical step.
            round_ns: A typical round.
            starts: First step and time of rounds.
            at_ns: When the round ended.
        """
        values = {link: value(one) for link, one in found.items()}
        programs = {link: alike(link, one, layout) for link, one in found.items()}
        self._members.update({link: one.members for link, one in found.items()})
        changed = self._comparison.update(number, values, programs, round_ns, sure=True)
        news: list[Verdict] = []
        for suspect in changed:
            if suspect.until is None and self._is_whole(suspect, programs):
                self._open(number, suspect, starts, at_ns)
        for key, record in list(self._records.items()):
            self._follow(number, key, record, found, layout, late, step_ns, at_ns, starts, news)
        return news

    def _is_whole(self, suspect: Suspect[Link], programs: Mapping[Link, object]) -> bool:
        return suspect.member in programs

    def _open(self, number: int, suspect: Suspect[Link], starts: Mapping[int, tuple[int, int]], at_ns: int) -> None:
        link = suspect.member
        members = self._members[link]
        is_send = link.source >= 0
        cause = Cause.SEND if is_send else Cause.LINK
        name = f"{min(members)}-{max(members)}" if is_send else link.group
        key = f"{cause.value}:{name}"
        if key in self._records:
            return
        step, since_ns = starts.get(suspect.since, (0, at_ns))
        verdict = Verdict(
            key=key,
            cause=cause,
            ranks=sorted(members),
            since_step=step,
            since_at_ns=since_ns,
            ratio=None,
            cost_ns=None,
            sureness=suspect.sureness,
            group=link.group,
            intermittent=suspect.how == OFTEN,
        )
        self._records[key] = _Record(verdict, link, number)

    def _follow(
        self,
        number: int,
        key: str,
        record: _Record,
        found: Mapping[Link, Transfer],
        layout: Layout,
        late: set[int],
        step_ns: float,
        at_ns: int,
        starts: Mapping[int, tuple[int, int]],
        news: list[Verdict],
    ) -> None:
        suspect = self._comparison.suspects.get(record.link)
        transfer = found.get(record.link)
        if transfer is not None:
            record.seen = number
        if suspect is None or number - record.seen > UNSEEN_ROUNDS:
            self._comparison.suspects.pop(record.link, None)
            del self._records[key]
            if record.is_published:
                step = max(record.verdict.since_step, starts.get(record.seen, (0, 0))[0])
                news.append(msgspec.structs.replace(record.verdict, until_step=step, until_at_ns=at_ns))
            return
        if transfer is None:
            return
        excess = (
            suspect.excess if suspect.how == OFTEN else self._comparison.recent_excess(record.link, 16, suspect.how)
        )
        lost = transfer.ns * transfer.calls * (1 - exp(-max(0.0, min(excess, 20.0)))) * suspect.share
        record.rounds += 1
        record.lost_ns += (lost - record.lost_ns) / min(record.rounds, AVERAGED)
        # a member that is late by itself, and not always in the same call, makes transfers look longer
        masked = bool(late & set(record.verdict.ranks)) and not self._comparison.tuning.shift * 2 < excess
        if record.is_published or masked or record.lost_ns < self._comparison.tuning.cost_ratio * step_ns:
            return
        hosts = sorted({layout.hosts.get(rank, "") for rank in transfer.members} - {""})
        record.verdict = msgspec.structs.replace(
            record.verdict,
            ratio=round(exp(min(excess, 20.0)), 3),
            cost_ns=round(record.lost_ns),
            evidence={
                "transfer_ns": round(transfer.ns),
                "calls": round(transfer.calls, 2),
                "step_ns": round(step_ns),
                "hosts": float(len(hosts)),
            },
        )
        record.is_published = True
        news.append(record.verdict)
