"""From a verdict to its cause: what is captured, of which ranks, how often, and what it shows.

Light records say who is slow. Why needs more, and more costs time; so it is only captured of suspects and one healthy
rank, once a verdict is sure, for a few steps, one capture at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from stepscope.errors import StepscopeError
from stepscope.live.capture import findings
from stepscope.live.capture.choosing import RankFacts, comparable
from stepscope.live.capture.findings import Finding, NotAnalysed
from stepscope.live.capture.limits import LIMITS, EscalationLimits
from stepscope.live.capture.links import SENT_BYTES, links_in
from stepscope.live.capture.stacks import NoStacks, Thread, elsewhere, merged, sentence, threads_in
from stepscope.live.messages import Captured, Checked
from stepscope.live.verdicts import Cause, Verdict
from stepscope.present import duration, plural
from stepscope.selection import named_numbers

log = logging.getLogger("stepscope")

BY = "escalation"
"""Who has switched, in the state of the switches."""
MOST_KEPT = 200
"""Explanations that are kept."""
LOOK_EVERY_S = 2.0
_HOUR_S = 3600.0
_COPIES_AT_ONCE = 4
_COMPARED = (Cause.COMPUTE, Cause.HOST, Cause.DATA, Cause.CHECKPOINT)
_SUMMED_UP = (Cause.LINK, Cause.SEND)


class Actions(Protocol):
    """What the manager does for escalation. All of it may raise StepscopeError."""

    def facts(self) -> Mapping[int, RankFacts]:
        """The ranks that take part."""

    def wants_communication(self) -> bool:
        """Whether the detector lacks what the communication switch would show."""

    def communication(self) -> tuple[bool, str]:
        """Whether communication is recorded, and who has switched last."""

    async def switch_communication(self, *, on: bool, by: str) -> None:
        """Switch communication on or off."""

    async def capture(self, ranks: Sequence[int], steps: int, timeout_s: float) -> list[Captured]:
        """Profile some steps of some ranks, and wait for the answers."""

    async def dump(self, ranks: Sequence[int], timeout_s: float) -> list[Captured]:
        """Let ranks write down their stacks and last calls, and wait for the answers."""

    async def stacks(self, ranks: Sequence[int], timeout_s: float) -> Mapping[int, tuple[str, str]]:
        """Python stacks of ranks, taken from outside: text and error of each."""

    async def check(self, ranks: Sequence[int], kinds: Sequence[str], timeout_s: float) -> list[Checked]:
        """Measure devices or links, and wait for the results."""

    def publish(self, verdict: Verdict) -> None:
        """Report a verdict again, of which more is known."""

    async def read(self, rank: int, directory: str) -> str:
        """Where the capture of a rank can be read on this host, perhaps as a copy; empty if it cannot."""


class Escalation:
    """Follows the verdicts of one job.

    Args:
        actions: What the manager can do.
        now_s: A clock that never goes back.
    """

    def __init__(
        self,
        actions: Actions,
        limits: EscalationLimits = LIMITS,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._actions, self._limits, self._now_s = actions, limits, now_s
        self._open: dict[str, Verdict] = {}
        self._over: dict[str, Verdict] = {}
        """Verdicts that are over and have not begun anew, in their last state."""
        self._known: dict[str, Finding] = {}
        self._tried_s: dict[str, float] = {}
        self._captured_s: deque[float] = deque(maxlen=limits.most_an_hour)
        self._busy: dict[bool, asyncio.Lock] = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._waiting: set[str] = set()
        self.communication = _Communication(actions, limits, now_s)

    async def run(self) -> None:
        """Look after the communication switch until this is cancelled."""
        while True:
            await self.communication.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def on_verdict(self, verdict: Verdict) -> None:
        """A verdict is new, has changed or is over. Returns when everything that follows from it is done."""
        if verdict.is_over:
            self._open.pop(verdict.key, None)
            self._over[verdict.key] = verdict
            while len(self._over) > MOST_KEPT:
                del self._over[next(iter(self._over))]
            return
        if verdict.explanation:
            return
        self._open[verdict.key] = verdict
        if verdict.key in self._waiting or not self._is_due(verdict):
            return
        self._waiting.add(verdict.key)
        # stacks of a job that hangs do not wait for a profile that cannot end
        async with self._busy[verdict.cause is Cause.HANG]:
            self._waiting.discard(verdict.key)
            known = self._open.get(verdict.key)
            if known is not None and self._is_due(known):
                await self._escalate(known)

    async def _escalate(self, verdict: Verdict) -> None:
        self._tried_s[verdict.key] = self._now_s()
        try:
            is_hang = verdict.cause is Cause.HANG
            finding = await (self._of_hang(verdict) if is_hang else self._of_slowness(verdict))
        except StepscopeError as error:
            log.warning("escalation for %s: %s", verdict.key, error)
            return
        except Exception:
            log.exception("escalation for %s failed", verdict.key)
            return
        if finding is not None:
            self._keep(verdict.key, finding)
            newest = self._open.get(verdict.key) or self._over.get(verdict.key, verdict)  # it may be over meanwhile
            self._actions.publish(self.amended(newest))

    def amended(self, verdict: Verdict) -> Verdict:
        """A verdict with what is known of its cause, if anything is; a hang that blames nobody then blames the ranks
        for which the others wait. One that begins anew is not explained by what was found the last time."""
        if not verdict.is_over and self._over.pop(verdict.key, None) is not None:
            self._known.pop(verdict.key, None)
        finding = self._known.get(verdict.key)
        if finding is None or verdict.explanation:
            return verdict
        return msgspec.structs.replace(
            verdict,
            ranks=verdict.ranks or (finding.ranks if verdict.cause is Cause.HANG else []),
            explanation=finding.text,
            evidence={**verdict.evidence, **finding.figures},
        )

    def _keep(self, key: str, finding: Finding) -> None:
        self._known[key] = finding
        while len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]

    def _is_due(self, verdict: Verdict) -> bool:
        now_s, limits = self._now_s(), self._limits
        if now_s - self._tried_s.get(verdict.key, -limits.cool_down_s) < limits.cool_down_s:
            return False
        if verdict.cause is Cause.HANG:
            return True
        if not verdict.ranks or verdict.sureness < limits.sureness or verdict.cause not in (*_COMPARED, *_SUMMED_UP):
            return False
        full = len(self._captured_s) == limits.most_an_hour
        return not (full and now_s - self._captured_s[0] < _HOUR_S)

    async def _of_slowness(self, verdict: Verdict) -> Finding | None:
        """Profile suspects and a healthy rank, and compare them."""
        facts = self._actions.facts()
        suspects = [rank for rank in verdict.ranks if rank in facts][: self._limits.most_suspects]
        if not suspects:
            return None
        accused = {rank for one in self._open.values() for rank in one.ranks}
        healthy = comparable(suspects[0], facts, accused | {*verdict.ranks})
        chosen = [*suspects, *(() if healthy is None else (healthy,))]
        self._captured_s.append(self._now_s())
        log.info("%s: profiling %s", verdict.key, named_numbers("rank", chosen))
        answers = await self._actions.capture(chosen, self._limits.steps, self._limits.capture_s)
        there = {one.rank: one.directory for one in answers if one.directory and not one.error}
        lost = [f"rank {one.rank}: {one.error}" for one in answers if one.error]
        if not there:
            reason = f" ({'; '.join(lost)})" if lost else ""
            log.warning("%s: no profile of %s%s", verdict.key, named_numbers("rank", chosen), reason)
            return None
        hosts = {rank: one.host for rank, one in facts.items()}
        finding = await self._shown(verdict, there, hosts, suspects, healthy)
        if self._limits.checks:
            finding = _joined(finding, await self._checked(verdict, suspects, healthy))
        return finding

    async def _shown(
        self,
        verdict: Verdict,
        there: Mapping[int, str],
        hosts: Mapping[int, str],
        suspects: Sequence[int],
        healthy: int | None,
    ) -> Finding:
        """What profiles show, and where they are."""
        where = f"Profiles: {findings.places(there, hosts)}"
        read = await self._read(there)
        found: list[Finding] = []
        try:
            if verdict.cause in _SUMMED_UP:
                found.append(await findings.summed_up(read, suspects))
            elif healthy in read and healthy is not None:
                for suspect in suspects:
                    if suspect in read:
                        found.append(await findings.compared(read[healthy], read[suspect], suspect, healthy))
            elif read:
                found.append(await findings.summed_up(read, suspects))
        except NotAnalysed as error:
            log.warning("%s: its profiles could not be analysed: %s", verdict.key, error)
        if not found and len(read) < len(there):
            where += " (they could not be copied to the manager's host: analyse them there)"
        figures = {name: figure for one in reversed(found) for name, figure in one.figures.items()}
        return Finding(". ".join([*(one.text for one in found), where]), figures)

    async def _read(self, there: Mapping[int, str]) -> dict[int, str]:
        """Where captures can be read on this host; a few are copied at a time."""
        turns = asyncio.Semaphore(_COPIES_AT_ONCE)

        async def one(rank: int) -> str:
            async with turns:
                return await self._actions.read(rank, there[rank])

        found = await asyncio.gather(*map(one, there))
        return {rank: place for rank, place in zip(there, found, strict=True) if place}

    async def _checked(self, verdict: Verdict, suspects: Sequence[int], healthy: int | None) -> Finding | None:
        """Results of an active check of suspects and the healthy rank."""
        kind = "link" if verdict.cause in _SUMMED_UP else "gemm"
        ranks = [*suspects, *(() if healthy is None else (healthy,))]
        answers = await self._actions.check(ranks, [kind], self._limits.capture_s)
        results = {one.rank: one.results for one in answers if one.results}
        if kind == "link":
            return _slowest_link(results)
        if healthy in results and suspects[0] in results:
            own_ns, other_ns = results[suspects[0]]["gemm_ns"], results[healthy]["gemm_ns"]
            text = f"Between two steps, a matrix product takes {own_ns / other_ns:.2f}x as long as on rank {healthy}"
            return Finding(text, {"checked_gemm_ns": float(own_ns), "checked_gemm_of_healthy_ns": float(other_ns)})
        return None

    async def _of_hang(self, verdict: Verdict) -> Finding | None:
        """Where all ranks are, and which calls they are in."""
        facts = self._actions.facts()
        ranks = sorted(facts)[: self._limits.most_stacks]
        log.info("%s: taking stacks of %d ranks", verdict.key, len(ranks))
        taken, dumped = await asyncio.gather(
            self._actions.stacks(ranks, self._limits.stacks_s), self._actions.dump(ranks, self._limits.stacks_s)
        )
        there = {one.rank: one.directory for one in dumped if one.directory and not one.error}
        read = await self._read(there)
        stacks, errors = _stacks(taken, read)
        texts, culprits = [], []
        if stacks:
            places = merged(stacks)
            texts.append(_capital(sentence(places)))
            if not errors and all(one.device == "cpu" for one in facts.values()):
                culprits = elsewhere(places)
        if errors:
            named = named_numbers("rank", sorted(errors))
            texts.append(f"No stacks of {named}: {errors[min(errors)]}")
        with suppress(NotAnalysed):
            last_calls = await findings.hanging(read)
            texts.append(last_calls.text)
            culprits = last_calls.ranks or culprits
        if there:
            texts.append(f"Dumps: {findings.places(there, {rank: one.host for rank, one in facts.items()})}")
        return Finding(". ".join(texts), ranks=culprits) if texts else None


def _slowest_link(results: Mapping[int, Mapping[str, int]]) -> Finding | None:
    """What an active check says of the network between ranks."""
    found = [(link.sent_ns, rank, link.peer) for rank, known in results.items() for link in links_in(known)]
    if not found:
        return None
    (best_ns, *_), (worst_ns, rank, peer) = min(found), max(found)
    text = (
        f"Between two steps, the network of the hosts takes {duration(worst_ns)} to send {SENT_BYTES >> 20} MiB from "
        f"rank {rank} to rank {peer}, the slowest of {plural(len(found), 'link')}; the fastest one takes "
        f"{duration(best_ns)}"
    )
    return Finding(text, {"checked_link_ns": float(worst_ns), "checked_best_link_ns": float(best_ns)})


def _stacks(
    taken: Mapping[int, tuple[str, str]], read: Mapping[int, str]
) -> tuple[dict[int, list[Thread]], dict[int, str]]:
    """Stacks of ranks, those that a worker has written about itself where none came from outside; and errors."""
    stacks: dict[int, list[Thread]] = {}
    errors: dict[int, str] = {}
    for rank, (text, error) in taken.items():
        try:
            if error:
                raise NoStacks(error)
            stacks[rank] = threads_in(text)
        except NoStacks as problem:
            own = findings.own_stacks(read[rank]) if rank in read else ""
            try:
                stacks[rank] = threads_in(own)
            except NoStacks:
                errors[rank] = str(problem)
    return stacks, errors


def _joined(first: Finding, second: Finding | None) -> Finding:
    if second is None:
        return first
    return Finding(f"{second.text}. {first.text}", {**first.figures, **second.figures})


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class _Communication:
    """Switches communication on while the detector needs it, and off again unless somebody else has switched."""

    def __init__(self, actions: Actions, limits: EscalationLimits, now_s: Callable[[], float]) -> None:
        self._actions, self._limits, self._now_s = actions, limits, now_s
        self._on_since_s: float | None = None
        self._off_since_s: float | None = None

    async def look(self) -> None:
        """Switch if it is time to."""
        try:
            await self._look()
        except StepscopeError as error:
            log.warning("communication could not be switched: %s", error)
        except Exception:  # looking goes on
            log.exception("looking after the communication switch failed")

    async def _look(self) -> None:
        now_s, limits = self._now_s(), self._limits
        is_on, by = self._actions.communication()
        wants = self._actions.wants_communication()
        if self._on_since_s is None:
            paused = self._off_since_s is not None and now_s - self._off_since_s < limits.communication_pause_s
            if wants and not is_on and not paused:
                await self._actions.switch_communication(on=True, by=BY)
                self._on_since_s = now_s
            elif is_on and by == BY:  # by an earlier manager that died before it could switch it off
                self._on_since_s = now_s
            return
        if not is_on or by != BY:
            self._on_since_s, self._off_since_s = None, now_s  # somebody else decides from now on
            return
        on_s = now_s - self._on_since_s
        if on_s >= limits.communication_most_s or (on_s >= limits.communication_on_s and not wants):
            self._on_since_s, self._off_since_s = None, now_s
            await self._actions.switch_communication(on=False, by=BY)
