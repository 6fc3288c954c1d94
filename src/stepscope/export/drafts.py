"""Files in the making: in a directory of their own beside those of before, until they are all there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stepscope.export.job import Job
from stepscope.export.places import make_room, remove, set_strangers_aside, write_list

_PREFIX = ".exporting-"
"""Readers pass by directories with a dot in front."""


@contextmanager
def drafting(job: Job) -> Iterator[None]:
    """Have the files of a job written to a directory that nobody reads; gone afterwards, with what is left in it.

    Raises:
        OSError: If it cannot be made.
    """
    home = job.directory
    for abandoned in home.glob(f"{_PREFIX}{job.recording.name}-*"):
        if not _is_running(abandoned.name.rsplit("-", 1)[-1]):
            shutil.rmtree(abandoned, ignore_errors=True)
    room = home / f"{_PREFIX}{job.recording.name}-{os.getpid()}"
    room.mkdir(mode=0o700, parents=True, exist_ok=True)
    job.directory = room
    try:
        yield
    finally:
        job.directory = home
        shutil.rmtree(room, ignore_errors=True)


def publish(job: Job, home: Path) -> None:
    """Move the files of a job, and nothing less, to where readers look for them.

    The list of them goes first and says that they are on their way: whoever looks meanwhile, or after this process was
    killed, knows by it that these files are not to be read.

    Raises:
        OSError: If that is not possible.
    """
    room, job.directory = job.directory, home
    before = make_room(job)
    set_strangers_aside(job, before)
    write_list(job, dict.fromkeys([*job.written, *sorted(before)]), complete=False)
    for file in job.written:
        _move(room / file, home / file)
    remove(job, before - set(job.written))
    write_list(job, job.written, complete=True)


def _move(source: Path, target: Path) -> None:
    for _ in range(2):  # another rank may just have removed the folder, since it was empty
        for missing in reversed([place for place in target.parents if not place.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            source.replace(target)
            return
    source.replace(target)


def _is_running(pid: str) -> bool:
    """Whether there is a process of this number on this host; one that belongs to somebody else counts."""
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
