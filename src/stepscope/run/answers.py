"""Supplying analyses with the tables and answers that they name, and remembering what they said."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables import ISSUES, TABLES

if TYPE_CHECKING:
    from stepscope.analysis.base import Analysis
    from stepscope.run.rank import Rank
    from stepscope.run.run import Run

Key = tuple[str, int | None, tuple[tuple[str, str], ...]]


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

    def _answer(self, analysis: Analysis, options: Mapping[str, Any], rank: Rank | None = None) -> Any:
        """The answer for the whole job, or for one rank of it."""
        key: Key = (
            analysis.name,
            None if rank is None else rank.rank,
            tuple(sorted((name, repr(value)) for name, value in options.items())),
        )
        if key not in self._known:
            try:
                if analysis.whole_job and self.run.whole is not self.run:
                    everyone = self.run.whole.analyse(analysis.name, **options)
                    kept = [r.rank for r in self.run.ranks]
                    self._known[key] = everyone.filter(pl.col("rank").is_in(kept))
                elif analysis.scope == "rank" and rank is None:
                    self._known[key] = self._stack(analysis, options)
                else:
                    supplied = self._supply(analysis, rank)
                    self._known[key] = _collected(analysis.function(**supplied, **options))
            except Unavailable as reason:
                self._known[key] = reason
        known = self._known[key]
        if isinstance(known, Unavailable):
            raise known
        return known

    def _stack(self, analysis: Analysis, options: Mapping[str, Any]) -> pl.DataFrame:
        """Ask for each rank and stack the answers."""
        frames: list[pl.DataFrame] = []
        silent: dict[int, str] = {}
        for rank in self.run.ranks:
            try:
                frame = self._answer(analysis, options, rank)
            except Unavailable as reason:
                silent[rank.rank] = str(reason)
                continue
            if frame is None:
                silent[rank.rank] = f"rank {rank.rank} has nothing to say"
                continue
            if not isinstance(frame, pl.DataFrame):
                raise TypeError(f"analysis {analysis.name} is asked for each rank, so it has to return a frame")
            if "rank" not in frame.columns:
                frame = frame.select(pl.lit(rank.rank, pl.Int32).alias("rank"), pl.all())
            frames.append(frame)
        self._silent[analysis.name] = silent
        if not frames:
            raise Unavailable(". ".join(dict.fromkeys(silent.values())))
        return pl.concat(frames, how="vertical_relaxed")

    def _supply(self, analysis: Analysis, rank: Rank | None) -> dict[str, Any]:
        """The tables and answers that an analysis names, None for those it can do without."""
        supplied: dict[str, Any] = {}
        for name, required in analysis.needs.items():
            if name in TABLES:
                supplied[name] = self._table(name, rank)
                if required and supplied[name] is None:
                    raise Unavailable(f"{analysis.name} needs `{name}`: {self.run.missing(name)}")
                continue
            try:
                supplied[name] = self._other(name, rank)
            except Unavailable:
                if required:
                    raise
                supplied[name] = None
        return supplied

    def _table(self, name: str, rank: Rank | None) -> pl.LazyFrame | None:
        place = self.run if rank is None else rank
        return place.table(name) if place.has(name) or name == ISSUES.name else None

    def _other(self, name: str, rank: Rank | None) -> Any:
        """Another answer: of the same rank if it is one a rank gives, else of the whole job."""
        other = find_analysis(name)
        return self._answer(other, {}, rank if other.scope == "rank" else None)


def find_analysis(question: str | Callable[..., Any]) -> Analysis:
    """The registered analysis of a name or function; any other function is asked once, for the whole job.

    Raises:
        StepscopeError: If there is none.
    """
    from stepscope.analysis.base import ANALYSES, Analysis  # noqa: PLC0415

    name = question if isinstance(question, str) else getattr(question, "__name__", str(question))
    if callable(question) and (name not in ANALYSES or ANALYSES[name].function is not question):
        return Analysis(f"{question.__module__}.{name}", question, "job")
    if name not in ANALYSES:
        close = difflib.get_close_matches(name, ANALYSES, n=3)
        there = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(sorted(ANALYSES))}"
        raise StepscopeError(f"there is no analysis {name!r}. {there}")
    return ANALYSES[name]


def _collected(result: Any) -> Any:
    """An answer that can be given twice: lazy frames and generators are run now."""
    if isinstance(result, Iterator):
        return list(result)
    return result.collect() if isinstance(result, pl.LazyFrame) else result
