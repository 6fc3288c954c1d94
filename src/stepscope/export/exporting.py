"""From recordings to files that other tools read."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.export.job import Job
from stepscope.run import Run, open_run
from stepscope.selection import Choice

_log = logging.getLogger("stepscope")

TIMELINE_LIMIT_BYTES = 500 << 20
FORMAT = "stepscope-exported"


@dataclass(frozen=True)
class Outcome:
    """What became of one recording.

    Args:
        recording: Its directory.
        rank: Its number; None where it could not be read.
        files: What was made, relative to the `profiler` directory.
        left_out: What was not made, by file name or exporter, and why.
        problem: Why nothing at all was made; empty if something was.
    """

    recording: Path
    rank: int | None = None
    files: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def export(
    recordings: Iterable[Path],
    *,
    pretty: bool = False,
    steps: Choice = None,
    timeline_limit_bytes: int | None = None,
    data_simplification: bool | None = None,
    opener: Callable[[Path], Run] = open_run,
) -> list[Outcome]:
    """Make the files of each recording. What fails for one recording or one file stops no other.

    Args:
        recordings: Directories of raw data, `<output_path>/profiler/recording/rank-...`.
        pretty: Indent JSON.
        steps: Only these steps (`3-5` or numbers), as the profiler numbered them; None or an empty list for all.
        timeline_limit_bytes: Timelines end before they grow beyond this; None for what the recorder was told.
        data_simplification: False also keeps the operator data of each window; None for what the recorder was told.
        opener: Opens a recording as a run.

    Returns:
        One outcome a recording, in their order. Of several recordings of one rank in one directory the newest comes
        last, so its files are the ones that stay in place.
    """
    outcomes = []
    for recording in sorted(map(Path, recordings), key=_age):
        try:
            job = open_recording(recording, opener, steps)
        except (OSError, ValueError, StepscopeError) as reason:
            _log.error("Nothing was made of %s: %s", recording, reason)
            outcomes.append(Outcome(recording, problem=str(reason)))
            continue
        job.pretty = pretty
        job.timeline_limit_bytes = timeline_limit_bytes or _told_limit(job.options)
        told = job.options.get("data_simplification", True)
        job.data_simplification = told is not False if data_simplification is None else data_simplification
        outcomes.append(_export(job))
    return outcomes


def open_recording(recording: Path, opener: Callable[[Path], Run] = open_run, steps: Choice = None) -> Job:
    """Open a recording for export.

    Raises:
        StepscopeError: If it is none, cannot be read, or has none of the steps.
        OSError: If its `recording.json` cannot be read.
        ValueError: If that is damaged.
    """
    about = json.loads((recording / "recording.json").read_bytes())
    if not isinstance(about, dict) or about.get("format") != "stepscope-recording":
        raise StepscopeError(f"{recording}/recording.json: this is no recording of stepscope")
    run = opener(recording)
    if steps:
        run = run.select(steps=steps)
    rank = about.get("rank")
    return Job(
        run,
        run.ranks[0].rank if rank is None else int(rank),
        recording,
        about,
        recording.parent.parent,
        [step for step in run.steps if step > 0] if steps else None,
    )


def _export(job: Job) -> Outcome:
    from stepscope.export.exporters import EXPORTERS  # noqa: PLC0415 - a list of all rooms, which import this one's job

    try:
        before = _make_room(job)
    except OSError as reason:
        return Outcome(job.recording, job.rank, problem=f"files of an earlier recording cannot be moved: {reason}")
    for exporter in EXPORTERS:
        try:
            exporter(job)
        except Exception as reason:  # one kind of output must not take the others with it; it is told
            name = exporter.__name__.removeprefix("write_")
            _log.error("%s of %s could not be made: %s", name, job.recording, reason, exc_info=_is_fault(reason))
            job.leave_out(name, f"{type(reason).__name__}: {reason}")
    try:
        for file in before - set(job.written):
            (job.directory / file).unlink(missing_ok=True)
        _write_list(job)
    except OSError as reason:
        return Outcome(job.recording, job.rank, job.written, job.left_out, f"the list of files: {reason}")
    problem = "" if job.written else "no file could be made"
    return Outcome(job.recording, job.rank, list(job.written), dict(job.left_out), problem)


def _is_fault(reason: Exception) -> bool:
    """Whether a traceback helps: not for a full disk or missing data."""
    return not isinstance(reason, (OSError, StepscopeError))


def _make_room(job: Job) -> set[str]:
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
    if recording == _relative(job):
        return inside
    stamp = Path(recording).name.rsplit("_", 1)[-1]
    attic = job.directory / "earlier" / stamp
    for file in (*sorted(inside), name):
        if (job.directory / file).exists():
            _make_private((attic / file).parent)
            shutil.move(job.directory / file, attic / file)
    return set()


def _is_inside(file: str) -> bool:
    """Whether a listed file is one below the directory, and not of the raw data."""
    path = Path(file)
    return not path.is_absolute() and ".." not in path.parts and path.parts[:1] not in ((), ("recording",))


def _make_private(directory: Path) -> None:
    for missing in reversed([place for place in (directory, *directory.parents) if not place.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _write_list(job: Job) -> None:
    listed = {
        "format": FORMAT,
        "recording": _relative(job),
        "files": list(job.written),
        "left_out": job.left_out,
    }
    job.write(list_name(job.rank), json.dumps(listed, indent=1))
    job.written.remove(list_name(job.rank))


def list_name(rank: int) -> str:
    """The file that lists what was made of a rank."""
    return f"exported-{rank}.json"


def _relative(job: Job) -> str:
    return os.path.relpath(job.recording, job.directory)


def _told_limit(options: dict[str, Any]) -> int:
    told = options.get("timeline_limit")
    return (
        int(told) << 20 if isinstance(told, int) and not isinstance(told, bool) and told > 0 else TIMELINE_LIMIT_BYTES
    )


def _age(recording: Path) -> tuple[str, str]:
    """Oldest first: directories end in their time."""
    return recording.name.rsplit("_", 1)[-1], str(recording)
