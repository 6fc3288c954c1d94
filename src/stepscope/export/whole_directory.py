"""A directory for an export that is written whole or not at all, beside everything that is there already."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.export.rank_export import make_private
from stepscope.paths import shown
from stepscope.run import Run


@contextmanager
def whole_directory(directory: Path, run: Run) -> Iterator[Path]:
    """Where to write the files of a directory, which appears with all of them when nothing failed.

    Args:
        directory: New, or empty.
        run: What is exported: nothing is written into its recordings.

    Yields:
        A directory beside it, for this user alone; it is removed if anything fails.

    Raises:
        StepscopeError: If the directory has files, is in a recording, or cannot be written.
    """
    _check(directory, run)
    draft = directory.with_name(f".{directory.name}.{os.getpid()}.unfinished")
    try:
        shutil.rmtree(draft, ignore_errors=True)  # of a process that had this number and was killed
        make_private(draft)
        yield draft
        _publish(draft, directory)
    except OSError as error:
        raise StepscopeError(
            f"{shown(directory)}: cannot be written: {error.strerror or error}. Nothing was left there; choose another "
            "directory, or free some space"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _check(directory: Path, run: Run) -> None:
    if directory.is_dir() and any(directory.iterdir()):
        raise StepscopeError(f"{shown(directory)}: has files already, and nothing is overwritten. Give a new directory")
    if not directory.is_dir() and (directory.exists() or directory.is_symlink()):
        raise StepscopeError(f"{shown(directory)}: is there already and no directory. Give a new one")
    place = directory.resolve()
    read = [rank for rank in run.ranks if rank.recording.files]
    for each in {run.path, *(rank.path for rank in read)} if read else ():
        whole = each.resolve()
        if place == whole or (whole.is_dir() and place.is_relative_to(whole)):
            raise StepscopeError(
                f"{shown(directory)}: this is inside the recording {shown(each)}, into which nothing is written. Give "
                "another place"
            )


def _publish(draft: Path, directory: Path) -> None:
    """Move what is complete to its place: at once, or file by file into an empty directory that is there."""
    if not directory.exists():
        draft.rename(directory)
        return
    moved: list[Path] = []
    try:
        for each in sorted(draft.iterdir()):
            target = directory / each.name
            if target.exists():
                raise FileExistsError(17, f"{shown(target)} has appeared meanwhile")
            each.rename(target)
            moved.append(target)
    except OSError:
        for target in moved:
            target.rename(draft / target.name)
        raise
