"""Ranks about which an analysis is asked at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from stepscope.analysis.registry import Analysis
from stepscope.run.engine.base import Ranks
from stepscope.run.rank import Rank

TOGETHER_ROWS = 1_000_000
"""Ranks are computed together up to this number of rows: beyond it, a query's fixed cost no longer matters, and memory
would grow."""


class RankGroups:
    """Groups of some ranks, in order."""

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self._ranks = ranks
        self._grouped: dict[frozenset[str], list[Ranks]] = {}

    def of(self, analysis: Analysis) -> list[Ranks]:
        """Neighbours that have the same of the tables on which an analysis' answer depends."""
        if not analysis.together:
            return [(rank.rank,) for rank in self._ranks]
        if analysis.tables not in self._grouped:
            groups: list[Ranks] = []
            for part in self._parts:
                alike: dict[frozenset[str], list[int]] = {}
                for rank in part:
                    alike.setdefault(analysis.tables.intersection(rank.rows), []).append(rank.rank)
                groups += map(tuple, alike.values())
            self._grouped[analysis.tables] = groups
        return self._grouped[analysis.tables]

    @cached_property
    def _parts(self) -> list[list[Rank]]:
        """Neighbouring ranks of which all rows may be in memory."""
        parts: list[list[Rank]] = []
        total = 0
        for rank in self._ranks:
            rows = sum(rank.rows.values())
            total += rows
            if parts and total <= TOGETHER_ROWS:
                parts[-1].append(rank)
            else:
                parts.append([rank])
                total = rows
        return parts
