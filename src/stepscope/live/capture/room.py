"""Where a rank keeps its captures: below the directory of its records, private, and bounded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.live.places import safe_name
from stepscope.record.files import make_private

CAPTURES = "captures"
"""The directory of all captures of a rank."""
MARKER = ".stepscope-capture"
"""A directory with this file is a capture, and may be deleted to make room."""
MOST_CAPTURES = 20
"""Captures that a rank keeps; the oldest go first."""
MOST_BYTES = 2 << 30
"""Disk space of all captures of a rank. A step of a large model takes about 100 MB of trace before compression."""
LEAST_FREE_BYTES = 1 << 30
"""No capture begins with less free disk space."""


class NoRoom(StepscopeError):
    """A capture cannot be written."""


def new_capture(rank_directory: Path, capture: str) -> Path:
    """An empty private directory for a capture, below the directory of a rank's records.

    Raises:
        NoRoom: If it exists already, cannot be created, or the disk is nearly full.
    """
    directory = rank_directory / CAPTURES / safe_name(capture)
    try:
        make_private(directory.parent)
        free = shutil.disk_usage(directory.parent).free
        if free < LEAST_FREE_BYTES:
            raise NoRoom(
                f"{directory.parent}: only {free >> 20} MiB are free on this disk, and a capture needs "
                f"{LEAST_FREE_BYTES >> 20} MiB. Free some space"
            )
        directory.mkdir(mode=0o700)
        (directory / MARKER).touch(mode=0o600)
    except FileExistsError as error:
        raise NoRoom(f"{directory}: a capture with this id exists already") from error
    except OSError as error:
        raise NoRoom(f"{directory}: cannot be created ({error.strerror or error}). Check its permissions") from error
    return directory


def make_room(kept: Path) -> bool:
    """Delete the oldest captures beside `kept` until all of them are within their bounds.

    Returns:
        Whether `kept` could be kept; if it alone is too large, it is deleted too.
    """
    captures = sorted(_captures(kept.parent), key=lambda one: (one == kept, one.stat().st_mtime_ns))
    sizes = [size_of(one) for one in captures]
    count, total = len(captures), sum(sizes)
    for directory, size in zip(captures, sizes, strict=True):
        if count <= MOST_CAPTURES and total <= MOST_BYTES:
            break
        shutil.rmtree(directory, ignore_errors=True)
        count, total = count - 1, total - size
    return kept.exists()


def size_of(directory: Path) -> int:
    """Bytes of all files below a directory."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += 0 if path.is_dir() else path.lstat().st_size
        except OSError:  # deleted meanwhile
            continue
    return total


def files_in(directory: Path) -> list[str]:
    """All files of a capture, sorted; without hidden ones."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return [str(path) for path in found]


def _captures(directory: Path) -> Iterator[Path]:
    for entry in directory.iterdir():
        if (entry / MARKER).is_file() and not entry.is_symlink():
            yield entry
