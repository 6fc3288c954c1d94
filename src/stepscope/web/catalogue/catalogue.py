"""The catalogue: looks for runs, has them read and analysed in the background, and opens them."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from stepscope import plugins
from stepscope.errors import StepscopeError, close_matches
from stepscope.paths import shown
from stepscope.plugins import FAILURES
from stepscope.run import Run, run_of
from stepscope.run.answer_cache import AnswerCache
from stepscope.store import Store, cache_directory
from stepscope.tables.issues import Issue
from stepscope.web.catalogue.entry import Entry, digest
from stepscope.web.catalogue.finding import Below, Name
from stepscope.web.catalogue.helpers import Helper, HelperDied
from stepscope.web.catalogue.listing import Listed, grouped, listed
from stepscope.web.catalogue.open_runs import OpenRuns
from stepscope.web.catalogue.orders import RunOrder, order_of
from stepscope.web.catalogue.summary import Summary, kept_summary
from stepscope.web.errors import NotReady, RunBroken, UnknownRun

_GONE_S = 3600.0
"""How long a run is listed whose files are gone."""

_ANSWERS_MB = 4.0
"""Answers that an open run keeps in memory; the rest is read from disk again in milliseconds."""

_PREPARED_MB = 400.0
"""What is prepared for replaying open runs with one choice of changes after the other, of all of them together: of 64
ranks with 20,000 kernels each it takes 300 MB and is made in seconds, a replay with it takes tenths of a second."""

_PREPARED_S = 300.0
"""How long it is kept after the last question; chosen by us."""

_MORE_DIGITS = 4
"""Of a hash, added to ids that would be the same."""

_SMALL_BYTES = 64 << 20
"""Runs with files of at most this size are analysed beside larger ones, which take minutes; chosen by us."""

_BUSY_SHARE = 0.1
"""Share of the time that looking for changes may take; of very many files it is done less often."""

_ENDS_WITHIN_S = 5.0
"""How long the end of the catalogue waits for its threads together: they are daemons, and end with the process."""

_DIED = "the process that read it died ({how})"
_DIED_REMEDY = "Run `stepscope analyze` on it to see why; if memory ran out, set STEPSCOPE_WORKERS=1"

_LOG = logging.getLogger(__name__)


class Catalogue:
    """All runs below some directories.

    Args:
        roots: Directories (or files); of one that lies in another, the outer one counts.
        use_store: Keep what is read for the next time; otherwise until the catalogue is closed.
        rescan_s: Seconds between two looks for changes.
        open_runs: How many runs are kept open.
        answers_mb: MB of answers that each of them keeps in memory.
        analyse: Ask what pages will show beforehand, in a process of its own.

    Raises:
        StepscopeError: If a root does not exist, or there is no place to store rows.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        use_store: bool = True,
        rescan_s: float = 3.0,
        open_runs: int = 20,
        answers_mb: float = _ANSWERS_MB,
        analyse: bool = True,
    ) -> None:
        self.roots = _outermost(roots)
        self.revision = 0
        self._store, self._is_temporary = _store(use_store=use_store)
        self._rescan_s, self._answers_mb, self._analyses = rescan_s, answers_mb, analyse
        self._lock = threading.RLock()
        """Of what follows, up to the entries, which are replaced as a whole."""
        self._below = [Below(root, self.roots) for root in self.roots]
        self._jobs: dict[Path, list[Listed]] = {}
        self._summaries: dict[str, Summary | None] = {}
        """What was found out about the data with a stamp; None if that failed."""
        self._done: set[str] = set()
        """The stamps whose data needs no more analysis."""
        self._gone: dict[str, tuple[Entry, float]] = {}
        self._analysed: dict[str, float] = {}
        """The stamps that are being analysed, and how far that is."""
        self._listed: dict[str, Listed] = {}
        self._entries: dict[str, Entry] = {}
        self._open = OpenRuns(open_runs)
        self._prepared = AnswerCache(round(_PREPARED_MB * 1e6))
        self._work = threading.Condition(self._lock)
        self._look = threading.Event()
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._reader = Helper()
        self._analysts = {limit: Helper() for limit in (_SMALL_BYTES, None)} if analyse else {}
        """By the size of the largest run that they take; large ones do not hold up small ones."""

    def start(self) -> None:
        """Begin to look, read and analyse in the background."""
        plugins.install()
        analysing = (partial(self._keep_analysing, helper, limit) for limit, helper in self._analysts.items())
        for target in (self._keep_looking, self._keep_reading, *analysing):
            thread = threading.Thread(target=self._guarded, args=(target,), name="catalogue")
            thread.daemon = True
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """End all that runs in the background; what was being read is read the next time."""
        with self._work:
            self._is_closed = True
            self._work.notify_all()
        self._look.set()
        self._reader.close()
        for helper in self._analysts.values():
            helper.close()
        until = time.monotonic() + _ENDS_WITHIN_S
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        self._reader.rest()
        for helper in self._analysts.values():
            helper.rest()
        self._open.clear()
        if self._is_temporary:
            shutil.rmtree(self._store.directory, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """All entries, the newest first."""
        return list(self._entries.values())

    def entry(self, identity: str) -> Entry:
        """The entry of an id.

        Raises:
            UnknownRun: If there is none.
        """
        entries = self._entries
        if identity not in entries:
            hint = close_matches(identity, entries) if entries else "There is none yet"
            raise UnknownRun(f"there is no run {identity!r}. {hint}")
        return entries[identity]

    def open(self, identity: str) -> Run:
        """The run of an id, opened if it is not open.

        Raises:
            UnknownRun: If there is none.
            NotReady: If it is not read yet.
            RunBroken: If it cannot be read, or is gone.
        """
        one = self._read_one(identity)
        return self._open.get(identity, one.entry.stamp, lambda: self._opened(one, self._answers_mb))

    def order(self, identity: str) -> RunOrder:
        """What another process needs to open a run.

        Raises:
            UnknownRun, NotReady, RunBroken: See `open`.
        """
        one = self._read_one(identity)
        assert one.job is not None
        return order_of(one.job, one.unread, self._store.directory)

    def _read_one(self, identity: str) -> Listed:
        """What is listed of a run that is read."""
        entry, one = self.entry(identity), self._listed.get(identity)
        if one is None or one.job is None:
            if entry.state in ("failed", "gone"):
                raise RunBroken(f"{entry.name}: {entry.problem}")
            raise NotReady(f"{entry.name} is not read yet. Wait a moment, and open it again")
        return one

    def is_open(self, identity: str, stamp: str) -> bool:
        """Whether the run of an id is open, with the data of a stamp."""
        return self._open.has(identity, stamp)

    def check(self, identity: str) -> None:
        """Find out whether a run can still be read, after an answer has failed.

        Raises:
            NotReady: If the store has lost it, so that it is read again.
            RunBroken: If it is gone.
        """
        self._look.set()
        one = self._listed.get(identity)
        if one is None or all(directory.is_dir() for directory in one.directories):
            return
        self._open.drop(identity)
        lost = {directory for directory in one.directories if not directory.is_dir()}
        with self._work:
            for below in self._below:
                for name, slot in below.slots.items():
                    if getattr(slot.recording, "directory", None) in lost:
                        below.forget(name)
            self._regroup()
        raise NotReady(f"{one.entry.name}: the store has lost its rows, so it is read again. Wait a moment")

    def _opened(self, one: Listed, answers_mb: float) -> Run:
        assert one.job is not None
        if not all(directory.is_dir() for directory in one.directories):
            threading.Thread(target=self._check_quietly, args=(one.entry.id,), daemon=True).start()
            raise NotReady(f"{one.entry.name}: the store has lost its rows, so it is read again. Wait a moment")
        return run_of(
            one.job,
            unread=one.unread,
            answers_mb=answers_mb,
            store=self._store.directory,
            prepared=self._prepared,
        )

    def _check_quietly(self, identity: str) -> None:
        with suppress(StepscopeError):
            self.check(identity)

    def _guarded(self, target: Callable[[], None]) -> None:
        """Go on after a failure that nobody foresaw: one bad run must not stop the others."""
        while not self._is_closed:
            try:
                target()
            except FAILURES:
                _LOG.exception("the catalogue failed and goes on")
                time.sleep(1.0)

    def _keep_looking(self) -> None:
        while not self._is_closed:
            self._look.clear()
            started = time.monotonic()
            for below in self._below:
                with self._work:
                    if below.look(self._store):
                        self._regroup(below)
                        self._work.notify_all()
                    else:
                        self._publish()
            self._prepared.drop_unused(_PREPARED_S)
            took = time.monotonic() - started
            self._look.wait(max(self._rescan_s, took / _BUSY_SHARE))

    def _keep_reading(self) -> None:
        while not self._is_closed:
            with self._work:
                below, names = self._next_batch()
                if below is None:
                    self._reader.rest()
                    self._work.wait()
                    continue
                below.reading, below.progress = set(names), 0.0
                self._publish()
            refused, problems = self._read(below, names)
            if self._is_closed:
                return
            with self._work:
                below.settle(names, self._store, refused, problems)
                self._regroup(below)
                self._work.notify_all()

    def _next_batch(self) -> tuple[Below | None, list[Name]]:
        for below in self._below:
            if names := below.batch():
                return below, names
        return None, []

    def _read(self, below: Below, names: Sequence[Name]) -> tuple[dict[Name, Issue], list[str]]:
        """Read inputs; those over which a process died are tried alone, so that only the bad one is lost."""

        def progress(ratio: float) -> None:
            with self._work:
                below.progress = ratio
                self._publish()

        items = [below.slots[name].item for name in names if name in below.slots]
        there = [name for name in names if name in below.slots]
        try:
            done = self._reader.read(items, self._store.directory, progress)
        except HelperDied as death:
            if len(there) > 1 and not self._is_closed:
                return self._read_alone(below, there)
            issue = Issue("error", str(items[0].path), _DIED.format(how=death), _DIED_REMEDY) if items else None
            return ({there[0]: issue} if issue else {}), []
        return {there[number]: issue for number, issue in done.refused.items()}, done.problems

    def _read_alone(self, below: Below, names: Sequence[Name]) -> tuple[dict[Name, Issue], list[str]]:
        refused: dict[Name, Issue] = {}
        problems: list[str] = []
        for name in names:
            one, more = self._read(below, [name])
            refused |= one
            problems += more
        return refused, problems

    def _keep_analysing(self, helper: Helper, limit_bytes: int | None) -> None:
        while not self._is_closed:
            with self._work:
                one = self._next_to_analyse(limit_bytes)
                if one is None:
                    helper.rest()
                    self._work.wait()
                    continue
                self._analysed[one.entry.stamp] = 0.0
                self._publish()
            self._analyse(one, helper)

    def _next_to_analyse(self, limit_bytes: int | None) -> Listed | None:
        """The smallest run that is not analysed, if it is small enough."""
        known = {*self._done, *self._analysed}
        waiting = [one for one in self._listed.values() if one.job and one.entry.stamp not in known]
        first = min(waiting, key=lambda one: (one.entry.input_bytes, one.entry.order), default=None)
        return None if first is None or first.entry.input_bytes > (limit_bytes or math.inf) else first

    def _analyse(self, one: Listed, helper: Helper) -> None:
        stamp = one.entry.stamp
        assert one.job is not None

        def summarised(summary: Summary) -> None:
            with self._work:
                self._summaries[stamp] = summary
                self._publish()

        def progress(ratio: float) -> None:
            with self._work:
                self._analysed[stamp] = ratio
                self._publish()

        try:
            order = order_of(one.job, one.unread, self._store.directory)
            problem = helper.analyse(order, summarised, progress).problem
        except HelperDied as death:
            problem = f"the process died ({death})"
        except FAILURES as error:
            problem = f"{type(error).__name__}: {error}"
        if self._is_closed:
            return
        if problem:
            _LOG.warning("%s could not be analysed: %s", one.entry.name, problem)
        with self._work:
            self._analysed.pop(stamp, None)
            self._summaries.setdefault(stamp, None)
            self._done.add(stamp)
            self._publish()
        self._open.drop_stamp(stamp)  # opened anew, it finds the answers that are kept now

    def _regroup(self, *changed: Below) -> None:
        """Sort anew what is read below some roots, and take what is kept about new runs."""
        for below in changed or self._below:
            self._jobs[below.root] = listed(below, grouped(below))
        for one in (one for jobs in self._jobs.values() for one in jobs if one.job is not None):
            if one.entry.stamp in self._summaries:
                continue
            try:
                kept, is_warm = kept_summary(self._opened(one, 0.0))
            except FAILURES as error:
                _LOG.info("nothing kept of %s can be read: %s", one.entry.name, error)
                continue
            if kept is not None:
                self._summaries[one.entry.stamp] = kept
            if is_warm:
                self._done.add(one.entry.stamp)
        self._publish()

    def _publish(self) -> None:
        """Replace the entries by what is known now."""
        found: dict[str, tuple[Entry, Listed]] = {}
        for below in sorted(self._below, key=lambda below: below.root):
            for one in self._jobs.get(below.root, ()):
                entry = self._told(below, one)
                if entry.id in found:  # of another root, with the same path below it
                    entry = replace(entry, id=f"{entry.id}-{digest(entry.root)[:_MORE_DIGITS]}")
                found[entry.id] = (entry, one)
        self._note_gone(found)
        stamps = {entry.stamp for entry, _ in found.values()}
        self._done &= stamps
        self._summaries = {stamp: one for stamp, one in self._summaries.items() if stamp in stamps}
        entries = [entry for entry, _ in found.values()] + [entry for entry, _ in self._gone.values()]
        new = {entry.id: entry for entry in sorted(entries, key=lambda entry: entry.order)}
        has_changed = list(new.items()) != list(self._entries.items())
        self._listed = {identity: one for identity, (_, one) in found.items()}
        self._entries = new
        if has_changed:
            self.revision += 1

    def _told(self, below: Below, one: Listed) -> Entry:
        """An entry with its state."""
        entry = one.entry
        if not below.reading.isdisjoint(one.names):
            entry = replace(entry, state="reading", progress=below.progress)
        if one.job is None:
            return entry
        found, is_done = self._summaries.get(entry.stamp), entry.stamp in self._done or not self._analyses
        if isinstance(found, Summary):
            top = found.findings[0] if found.findings else None
            entry = replace(entry, top=top, findings=found.counts, steps=found.steps)
        elif entry.stamp in self._summaries:
            entry = entry.with_problem(entry.issues, ["no_findings"])
        if entry.state == "reading" or is_done:
            return entry if entry.state == "reading" else replace(entry, state="ready")
        return replace(entry, state="analysing", progress=self._analysed.get(entry.stamp, 0.0))

    def _note_gone(self, found: Mapping[str, object]) -> None:
        """List runs on whose files are no longer there, until a run of their name is back."""
        now = time.monotonic()
        for identity, one in self._listed.items():
            if identity not in found and one.job is not None and not self._is_there(one):
                gone = replace(self._entries[identity], state="gone", progress=0.0).with_problem(notes=["gone"])
                self._gone[identity] = (gone, now)
        for identity, (_, since) in list(self._gone.items()):
            if identity in found or now - since > _GONE_S:
                del self._gone[identity]

    def _is_there(self, one: Listed) -> bool:
        """Whether some file of a run is still there."""
        assert one.job is not None
        files = {str(file) for member in one.job.members for file in member.recording.files}
        return any(not files.isdisjoint(below.seen.files) for below in self._below)


def _outermost(roots: Sequence[Path]) -> list[Path]:
    """The roots that lie in no other one, each once.

    Raises:
        StepscopeError: If there is none, or one does not exist.
    """
    if not roots:
        raise StepscopeError("no directory given. Pass one or more directories with recordings")
    found = []
    for root in roots:
        place = Path(root).expanduser()
        if not place.exists():
            raise StepscopeError(f"{shown(place)}: no such directory. Check the path")
        found.append(place.resolve())
    return [root for root in dict.fromkeys(found) if not any(above in found for above in root.parents)]


def _store(*, use_store: bool) -> tuple[Store, bool]:
    """Where rows are kept, and whether that ends with the catalogue.

    Raises:
        StepscopeError: If there is no place.
    """
    if use_store:
        try:
            return Store(cache_directory()), False
        except OSError as error:
            _LOG.warning("the store %s cannot be used (%s); a temporary one is", shown(cache_directory()), error)
    try:
        return Store.temporary(), True
    except OSError as error:
        raise StepscopeError(
            f"there is no directory to keep what is read ({error}). Free some disk space, or set STEPSCOPE_CACHE"
        ) from error
