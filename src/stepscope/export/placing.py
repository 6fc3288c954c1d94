"""Putting files of a run in their place: not into an input nor over another file, all or none, for this user alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.export.rank_export import make_private
from stepscope.paths import first_in_input, shown
from stepscope.recording_format.export_list import UNFINISHED

_MOST_NAMED = 3


def check_place(directory: Path, names: Sequence[str], inputs: Sequence[Path]) -> None:
    """Check that files may be put below a directory.

    Args:
        directory: The directory, which need not exist.
        names: The files, relative to it, as far as they are known.
        inputs: Files and directories into which nothing is written.

    Raises:
        StepscopeError: If it is no directory, lies in an input, or has one of the files or directories already.
    """
    inside = first_in_input((directory, *(directory / name for name in names)), inputs)
    if inside is not None:
        place, around = inside
        raise StepscopeError(
            f"{shown(place)}: this is inside the recording {shown(around)}, into which nothing is written. Give "
            "another place with -o"
        )
    if directory.exists() and not directory.is_dir():
        raise StepscopeError(f"{shown(directory)}: this is a file. Give the name of a directory, which may be new")
    there = [name for name in names if os.path.lexists(directory / name)]
    if there:
        named = ", ".join(map(shown, there[:_MOST_NAMED])) + (", ..." if len(there) > _MOST_NAMED else "")
        raise StepscopeError(
            f"{shown(directory)}: {named} is there already, and nothing is overwritten. Choose a new or empty directory"
        )


@contextmanager
def staging(directory: Path) -> Iterator[Path]:
    """A new directory below another one, to write to; it is removed afterwards with all that is left in it.

    What had to be created for it is removed too, if it is empty then.

    Raises:
        StepscopeError: If it cannot be created.
    """
    created = [place for place in (directory, *directory.parents) if not place.exists()]
    staged = directory / f"{UNFINISHED}{os.getpid()}"
    try:
        make_private(staged)
    except OSError as error:
        raise _unwritable(directory, error) from error
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        for place in created:
            with suppress(OSError):  # what was made is in it
                place.rmdir()


def put(staged: Path, directory: Path, inputs: Sequence[Path]) -> list[Path]:
    """Move all files below a staging directory to the same places below another one.

    Returns:
        The files there, in order.

    Raises:
        StepscopeError: See `check_place`; or if they cannot be moved. Then none of them is there.
    """
    names = sorted(path.relative_to(staged) for path in staged.rglob("*") if not path.is_dir() or path.is_symlink())
    check_place(directory, [str(name) for name in names], inputs)
    moved: list[Path] = []
    try:
        for name in names:
            target = directory / name
            make_private(target.parent)
            (staged / name).chmod(0o600)
            (staged / name).rename(target)
            moved.append(target)
    except OSError as error:
        _remove(moved, directory)
        raise _unwritable(directory, error) from error
    except BaseException:
        _remove(moved, directory)
        raise
    return moved


def _remove(files: Iterable[Path], directory: Path) -> None:
    """Remove files, and the directories between them and another one that are empty then."""
    folders = set()
    for file in files:
        file.unlink(missing_ok=True)
        folders |= {place for place in file.parents if directory in place.parents}
    for place in sorted(folders, key=lambda place: -len(place.parts)):
        with suppress(OSError):
            place.rmdir()


def _unwritable(directory: Path, error: OSError) -> StepscopeError:
    why = error.strerror or error
    return StepscopeError(
        f"{shown(directory)}: cannot be written: {why}. Choose a writable directory on a disk with free space"
    )
