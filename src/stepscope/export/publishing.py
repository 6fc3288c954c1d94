"""Making files in a staging directory, and moving them to their place once all of them are complete.

The newest recording of a rank has its files in the `profiler` directory itself; those of an earlier one are in
`earlier/<stamp>/`. In both places `exported-<R>.json` lists what was made, and from which recording. It is written
before the first of the files and removed after the last, so that readers can ignore files that repeat a recording, and
files of an export that was interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.export.rank_export import RankExport, make_private
from stepscope.paths import stays_below
from stepscope.processes import is_running
from stepscope.recording_format.export_list import EARLIER, NOWHERE, UNFINISHED, ExportList, list_name
from stepscope.recording_format.layout import RECORDINGS, stamp_in_name
from stepscope.recording_format.reading import read_about, read_export_list

_log = logging.getLogger("stepscope")


def age(recording: Path) -> tuple[str, str]:
    """A key that sorts recordings, the oldest first: the names of their directories end in a time."""
    return stamp_in_name(recording.name), str(recording)


def target(recording: Path, others: Iterable[Path]) -> Path:
    """The directory for the files of a recording, of all that are exported together, itself among them."""
    profiler = recording.parent.parent
    rank = _rank(recording)
    same_rank = [other for other in others if other.parent == recording.parent and _rank(other) == rank]
    is_newest = max(same_rank, key=age, default=recording) == recording
    return profiler if is_newest or rank is None else profiler / EARLIER / stamp_in_name(recording.name)


def _rank(recording: Path) -> int | None:
    """The rank that a recording states; None if it states none."""
    try:
        return read_about(recording).rank
    except UnreadableInput:
        return None  # opening it will report why


@contextmanager
def staging(export: RankExport) -> Iterator[None]:
    """Have the files written to a staging directory, which is removed afterwards with all that is left in it.

    Raises:
        OSError: If it cannot be created.
    """
    home = export.directory
    for abandoned in home.glob(f"{UNFINISHED}{export.recording.name}-*"):
        process = abandoned.name.rsplit("-", 1)[-1]
        if not (process.isdecimal() and is_running(int(process))):
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
    before = _replaced_files(export)
    _set_unknown_aside(export, before)
    _write_list(export, dict.fromkeys([*export.written, *sorted(before)]), complete=False)
    for file in export.written:
        _move(staged / file, home / file)
    gone = before.difference(export.written)
    for file in gone:
        (home / file).unlink(missing_ok=True)
    _remove_empty(home, gone)
    _write_list(export, export.written, complete=True)


def _move(source: Path, target: Path) -> None:
    for _ in range(2):  # another rank may just have removed the folder, which was empty
        make_private(target.parent)
        with suppress(FileNotFoundError):
            source.replace(target)
            return
    source.replace(target)


def _replaced_files(export: RankExport) -> set[str]:
    """Files of an earlier export of this recording, which may be replaced; those of another recording are set aside."""
    name = list_name(export.rank)
    if not (export.directory / name).exists():
        return set()
    listed = read_export_list(export.directory / name)
    if listed is None or listed.recording == NOWHERE:
        _log.warning("%s cannot be read; files that it lists may be replaced", export.directory / name)
        return set()
    inside = {  # below the directory, and not raw data
        file for file in listed.files if stays_below(file) and Path(file).parts[:1] not in ((), (RECORDINGS,))
    }
    if listed.recording == _relative(export):
        return inside
    earlier = export.directory / EARLIER / stamp_in_name(Path(listed.recording).name)
    make_private(earlier)
    shutil.copy2(export.directory / name, earlier / name)
    _set_aside(export.directory, inside, earlier)
    (export.directory / name).unlink()
    return set()


def _set_unknown_aside(export: RankExport, replaced: Iterable[str]) -> None:
    """Move files aside that have the names of new ones and are in no list of exported files: they may be the user's."""
    unknown = {file for file in set(export.written).difference(replaced) if (export.directory / file).exists()}
    if unknown:
        earlier = export.directory / EARLIER / f"{stamp_in_name(export.recording.name)}-before"
        _log.warning(
            "%d files in %s are not from a known recording and are moved to %s", len(unknown), export.directory, earlier
        )
        _set_aside(export.directory, unknown, earlier)


def _set_aside(directory: Path, files: Iterable[str], earlier: Path) -> None:
    for file in sorted(files):
        if (directory / file).exists():
            make_private((earlier / file).parent)
            shutil.move(directory / file, earlier / file)
    _remove_empty(directory, files)


def _remove_empty(directory: Path, files: Iterable[str]) -> None:
    """Remove the directories of some files that are empty now."""
    places = {place for file in files for place in Path(file).parents if place != Path()}
    for place in sorted(places, key=lambda place: -len(place.parts)):
        if (directory / place).is_dir() and not any((directory / place).iterdir()):
            (directory / place).rmdir()


def _write_list(export: RankExport, files: Iterable[str], *, complete: bool) -> None:
    """Write the list of what was made, with all files that may be there, and of what was not."""
    name, steps = list_name(export.rank), tuple(export.step_numbers)
    listed = ExportList(export.directory / name, _relative(export), tuple(files), complete, steps, export.left_out)
    export.write(name, json.dumps(listed.as_json(), indent=1))
    export.written.remove(name)


def _relative(export: RankExport) -> str:
    """The recording, relative to the `profiler` directory."""
    return f"{export.recording.parent.name}/{export.recording.name}"
