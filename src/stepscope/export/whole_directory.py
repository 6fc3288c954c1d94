"""A directory for an export of its own, which is written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.export.placing import check_place, put, staging
from stepscope.paths import shown
from stepscope.run import Run


@contextmanager
def whole_directory(directory: Path, run: Run) -> Iterator[Path]:
    """Where to write the files of a directory, which has all of them when nothing failed, and else none.

    Args:
        directory: New, or empty.
        run: What is exported: nothing is written into its recordings.

    Yields:
        A directory for this user alone; it is removed if anything fails.

    Raises:
        StepscopeError: If the directory has files, is in a recording, or cannot be written.
    """
    if directory.is_dir() and any(directory.iterdir()):
        raise StepscopeError(f"{shown(directory)}: has files already, and nothing is overwritten. Give a new directory")
    read = [rank for rank in run.original.ranks if rank.recording.files]
    inputs = [run.path, *(rank.path for rank in read)] if read else []
    check_place(directory, (), inputs)
    with staging(directory) as draft:
        try:
            yield draft
        except OSError as error:
            raise StepscopeError(
                f"{shown(directory)}: cannot be written: {error.strerror or error}. Nothing was left there; choose "
                "another directory, or free some space"
            ) from error
        put(draft, directory, inputs)
