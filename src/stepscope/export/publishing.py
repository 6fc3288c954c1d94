"""Making files in a staging directory, and moving them to their place once all of them are complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stepscope.export.output_directory import remove, replaced_files, set_unknown_aside, write_list
from stepscope.export.rank_export import RankExport
from stepscope.recording_format.export_list import UNFINISHED


@contextmanager
def staging(export: RankExport) -> Iterator[None]:
    """Have the files written to a staging directory, which is removed afterwards with all that is left in it.

    Raises:
        OSError: If it cannot be created.
    """
    home = export.directory
    for abandoned in home.glob(f"{UNFINISHED}{export.recording.name}-*"):
        if not _is_running(abandoned.name.rsplit("-", 1)[-1]):
            shutil.rmtree(abandoned, ignore_errors=True)
    staged = home / f"{UNFINISHED}{export.recording.name}-{os.getpid()}"
    staged.mkdir(mode=0o700, parents=True, exist_ok=True)
    export.directory = staged
    try:
        yield
    finally:
        export.directory = home
        shutil.rmtree(staged, ignore_errors=True)


def publish(export: RankExport, home: Path) -> None:
    """Move all files from the staging directory to where readers look for them.

    Their list is written first and marked incomplete, so that a reader who looks meanwhile, or after this process was
    killed, ignores these files.

    Args:
        export: What was made.
        home: Where readers look.

    Raises:
        OSError: If a file cannot be moved.
    """
    staged, export.directory = export.directory, home
    before = replaced_files(export)
    set_unknown_aside(export, before)
    write_list(export, dict.fromkeys([*export.written, *sorted(before)]), complete=False)
    for file in export.written:
        _move(staged / file, home / file)
    remove(export, before - set(export.written))
    write_list(export, export.written, complete=True)


def _move(source: Path, target: Path) -> None:
    for _ in range(2):  # another rank may just have removed the folder, which was empty
        for missing in reversed([place for place in target.parents if not place.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            source.replace(target)
            return
    source.replace(target)


def _is_running(pid: str) -> bool:
    """Whether a process of this number runs on this host, of whatever user."""
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
