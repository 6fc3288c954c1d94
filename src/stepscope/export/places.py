"""Where the files of a recording go, and what becomes of those that lie there already.

The newest recording of a rank has its files in the `profiler` directory itself; those of an earlier one are in
`earlier/<stamp>/`. `exported-<R>.json` says in either place what was made, and from which recording. It is there before
the first of the files and as long as any of them: by it readers pass by what a recording says better, and files of an
export that was interrupted.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stepscope.export.job import Job
from stepscope.paths import stays_below
from stepscope.sources.export_lists import FORMAT
from stepscope.sources.recording.about import ABOUT

_log = logging.getLogger("stepscope")

EARLIER = "earlier"


def age(recording: Path) -> tuple[str, str]:
    """Sorts recordings, the oldest first: their directories end in their time."""
    return stamp(recording.name), str(recording)


def stamp(name: str) -> str:
    """The time in a recording's name."""
    return name.rsplit("_", 1)[-1]


def target(recording: Path, others: Iterable[Path]) -> Path:
    """The directory for the files of a recording.

    Args:
        recording: The recording.
        others: All recordings that are exported together, this one among them.
    """
    profiler = recording.parent.parent
    rank = _rank(recording)
    rivals = [other for other in others if other.parent == recording.parent and _rank(other) == rank]
    is_newest = max(rivals, key=age, default=recording) == recording
    return profiler if is_newest or rank is None else profiler / EARLIER / stamp(recording.name)


def _rank(recording: Path) -> Any:
    """The rank that a recording states; None where it states none."""
    try:
        return json.loads((recording / ABOUT).read_bytes()).get("rank")
    except (OSError, ValueError, AttributeError):
        return None  # whoever opens it will tell why


def make_room(job: Job) -> set[str]:
    """Move what was made of another recording of the rank out of the way.

    Returns:
        What was made of this very recording before; it is replaced.

    Raises:
        OSError: If that is not possible.
    """
    name = list_name(job.rank)
    try:
        listed = json.loads((job.directory / name).read_bytes())
        made, recording = [str(file) for file in listed["files"]], str(listed["recording"])
    except FileNotFoundError:
        return set()
    except (ValueError, KeyError, TypeError) as reason:
        _log.warning("%s cannot be read (%s); files that it lists may be replaced", job.directory / name, reason)
        return set()
    inside = {file for file in made if _is_inside(file)}
    if recording == _told(job):
        return inside
    attic = job.directory / EARLIER / stamp(Path(recording).name)
    _make_private(attic)
    shutil.copy2(job.directory / name, attic / name)
    _set_aside(job.directory, inside, attic)
    (job.directory / name).unlink()
    return set()


def set_strangers_aside(job: Job, ours: Iterable[str]) -> None:
    """Move files out of the way that have the names of new ones, and that no list of ours has: they may be a user's.

    Args:
        job: The files that were made, and where they go.
        ours: Files that may be replaced.

    Raises:
        OSError: If that is not possible.
    """
    strangers = {file for file in set(job.written).difference(ours) if (job.directory / file).exists()}
    if strangers:
        attic = job.directory / EARLIER / f"{stamp(job.recording.name)}-before"
        told = "%d files in %s are not from a known recording; they are moved to %s"
        _log.warning(told, len(strangers), job.directory, attic)
        _set_aside(job.directory, strangers, attic)


def _set_aside(directory: Path, files: Iterable[str], attic: Path) -> None:
    for file in sorted(files):
        if (directory / file).exists():
            _make_private((attic / file).parent)
            shutil.move(directory / file, attic / file)
    _remove_empty(directory, files)


def remove(job: Job, files: Iterable[str]) -> None:
    """Remove files that were made before and are not made any more.

    Raises:
        OSError: If that is not possible.
    """
    gone = list(files)
    for file in gone:
        (job.directory / file).unlink(missing_ok=True)
    _remove_empty(job.directory, gone)


def _remove_empty(directory: Path, files: Iterable[str]) -> None:
    """Remove the directories of some files, as far as nothing is in them any more."""
    places = {place for file in files for place in Path(file).parents if place != Path()}
    for place in sorted(places, key=lambda place: -len(place.parts)):
        if (directory / place).is_dir() and not any((directory / place).iterdir()):
            (directory / place).rmdir()


def _is_inside(file: str) -> bool:
    """Whether a listed file is one below the directory, and not of the raw data."""
    return stays_below(file) and Path(file).parts[:1] not in ((), ("recording",))


def _make_private(directory: Path) -> None:
    for missing in reversed([place for place in (directory, *directory.parents) if not place.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def write_list(job: Job, files: Iterable[str], *, complete: bool) -> None:
    """Write what was made, and what was not.

    Args:
        job: The export.
        files: What is there, or may be.
        complete: Whether all of it is there.

    Raises:
        OSError: If the disk does not take it.
    """
    content = {
        "format": FORMAT,
        "recording": _told(job),
        "complete": complete,
        "steps": job.step_numbers,
        "files": list(files),
        "left_out": job.left_out,
    }
    job.write(list_name(job.rank), json.dumps(content, indent=1))
    job.written.remove(list_name(job.rank))


def list_name(rank: int) -> str:
    """The file that lists what was made of a rank."""
    return f"exported-{rank}.json"


def _told(job: Job) -> str:
    """The recording, relative to the `profiler` directory."""
    return f"{job.recording.parent.name}/{job.recording.name}"
