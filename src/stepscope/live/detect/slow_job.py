"""The whole job is slower than before, or its batches or checkpoints are, and no rank is to blame."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import exp, log

import msgspec

from stepscope.live.detect.limits import Limits
from stepscope.live.detect.own_times import Own
from stepscope.live.detect.pace import Pace
from stepscope.live.detect.statistics import median
from stepscope.live.verdicts import Cause, Verdict

EXPLAINED_RATIO = 0.5
"""Share of a slowdown that known verdicts or one kind of work must cost, to be the reason."""
UNEXPLAINED_ROUNDS = 16
USUAL_WEIGHT = 0.02
RUN_DELAY = "run_delay"
"""How long ranks wait for a processor. Where they usually do, others use the machine, and how much varies."""


class SlowJob:
    """Follows the length of the steps of a job, and of its checkpoints."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._step = Pace(limits.pace, limits)
        self._checkpoint = Pace(limits.checkpoint, limits)
        self._usual: dict[str, float] = {}
        self._recent: dict[str, float] = {}
        self.open: dict[str, Verdict] = {}
        self._waiting = self._was_explained = False
        self._unexplained = 0

    @property
    def is_suspicious(self) -> bool:
        """Whether the job may be slower than before."""
        return self._step.suspected

    @property
    def since(self) -> int:
        """The round since which it may be."""
        return self._step.slower_since

    @property
    def unexplained_ns(self) -> float:
        """How much longer a rank must take for it to explain how much longer steps are, ns."""
        return EXPLAINED_RATIO * self._lost_ns(self._step.excess(UNEXPLAINED_ROUNDS))

    def judge(
        self,
        number: int,
        owns: Mapping[int, Own],
        longest: float,
        others: Collection[Verdict],
        round_ns: float,
        starts: Mapping[int, tuple[int, int]],
        at_ns: int,
        *,
        wait: bool,
    ) -> list[Verdict]:
        """Verdicts that are new or over after a round.

        Args:
            number: Of the round.
            owns: What the ranks spent their time on.
            longest: How much longer (logarithm) the rank with the longest batches takes because of these.
            others: Verdicts that are open. What began with the slowdown explains it: its cost is not always known.
            round_ns: How long a round usually is.
            starts: First step and time of rounds.
            at_ns: When the round ended.
            wait: Whether some rank is about to be blamed.
        """
        step = median([own.step for own in owns.values()])
        self._learn(owns, step)
        waited = self._usual.get(RUN_DELAY, 0.0) / self._usual["step"]
        turned = self._step.update(number, log(step) - longest, round_ns, log(1 + max(0.0, waited)))
        news: list[Verdict] = []
        if turned and self._step.is_slow:
            self._waiting = True
        excess = self._step.excess(UNEXPLAINED_ROUNDS)
        lost_ns = self._lost_ns(excess)
        is_explained = self._is_explained(others, lost_ns, starts)
        self._unexplained = 0 if is_explained or wait else self._unexplained + 1
        self._was_explained = self._step.is_slow and (self._was_explained or is_explained)
        key = next((key for key in self.open if not key.startswith(Cause.CHECKPOINT.value)), None)
        # what is over still shows in the last rounds
        needed = UNEXPLAINED_ROUNDS if self._was_explained else 1
        if self._waiting and self._step.is_slow and self._unexplained >= needed:
            self._waiting = False
            news.append(self._new(excess, lost_ns, starts, at_ns))
        elif key is not None and self._step.is_slow and is_explained:
            news.append(self._over(key, number, starts, at_ns, "explained by other verdicts"))
            self._waiting = True  # it is slow without an explanation again once that one is over
        if turned and not self._step.is_slow:
            self._waiting = False
            if key is not None:
                news.append(self._over(key, self._step.until, starts, at_ns, ""))
        return news + self._judge_checkpoints(number, owns, round_ns, starts, at_ns)

    def _lost_ns(self, excess: float) -> float:
        """How much longer a step is than usual, ns."""
        return exp(self._step.base) * (exp(max(0.0, min(excess, 20.0))) - 1)

    def _is_explained(self, others: Collection[Verdict], lost_ns: float, starts: Mapping[int, tuple[int, int]]) -> bool:
        known = [one for one in others if one.cause not in (Cause.JOB, Cause.HANG) and one.key not in self.open]
        if sum(one.cost_ns or 0 for one in known) >= EXPLAINED_RATIO * lost_ns:
            return True
        first = starts.get(self._step.since - UNEXPLAINED_ROUNDS, (0, 0))[0]
        return self._step.is_slow and any(one.since_step >= first for one in known)

    def _judge_checkpoints(
        self,
        number: int,
        owns: Mapping[int, Own],
        round_ns: float,
        starts: Mapping[int, tuple[int, int]],
        at_ns: int,
    ) -> list[Verdict]:
        times = {rank: own.checkpoint for rank, own in owns.items() if own.checkpoint and own.checkpoint > 1000}
        if not times:
            return []
        middle = median(list(times.values()))
        long_ns = max(round_ns, self._limits.least_ns / self._limits.least_rounds)
        if not self._checkpoint.update(number, log(middle), long_ns):
            return []
        key = f"{Cause.CHECKPOINT.value}:job"
        if not self._checkpoint.is_slow:
            return [self._over(key, self._checkpoint.until, starts, at_ns, "")] if key in self.open else []
        excess = self._checkpoint.excess(5)
        step, since_ns = starts.get(self._checkpoint.since, (0, at_ns))
        verdict = Verdict(
            key=key,
            cause=Cause.CHECKPOINT,
            ranks=sorted(times) if len(times) < len(owns) / 2 else [],
            since_step=step,
            since_at_ns=since_ns,
            ratio=round(exp(min(excess, 20.0)), 3),
            cost_ns=round(middle * (1 - exp(-max(0.0, excess)))),
            sureness=self._checkpoint.sureness,
            evidence={"checkpoint_ns": round(middle)},
        )
        self.open[key] = verdict
        return [verdict]

    def _learn(self, owns: Mapping[int, Own], step: float) -> None:
        """What a step is usually spent on, and lately, ns."""
        kinds = {
            Cause.DATA.value: [own.data for own in owns.values() if own.data is not None],
            Cause.COMPUTE.value: [own.own for own in owns.values() if own.own is not None],
            RUN_DELAY: [own.run_delay for own in owns.values() if own.run_delay is not None],
        }
        now = {name: median(values) for name, values in kinds.items() if values} | {"step": step}
        for name, value in now.items():
            self._recent[name] = self._recent.get(name, value) + 0.2 * (value - self._recent.get(name, value))
            if not self._step.suspected:
                usual = self._usual.get(name, value)
                self._usual[name] = usual + USUAL_WEIGHT * (value - usual)

    def _new(self, excess: float, lost_ns: float, starts: Mapping[int, tuple[int, int]], at_ns: int) -> Verdict:
        more = {name: value - self._usual.get(name, value) for name, value in self._recent.items()}
        is_data = more.get(Cause.DATA.value, 0.0) >= EXPLAINED_RATIO * lost_ns
        cause = Cause.DATA if is_data else Cause.JOB
        key = f"{Cause.DATA.value}:job" if is_data else Cause.JOB.value
        step, since_ns = starts.get(self._step.since, (0, at_ns))
        names = {
            Cause.DATA.value: "data_more_ns",
            Cause.COMPUTE.value: "own_more_ns",
            RUN_DELAY: "run_delay_more_ns",
            "step": "step_more_ns",
        }
        verdict = Verdict(
            key=key,
            cause=cause,
            ranks=[],
            since_step=step,
            since_at_ns=since_ns,
            ratio=round(exp(min(excess, 20.0)), 3),
            cost_ns=round(lost_ns),
            sureness=self._step.sureness,
            evidence={names[name]: round(value) for name, value in more.items()},
        )
        self.open[key] = verdict
        return verdict

    def _over(
        self, key: str, number: int, starts: Mapping[int, tuple[int, int]], at_ns: int, explanation: str
    ) -> Verdict:
        verdict = self.open.pop(key)
        step = max(verdict.since_step, starts.get(number, (verdict.since_step, 0))[0])
        return msgspec.structs.replace(verdict, until_step=step, until_at_ns=at_ns, explanation=explanation)
