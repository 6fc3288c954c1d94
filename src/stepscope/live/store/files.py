"""Record files: which files are ours, and opening them safely."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from stepscope.record.files import FILE_MODE
from stepscope.recording_format.light import is_record_name

_BEGINS = re.compile(rb'\s*\{\s*"Kind"\s*:\s*\d')
_LOOKED_AT = 4096


def newest_in(directory: Path) -> str | None:
    """The largest number that names a file in a directory; anything else is passed over.

    Raises:
        OSError: If the directory cannot be read.
    """
    return max(_names_in(directory), key=int, default=None)


def files_in(directory: Path) -> list[Path]:
    """The files in a directory that are named by numbers, in the order of these.

    Raises:
        OSError: If the directory cannot be read.
    """
    return [directory / name for name in sorted(_names_in(directory), key=int)]


def _names_in(directory: Path) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries if is_record_name(entry.name) and entry.is_file(follow_symlinks=False)]


def holds_records(file: Path) -> bool:
    """Whether a file of such a name is empty or begins with a record, after blank lines; others are not ours."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            head = os.read(descriptor, _LOOKED_AT)
        finally:
            os.close(descriptor)
        return not head or _BEGINS.match(head) is not None
    return False


def open_to_append(file: Path, *, new: bool) -> tuple[int, int] | None:
    """Open a record file; its descriptor and size.

    Args:
        new: Whether it must not exist yet.

    Returns:
        None if it exists although it must not, is no plain file (such as a symbolic link), or belongs to another user.

    Raises:
        OSError: For any other reason, e.g. a missing directory or a full disk.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(file, flags | (os.O_EXCL if new else 0), FILE_MODE)
    except OSError as error:
        excused = [errno.EEXIST] if new else [errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EACCES, errno.EPERM]
        if error.errno in excused:
            return None
        raise
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        return None
    return descriptor, state.st_size


def lock(descriptor: int) -> bool:
    """Lock an open file or directory for this process alone; whether no other one has locked it. On a disk without
    locks, none shows."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def append(descriptor: int, size: int, data: bytes) -> None:
    """Append all of `data`, or nothing: what a full disk took of it is cut off again.

    A last line without an end, left by a killed process, is ended first, so that it spoils no good one.

    Raises:
        OSError: If writing fails.
    """
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        if os.fstat(descriptor).st_size == size + len(data) - len(rest):  # else another process has appended, too
            os.ftruncate(descriptor, size)
        raise
