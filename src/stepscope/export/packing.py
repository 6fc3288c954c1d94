"""Packing: what was read of recordings, written for analysis on another machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.errors import NothingReadable, StepscopeError
from stepscope.ingest import ingest
from stepscope.sources.discover import discover
from stepscope.store import Recording, size_of
from stepscope.store.packed import SUFFIX, pack_recording
from stepscope.tables.issues import Issue


@dataclass(frozen=True)
class Packed:
    """A recording that was packed: the file, its size, and that of the recording's own files."""

    file: str
    size_bytes: int
    input_bytes: int


@dataclass
class Packing:
    """What was packed, and what could not be read."""

    packed: list[Packed] = field(default_factory=list)
    unread: list[Issue] = field(default_factory=list)


def pack(
    paths: Sequence[Path],
    output: Path,
    *,
    use_store: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Packing:
    """Read the recordings under some paths and write each as a file below a new directory, under the names they have.

    Raises:
        NothingReadable: If there is no readable recording.
        StepscopeError: If the directory exists or cannot be made.
    """
    if output.exists():
        raise StepscopeError(f"{output}: is there already, and nothing is overwritten. Choose a new directory")
    found = discover(paths)
    done = ingest(found.inputs, use_store=use_store, progress=progress)
    result = Packing(unread=[*found.problems, *done.unread])
    if not done.recordings:
        first = "".join(f" {one.file}: {one.problem}." for one in result.unread[:1])
        raise NothingReadable(f"{', '.join(map(str, paths))}: no recording that can be read.{first}")
    starts = [Path(path).expanduser().absolute() for path in paths]
    taken: set[Path] = set()
    alike = Counter(recording.path for recording in done.recordings)
    try:
        for recording in done.recordings:
            alone = alike[recording.path] == 1
            target = _target(recording, starts, output, alone=alone, taken=taken)
            taken.add(target)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            input_bytes = sum(map(size_of, recording.files))
            size = pack_recording(recording, target, input_bytes)
            _keep_time(recording, target)
            result.packed.append(Packed(target.relative_to(output).as_posix(), size, input_bytes))
    except OSError as error:
        raise StepscopeError(
            f"{output}: cannot be written: {error.strerror or error}. Choose another directory"
        ) from error
    return result


def _target(recording: Recording, starts: Sequence[Path], output: Path, *, alone: bool, taken: set[Path]) -> Path:
    """Where a recording is packed: under its own name, or, of several in one directory, there under its rank."""
    path = recording.path
    above = next((start.parent for start in starts if start == path or start in path.parents), path.parent)
    base = output.joinpath(*path.relative_to(above).parts)
    name = base.name if alone else f"rank-{recording.facts.get('rank')}"
    folder = base.parent if alone else base
    names = (f"{name}{SUFFIX}", *(f"{name}~{number}{SUFFIX}" for number in range(2, len(taken) + 3)))
    return next(target for each in names if (target := folder / each) not in taken)


def _keep_time(recording: Recording, target: Path) -> None:
    """Give a file the time of the recording's newest one: jobs without times are ordered by it."""
    times = [file.stat().st_mtime_ns for file in recording.files if file.exists()]
    if times:
        os.utime(target, ns=(max(times), max(times)))
