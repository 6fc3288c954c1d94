"""Supplies analyses with the tables and answers named by their parameters.

An analysis of scope `rank` runs in parts, each a task of the engine, and the parts are stacked. `AnswerCache` ensures
that nothing is computed twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import polars as pl

from stepscope.analysis.parameters import CHOSEN, check_options, frozen
from stepscope.analysis.registry import PREPARED, Analysis, Prepared, find_analysis, needed, without_rows
from stepscope.errors import Unavailable
from stepscope.run.answer_cache import AnswerCache
from stepscope.run.answer_values import collected, copied
from stepscope.run.engine import Engine, Task
from stepscope.run.engine.base import PartAnswer, Ranks, by_rank
from stepscope.run.engine.orders import Orders
from stepscope.run.iterations import by_iterations, may_have_iterations
from stepscope.run.kept_answers import Asked, KeptAnswers
from stepscope.run.kept_rows import KeptRows
from stepscope.run.question_keys import hashable, values
from stepscope.run.rank import Rank, narrowed, stacked
from stepscope.run.rank_groups import RankGroups
from stepscope.run.recorded import Recorded
from stepscope.run.watching import check_cancelled, report
from stepscope.selection import Choice, Selection, parse_selection
from stepscope.tables import ISSUES, TABLES

T = TypeVar("T")


class Supplier:
    """Answers questions about one run.

    Args:
        run: The run, which may be a selection of ranks or steps.
        cache: Answers of the run and of all its selections.
        whole: Answers questions about all ranks, if the run is a selection of them.
        kept: Answers on disk of the run and of all its selections.
        only: The ranks about which analyses of scope `rank` are asked; all by default.
        prepared: Holds what is prepared for several answers, perhaps of several runs. Default: `cache`.
    """

    def __init__(
        self,
        run: Recorded,
        cache: AnswerCache,
        engine: Engine,
        whole: Supplier | None = None,
        kept: KeptAnswers | None = None,
        only: Collection[int] | None = None,
        prepared: AnswerCache | None = None,
    ) -> None:
        self.run = run
        self._asked = run.ranks if only is None else [rank for rank in run.ranks if rank.rank in only]
        self.cache = cache
        self.engine = engine
        self.whole = whole
        self.kept = kept
        self.prepared = cache if prepared is None else prepared
        self._kept_keys: dict[Hashable, bytes | None] = {}
        self._orders = Orders(run, cache.most_bytes)
        self._rank_groups = RankGroups(self._asked)
        self.given: Mapping[str, pl.DataFrame | Unavailable] = {}
        """Answers about the whole job supplied by the calling process."""

    def answer(self, question: str | Callable[..., Any], options: Mapping[str, Any]) -> Any:
        """See `Run.analyse`."""
        analysis = find_analysis(question)
        with self._keeping():
            return copied(self.ask(analysis, self._options(analysis, options)))

    def silent(self, question: str | Callable[..., Any], options: Mapping[str, Any]) -> dict[int, Unavailable]:
        """See `Run.silent_ranks`."""
        analysis = find_analysis(question)
        if analysis.scope == "job":
            return {}
        with self._keeping():
            return dict(self._stacked(analysis, self._options(analysis, options)).silent)

    def keep(self, asked: Asked, options: Mapping[str, Any], selection: Any, compute: Callable[[], T]) -> T:
        """See `Run.keep`."""
        with self._keeping():
            key = None if self.kept is None else self.kept.key(asked, options, self.run.options, selection)
            found: T = self._kept_under(key, compute)
            return found

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Write the answers to keep when a question is answered."""
        try:
            yield
        finally:
            if self.kept is not None:
                self.kept.write()

    def table(self, name: str) -> pl.LazyFrame:
        """A table of all ranks, which at least one has."""
        return narrowed(self._rows.scan(name), name, self.run.ranks[0].steps)

    def whole_table(self, name: str) -> pl.LazyFrame:
        """A table of these ranks with all steps, which at least one has."""
        return self._rows.table(name, [rank.rank for rank in self.run.ranks if rank.has(name)])

    def ask(self, analysis: Analysis, options: Mapping[str, Any]) -> Any:
        """The answer about the whole job, or of all ranks; `options` are all that it has.

        Raises:
            Unavailable: If there is none.
        """
        if analysis.scope == "rank":
            return self._stacked(analysis, options).whole()
        if analysis.name in self.given:
            given = self.given[analysis.name]
            if isinstance(given, Unavailable):
                raise given.again()
            return given

        def compute() -> Any:
            if analysis.whole_job and self.whole is not None:
                return analysis.of_ranks(self.whole.ask(analysis, options), self._numbers)
            selected = self._of_all_steps(analysis, options)
            if selected is None:
                return self._call(analysis, options, None)
            every = self._all_steps.ask(analysis, selected)
            return every.filter(self._steps_chosen()) if analysis.across_steps else every

        if analysis.is_prepared:
            return self.prepared.get(self._prepared_key(analysis), compute)
        return self.cache.get(self._key(analysis, options, None), lambda: self._kept_or(analysis, options, compute))

    def _kept_or(self, analysis: Analysis, options: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """The answer about the whole run that is kept on disk, or else the computed one, which is then kept."""
        return self._kept_under(self._kept_key(analysis, options), compute)

    def _kept_under(self, key: bytes | None, compute: Callable[[], Any]) -> Any:
        if self.kept is None or key is None:
            return compute()
        found = self.kept.find(key)
        if found is None:
            start = time.monotonic()
            try:
                found = (compute(), None)
            except Unavailable as reason:
                found = (None, reason)
            self.kept.add(key, found[1] or found[0], time.monotonic() - start)
        if found[1] is not None:
            raise found[1]
        return found[0]

    def _kept_key(self, analysis: Analysis, options: Mapping[str, Any]) -> bytes | None:
        """The key of a question about the whole run on disk; None if its answer is not kept there."""
        if self.kept is None:
            return None
        key = self._key(analysis, options, None)
        if key not in self._kept_keys:
            self._kept_keys[key] = self.kept.key(analysis, options, self._changed(analysis), self._selection)
        return self._kept_keys[key]

    def _kept_part_key(self, analysis: Analysis, options: Mapping[str, Any], ranks: Ranks) -> bytes | None:
        """The key on disk of the answers of some ranks about all steps, which each selection of steps needs anew."""
        is_of_all = self.run.ranks[0].steps is None and (analysis.every_step or analysis.across_steps)
        if self.kept is None or not is_of_all:
            return None
        return self.kept.key(analysis, options, self._changed(analysis), (self._selection, ranks))

    def _changed(self, analysis: Analysis) -> dict[str, Mapping[str, Any]]:
        """Options of the run that replace defaults, of an analysis and of those that it needs."""
        return {one.name: self.run.options[one.name] for one in analysis.closure if one.name in self.run.options}

    def ask_part(
        self, analysis: Analysis, options: Mapping[str, Any], ranks: Ranks, *, keeps: bool = False
    ) -> PartAnswer:
        """The answers of one of the groups of ranks that an analysis is asked about; see `_groups`.

        Args:
            keeps: Keep them on disk by themselves if they are the same whatever steps are selected.
        """

        def compute() -> PartAnswer:
            known: PartAnswer | None = self.cache.known(self._key(analysis, options, None))  # since it was looked for
            if known is None and self.whole is not None:
                known = self.whole._known(analysis, options)
            if known is not None:
                return known.narrowed(ranks)
            selected = self._of_all_steps(analysis, options)
            if selected is None:
                key = self._kept_part_key(analysis, options, ranks) if keeps else None
                found: PartAnswer = self._kept_under(key, lambda: self._computed(analysis, options, ranks))
                return found
            every = self._all_steps.ask_part(analysis, selected, ranks, keeps=True)
            if every.frame is None or not analysis.across_steps:
                return every
            return replace(every, frame=every.frame.filter(self._steps_chosen()))

        answer: PartAnswer = self.cache.get(self._key(analysis, options, ranks), compute)
        return answer

    def _computed(self, analysis: Analysis, options: Mapping[str, Any], ranks: Ranks) -> PartAnswer:
        """The answers of some ranks from one call, or several if some of the ranks have none."""
        try:
            frame = self._call(analysis, options, ranks)
        except Unavailable as reason:
            some = tuple(rank for rank in ranks if rank in reason.of)
            if len(ranks) == 1 or len(some) == len(ranks) or (analysis.nothing and reason.marked == analysis.nothing):
                return PartAnswer((), None, {rank: reason.again() for rank in ranks})
            others = tuple(rank for rank in ranks if rank not in reason.of)
            parts = [some, others] if some else [(rank,) for rank in ranks]  # of one, perhaps
            return PartAnswer.joined([self._computed(analysis, options, part) for part in parts])
        if frame is None:
            return PartAnswer((), None, {n: Unavailable(f"{analysis.name} gives nothing for rank {n}") for n in ranks})
        lacking = without_rows(ranks, frame) if analysis.nothing else ()
        answered = tuple(rank for rank in ranks if rank not in lacking)
        silent = {rank: Unavailable(analysis.nothing) for rank in lacking}
        return PartAnswer(answered, by_rank([frame]) if answered else None, silent)

    def _part_with(self, analysis: Analysis, options: Mapping[str, Any], ranks: Ranks) -> PartAnswer:
        """Answers of some ranks and perhaps of others: all ranks', if they are known, else those of their groups."""
        known = self._all_known(analysis, options)
        if known is not None:
            return known
        groups = [group for group in self._groups(analysis) if not {*group}.isdisjoint(ranks)]
        if groups == [self._numbers] and self.kept is not None:
            return self._kept_part(analysis, options)
        parts = [self.ask_part(analysis, options, group, keeps=True) for group in groups]
        return parts[0] if len(parts) == 1 else PartAnswer.joined(parts)

    def _kept_part(self, analysis: Analysis, options: Mapping[str, Any]) -> PartAnswer:
        """The answers of all ranks, which are one group, for another question: also kept as if they were asked."""

        def compute() -> PartAnswer:
            return self.ask_part(analysis, options, self._numbers)

        key = self._key(analysis, options, None)
        answers: PartAnswer = self.cache.get(key, lambda: self._kept_or(analysis, options, compute))
        self.cache.forget([self._key(analysis, options, self._numbers)])
        return answers

    def _known(self, analysis: Analysis, options: Mapping[str, Any]) -> PartAnswer | None:
        """The answers of all ranks, if they are known and those of some ranks are the same without the others."""
        if any(one.scope == "job" and not one.whole_job for one in analysis.closure):
            return None
        return self._all_known(analysis, options)

    def _all_known(self, analysis: Analysis, options: Mapping[str, Any]) -> PartAnswer | None:
        """The answers of all ranks, if they are in memory or on disk."""
        known: PartAnswer | None = self.cache.known(self._key(analysis, options, None))
        if known is None and self.kept is not None:
            key = self._kept_key(analysis, options)
            known = self._stacked(analysis, options) if key is not None and self.kept.has(key) else None
        return known

    def _of_all_steps(self, analysis: Analysis, options: Mapping[str, Any]) -> dict[str, Any] | None:
        """The options with which it is asked about all steps although some are selected, else None."""
        steps = self.run.ranks[0].steps
        if steps is None or not (analysis.every_step or analysis.across_steps or CHOSEN in options):
            return None
        return {**options, **({CHOSEN: _both(steps, options[CHOSEN])} if CHOSEN in options else {})}

    def _steps_chosen(self) -> pl.Expr:
        """Whether a row is of a selected step."""
        steps = self.run.ranks[0].steps
        return pl.lit(value=True) if steps is None else steps.expression("step")

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
            tuple(hashable(one.function) for one in used),
            values(options),
            tuple((one.name, values(self.run.options[one.name])) for one in used if one.name in self.run.options),
            self._selection,
            ranks,
        )

    def _prepared_key(self, analysis: Analysis) -> Hashable:
        """A key in a cache that several runs may share."""
        return (self.cache.owner, self._key(analysis, {}, None))

    @cached_property
    def _all_steps(self) -> Supplier:
        """Answers questions about the same ranks with all their steps."""
        whole = None if self.whole is None else self.whole._all_steps
        only = [rank.rank for rank in self._asked]
        return Supplier(self.run.with_all_steps(), self.cache, self.engine, whole, self.kept, only, self.prepared)

    @cached_property
    def _selection(self) -> Any:
        """The ranks and their selected steps."""
        return (self._numbers, *{rank.steps for rank in self.run.ranks})

    @cached_property
    def _numbers(self) -> Ranks:
        return tuple(rank.rank for rank in self.run.ranks)

    def _stacked(self, analysis: Analysis, options: Mapping[str, Any]) -> PartAnswer:
        """The answers of all ranks. The parts are not kept in addition."""

        asked = self

        def stack() -> PartAnswer:
            nonlocal asked
            known = self._known_elsewhere(analysis, options)
            if known:
                left = {*self._numbers}.difference(*(part.ranks for part in known))
                asked = Supplier(self.run, self.cache, self.engine, self.whole, only=left, prepared=self.prepared)
                asked.given = self.given
            return PartAnswer.joined([*known, *asked._ask_parts(analysis, options)])

        key = self._key(analysis, options, None)
        answers: PartAnswer = self.cache.get(key, lambda: self._kept_or(analysis, options, stack), keeps=False)
        self.cache.forget(self._key(analysis, options, ranks) for ranks in asked._groups(analysis))
        return answers

    def _known_elsewhere(self, analysis: Analysis, options: Mapping[str, Any]) -> list[PartAnswer]:
        """The answers of ranks that are kept as part of another run, e.g. of the same job with fewer ranks.

        They depend on nothing else in a run unless iterations number its tables, which no run has with a rank that
        marks steps. Reasons why there is no answer may name other ranks.
        """
        known: list[PartAnswer] = []
        if self.kept is None or any(one.scope == "job" for one in analysis.closure):
            return known
        left, steps = {*self._numbers}, self.run.ranks[0].steps
        for shared, everyone in self.kept.of_other_runs(analysis, options, self._changed(analysis), steps):
            some = tuple(sorted(left.intersection(shared, everyone.ranks)))
            if some and not may_have_iterations([self._by_number[number] for number in some]):
                known.append(everyone.narrowed(some))
                left.difference_update(some)
        return known

    def _ask_parts(self, analysis: Analysis, options: Mapping[str, Any]) -> list[PartAnswer]:
        """Compute the answers of the ranks that are asked, as many at a time as possible."""
        done = 0
        lock = threading.Lock()

        def count(task: Task) -> None:
            nonlocal done
            with lock:
                done += len(task.ranks)
                report(analysis.name, done, len(self._asked))

        return self.engine.map([self._task(analysis, options, group) for group in self._groups(analysis)], count)

    def _task(self, analysis: Analysis, options: Mapping[str, Any], ranks: Ranks) -> Task:
        return Task(
            ranks,
            here=lambda: self.ask_part(analysis, options, ranks),
            order=lambda: self._orders.order(analysis, options, ranks, self._given_to(analysis)),
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

    def _groups(self, analysis: Analysis) -> list[Ranks]:
        return self._rank_groups.of(analysis)

    def _call(self, analysis: Analysis, options: Mapping[str, Any], ranks: Ranks | None) -> Any:
        """Call an analysis with the tables and answers that it names, None for missing optional ones."""
        passed = {name: value for name, value in options.items() if name in analysis.passes}
        own = {name: options[name] for name in analysis.parameters.options}
        supplied = {
            name: self._supplied(name, ranks, analysis, passed, required=required)
            for name, required in analysis.needs.items()
        }
        return analysis.checked(collected(analysis.name, analysis.function(**supplied, **own)))

    def _supplied(
        self, name: str, ranks: Ranks | None, analysis: Analysis, passed: Mapping[str, Any], *, required: bool
    ) -> Any:
        """What one parameter of an analysis names; None if that is missing, which `required` makes an error."""
        check_cancelled()
        if name in TABLES:
            table = self._table(name, ranks, analysis)
            if required and table is None:
                raise self.run.lacks(name, analysis.name).again(ranks or ())
            return table
        if name in PREPARED:
            return self._prepared(PREPARED[name])
        try:
            return copied(self._other(name, ranks, passed, required=required))
        except Unavailable as reason:
            if required or reason.of:
                raise reason.again(reason.of or ranks or ()) from None
            return None

    def _prepared(self, analysis: Analysis) -> Prepared[Any]:
        """A function that gives what is prepared, once what that needs is known."""
        if self.prepared.known(self._prepared_key(analysis)) is None:
            for name, required in analysis.needs.items():
                if required:
                    self._supplied(name, None, analysis, {}, required=True)
        return lambda: self.ask(analysis, {})

    def _table(self, name: str, ranks: Ranks | None, analysis: Analysis) -> pl.LazyFrame | None:
        among = self.run.ranks if ranks is None else [self._by_number[number] for number in ranks]
        if name == ISSUES.name:
            return self.run.table(name) if ranks is None else stacked(among, name)
        having = [rank for rank in among if rank.has(name)]
        if not having:
            return None
        rows = self._rows.table(name, [rank.rank for rank in having])
        iterations = None if analysis.as_recorded else self.run.iterations
        if iterations is not None:
            rows = by_iterations(rows, having, name, iterations.steps)
        return narrowed(rows, name, self.run.ranks[0].steps)

    @cached_property
    def _rows(self) -> KeptRows:
        return KeptRows(self.run.ranks, self.cache, self.kept) if self.whole is None else self.whole._rows

    def _other(self, name: str, ranks: Ranks | None, passed: Mapping[str, Any], *, required: bool) -> Any:
        """Another answer: of the same ranks if its scope is `rank`, else of the whole job."""
        other = needed(name)
        options = self._completed(other, {option: value for option, value in passed.items() if option in other.options})
        if ranks is None or other.scope == "job":
            return self.ask(other, options)
        part = self._part_with(other, options, ranks)
        return None if not required and part.silent.keys() >= {*ranks} else part.of(ranks)

    @cached_property
    def _by_number(self) -> dict[int, Rank]:
        return {rank.rank: rank for rank in self.run.ranks}


def _both(steps: Selection, chosen: Choice) -> Selection:
    """The selected steps, only those among them that an option names if it names any."""
    named = parse_selection(chosen, "steps")
    return steps if named is None else steps & named
