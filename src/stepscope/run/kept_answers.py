"""Answers on disk, beside the rows in the store from which they were computed (`store/answers.py`).

What is kept is equal to what would be computed: it is found by everything on which it depends. That is the rows and
names of all ranks and the issues of the run, the code, the question with its options and those of the questions that it
needs, and the selected ranks and steps. Only functions of this package are known by their name and version; answers of
others are not kept.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

import msgspec
import polars as pl

import stepscope
from stepscope._version import __version__
from stepscope.analysis.registry import Analysis
from stepscope.errors import Unavailable
from stepscope.paths import shown
from stepscope.run.answer_cache import size_of
from stepscope.run.encoding import NotSendable, decoded, encoded
from stepscope.run.rank import Rank
from stepscope.selection import Selection
from stepscope.store import (
    About,
    KeptRecords,
    Recording,
    StoredRank,
    StoredRecording,
    StoredSupplement,
    list_answers,
    max_bytes,
)
from stepscope.tables.issues import Issue

_LOG = logging.getLogger(__name__)

MOST_BYTES = 32 << 20
"""Up to this size any answer is kept, chosen by us: reading a larger one often takes as long as computing it."""

MOST_SLOW_BYTES = 512 << 20
"""Size of the largest answer that is kept since it took long to compute, chosen by us; e.g. a million links."""

LEAST_RATIO = 5
"""How much longer computing a large answer must take than reading it would, chosen by us."""

READ_BYTES_PER_S = 900e6
"""What is read of kept answers in a second, as measured on two slow processors."""

SHARE = 0.1
"""Share of what may be kept about a run that a large answer may take, chosen by us: a file that is full starts anew."""

_HELD_BYTES = 64 << 20
"""Size of the answers that wait to be written."""

_MOST_OTHERS, _MOST_USED = 200, 4
"""Of so many runs that were asked lately, how many are used that share ranks with another one; chosen by us."""

_CODE_SUFFIXES = (".py", ".so", ".pyd", ".dylib")

Answer = tuple[Any, Unavailable | None]
"""What was computed: an answer, or the reason why there is none."""


class Function(Protocol):
    """What has a function that answers."""

    @property
    def function(self) -> Callable[..., Any]: ...


class Asked(Function, Protocol):
    """A question, with all that its answer depends on (`closure`), e.g. an analysis."""

    @property
    def name(self) -> str: ...
    @property
    def closure(self) -> Sequence[Function]: ...


class KeptAnswers:
    """The kept answers of one run, for all its selections and all threads.

    Args:
        store: Directory of the store that has its rows.
        path: Path of the run.
        ranks: All its ranks.
        issues: Its own issues and those of inputs beside it.
    """

    def __init__(self, store: Path, path: Path, ranks: Sequence[Rank], issues: Sequence[Issue]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[bytes, bytes] = {}
        self._records: KeptRecords | None = None
        self._ranks = [_stored(rank, store) for rank in ranks]
        version = code_version()
        known = [rank for rank in self._ranks if rank is not None]
        if version is None or len(known) < len(ranks):
            return
        try:
            facts = (os.fsencode(path), [encoded(issue) for issue in issues], known)
        except NotSendable:  # an issue about a name that is not UTF-8
            return
        run = hashlib.sha256(msgspec.msgpack.encode(facts)).hexdigest()[:40]
        self._records = KeptRecords(store, run, version, About(shown(path), known), max_bytes())

    def key(
        self, analysis: Asked, options: Mapping[str, Any], changed: Mapping[str, Any], selection: Any
    ) -> bytes | None:
        """A key for the same question with the same options; None if its answer is not kept.

        Args:
            options: All its options.
            changed: Options of the run that replace defaults, of any analysis that it needs.
            selection: The selected ranks and steps.
        """
        if self._records is None or not all(is_ours(one.function) for one in analysis.closure):
            return None
        try:
            return _hashed((analysis.function.__module__, analysis.name, dict(options), dict(changed), selection))
        except NotSendable:
            return None

    def rows_key(self, name: str, ranks: Sequence[int]) -> bytes | None:
        """A key for all rows of a table of some ranks; None if they are not kept."""
        return None if self._records is None else _hashed(("rows", name, tuple(ranks)))

    @property
    def limit_bytes(self) -> int:
        """How much may be kept."""
        return 0 if self._records is None else self._records.limit_bytes

    def has(self, key: bytes) -> bool:
        """Whether something was kept under a key."""
        return self._records is not None and self._records.has(key)

    def find(self, key: bytes) -> Answer | None:
        """What is kept under a key, written or not yet; None if there is nothing that can be read."""
        with self._lock:
            waiting = self._waiting.get(key)
        if waiting is not None:
            return _answer(decoded(waiting))
        return None if self._records is None else _found(self._records, key)

    def of_other_runs(
        self, analysis: Analysis, options: Mapping[str, Any], changed: Mapping[str, Any], steps: Selection | None
    ) -> Iterator[tuple[set[int], Any]]:
        """What is kept of the same question to other runs with some of these ranks.

        Args:
            analysis, options, changed: See `key`.
            steps: The selected steps.

        Yields:
            The ranks that both runs have, with the same rows and numbers, and the answer about all ranks of the other.
        """
        for records, numbers, shared in self._others:
            key = self.key(analysis, options, changed, (numbers, steps))
            found = None if key is None else _found(records, key)
            if found is not None and found[1] is None:
                yield shared, found[0]

    @cached_property
    def _others(self) -> list[tuple[KeptRecords, tuple[int, ...], set[int]]]:
        """Runs with some of these ranks, those with most of them first: records, all their ranks, the ranks shared."""
        found = []
        for one in list_answers(self._store)[:_MOST_OTHERS]:
            if self._records is not None and one.file != self._records.file and one.version == code_version():
                about = one.about()
                shared = {rank.rank for rank in {*about.ranks}.intersection(self._ranks)}
                run = one.file.name.partition("-")[0]
                if shared:
                    records = KeptRecords(self._store, run, one.version, about)
                    found.append((records, tuple(rank.rank for rank in about.ranks), shared))
        return sorted(found, key=lambda one: -len(one[2]))[:_MOST_USED]

    def add(self, key: bytes, value: Any, seconds: float = 0.0) -> None:
        """Keep an answer, or a reason, from the next `write` on; nothing if it is too large or no plain data.

        Args:
            key: See `key`.
            value: The answer.
            seconds: How long it took to compute.
        """
        size = size_of(value)
        if size > MOST_BYTES and not _is_worth_reading(size, seconds):
            return
        try:
            content = encoded(value)
        except NotSendable as error:
            _LOG.info("an answer is not kept: %s", error)
            return
        if size > MOST_BYTES and len(content) > SHARE * self.limit_bytes:
            return
        with self._lock:
            self._waiting[key] = content
            is_much = sum(map(len, self._waiting.values())) > _HELD_BYTES
        if is_much:
            self.write()

    def write(self) -> None:
        """Write the answers that wait for it; a store that cannot take them costs only the keeping."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            if not waiting or self._records is None:
                return
            try:
                self._records.add(waiting)
            except OSError as error:
                _LOG.info("answers are not kept: %s", error)
                self._records = None


def _is_worth_reading(size: int, seconds: float) -> bool:
    """Whether a large answer that took so long to compute is read in far less time."""
    return size <= MOST_SLOW_BYTES and seconds > LEAST_RATIO * size / READ_BYTES_PER_S


def _hashed(asked: Any) -> bytes:
    """A key; raises `NotSendable`."""
    return hashlib.blake2b(encoded(asked), digest_size=16).digest()


def _stored(rank: Rank, store: Path) -> StoredRank | None:
    """What identifies a rank; None if its rows are not in the store."""
    own = _entry(rank.recording, store)
    if own is None:
        return None
    supplement = None
    if rank.supplement is not None:
        other = _entry(rank.supplement.recording, store)
        if other is None:
            return None
        supplement = StoredSupplement(*other, rank.supplement.tables)
    return StoredRank(rank.rank, rank.facts["rank_origin"], *own, supplement)


def _entry(recording: Recording, store: Path) -> tuple[str, int] | None:
    """The entry with the rows of a recording, and when it was written; None if they are not in the store."""
    if not isinstance(recording, StoredRecording) or recording.directory.parent != store:
        return None
    return recording.directory.name, recording.manifest.created_ns


def _found(records: KeptRecords, key: bytes) -> Answer | None:
    content = records.find(key)
    if content is None:
        return None
    try:
        value = decoded(content)
    except Exception as error:  # bytes that the checksum fits, yet written by something else
        _LOG.info("a kept answer cannot be read: %s", error)
        records.forget(key)
        return None
    return _answer(value)


def _answer(value: Any) -> Answer:
    return (None, value) if isinstance(value, Unavailable) else (value, None)


@cache
def is_ours(function: Any) -> bool:
    """Whether a function is one of this package, found there by its name."""
    if not isinstance(function, FunctionType) or not function.__module__.startswith("stepscope."):
        return False
    return getattr(sys.modules.get(function.__module__), function.__name__, None) is function


@cache
def code_version() -> str | None:
    """A fingerprint of the code that answers: of this package's files, of Polars and of Python; None if unknown."""
    files = sorted(_files(str(Path(stepscope.__file__).parent)))
    if not files:
        return None
    facts = (__version__, pl.__version__, sys.version, files)
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Name, size and time of change of the files with code below a folder."""
    try:
        with os.scandir(folder) as scan:
            for entry in scan:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        yield from _files(entry.path)
                elif entry.name.endswith(_CODE_SUFFIXES):
                    info = entry.stat()
                    yield entry.path, info.st_size, info.st_mtime_ns
    except OSError:  # e.g. a package in an archive
        return


code_version()  # now: the files may change while this process runs
