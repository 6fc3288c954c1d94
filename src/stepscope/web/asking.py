"""Questions of clients about runs: computed once for all who ask at the same time, and kept while there is room.

Answers are those of `pages/`, `report/`, `figures/` and `run/`; nothing is computed here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar, cast

import polars as pl

from stepscope.compare import Pair
from stepscope.errors import StepscopeError
from stepscope.figures import Drawn, figure_named
from stepscope.pages.answering import Answered, Request, answer, one_table
from stepscope.pages.base import Page
from stepscope.pages.layout import LAYOUT, with_layout
from stepscope.pages.layout import PAGE as LAYOUT_PAGE
from stepscope.plugins import FAILURES
from stepscope.present import Language
from stepscope.report.answers import answers
from stepscope.report.contents import Contents, contents
from stepscope.run import Cancellation, Run, watched
from stepscope.run.answer_cache import size_of
from stepscope.selection import Choice
from stepscope.web.catalogue import Catalogue
from stepscope.web.errors import AnswerFailed
from stepscope.web.queries import Queries

T = TypeVar("T")

SLOW_THREADS = 2
"""Threads for reports and queries, so that they hold up no page."""

SHOWING_THREADS = 2
"""Threads that put answers into the form in which pages show them, so that this waits for no question."""

_ENTRY_BYTES = 1000
"""What a kept answer takes beside its content."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stats:
    """What has been asked since the start.

    Args:
        asked: Questions.
        computed: Those that were computed; the others were kept, or already being computed for another client.
        failed: Those that had no answer.
        evicted: Answers that were dropped to make room, or since their run was closed.
        kept: Answers that are kept.
        kept_bytes: Their size, as estimated.
        waiting: Questions that are being computed, or wait for it.
    """

    asked: int = 0
    computed: int = 0
    failed: int = 0
    evicted: int = 0
    kept: int = 0
    kept_bytes: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Made(Generic[T]):
    """What is made of a figure, and kept in its place.

    Args:
        key: On what it depends besides the figure.
        of: Makes it; called in a thread.
    """

    key: Hashable
    of: Callable[[Drawn], T]


AS_DRAWN: Made[Drawn] = Made("as drawn", lambda drawn: drawn)


@dataclass(frozen=True)
class _Kept:
    value: Any
    size: int
    runs: tuple[tuple[str, str], ...]
    """The runs that the value holds open: id and stamp."""


class Asking:
    """Asks the runs of a catalogue, in threads of its own.

    Args:
        catalogue: The runs.
        threads: How many questions are computed at a time.
        cache_mb: MB of answers to keep; the least recently used are dropped first.
    """

    def __init__(self, catalogue: Catalogue, *, threads: int = 4, cache_mb: float = 48) -> None:
        self.catalogue = catalogue
        self._most_bytes = round(cache_mb * 1e6)
        self._threads = ThreadPoolExecutor(threads, "asking")
        self._slow = ThreadPoolExecutor(SLOW_THREADS, "asking-slow")
        self._showing = ThreadPoolExecutor(SHOWING_THREADS, "asking-showing")
        self._queries = Queries()
        self._cancellation = Cancellation()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._holding: dict[tuple[str, str], set[Hashable]] = {}
        """Keys of the answers that hold a run open, by its id and stamp."""
        self._bytes = 0
        self._waiting: dict[Hashable, Future[Any]] = {}
        self._stats = Stats()

    def stamps(self, runs: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Ids of runs, each with the stamp of its data now: a part of the key of all that depends on them.

        Raises:
            UnknownRun: If there is no such run.
        """
        return tuple((run, self.catalogue.entry(run).stamp) for run in runs)

    async def ask(self, key: Hashable, compute: Callable[[], T], runs: Sequence[str] = ()) -> T:
        """The value of `compute`, which is kept under a key; whoever asks meanwhile gets the same.

        A client that goes away takes nothing from others. Failures are not kept.

        Args:
            key: Everything on which the value depends.
            compute: Called in a thread.
            runs: Ids of the runs that it reads: if it fails, it is found out whether they can still be read.
        """
        return await self._ask(key, lambda: self._checked(compute, runs), (), self._threads)

    async def shown(self, key: Hashable, show: Callable[[], T], runs: Sequence[str] = ()) -> T:
        """As `ask`, for what only puts answers into the form in which a page shows them, which takes moments."""
        return await self._ask(key, lambda: self._checked(show, runs), (), self._showing)

    async def about(self, run: str, key: Hashable, compute: Callable[[Run], T]) -> T:
        """What `compute` gives of a run, kept for the next who asks.

        Args:
            run: Id of the run.
            key: All on which the value depends besides the data of the run.
            compute: Called in a thread; what it gives must not refer to the run, which may be closed meanwhile.

        Raises:
            StepscopeError: See `answered`.
        """
        return await self._of(run, ("about", key), lambda: compute(self.catalogue.open(run)))

    async def answered(self, run: str, page: Page, request: Request) -> Answered:
        """The answers of a page about a run.

        Raises:
            UnknownRun, NotReady, RunBroken: See `Catalogue.open`.
            StepscopeError: If the request asks for what there is not.
        """
        key = ("page", page.name, hashable(request))
        # the page that shows what contradicts a layout takes it itself
        layout = None if page.name == LAYOUT_PAGE.name else request.options.get(LAYOUT.name) or None
        return await self._of(
            run, key, lambda: answer(with_layout(self.catalogue.open(run), layout), page, request), holds=True
        )

    async def of_figure(
        self,
        made: Made[T],
        run: str,
        name: str,
        language: Language = "en",
        options: Mapping[str, Any] | None = None,
        ranks: Choice = None,
        steps: Choice = None,
        layout: str | None = None,
    ) -> T:
        """What is made of a figure of a run, of some of its ranks and steps.

        Args:
            layout: Parallel sizes to take for those of the run.

        Raises:
            Unavailable: If the run has no answers for it.
            StepscopeError: If there is no such figure, rank or step; see also `answered`.
        """
        figure, given = figure_named(name), dict(options or {})

        def draw() -> T:
            opened = with_layout(self.catalogue.open(run), layout)
            chosen = opened if ranks is None and steps is None else opened.select(ranks, steps)
            return made.of(figure.drawn(chosen, language=language, **given))

        key = ("figure", made.key, name, language, hashable((given, ranks, steps, layout)))
        return await self._of(run, key, draw)

    async def overview(self, run: str, language: Language = "en") -> Contents:
        """Facts of a run, its verdict, its findings with their evidence, and what could not be read; no modules."""

        def collect() -> Contents:
            opened = self.catalogue.open(run)
            return contents(opened, answers(opened), language, modules=False, marked=True)

        return await self._of(run, ("overview", language), collect)

    async def pair(self, base: str, new: str, page: Page, request: Request) -> Answered:
        """The answers of a page about two runs, which may be the same.

        Raises:
            StepscopeError: See `answered`.
        """
        key = ("pair", page.name, hashable(request))

        def compare() -> Answered:
            return answer(Pair(self.catalogue.open(base), self.catalogue.open(new)), page, request)

        return await self._of(new, key, compare, holds=True, also=(base,))

    async def query(self, run: str, sql: str) -> pl.DataFrame:
        """The answer to a SQL query over the tables of a run.

        Raises:
            StepscopeError: If it asks for anything but tables of the run, or takes too long; see also `answered`.
        """
        return await self._of(
            run, ("query", sql), lambda: self._queries.query(self.catalogue.order(run), sql), is_slow=True
        )

    async def report(self, run: str, language: Language = "en") -> bytes:
        """The whole report of a run, as an HTML file."""

        def write() -> bytes:
            from stepscope.report.html import to_html  # noqa: PLC0415 - it needs Jinja2

            opened = self.catalogue.open(run)
            return to_html(contents(opened, answers(opened), language, figures=True))

        return await self._of(run, ("report", language), write, is_slow=True)

    async def table(self, run: str, page: Page, request: Request) -> pl.DataFrame:
        """The rows of one section of a page, as `one_table` gives them: that of `request.table`, else the first."""
        key = ("table", page.name, hashable(request))
        return await self._of(run, key, lambda: one_table(answer(self.catalogue.open(run), page, request)))

    def stats(self) -> Stats:
        """What has been asked so far."""
        with self._lock:
            return replace(self._stats, kept=len(self._kept), kept_bytes=self._bytes, waiting=len(self._waiting))

    def close(self) -> None:
        """Stop all questions, between ranks and analyses."""
        self._cancellation.cancel()
        self._queries.close()
        for threads in (self._threads, self._slow, self._showing):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _of(
        self,
        run: str,
        key: tuple[Hashable, ...],
        compute: Callable[[], T],
        *,
        holds: bool = False,
        also: Sequence[str] = (),
        is_slow: bool = False,
    ) -> T:
        """Ask about a run.

        Args:
            holds: Whether the answer keeps the run, and those in `also`, open.
            is_slow: Whether it may take long.
        """
        runs = (run, *also)
        stamps = self.stamps(runs)
        held = stamps if holds else ()
        threads = self._slow if is_slow else self._threads
        return await self._ask((*stamps, *key), lambda: self._checked(compute, runs), held, threads)

    def _checked(self, compute: Callable[[], T], runs: Sequence[str]) -> T:
        """What `compute` gives; a failure that nobody foresaw may come from a run that can no longer be read."""
        try:
            return compute()
        except StepscopeError:
            raise
        except (*FAILURES, pl.exceptions.PanicException) as error:
            for each in runs:
                self.catalogue.check(each)
            _LOG.exception("a question about %s failed", " and ".join(runs) or "no run")
            raise AnswerFailed(
                f"this could not be computed, by a fault of stepscope ({type(error).__name__}). Its log has more"
            ) from error

    async def _ask(
        self, key: Hashable, compute: Callable[[], T], runs: tuple[tuple[str, str], ...], threads: ThreadPoolExecutor
    ) -> T:
        with self._lock:
            self._stats = replace(self._stats, asked=self._stats.asked + 1)
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(T, self._kept[key].value)
            future = self._waiting.get(key)
            if future is None:
                try:
                    future = threads.submit(self._compute, key, compute, runs)
                except RuntimeError:
                    raise StepscopeError("the server is being stopped. Start it again") from None
                self._waiting[key] = future
        # Shielded, as a client that goes away must not take the answer from others who wait for it.
        return cast(T, await asyncio.shield(asyncio.wrap_future(future)))

    def _compute(self, key: Hashable, compute: Callable[[], Any], runs: tuple[tuple[str, str], ...]) -> Any:
        try:
            with watched(cancellation=self._cancellation):
                value = compute()
        except BaseException:
            with self._lock:
                self._waiting.pop(key, None)
                self._stats = replace(self._stats, computed=self._stats.computed + 1, failed=self._stats.failed + 1)
            raise
        size = size_of(value) + _ENTRY_BYTES
        with self._lock:
            self._waiting.pop(key, None)
            self._stats = replace(self._stats, computed=self._stats.computed + 1)
            if size <= self._most_bytes:
                self._kept[key] = _Kept(value, size, runs)
                self._bytes += size
                for run in runs:
                    self._holding.setdefault(run, set()).add(key)
            self._make_room()
        return value

    def _make_room(self) -> None:
        """Drop what holds runs that are closed, and what was used the longest ago."""
        for run in [run for run in self._holding if not self.catalogue.is_open(*run)]:
            for key in self._holding.pop(run):
                if key in self._kept:
                    self._drop(key)
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        dropped = self._kept.pop(key)
        self._bytes -= dropped.size
        for run in dropped.runs:
            if run in self._holding:
                self._holding[run].discard(key)
        self._stats = replace(self._stats, evicted=self._stats.evicted + 1)


def hashable(value: Any) -> Hashable:
    """A key that is equal for equal values: of requests, listings, options, selections.

    Examples:
        >>> hashable({"b": [1, 2], "a": None}) == hashable({"a": None, "b": [1, 2]})
        True
    """
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__qualname__, *(hashable(getattr(value, one.name)) for one in fields(value)))
    if isinstance(value, Mapping):
        return ("mapping", *sorted(((str(name), hashable(part)) for name, part in value.items()), key=repr))
    if isinstance(value, (list, tuple, set, frozenset, range)):
        parts = [hashable(part) for part in value]
        return (type(value).__name__, *(sorted(parts, key=repr) if isinstance(value, (set, frozenset)) else parts))
    # 1, 1.0 and True are equal, but no two of them mean the same to an analysis
    return (type(value).__name__, value)
