"""A finding is data: what, on which ranks, on which platform, per which unit; its words are in its rule's catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import polars as pl

from stepscope.analysis.methods.saving_range import saving_range
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

T = TypeVar("T")

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
Per = Literal["step", "iteration", "recording", "batch"]
Confidence = Literal["certain", "likely", "possible"]
"""How well the data supports a finding's cause: it is recorded as such, it is the only explanation known to fit, or one
of several."""

HIGH_RATIO, MEDIUM_RATIO = 0.05, 0.03
"""Saving as a share of the step from which a finding is of high or medium severity: the limits of the Ascend
advisor, which engineers know."""

PYTORCH, MINDSPORE = "pytorch", "mindspore"
CPU, CUDA, ROCM, NPU = "cpu", "cuda", "rocm", "npu"

WINDOWS: dict[str, Per] = {WHOLE_RECORDING: "recording", REPETITION: "iteration"}
"""Kinds of windows (`steps.window`) that are not recorded steps."""

KINDS: tuple[Per, ...] = ("step", "iteration", "recording")
"""What windows can be; if a job has several, it is the first of these."""


@dataclass(frozen=True)
class Platform:
    """Framework and kind of device of a finding's ranks, so that causes and actions fit; None if unknown or mixed."""

    framework: str | None = None
    device: str | None = None

    def pick(self, texts: Mapping[tuple[str | None, str | None], T]) -> T:
        """The most specific text: for framework and device, for the framework, for the device, else the general one.

        Args:
            texts: By framework and device (`ranks.framework`, `ranks.device_kind`); None means any.

        Examples:
            >>> Platform("pytorch", "cpu").pick({("pytorch", None): "torch", (None, "cpu"): "cpu", (None, None): "any"})
            'torch'
        """
        places = ((self.framework, self.device), (self.framework, None), (None, self.device), (None, None))
        return next(texts[place] for place in places if place in texts)


@dataclass(frozen=True)
class Related:
    """Another finding, named in one that it explains or follows from.

    Args:
        rule: Its rule.
        message: Key of its message.
        ranks: Its ranks; empty if it is about all.
        how: Whether the one is the cause of the other, or the other's time is a part of its time.
    """

    rule: str
    message: str
    ranks: tuple[int, ...] = ()
    how: Literal["cause", "part"] = "cause"


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    Args:
        rule: Name of the rule that found it.
        message: Key of its message in the rule's catalogue, e.g. `data_loading`.
        parameters: Values for the message's texts; None if unknown.
        saving_ns: Estimated time by which each step of the job would be shorter; see `per`. If it is not `replayed`,
            what the problem costs, of which an unknown part can be saved.
        saving_ratio: The same as a share of the median step, 0 to 1.
        replayed: Whether a replay of the job shows the saving, or that it is not more than this; set by `advise` where
            it replays the job without a claim's kind of time.
        saving_low_ns: Lower bound of the saving. Default: `saving_ns`.
        saving_high_ns: Upper bound of the saving. Default: `saving_ns`. The message states the basis of both.
        per: Unit of `saving_ns`: step; iteration or recording if no steps are marked; batch if only batches were
            recorded. Of findings without a saving, `advise` sets it.
        where: What is concerned: `rank` or `ranks`, `links` (pairs of ranks), `steps`, `operators` (names).
        evidence: Supporting figures, with units in their names.
        platform: Framework and device of its ranks, which select the texts; set by `advise` if texts depend on it.
        least: Minimum severity, for problems that threaten more than time.
        most: Maximum severity, for what rests on little.
        confidence: How well the data supports the cause.
        code: Lines of the user's code that cause it, as the recording states them (`train.py(12): step`), the one that
            costs most first; empty if no stacks were recorded.
        span_ns: Start and end of its worst occurrence, ns as its worst rank recorded it, for a timeline; None if it has
            no place. If a rule names none, `advise` sets the longest of its steps.
        span_rank: The rank on whose timeline that is; None if it has no place, or if that is unknown.
        explained_by: The findings that it follows from, the main one first; set by `advise`.
        effects: The findings that follow from it; set by `advise`.
    """

    rule: str
    message: str
    parameters: dict[str, Any] = field(default_factory=dict)
    saving_ns: int = 0
    saving_ratio: float = 0.0
    saving_low_ns: int = -1
    saving_high_ns: int = -1
    replayed: bool = False
    per: Per = "step"
    where: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    platform: Platform = field(default_factory=Platform)
    least: Severity = "low"
    most: Severity = "high"
    confidence: Confidence = "likely"
    code: tuple[str, ...] = ()
    span_ns: tuple[int, int] | None = None
    span_rank: int | None = None
    explained_by: tuple[Related, ...] = ()
    effects: tuple[Related, ...] = ()

    def __post_init__(self) -> None:
        """Use the saving itself if there is no range."""
        for bound in ("saving_low_ns", "saving_high_ns"):
            if getattr(self, bound) < 0:
                object.__setattr__(self, bound, self.saving_ns)

    @property
    def severity(self) -> Severity:
        """Severity by its saving, or by what it costs if the saving is unknown."""
        ratio = self.saving_ratio
        found: Severity = "high" if ratio >= HIGH_RATIO else "medium" if ratio >= MEDIUM_RATIO else self.least
        return max(found, self.most, key=SEVERITIES.index)

    @property
    def ranks(self) -> list[int]:
        """The ranks concerned, in order; empty if it is about all."""
        if "rank" in self.where:
            return [self.where["rank"]]
        ranks = self.where.get("ranks")
        return sorted(ranks) if isinstance(ranks, list) else []

    def on(self, ranks: Iterable[int]) -> Finding:
        """This finding about several ranks at once, so that it is reported once.

        Args:
            ranks: The ranks, first the one whose figures are given. The message gets the parameters `ranks` and
                `worst_rank`, which is None if there is only one rank.
        """
        worst, *others = ranks
        numbers = sorted({worst, *others})
        who = {"ranks": numbers, "worst_rank": worst if len(numbers) > 1 else None}
        elsewhere = {name: value for name, value in self.where.items() if name not in ("rank", "ranks")}
        return replace(self, where={**place(numbers), **elsewhere}, parameters={**who, **self.parameters})


def place(ranks: Iterable[int]) -> dict[str, Any]:
    """Ranks for programs: `rank` if there is one, `ranks` if several."""
    numbers = sorted(set(ranks))
    return {"rank": numbers[0]} if len(numbers) == 1 else {"ranks": numbers}


def platform_of(ranks: pl.LazyFrame | None, numbers: Sequence[int] | None = None) -> Platform:
    """The platform of ranks.

    Args:
        ranks: The table of that name.
        numbers: The ranks of a finding. Default: all.
    """
    if ranks is None:
        return Platform()
    rows = ranks if numbers is None else ranks.filter(pl.col("rank").is_in(list(numbers)))
    facts = rows.select("framework", "device_kind").unique().collect()
    framework, device = (column[0] if column.n_unique() == 1 else None for column in facts)
    return Platform(framework, device)


def per_of(steps: pl.DataFrame | pl.LazyFrame | None, otherwise: Per = "recording") -> Per:
    """What the windows of a job are: steps if any rank has steps.

    Args:
        steps: A breakdown or the table of steps.
        otherwise: The answer if `steps` is missing.
    """
    if steps is None:
        return otherwise
    if "window" not in steps.lazy().collect_schema():
        return "step"
    kinds = steps.lazy().select(pl.col("window").unique()).collect()["window"]
    found = {WINDOWS.get(kind, "step") for kind in kinds}
    return next((per for per in KINDS if per in found), "step")


def saved(per: Per, mean_ns: float, count: int) -> int:
    """The saving per window, given the mean saving of `count` steps or batches: for a whole recording, their sum."""
    return round(mean_ns * (count if per == "recording" else 1))


def widened(saving_ns: float, low_ns: float, high_ns: float) -> dict[str, Any]:
    """The bounds of a saving (`saving_range`) as arguments of `Finding`.

    Examples:
        >>> widened(100, 99, 120)
        {'saving_low_ns': 95, 'saving_high_ns': 120}
    """
    low, high = saving_range(saving_ns, low_ns, high_ns)
    return {"saving_low_ns": low, "saving_high_ns": high}
