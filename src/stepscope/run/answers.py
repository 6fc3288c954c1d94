"""Supplying analyses with the tables and answers that they name, and remembering what they said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analysis.registry import Analysis, find_analysis
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run.numbering import tables_of
from stepscope.run.rank import stacked
from stepscope.tables import ISSUES, TABLES

if TYPE_CHECKING:
    from stepscope.run.rank import Rank
    from stepscope.run.run import Run

Key = tuple[str, tuple[int, ...] | None, tuple[tuple[str, str], ...]]

TOGETHER_ROWS = 1_000_000
"""Ranks are asked together up to so many rows: beyond, a query's fixed cost is nothing beside its rows', and memory
would grow."""


class Answers:
    """The answers of one run, each computed once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._known: dict[Key, Any] = {}
        self._silent: dict[str, dict[int, str]] = {}

    def answer(self, question: str | Callable[..., Any], options: Mapping[str, Any]) -> Any:
        """See `Run.analyse`."""
        analysis = find_analysis(question)
        allowed = analysis.options
        for option in options:
            if option not in allowed:
                there = f"It has: {', '.join(allowed)}" if allowed else "It has none"
                raise StepscopeError(f"{analysis.name} has no option {option!r}. {there}")
        return self._answer(analysis, options)

    def silent(self, question: str | Callable[..., Any]) -> dict[int, str]:
        """See `Run.silent_ranks`."""
        return dict(self._silent.get(find_analysis(question).name, {}))

    def _answer(self, analysis: Analysis, options: Mapping[str, Any], ranks: Sequence[Rank] | None = None) -> Any:
        """The answer for the whole job, or for some ranks of it."""
        if analysis.name in self.run.limits:
            options = {"limits": self.run.limits[analysis.name], **options}
        key: Key = (
            analysis.name,
            None if ranks is None else tuple(rank.rank for rank in ranks),
            tuple(sorted((name, repr(value)) for name, value in options.items())),
        )
        if key not in self._known:
            try:
                if analysis.whole_job and self.run.whole is not self.run:
                    everyone = self.run.whole.analyse(analysis.name, **options)
                    kept = [r.rank for r in self.run.ranks]
                    self._known[key] = everyone.filter(pl.col("rank").is_in(kept))
                elif analysis.scope == "rank" and ranks is None:
                    self._known[key] = self._stack(analysis, options)
                else:
                    passed = {name: value for name, value in options.items() if name in analysis.passes}
                    own = {name: value for name, value in options.items() if name in analysis.own_options}
                    supplied = self._supply(analysis, ranks, passed)
                    self._known[key] = analysis.checked(_collected(analysis.function(**supplied, **own)))
            except Unavailable as reason:
                self._known[key] = reason
        known = self._known[key]
        if isinstance(known, Unavailable):
            raise known
        return known

    def _stack(self, analysis: Analysis, options: Mapping[str, Any]) -> pl.DataFrame:
        """Ask for all ranks, as many at once as may be, and stack the answers."""
        frames: list[pl.DataFrame] = []
        silent: dict[int, str] = {}
        for ranks in self._parts if _takes_several(analysis) else [[rank] for rank in self.run.ranks]:
            frames.extend(self._ask(analysis, options, ranks, silent))
        self._silent[analysis.name] = silent
        if not frames:
            raise Unavailable(". ".join(dict.fromkeys(silent.values())))
        return pl.concat(frames, how="vertical_relaxed")

    def _ask(
        self, analysis: Analysis, options: Mapping[str, Any], ranks: Sequence[Rank], silent: dict[int, str]
    ) -> list[pl.DataFrame]:
        """The answers of some ranks; why there is none goes to `silent`."""
        rank = ranks[0]
        try:
            frame = self._answer(analysis, options, ranks)
        except Unavailable as reason:
            if len(ranks) > 1:  # of one of them, perhaps
                return [frame for one in ranks for frame in self._ask(analysis, options, [one], silent)]
            silent[rank.rank] = str(reason)
            return []
        if frame is None:
            silent.update({one.rank: f"rank {one.rank} has nothing to say" for one in ranks})
            return []
        if not isinstance(frame, pl.DataFrame):
            raise TypeError(f"analysis {analysis.name} is asked for each rank, so it has to return a frame")
        if "rank" not in frame.columns:
            frame = frame.select(pl.lit(rank.rank, pl.Int32).alias("rank"), pl.all())
        return [frame]

    @cached_property
    def _parts(self) -> list[list[Rank]]:
        """The ranks in parts that may be asked together: neighbours that have the same tables, if they are small."""
        parts: list[list[Rank]] = []
        total = 0
        for rank in self.run.ranks:
            rows = sum(rank.rows.values())
            total += rows
            if parts and total <= TOGETHER_ROWS and parts[-1][0].rows.keys() == rank.rows.keys():
                parts[-1].append(rank)
            else:
                parts.append([rank])
                total = rows
        return parts

    def _supply(self, analysis: Analysis, ranks: Sequence[Rank] | None, passed: Mapping[str, Any]) -> dict[str, Any]:
        """The tables and answers that an analysis names, None for those it can do without.

        Args:
            analysis: Who needs them.
            ranks: Of which ranks; None for the whole job.
            passed: Options for the answers that have them.
        """
        supplied: dict[str, Any] = {}
        for name, required in analysis.needs.items():
            if name in TABLES:
                supplied[name] = self._table(name, ranks, analysis)
                if required and supplied[name] is None:
                    raise Unavailable(f"{analysis.name} needs `{name}`: {self.run.missing(name)}")
                continue
            try:
                supplied[name] = self._other(name, ranks, passed)
            except Unavailable:
                if required or self._some_can(name, ranks, passed):
                    raise
                supplied[name] = None
        return supplied

    def _some_can(self, name: str, ranks: Sequence[Rank] | None, passed: Mapping[str, Any]) -> bool:
        """Whether some of several ranks can give an answer, which all of them together could not."""
        for rank in ranks if ranks is not None and len(ranks) > 1 else ():
            try:
                self._other(name, [rank], passed)
            except Unavailable:
                continue
            return True
        return False

    def _table(self, name: str, ranks: Sequence[Rank] | None, analysis: Analysis) -> pl.LazyFrame | None:
        if name == ISSUES.name:
            return self.run.table(name) if ranks is None else stacked(ranks, name)
        having = [rank for rank in self.run.ranks if rank.has(name)] if ranks is None else list(ranks)
        if not having or not all(rank.has(name) for rank in having):
            return None
        if analysis.every_step:
            having = [rank.whole for rank in having]
        iterations = None if analysis.as_recorded else self.run.iterations
        return stacked(having, name) if iterations is None else tables_of(having, name, iterations.steps)

    def _other(self, name: str, ranks: Sequence[Rank] | None, passed: Mapping[str, Any]) -> Any:
        """Another answer: of the same ranks if it is one that ranks give, else of the whole job."""
        other = find_analysis(name)
        options = {option: value for option, value in passed.items() if option in other.options}
        return self._answer(other, options, ranks if other.scope == "rank" else None)


def _takes_several(analysis: Analysis) -> bool:
    """Whether an analysis may be called with several ranks' tables: if it says so, and those that it needs."""
    others = [find_analysis(name) for name in analysis.needs if name not in TABLES]
    return analysis.together and all(_takes_several(other) for other in others if other.scope == "rank")


def _collected(result: Any) -> Any:
    """An answer that can be given twice: lazy frames and generators are run now."""
    if isinstance(result, Iterator):
        return list(result)
    return result.collect() if isinstance(result, pl.LazyFrame) else result
