"""Which ranks and hosts a figure of all ranks marks as slow, and what they are slow at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from stepscope.analysis.methods.memberships import HOST
from stepscope.errors import Unavailable
from stepscope.figures.on_cpu import kinds_as_called
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 12
"""Ranks that a note lists."""

_LIMITS = {"step_interval": "interval", "flops_per_second": "flops_rate"}
"""Simple limits that a rank may be beyond, and the words for it."""


@dataclass(frozen=True)
class Slow:
    """What is slow.

    Args:
        ranks: What each slow rank is slow at.
        hosts: Names of hosts that are slow as a whole.
        is_replayed: Whether a replay of the job says so; else these are beyond simple limits.
    """

    ranks: dict[int, list[str]] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    is_replayed: bool = True

    def among(self, ranks: Iterable[int]) -> list[int]:
        """The slow ones of some ranks."""
        return [rank for rank in ranks if rank in self.ranks]

    def at(self, ranks: Iterable[int], language: Language) -> str:
        """What the slow ones of some ranks are slow at; empty if none is."""
        kinds = dict.fromkeys(kind for rank in self.among(ranks) for kind in self.ranks[rank])
        return ", ".join(word(kind, language, "kind") for kind in kinds)

    def notes(self, shown: Iterable[int]) -> list[Text]:
        """Which of the ranks in a figure are slow at what; nothing if none is."""
        slow = self.among(shown)
        if not slow:
            return []
        en = [f"{rank} ({self.at([rank], 'en')})" for rank in slow[:MOST]]
        zh = [f"{rank}（{self.at([rank], 'zh')}）" for rank in slow[:MOST]]
        left = len(slow) - MOST
        more = Text(f" and {left} more.", f" 等 {len(slow)} 个。") if left > 0 else Text(".", "。")
        noun = "rank" if len(slow) == 1 else "ranks"
        before = (
            Text(f"Slow, and marked: {noun} ", "已标记的慢 rank：")
            if self.is_replayed
            else Text(f"Marked as beyond simple limits: {noun} ", "已标记超出简单阈值的 rank：")
        )
        return [before + Text(", ".join(en), "、".join(zh)) + more]


def slow_of(run: Run) -> Slow:
    """What is slow in the job: `slow_ranks`; without a replay, the ranks in `cluster_advice`."""
    try:
        found = kinds_as_called(run, run.whole.analyse("slow_ranks"))
    except Unavailable:
        return _beyond_limits(run)
    ranks: dict[int, list[str]] = {}
    for members, kind in found.select("ranks", "kind").iter_rows():
        for rank in members.split(","):
            ranks.setdefault(int(rank), []).append(kind)
    hosts = found.filter(pl.col("unit_kind") == HOST)["unit"].drop_nulls()
    return Slow(ranks, frozenset(hosts))


def _beyond_limits(run: Run) -> Slow:
    try:
        advice = run.whole.analyse("cluster_advice")
    except Unavailable:
        return Slow(is_replayed=False)
    ranks: dict[int, list[str]] = {}
    for name, rank in advice.drop_nulls("rank").select("advice", "rank").iter_rows():
        ranks.setdefault(rank, []).append(_LIMITS.get(name, name))
    return Slow(ranks, is_replayed=False)
