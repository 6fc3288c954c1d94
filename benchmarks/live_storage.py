"""Whether the cap on light records holds, and nothing else is touched: ranks that write for an hour of made-up time.

Each writer is a rank with our store; they write from several threads at once, every 5 s by a clock that all of them
share and that is set back by an hour in the middle. Ranks are restarted now and then, jobs end and others begin,
batches are of any size, and files of others lie among the records. After each 5 s all is looked at: the size of
everything below the base directory, whether files of others are as they were, and whether the file that each rank
appends to is still there with all that was written. A second case is a disk that is full for a while (a small tmpfs if
this may be mounted, else one on which writing fails).

Usage:
    python benchmarks/live_storage.py [--writers 100] [--minutes 60]
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from stepscope.live.store import RecordStore, contents, records
from stepscope.live.store.lines import host_range
from stepscope.recording_format.light import FILE_BYTES, is_record_name

MIB = 1 << 20
TICK_S = 5.0
THREADS = 8
START_S = 1_700_000_000.0
LINE = host_range(1, "step 1", "default", 1_700_000_000 * 10**9, 1_700_000_001 * 10**9, 1234, 1234)


@dataclass
class Row:
    """What a case has shown."""

    case: str
    writers: int
    cap_mib: int
    written: int = 0
    highest: int = 0
    """Bytes of everything, at the highest look."""
    deleted: int = 0
    looks: int = 0
    foreign_touched: int = 0
    open_touched: int = 0
    out_of_order: int = 0
    """New files whose names sort before older ones of their rank."""
    dropped: int = 0
    messages: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the cap held within one file, and nothing was touched that must not be."""
        bad = self.foreign_touched or self.open_touched or self.out_of_order or self.wrong
        return not bad and self.highest <= self.cap_mib * MIB + FILE_BYTES


@dataclass
class Writer:
    """A rank that writes."""

    store: RecordStore
    open: Path | None = None
    size: int = 0


class Counting(logging.Handler):
    """Counts warnings of the store."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - as in the base class
        self.count += 1


class Hour:
    """Ranks that write for some time, by a clock of their own.

    Args:
        base: Directory of all jobs.
        row: What is shown.
        mean_bytes: Of a batch of records, mean.
    """

    def __init__(self, base: Path, row: Row, mean_bytes: int = 20_000, seed: int = 1) -> None:
        self.row = row
        self._base = base
        self._mean_bytes = mean_bytes
        self._chance = random.Random(seed)
        self._now_s = START_S
        self._job = 0
        self._foreign = {path: _print_of(path) for path in _write_foreign(base)}
        self._ranks = [Writer(self._begun(rank)) for rank in range(row.writers)]
        self._batches = [""] * row.writers
        self._ages = [False] * row.writers
        self._gate = threading.Barrier(THREADS + 1)
        self._ended = False

    def run(self, minutes: float) -> Row:
        """Let them write for some minutes."""
        began = time.perf_counter()
        threads = [threading.Thread(target=self._write, args=(first,), daemon=True) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        ticks = round(minutes * 60 / TICK_S)
        with _counted() as (looks, deleted, messages):
            for tick in range(ticks):
                self._now_s += TICK_S - (3600 if tick == ticks // 2 else 0)
                self._tick(tick)
            self._ended = True
            self._gate.wait()
            self.row.looks, self.row.deleted, self.row.messages = looks(), deleted(), messages()
        for thread in threads:
            thread.join()
        for writer in self._ranks:
            self._end(writer)
        self._look_at_foreign()
        self.row.seconds = time.perf_counter() - began
        return self.row

    def _tick(self, tick: int) -> None:
        for rank in range(self.row.writers):
            size = 0 if self._chance.random() < 0.1 else int(self._chance.expovariate(1 / self._mean_bytes))
            if self._chance.random() < 0.001:
                size = 2 * MIB
            self._batches[rank] = LINE * (size // len(LINE))
            self.row.written += len(self._batches[rank])
            self._ages[rank] = (tick + rank) % 12 == 0
        self._gate.wait()
        self._gate.wait()
        self.row.highest = max(self.row.highest, total_of(self._base))
        for writer in self._ranks:
            _look_at(writer, self.row)
        if self._chance.random() < 0.05:  # a rank is restarted
            rank = self._chance.randrange(self.row.writers)
            self._end(self._ranks[rank])
            self._ranks[rank] = Writer(self._begun(rank), self._ranks[rank].open, 0)
        if tick and tick % 240 == 0:  # the job ends, another begins
            self._job += 1
            for rank, writer in enumerate(self._ranks):
                self._end(writer)
                self._ranks[rank] = Writer(self._begun(rank))
        if tick % 60 == 59:
            self._look_at_foreign()

    def _write(self, first: int) -> None:
        """One of the threads."""
        while True:
            self._gate.wait()
            if self._ended:
                return
            for rank in range(first, self.row.writers, THREADS):
                store = self._ranks[rank].store
                store.write(self._batches[rank])
                if self._ages[rank]:
                    store.age()
            self._gate.wait()

    def _begun(self, rank: int) -> RecordStore:
        limit_mb = self.row.cap_mib
        return RecordStore(self._base, f"job{self._job}", rank, limit_mb=limit_mb, now_s=lambda: self._now_s)

    def _end(self, writer: Writer) -> None:
        self.row.dropped += writer.store.dropped
        writer.store.close()

    def _look_at_foreign(self) -> None:
        self.row.foreign_touched += sum(_print_of(path) != known for path, known in self._foreign.items())


def full_disk(base: Path) -> Row:
    """Write to a disk until it is full, and on; then make room."""
    row = Row("disk full", 1, 1000)
    began = time.perf_counter()
    at_once = mock.patch.multiple(records, _FIRST_WAIT_S=0.0, _LONGEST_WAIT_S=0.0)
    with _small_disk(base) as (disk, make_room), at_once, _counted() as (looks, _, messages):
        store = RecordStore(disk, "job", 0, limit_mb=1000)
        text = LINE * (100_000 // len(LINE))
        for _ in range(100):
            store.write(text)
            row.written += len(text)
        if not store.problem:
            row.wrong.append("the disk was not full")
        row.dropped, row.messages = store.dropped, messages()
        if row.messages != 1:
            row.wrong.append(f"{row.messages} messages instead of 1")
        make_room()
        before = store.dropped
        store.write(LINE)
        if store.problem or store.dropped != before:
            row.wrong.append("writing did not go on")
        row.looks = looks()
        row.highest = total_of(disk)
        lines = [line for file in sorted((disk / "job/0").iterdir()) for line in file.read_text().splitlines()]
        for line in lines:
            try:
                json.loads(line)
            except ValueError:
                row.wrong.append("a torn line")
        if len(lines) != (row.written + len(LINE)) // len(LINE) * 2 - row.dropped:
            row.wrong.append("records are missing that were not counted as dropped")
        store.close()
    row.seconds = time.perf_counter() - began
    return row


def total_of(base: Path) -> int:
    """Bytes of all files."""
    total, waiting = 0, [str(base)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _look_at(writer: Writer, row: Row) -> None:
    """Whether the file that a rank appends to is whole, and new ones have later names."""
    name = writer.store._newest
    if name is None or writer.store.problem:
        return
    file = writer.store.directory / name
    try:
        size = file.stat().st_size
    except OSError:
        row.open_touched += 1
        return
    if file == writer.open:
        row.open_touched += size < writer.size
    elif writer.open is not None and file.parent == writer.open.parent:
        row.out_of_order += int(name) <= int(writer.open.name)
    writer.open, writer.size = file, size


def _write_foreign(base: Path) -> list[Path]:
    """Files of others, in all places where records may be."""
    places = [
        "notes",
        "job0/README",
        "job0/0/1.bak",
        "job0/1/77",
        "job0/notes/5",
        "other/3/parallel_group.json",
        "5/6/7/8",
    ]
    found = []
    for place in places:
        path = base / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{place} is of somebody else\n" * 1000)
        os.utime(path, (1, 1))
        found.append(path)
    return found


def _print_of(path: Path) -> tuple[str, float] | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime
    except OSError:
        return None


@contextmanager
def _counted() -> Iterator[tuple[Callable[[], int], Callable[[], int], Callable[[], int]]]:
    """Counts looks, deleted files, and warnings."""
    looks = [0]
    gone = [0]
    real, unlink = contents.contents_of, Path.unlink

    def look(*arguments: Any) -> Any:
        looks[0] += 1
        return real(*arguments)

    def delete(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        gone[0] += is_record_name(path.name)

    counting, log = Counting(), logging.getLogger("stepscope")
    log.addHandler(counting)
    propagate, log.propagate = log.propagate, False
    try:
        with mock.patch("stepscope.live.store.room.contents_of", look), mock.patch.object(Path, "unlink", delete):
            yield (lambda: looks[0]), (lambda: gone[0]), (lambda: counting.count)
    finally:
        log.removeHandler(counting)
        log.propagate = propagate


@contextmanager
def _small_disk(base: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A disk of 4 MiB, and a function that makes room on it."""
    disk = base / "disk"
    disk.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode == 0:
        filler = disk / "filler"
        filler.write_bytes(b"x" * MIB)
        try:
            yield disk, filler.unlink
        finally:
            subprocess.run(["umount", str(disk)], capture_output=True, check=False)
        return
    left = [4 * MIB]
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = real(descriptor, bytes(data)[: left[0]])
        left[0] -= taken
        return taken

    with mock.patch("stepscope.live.store.files.os.write", write):
        yield disk, lambda: left.__setitem__(0, 4 * MIB)


def show(rows: list[Row]) -> bool:
    """Print the rows; returns whether all hold."""
    print(
        f"{'case':<12} {'ranks':>5} {'cap':>6} {'written':>8} {'highest':>8} {'over':>6} {'deleted':>7} {'looks':>6} "
        f"{'foreign':>7} {'open':>5} {'order':>5} {'dropped':>7} {'warned':>6} {'time':>7}"
    )
    print(f"{'':<12} {'':>5} {'MiB':>6} {'MiB':>8} {'MiB':>8} {'MiB':>6} {'files':>7} {'':>6} {'touched files':>13}")
    for row in rows:
        over = max(row.highest - row.cap_mib * MIB, 0) / MIB
        print(
            f"{row.case:<12} {row.writers:>5} {row.cap_mib:>6} {row.written / MIB:>8.1f} {row.highest / MIB:>8.1f} "
            f"{over:>6.2f} {row.deleted:>7} {row.looks:>6} {row.foreign_touched:>7} {row.open_touched:>5} "
            f"{row.out_of_order:>5} {row.dropped:>7} {row.messages:>6} {row.seconds:>6.1f}s"
            f"{'' if row.holds else '  FAILS ' + ', '.join(dict.fromkeys(row.wrong))}"
        )
    return all(row.holds for row in rows)


def main() -> int:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--directory", type=Path, help="Where to write. Default: a temporary directory.")
    options = parser.parse_args()
    rows = []
    cases = ((options.writers, 200), (options.writers, 60), (options.writers, 1000), (8, 40), (3, 5), (1, 30))
    for writers, cap_mib in cases:
        with tempfile.TemporaryDirectory(dir=options.directory) as base:
            row = Row(f"{options.minutes:g} minutes", writers, cap_mib)
            rows.append(Hour(Path(base), row).run(options.minutes))
    with tempfile.TemporaryDirectory(dir=options.directory) as base:
        rows.append(full_disk(Path(base)))
    return 0 if show(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
