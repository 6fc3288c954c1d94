"""Where reports are written: never into an input, nor over a file of something else; whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.paths import input_around, shown

MARK = "stepscope report"
"""What stands in each file that stepscope wrote, near its start."""

_LOOKED_AT = 2_000
_MARKS = (MARK.encode(), b'"stepscope_version"', b"stepscope timeline")


def check_target(target: Path, inputs: Iterable[Path], *, force: bool = False) -> None:
    """Check that a report may be written to a file.

    Raises:
        StepscopeError: If it is or lies in an input, or replaces a file of something else; `force` allows the latter.
    """
    around = input_around(target, inputs)
    if around is not None and not around.is_dir():
        raise StepscopeError(
            f"{shown(target)}: this is the recording itself, which is never replaced. Give another name"
        )
    if around is not None:
        raise StepscopeError(
            f"{shown(target)}: this is inside the recording {shown(around)}, into which nothing is written. Give "
            "another place with -o"
        )
    if target.is_dir():
        raise StepscopeError(f"{shown(target)}: this is a directory. Give the name of a file")
    if not target.parent.is_dir():
        raise StepscopeError(f"{shown(target)}: there is no directory {shown(target.parent)}. Create it first")
    if not os.access(target if target.exists() and not target.is_file() else target.parent, os.W_OK):
        raise StepscopeError(f"{shown(target)}: nothing can be written there. Choose a file in a writable directory")
    if not force and target.is_file() and not is_ours(target):
        raise StepscopeError(
            f"{shown(target)}: this file was not written by stepscope. Give another name, or --force to replace it"
        )


def check_apart(targets: Iterable[Path]) -> None:
    """Check that no two outputs are to be written to one file.

    Raises:
        StepscopeError: If two are the same.
    """
    seen = set[Path]()
    for target in targets:
        place = target.resolve()
        if place in seen:
            raise StepscopeError(
                f"{shown(target)}: two outputs cannot go to the same file. Give each a name of its own"
            )
        seen.add(place)


def is_ours(file: Path) -> bool:
    """Whether stepscope wrote a file; an empty one is nobody's."""
    try:
        with file.open("rb") as opened:
            start = opened.read(_LOOKED_AT)
        if start.startswith(b"PK"):
            with zipfile.ZipFile(file) as packed:
                start = packed.read("docProps/core.xml")
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(file) as unpacked:
                start = unpacked.read(_LOOKED_AT)
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return False
    return not start or any(mark in start for mark in _MARKS)


def _remedy(error: OSError) -> str:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "Free some space there, or choose another disk" if is_full else "Choose a file in a writable directory"


def write_file(target: Path, write: Callable[[Path], None]) -> None:
    """Have a file written beside the target, and put it in its place when it is whole.

    Raises:
        StepscopeError: If it cannot be written.
    """
    replaced = not target.exists() or target.is_file()
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp") if replaced else target
    try:
        write(draft)
        if draft != target:
            draft.replace(target)
    except OSError as error:
        raise StepscopeError(
            f"{shown(target)}: cannot write the report: {error.strerror or error}. {_remedy(error)}"
        ) from error
    finally:
        if draft != target:
            draft.unlink(missing_ok=True)
