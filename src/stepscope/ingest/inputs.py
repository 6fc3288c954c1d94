"""Bringing inputs into the store: what is there is taken, the rest is read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.ingest.pool import Outcome, read_in_processes
from stepscope.ingest.ray_pool import read_in_cluster
from stepscope.ingest.read import ReadTask, printable, read_into_memory, read_into_store, throttled
from stepscope.ingest.worker import NotLoaded
from stepscope.ray_workers import RayCluster
from stepscope.sources.base import Input, Source
from stepscope.sources.discover import unreadable
from stepscope.sources.registry import all_sources
from stepscope.store import Recording, Store, StoreError, cache_directory, identify, max_bytes, size_of
from stepscope.tables.issues import Issue

Progress = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all, and what was done last."""

_RATIOS = {".gz": 15, ".db": 2}
"""Text that takes as long to read as one byte of a file: traces deflate by 15, about; databases are dense."""
_INPUT_BYTES = 4 << 20
"""Overhead of an input, as the amount of text that takes as long to read: its dozens of small tables."""
_LEAST_PROCESS_BYTES = 64 << 20
"""Text for each process that is worth its start: that takes as long as reading half of it."""
_WORTH_THREADS_BYTES = 64 << 20
"""Text of one input among others that is worth a thread more; for less, handing chunks over costs more CPU time."""


@dataclass
class Ingested:
    """The outcome.

    Args:
        recordings: In the order of their inputs.
        unread: What was not read.
        refused: Why an input was not read, of those whose reader refused it.
        warnings: What a user should know.
        store: Directory of the store, if what was read is kept.
    """

    recordings: list[Recording] = field(default_factory=list)
    unread: list[Issue] = field(default_factory=list)
    refused: dict[Input, Issue] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    store: Path | None = None


def ingest(
    inputs: Sequence[Input],
    *,
    use_store: bool | Store = True,
    sources: Sequence[Source] | None = None,
    progress: Progress | None = None,
    cluster: RayCluster | None = None,
) -> Ingested:
    """Read inputs, each unless the store has it.

    Args:
        inputs: What `discover` found.
        use_store: Keep what is read for the next time, or where; otherwise it is gone when this process ends.
        sources: The readers; all known ones by default.
        progress: Called a few times a second, and after each input.
        cluster: Whose workers read, if they have enough to do; by default processes of this machine do.
    """
    return _Ingestion(use_store, all_sources() if sources is None else sources, progress, cluster).run(inputs)


@dataclass
class Stored:
    """What the store has of some inputs.

    Args:
        keys: What identifies the content of each input that can be looked at.
        recordings: Those that are in the store.
        refused: Why an input cannot be looked at.
    """

    keys: dict[Input, str] = field(default_factory=dict)
    recordings: dict[Input, Recording] = field(default_factory=dict)
    refused: dict[Input, Issue] = field(default_factory=dict)


def find_stored(inputs: Sequence[Input], store: Store) -> Stored:
    """What a store has of some inputs; nothing is read."""
    ingestion = _Ingestion(store, all_sources(), None, None)
    tasks, done = ingestion.taken(inputs)
    keys = {task.item: task.key for task in tasks}
    found = {item: done[key] for item, key in keys.items() if key in done}
    return Stored(keys, found, ingestion.result.refused)


def worker_count() -> int:
    """How many inputs to read at a time: `STEPSCOPE_WORKERS`, else the CPUs that this process may use."""
    chosen = os.environ.get("STEPSCOPE_WORKERS")
    if not chosen:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not chosen.isdigit() or int(chosen) < 1:
        raise StepscopeError(f"STEPSCOPE_WORKERS: {chosen!r} is not a number of processes. Set it to 1 or more")
    return int(chosen)


class _Ingestion:
    """One call of `ingest`."""

    def __init__(
        self,
        use_store: bool | Store,
        sources: Sequence[Source],
        progress: Progress | None,
        cluster: RayCluster | None,
    ) -> None:
        self.sources = {source.name: source for source in sources}
        self.progress = progress
        self.cluster = cluster
        self.workers = worker_count()
        self.limit_bytes = max_bytes()
        self.result = Ingested()
        self.kept = bool(use_store)
        self.store = use_store if isinstance(use_store, Store) else None
        if self.store is None:
            self.store = self._open_store() if use_store else self._temporary_store()

    def run(self, inputs: Sequence[Input]) -> Ingested:
        """Take what is stored and read the rest."""
        tasks, done = self.taken(inputs)
        pending: dict[str, ReadTask] = {}
        for task in tasks:
            if task.key not in done:
                pending.setdefault(task.key, task)
        if pending:
            done.update(self._read(sorted(pending.values(), key=_weight, reverse=True)))
        self.result.recordings = [done[task.key] for task in tasks if task.key in done]
        self.result.store = self.store.directory if self.store is not None and self.kept else None
        return self.result

    def taken(self, inputs: Sequence[Input]) -> tuple[list[ReadTask], dict[str, Recording]]:
        """The inputs that can be looked at, and what the store has of them, by key."""
        tasks = [task for item in inputs if (task := self._task(item)) is not None]
        done: dict[str, Recording] = {}
        for task in tasks:
            found = self.store.find(task.key) if self.store is not None else None
            if found is not None:
                done[task.key] = found
        return tasks, done

    def _task(self, item: Input) -> ReadTask | None:
        source = self.sources[item.source]
        for path in (item.path, *item.files):
            if printable(str(path)) != str(path):
                problem, remedy = "has a name that is not UTF-8", "Rename the file or its directory"
                self._refuse(item, Issue("error", printable(str(path)), problem, remedy))
                return None
        try:
            key = identify(source.name, source.version, item.path, item.files, item.label)
            return ReadTask(item, source, key, sum(map(size_of, item.files)))
        except OSError as error:
            self._refuse(item, unreadable(Path(error.filename or item.path), error))
            return None

    def _refuse(self, item: Input, why: Issue) -> None:
        self.result.unread.append(why)
        self.result.refused[item] = why

    def _read(self, pending: list[ReadTask]) -> dict[str, Recording]:
        """Read all of `pending`, going on without the store where it fails."""
        watch = _Watch(self.progress, pending)
        done: dict[str, Recording] = {}
        if self.store is not None:
            self.store.sweep()
        try:
            while pending:
                with closing(self._outcomes(pending, watch)) as outcomes:
                    for task, outcome in outcomes:
                        if isinstance(outcome, StoreError):
                            self._leave_store(outcome)
                            break
                        pending = [other for other in pending if other is not task]
                        if isinstance(outcome, Issue):
                            self._refuse(task.item, outcome)
                        else:
                            done[task.key] = outcome
                        watch.finish(task)
        finally:
            if self.store is not None:
                self.store.sweep()
        if self.store is not None and self.kept:
            self.store.evict(self.limit_bytes)
        return done

    def _outcomes(self, pending: Sequence[ReadTask], watch: _Watch) -> Generator[tuple[ReadTask, Outcome], None, None]:
        """Read by as many processes as pay for their start, or in this one."""
        alone: list[ReadTask] = []
        most = min(len(pending), sum(map(_weight, pending)) // _LEAST_PROCESS_BYTES)
        count = min(self.workers, most)
        if self.store is None or most < 2 or (count < 2 and self.cluster is None):
            alone.extend(pending)
        else:
            with closing(self._by_workers(pending, self.store, count, most, watch)) as outcomes:
                for task, outcome in outcomes:
                    if isinstance(outcome, NotLoaded):
                        alone.append(task)
                    else:
                        yield task, outcome
        for task in alone:
            worth = self.workers if len(pending) == 1 else 1 + _weight(task) // _WORTH_THREADS_BYTES
            threads = min(self.workers, worth)
            if self.store is None:
                yield task, read_into_memory(task, threads, watch.of(task))
                continue
            try:
                yield task, read_into_store(task, self.store, threads, watch.of(task))
            except StoreError as error:
                yield task, error

    def _by_workers(
        self, pending: Sequence[ReadTask], store: Store, count: int, most: int, watch: _Watch
    ) -> Generator[tuple[ReadTask, Outcome | NotLoaded], None, None]:
        if self.cluster is not None:
            return read_in_cluster(pending, store, self.cluster, most)
        threads = self.workers // count  # processes times threads never exceed the requested workers
        return read_in_processes(pending, store, count, threads, watch.advance)

    def _open_store(self) -> Store | None:
        directory = cache_directory()
        try:
            if printable(str(directory)) != str(directory):
                raise OSError("the name is not UTF-8")
            return Store(directory)
        except OSError as error:
            self._warn(directory, str(error))
            return self._temporary_store()

    def _temporary_store(self) -> Store | None:
        self.kept = False
        try:
            return Store.temporary()
        except OSError:
            return None

    def _leave_store(self, failure: StoreError) -> None:
        """Fall back to temporary files if they are on another disk, otherwise to memory."""
        assert self.store is not None
        if self.kept:
            self._warn(self.store.directory, str(failure))
        full = self.store.directory
        was_kept, self.store = self.kept, None
        self.kept = False
        if was_kept and _device(Path(tempfile.gettempdir())) != _device(full):
            self.store = self._temporary_store()

    def _warn(self, directory: Path, problem: str) -> None:
        self.result.warnings.append(
            f"{directory}: cannot write to the store ({problem}). Inputs will be read again next time; "
            "free some disk space or set STEPSCOPE_CACHE to another directory"
        )


class _Watch:
    """Adds up the progress of reading.

    Args:
        progress: Called with it; None to report nothing.
        tasks: All that is to be read.
    """

    def __init__(self, progress: Progress | None, tasks: Sequence[ReadTask]) -> None:
        self._progress = progress or (lambda *_: None)
        self._total = sum(task.input_bytes for task in tasks)
        self._finished = 0
        self._parts: dict[str, int] = {}
        self._progress(0, self._total, "")

    def of(self, task: ReadTask) -> Callable[[int], None]:
        """`advance` for one task, reported a few times a second."""
        return throttled(lambda count: self.advance(task, count))

    def advance(self, task: ReadTask, count: int) -> None:
        """So many more bytes were read for a task."""
        # a file may be read twice, and an input is over only when its rows are written
        self._parts[task.key] = min(self._parts.get(task.key, 0) + count, task.input_bytes)
        self._report(task)

    def finish(self, task: ReadTask) -> None:
        """A task is done."""
        self._parts.pop(task.key, None)
        self._finished += task.input_bytes
        self._report(task)

    def _report(self, task: ReadTask) -> None:
        self._progress(self._finished + sum(self._parts.values()), self._total, task.item.path.name)


def _weight(task: ReadTask) -> int:
    """About how many bytes of text take as long to read."""
    return _INPUT_BYTES + sum(_RATIOS.get(file.suffix, 1) * size_of(file) for file in task.item.files)


def _device(path: Path) -> int:
    try:
        return path.stat().st_dev
    except OSError:
        return -1
