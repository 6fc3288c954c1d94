"""A run: its ranks, lazy tables over all of them, what is missing and why, and its answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, overload

import polars as pl

from stepscope.analysis.parameters import RULE_OPTIONS, check_options, frozen
from stepscope.analysis.registry import ANALYSES
from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.run.answer_cache import DEFAULT_MB, AnswerCache
from stepscope.run.engine import Engine, Threads
from stepscope.run.iterations import Iterations, iterations_of, marks_no_steps, may_have_iterations
from stepscope.run.kept_answers import Asked, KeptAnswers
from stepscope.run.narrow_windows import narrow_step_ns, narrow_window_issues, narrow_windows
from stepscope.run.query import query
from stepscope.run.rank import Rank, known_table, narrowed, stacked
from stepscope.run.recorded import Recorded
from stepscope.run.supply import Supplier
from stepscope.selection import Choice, describe_numbers, named_numbers, parse_selection
from stepscope.store.recording import MemoryRecording
from stepscope.tables import ISSUES, RANKS, STEPS, TABLES
from stepscope.tables.issues import Issue, issue_rows
from stepscope.tables.steps import WHOLE_RECORDING

T = TypeVar("T")

_STEPPED = tuple(name for name, table in TABLES.items() if any(c.name == "step" for c in table.columns))


class Run(Recorded):
    """One recorded training job.

    Args:
        path: The directory or file of the job.
        unread: Inputs next to it that could not be read.
        own_issues: Issues of the run as a whole.
        warnings: Warnings about opening it, e.g. that the store is full.
        skipped: Number of other files that were ignored.
        engine: Runs analyses over ranks. Default: threads of this process.
        answers_mb: MB of answers to keep in memory, for the run and all its selections together. The least recently
            used are dropped first and recomputed when needed.
        store: Directory of the store that has the rows of all ranks, where answers are kept as well.
        prepared: Holds what is prepared for several answers, also of other runs. Default: it is kept with the answers.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        ranks: Iterable[Rank],
        *,
        unread: Sequence[Issue] = (),
        own_issues: Sequence[Issue] = (),
        warnings: Sequence[str] = (),
        skipped: int = 0,
        engine: Engine | None = None,
        answers_mb: float = DEFAULT_MB,
        store: Path | None = None,
        prepared: AnswerCache | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.ranks = sorted(ranks, key=lambda rank: rank.rank)
        self.unread = list(unread)
        self.own_issues = list(own_issues)
        self.warnings = list(warnings)
        self.skipped = skipped
        self.options = {}
        self.others: list[Run] = []
        """Other runs under the opened paths."""
        self.original: Run = self
        """The run as opened; this one may be a selection of its ranks or steps."""
        self.whole: Run = self
        """The run with all its ranks and the steps of this one, which may be a selection of the ranks."""
        self._engine = engine or Threads()
        if not 0 <= answers_mb < math.inf:
            raise StepscopeError(f"answers_mb is {answers_mb}. Give a number of MB, 0 or above")
        self._cache = AnswerCache(round(answers_mb * 1e6))
        self._prepared = prepared
        self._store = store

    @classmethod
    def from_frames(cls, frames: Mapping[int, Mapping[str, pl.DataFrame]], name: str = "frames") -> Run:
        """A run from rows in memory, by rank and table; missing columns are null."""
        ranks = []
        for rank, tables in frames.items():
            path = Path(f"rank{rank}")
            facts: dict[str, Any] = dict.fromkeys(RANKS.schema)
            facts["world_size"] = len(frames)
            if RANKS.name in tables:
                facts.update(tables[RANKS.name].row(0, named=True))
            rows = {
                table: TABLES[known_table(table)].conform(frame.drop("rank", strict=False))
                for table, frame in tables.items()
                if table != RANKS.name
            }
            ranks.append(Rank(rank, "content", MemoryRecording("frames", path, (), facts, rows)))
        return cls(name, Path(), ranks)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, ranks {describe_numbers(rank.rank for rank in self.ranks)})"

    @property
    def world_size(self) -> int | None:
        """Recorded number of ranks of the job, some of which may be missing here; None if unknown."""
        return max((r.facts["world_size"] for r in self.ranks if r.facts["world_size"] is not None), default=None)

    def rank(self, number: int) -> Rank:
        """The rank with this number.

        Raises:
            StepscopeError: If the run does not have it.
        """
        found = next((rank for rank in self.ranks if rank.rank == number), None)
        if found is None:
            raise StepscopeError(f"no rank {number} in {self.name}. It has {self._described()}")
        return found

    def missing(self, name: str) -> str:
        """Which ranks lack a table and why; empty if none does."""
        return "" if all(rank.has(name) for rank in self.ranks) else str(self.lacks(name))

    def coverage(self) -> pl.DataFrame:
        """Number of rows of each table by rank, before steps are selected."""
        schema = {"rank": pl.Int32(), **dict.fromkeys(TABLES, pl.Int64())}
        rows = [[rank.rank, *(rank.rows.get(name, 0) for name in TABLES)] for rank in self.ranks]
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def issues(self) -> pl.DataFrame:
        """What the import skipped or guessed, for all ranks and the run as a whole."""
        return self._issues.clone()

    @cached_property
    def _issues(self) -> pl.DataFrame:
        around = [*self.own_issues, *self.unread, *narrow_window_issues(self._narrow_windows, self.path)]
        having = [rank for rank in self.ranks if rank.has(ISSUES.name)]
        reported = [stacked(having, ISSUES.name).collect()] if having else []
        supplied = [rank.supplied_issues for rank in self.ranks]
        return pl.concat([issue_rows(around), *reported, *(rows.collect() for rows in supplied if rows is not None)])

    @cached_property
    def _narrow_windows(self) -> list[dict[str, int]]:
        return narrow_windows(self._supplier.whole_table(STEPS.name)) if self.has(STEPS.name) else []

    @property
    def narrow_step_ns(self) -> float | None:
        """The time of a step on the host, ns, if the recorded work of most devices spans little of it."""
        return narrow_step_ns(self._narrow_windows, len(self.ranks))

    def table(self, name: str) -> pl.LazyFrame:
        """See `Recorded.table`."""
        if self.whole is not self or known_table(name) == ISSUES.name or not self.has(name):
            return super().table(name)
        return self._supplier.table(name)

    @property
    def steps(self) -> list[int]:
        """The steps of all ranks as numbered by the sources, or else the certain iterations."""
        return self._steps.to_list()

    @cached_property
    def _steps(self) -> pl.Series:
        if self.iterations is not None:
            tables = [narrowed(self.iterations.steps.lazy(), "steps", self.ranks[0].steps)]
        else:
            tables = [self.table(name) for name in ("steps", *_STEPPED) if self.has(name)]
        numbers = pl.col("step").drop_nulls().unique().sort()
        found = (rows.select(numbers).collect()["step"] for rows in tables)
        return next((steps for steps in found if steps.len()), pl.Series([], dtype=pl.Int32))

    @property
    def step_count(self) -> int | None:
        """How many steps, or else certain iterations, there are on any rank; None if there are none."""
        if self.iterations is not None:
            return len(self.steps)
        if not self.has("steps"):
            return None
        marked = self.table("steps").filter(pl.col("window") != WHOLE_RECORDING)
        return int(marked.select(pl.col("step").n_unique()).collect().item()) or None

    @cached_property
    def iterations(self) -> Iterations | None:
        """Steps of ranks that mark none, if they are certain; see `run/iterations.py`."""
        if self.original is not self:
            return self.original.iterations
        if not may_have_iterations(self.ranks):
            return None
        try:
            return iterations_of(self.ranks, self.analyse("iterations"))
        except Unavailable:
            return None

    @property
    def marks_no_steps(self) -> bool:
        """Whether the whole recording stands as one step on each rank that has any."""
        return marks_no_steps(self.ranks)

    def select(self, ranks: Choice = None, steps: Choice = None) -> Run:
        """The run narrowed to some ranks and steps; tables without steps keep their rows.

        Args:
            ranks, steps: `0,3-5`, numbers, or None for all.

        Raises:
            StepscopeError: If nothing is left; the message lists what exists.
        """
        wanted_ranks, wanted_steps = parse_selection(ranks, "ranks"), parse_selection(steps, "steps")
        kept = [rank for rank in self.ranks if wanted_ranks is None or rank.rank in wanted_ranks]
        if wanted_ranks is not None and not kept:
            raise StepscopeError(f"no {wanted_ranks.named('rank')} in {self.name}. It has {self._described()}")
        if wanted_steps is not None:
            if not any(step in wanted_steps for step in self.steps):
                there = f"It has {named_numbers('step', self.steps)}" if self.steps else "It has no steps"
                raise StepscopeError(f"no {wanted_steps.named('step')} in {self.name}. {there}")
            kept = [rank.narrowed(wanted_steps) for rank in kept]
        run = self._with_ranks(kept)
        if len(kept) < len(self.whole.ranks):
            run.whole = self.whole if wanted_steps is None else self.whole.select(steps=wanted_steps)
        return run

    def with_limits(self, limits: Mapping[str, Any]) -> Run:
        """The same run with other limits, by analysis or rule; `advice.limits_from` builds them from plain values."""
        return self.with_options({name: {"limits": values} for name, values in limits.items()})

    def with_options(self, options: Mapping[str, Mapping[str, Any]]) -> Run:
        """The same run with other values of options, by analysis or rule, also for analyses that others need.

        Raises:
            StepscopeError: If there is no such analysis, rule or option, or a value is not data.
        """
        run = self._with_ranks(self.ranks)
        for name, values in options.items():
            defaults = ANALYSES[name].options if name in ANALYSES else RULE_OPTIONS.get(name)
            if defaults is None:
                hint = close_matches(name, [*ANALYSES, *RULE_OPTIONS])
                raise StepscopeError(f"there is no analysis or rule {name!r}. {hint}")
            check_options(name, defaults, values)
            kept = {option: frozen(name, option, value) for option, value in values.items()}
            run.options = {**run.options, name: {**run.options.get(name, {}), **kept}}
        run.original = run if self.original is self else self.original.with_options(options)
        if self.whole is not self:
            run.whole = self.whole.with_options(options)
        return run

    @property
    def limits(self) -> Mapping[str, Any]:
        """Limits that replace the defaults, by analysis or rule; see `with_limits`."""
        return {name: values["limits"] for name, values in self.options.items() if "limits" in values}

    def _with_ranks(self, ranks: Iterable[Rank]) -> Run:
        """A run of some of the ranks, else the same."""
        run = Run(
            self.name,
            self.path,
            ranks,
            unread=self.unread,
            own_issues=self.own_issues,
            warnings=self.warnings,
            skipped=self.skipped,
            engine=self._engine,
        )
        run._cache = self._cache
        run._prepared = self._prepared
        run._store = self._store
        run.others = self.others
        run.options = self.options
        run.original = self.original
        return run

    @overload
    def analyse(self, question: str, /, **options: Any) -> pl.DataFrame: ...
    @overload
    def analyse(self, question: Callable[..., pl.LazyFrame], /, **options: Any) -> pl.DataFrame: ...
    @overload
    def analyse(self, question: Callable[..., Iterator[pl.LazyFrame]], /, **options: Any) -> list[pl.DataFrame]: ...
    @overload
    def analyse(self, question: Callable[..., Iterator[T]], /, **options: Any) -> list[T]: ...
    @overload
    def analyse(self, question: Callable[..., T], /, **options: Any) -> T: ...
    def analyse(self, question: str | Callable[..., Any], /, **options: Any) -> Any:
        """Run an analysis or a function over the tables.

        Args:
            question: An analysis or its name, or any function whose parameters name tables and analyses. A function
                must return the same answer for the same tables, so any other data that it reads must not change.
            **options: Its options, which are plain data; the run supplies the tables and other answers that it needs.

        Returns:
            The result, with lazy frames and generators collected. An analysis of scope `rank` runs for each rank and
            the answers are stacked; ranks without an answer are left out, see `silent_ranks`.

        Raises:
            Unavailable: If this run cannot answer, with the reason.
            Cancelled: If the question was cancelled, see `watched`.
            StepscopeError: If there is no such analysis, parameter or option.
        """
        return self._supplier.answer(question, options)

    def keep(self, asked: Asked, options: Mapping[str, Any], selection: Any, compute: Callable[[], T]) -> T:
        """What `compute` gives, kept on disk like the answers to analyses, for later runs over the same recordings.

        Args:
            asked: The question, and all functions on which its answer depends.
            options: Its options.
            selection: Of which ranks and steps of this run the answer is, as plain data.
            compute: Gives the answer, or raises `Unavailable`. It depends on nothing else.
        """
        return self._supplier.keep(asked, options, selection, compute)

    def query(self, text: str) -> pl.DataFrame:
        """Answer a SQL `SELECT` over the tables; see `stepscope.run.query`.

        Raises:
            StepscopeError: If it refers to anything but tables of this run, or fails.
        """
        lowered = text.lower()  # a table is asked for by its name
        return query({name: self.table(name) for name in TABLES if name in lowered and self.has(name)}, text)

    def silent_ranks(self, question: str | Callable[..., Any], /, **options: Any) -> dict[int, Unavailable]:
        """The ranks without an answer, and why."""
        return self._supplier.silent(question, options)

    @property
    def answers_bytes(self) -> int:
        """Size in bytes of the kept answers of this run and all its selections."""
        return self._cache.used_bytes

    @cached_property
    def _supplier(self) -> Supplier:
        whole = None if self.whole is self else self.whole._supplier
        return Supplier(self, self._cache, self._engine, whole, self.original._kept, prepared=self._prepared)

    @cached_property
    def _kept(self) -> KeptAnswers | None:
        if self._store is None:
            return None
        return KeptAnswers(self._store, self.path, self.ranks, [*self.own_issues, *self.unread])

    def _described(self) -> str:
        return named_numbers("rank", (rank.rank for rank in self.ranks))
