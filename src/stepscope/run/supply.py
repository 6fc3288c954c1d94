"""Supplies analyses with the tables and answers named by their parameters.

An analysis of scope `rank` runs in parts, each a task of the engine, and the parts are stacked. `AnswerCache` ensures
that nothing is computed twice.
"""

from __future__ import annotations

import threading
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.analysis.parameters import CHOSEN, check_options, frozen, identity
from stepscope.analysis.registry import Analysis, find_analysis
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run.answer_cache import AnswerCache
from stepscope.run.engine import Engine, Task
from stepscope.run.engine.base import PartAnswer, Stacked
from stepscope.run.engine.orders import Orders
from stepscope.run.iterations import tables_of
from stepscope.run.kept_answers import KeptAnswers
from stepscope.run.rank import Rank, stacked
from stepscope.run.recorded import Recorded
from stepscope.run.watching import check_cancelled, report
from stepscope.selection import Choice, Selection, parse_selection
from stepscope.tables import ISSUES, TABLES

TOGETHER_ROWS = 1_000_000
"""Ranks are computed together up to this number of rows: beyond it, a query's fixed cost no longer matters, and memory
would grow."""


class Supplier:
    """Answers questions about one run.

    Args:
        run: The run, which may be a selection of ranks or steps.
        cache: Answers of the run and of all its selections.
        whole: Answers questions about all ranks, if the run is a selection of them.
        kept: Answers on disk of the run and of all its selections.
    """

    def __init__(
        self,
        run: Recorded,
        cache: AnswerCache,
        engine: Engine,
        whole: Supplier | None = None,
        kept: KeptAnswers | None = None,
    ) -> None:
        self.run = run
        self.cache = cache
        self.engine = engine
        self.whole = whole
        self.kept = kept
        self._kept_keys: dict[Hashable, bytes | None] = {}
        self._orders = Orders(run, cache.most_bytes)
        self.given: Mapping[str, pl.DataFrame | Unavailable] = {}
        """Answers about the whole job supplied by the calling process."""

    def answer(self, question: str | Callable[..., Any], options: Mapping[str, Any]) -> Any:
        """See `Run.analyse`."""
        analysis = find_analysis(question)
        with self._keeping():
            return _copied(self.ask(analysis, self._options(analysis, options)))

    def silent(self, question: str | Callable[..., Any], options: Mapping[str, Any]) -> dict[int, Unavailable]:
        """See `Run.silent_ranks`."""
        analysis = find_analysis(question)
        if analysis.scope == "job":
            return {}
        with self._keeping():
            return dict(self._stacked(analysis, self._options(analysis, options)).silent)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Write the answers to keep when a question is answered."""
        try:
            yield
        finally:
            if self.kept is not None:
                self.kept.write()

    def ask(self, analysis: Analysis, options: Mapping[str, Any], ranks: Sequence[Rank] | None = None) -> Any:
        """The answer for the whole job, or for some ranks computed together; `options` are all that it has.

        Raises:
            Unavailable: If there is none.
        """
        if ranks is None and analysis.scope == "rank":
            return self._stacked(analysis, options).whole()
        if ranks is None and analysis.name in self.given:
            given = self.given[analysis.name]
            if isinstance(given, Unavailable):
                raise given.again()
            return given
        numbers = None if ranks is None else tuple(rank.rank for rank in ranks)

        def compute() -> Any:
            if ranks is None and analysis.whole_job and self.whole is not None:
                return analysis.of_ranks(self.whole.ask(analysis, options), [rank.rank for rank in self.run.ranks])
            steps = self.run.ranks[0].steps
            if steps is not None and (analysis.every_step or analysis.across_steps or CHOSEN in options):
                given = {CHOSEN: _both(steps, options[CHOSEN])} if CHOSEN in options else {}
                every = self._all_steps.ask(analysis, {**options, **given}, ranks and [rank.whole for rank in ranks])
                return every.filter(steps.expression("step")) if analysis.across_steps else every
            known = self._part_of_stacked(analysis, options, numbers)
            return self._call(analysis, options, ranks) if known is None else known

        known = self._part_of_stacked(analysis, options, numbers)
        if known is not None:
            return known
        key = self._key(analysis, options, numbers)
        return self.cache.get(key, compute if numbers else lambda: self._kept_or(analysis, options, compute))

    def _kept_or(self, analysis: Analysis, options: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """The answer about the whole run that is kept on disk, or else the computed one, which is then kept."""
        key = self._kept_key(analysis, options)
        if self.kept is None or key is None:
            return compute()
        found = self.kept.find(key)
        if found is None:
            try:
                found = (compute(), None)
            except Unavailable as reason:
                found = (None, reason)
            self.kept.add(key, found[1] or found[0])
        if found[1] is not None:
            raise found[1]
        return found[0]

    def _kept_key(self, analysis: Analysis, options: Mapping[str, Any]) -> bytes | None:
        """The key of a question about the whole run on disk; None if its answer is not kept there."""
        if self.kept is None:
            return None
        key = self._key(analysis, options, None)
        if key not in self._kept_keys:
            changed = {one.name: self.run.options[one.name] for one in analysis.closure if one.name in self.run.options}
            self._kept_keys[key] = self.kept.key(analysis, options, changed, self._selection)
        return self._kept_keys[key]

    def _part_of_stacked(
        self, analysis: Analysis, options: Mapping[str, Any], numbers: tuple[int, ...] | None
    ) -> pl.DataFrame | None:
        """The answer of some ranks from that of all ranks, if it is known: only that one is kept then."""
        if numbers is None:
            return None
        everyone: Stacked | None = self.cache.known(self._key(analysis, options, None))
        if everyone is None and self.kept is not None:
            key = self._kept_key(analysis, options)
            everyone = self._stacked(analysis, options) if key is not None and self.kept.has(key) else None
        if everyone is not None:
            return everyone.part(numbers)
        if self.whole is None or any(one.scope == "job" and not one.whole_job for one in analysis.closure):
            return None
        return self.whole._part_of_stacked(analysis, options, numbers)

    def ask_part(self, analysis: Analysis, options: Mapping[str, Any], ranks: Sequence[Rank]) -> PartAnswer:
        """The answers of some ranks: together, or one by one if that fails."""
        numbers = tuple(rank.rank for rank in ranks)
        try:
            frame = self.ask(analysis, options, ranks)
        except Unavailable as reason:
            if len(ranks) == 1:
                return PartAnswer({}, {numbers[0]: reason.again()})
            return PartAnswer.joined(self.ask_part(analysis, options, [rank]) for rank in ranks)  # of one, perhaps
        if frame is None:
            return PartAnswer({}, {n: Unavailable(f"{analysis.name} gives nothing for rank {n}") for n in numbers})
        return PartAnswer({numbers: frame}, {})

    def _options(self, analysis: Analysis, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options of an analysis: given, else the run's, else default values. Others raise `StepscopeError`."""
        check_options(analysis.name, analysis.options, given)
        return self._completed(analysis, {name: frozen(analysis.name, name, value) for name, value in given.items()})

    def _completed(self, analysis: Analysis, given: Mapping[str, Any]) -> dict[str, Any]:
        return {**analysis.options, **self.run.options.get(analysis.name, {}), **given}

    def _key(self, analysis: Analysis, options: Mapping[str, Any], ranks: tuple[int, ...] | None) -> Any:
        """A key, equal for the same question about the same selection with the same functions and options."""
        used = analysis.closure
        return (
            tuple(_hashable(one.function) for one in used),
            _values(options),
            tuple((one.name, _values(self.run.options[one.name])) for one in used if one.name in self.run.options),
            self._selection,
            ranks,
        )

    @cached_property
    def _all_steps(self) -> Supplier:
        """Answers questions about the same ranks with all their steps."""
        whole = None if self.whole is None else self.whole._all_steps
        return Supplier(self.run.with_all_steps(), self.cache, self.engine, whole, self.kept)

    @cached_property
    def _selection(self) -> Any:
        """The ranks and their selected steps."""
        return (tuple(rank.rank for rank in self.run.ranks), *{rank.steps for rank in self.run.ranks})

    def _stacked(self, analysis: Analysis, options: Mapping[str, Any]) -> Stacked:
        """The answers of all ranks. The parts are not kept in addition."""
        parts: list[PartAnswer] = []

        def stack() -> Stacked:
            parts.extend(self._ask_parts(analysis, options))
            return Stacked.of(parts)

        key = self._key(analysis, options, None)
        answers: Stacked = self.cache.get(key, lambda: self._kept_or(analysis, options, stack), keeps=False)
        groups = [ranks for part in parts for ranks in (*part.frames, *((rank,) for rank in part.silent))]
        self.cache.forget(self._key(analysis, options, ranks) for ranks in groups)
        return answers

    def _ask_parts(self, analysis: Analysis, options: Mapping[str, Any]) -> list[PartAnswer]:
        """Compute the answers of all ranks, as many at a time as possible."""
        parts = self._parts if _takes_several(analysis) else [[rank] for rank in self.run.ranks]
        done = 0
        lock = threading.Lock()

        def count(task: Task) -> None:
            nonlocal done
            with lock:
                done += len(task.ranks)
                report(analysis.name, done, len(self.run.ranks))

        return self.engine.map([self._task(analysis, options, part) for part in parts], count)

    def _task(self, analysis: Analysis, options: Mapping[str, Any], ranks: Sequence[Rank]) -> Task:
        numbers = tuple(rank.rank for rank in ranks)
        return Task(
            numbers,
            here=lambda: self.ask_part(analysis, options, ranks),
            order=lambda: self._orders.order(analysis, options, numbers, self._given_to(analysis)),
        )

    def _given_to(self, analysis: Analysis) -> dict[str, pl.DataFrame | Unavailable]:
        """The answers about the whole job that an analysis of scope `rank` needs, directly or indirectly."""
        given: dict[str, pl.DataFrame | Unavailable] = {}
        for other in analysis.others:
            if other.scope == "rank":
                given |= self._given_to(other)
                continue
            try:
                given[other.name] = self.ask(other, self._completed(other, {}))
            except Unavailable as reason:
                given[other.name] = reason
        return given

    @cached_property
    def _parts(self) -> list[list[Rank]]:
        """The ranks in parts that may be computed together: small neighbours with the same tables."""
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

    def _call(self, analysis: Analysis, options: Mapping[str, Any], ranks: Sequence[Rank] | None) -> Any:
        """Call an analysis with the tables and answers that it names, None for missing optional ones."""
        passed = {name: value for name, value in options.items() if name in analysis.passes}
        own = {name: options[name] for name in analysis.parameters.options}
        supplied: dict[str, Any] = {}
        for name, required in analysis.needs.items():
            check_cancelled()
            if name in TABLES:
                supplied[name] = self._table(name, ranks, analysis)
                if required and supplied[name] is None:
                    raise self.run.lacks(name, analysis.name)
                continue
            try:
                supplied[name] = _copied(self._other(name, ranks, passed))
            except Unavailable:
                if required or self._some_can(name, ranks, passed):
                    raise
                supplied[name] = None
        return analysis.checked(_collected(analysis.name, analysis.function(**supplied, **own)))

    def _some_can(self, name: str, ranks: Sequence[Rank] | None, passed: Mapping[str, Any]) -> bool:
        """Whether some of several ranks have an answer although all of them together do not."""
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
        iterations = None if analysis.as_recorded else self.run.iterations
        return stacked(having, name) if iterations is None else tables_of(having, name, iterations.steps)

    def _other(self, name: str, ranks: Sequence[Rank] | None, passed: Mapping[str, Any]) -> Any:
        """Another answer: of the same ranks if its scope is `rank`, else of the whole job."""
        other = find_analysis(name)
        options = self._completed(other, {option: value for option, value in passed.items() if option in other.options})
        return self.ask(other, options, ranks if other.scope == "rank" else None)


def _takes_several(analysis: Analysis) -> bool:
    """Whether an analysis, and all that it needs, may be called with several ranks' tables."""
    return analysis.together and all(_takes_several(other) for other in analysis.others if other.scope == "rank")


def _both(steps: Selection, chosen: Choice) -> Selection:
    """The selected steps, only those among them that an option names if it names any."""
    named = parse_selection(chosen, "steps")
    return steps if named is None else steps & named


def _values(options: Mapping[str, Any]) -> Hashable:
    return tuple((name, identity(value)) for name, value in sorted(options.items()))


def _hashable(function: Callable[..., Any]) -> Hashable:
    """Equal only for the same function, even if it is a callable object with its own equality or without a hash."""
    plain = isinstance(function, (types.FunctionType, types.MethodType, types.BuiltinFunctionType))
    return function if plain else _Same(function)


class _Same:
    """Equal only for the same object, which it keeps alive."""

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)


def _collected(name: str, result: Any) -> Any:
    """An answer that can be returned repeatedly: lazy frames and generators are collected now."""
    if isinstance(result, (Coroutine, AsyncIterator)):
        if isinstance(result, Coroutine):
            result.close()
        raise StepscopeError(f"{name} is async, so it gives no answer when it is called. Write it as a plain `def`")
    if isinstance(result, Iterator):
        return [_collected(name, part) for part in result]
    return result.collect() if isinstance(result, pl.LazyFrame) else result


def _copied(answer: Any) -> Any:
    """An answer that its receiver may modify; the kept one stays as it is."""
    if isinstance(answer, pl.DataFrame):
        return answer.clone()
    if isinstance(answer, tuple) and hasattr(answer, "_make"):
        return answer._make(map(_copied, answer))
    if type(answer) in (list, tuple, set):
        return type(answer)(map(_copied, answer))
    return {key: _copied(value) for key, value in answer.items()} if type(answer) is dict else answer
