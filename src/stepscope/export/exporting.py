"""From recordings to files that other tools read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.export.drafts import drafting, publish
from stepscope.export.job import Job
from stepscope.export.peers import Peers
from stepscope.export.places import age, target
from stepscope.run import Run, open_run
from stepscope.selection import Choice
from stepscope.sources.recording.about import read_about

_log = logging.getLogger("stepscope")

TIMELINE_LIMIT_BYTES = 500 << 20


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
        recordings: Directories of raw data, `<output_path>/profiler/recording/rank-...`; how long a rank waited for
            others is told where these are among them.
        pretty: Indent JSON.
        steps: Only these steps (`3-5` or numbers), as the profiler numbered them; None or an empty list for all.
        timeline_limit_bytes: Timelines end before they grow beyond this; None for what the recorder was told.
        data_simplification: False also keeps the operator data of each window; None for what the recorder was told.
        opener: Opens a recording as a run.

    Returns:
        One outcome a recording, the oldest recording first. Of several recordings of one rank in one directory the
        newest has its files there, and the others theirs in `earlier/<stamp>/`.
    """
    outcomes = []
    together = sorted({Path(recording).absolute() for recording in recordings}, key=age)
    peers = Peers(together)
    for recording in together:
        try:
            job = open_recording(recording, opener, steps)
        except (OSError, ValueError, StepscopeError) as reason:
            _log.error("Nothing was made of %s: %s", recording, reason)
            outcomes.append(Outcome(recording, problem=str(reason)))
            continue
        job.directory = target(recording, together)
        job.arrivals = partial(peers.arrivals, recording)
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
    """
    about = dict(read_about(recording).values)
    run = opener(recording)
    recorded = run.steps
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
        recorded=recorded,
    )


def _export(job: Job) -> Outcome:
    """Make the files of one recording, all of them or none."""
    home = job.directory
    try:
        with drafting(job):
            _make(job)
            if not job.written:
                return Outcome(job.recording, job.rank, left_out=job.left_out, problem="no file could be made")
            publish(job, home)
    except OSError as reason:
        return Outcome(job.recording, job.rank, left_out=job.left_out, problem=f"{home} cannot be written: {reason}")
    return Outcome(job.recording, job.rank, list(job.written), dict(job.left_out))


def _make(job: Job) -> None:
    from stepscope.export.exporters import EXPORTERS  # noqa: PLC0415 - a list of all rooms, which import this one's job

    for exporter in EXPORTERS:
        try:
            exporter(job)
        except Exception as reason:  # one kind of output must not take the others with it; it is told
            name = exporter.__name__.removeprefix("write_")
            _log.error("%s of %s could not be made: %s", name, job.recording, reason, exc_info=_is_fault(reason))
            job.leave_out(name, f"{type(reason).__name__}: {reason}")


def _is_fault(reason: Exception) -> bool:
    """Whether a traceback helps: not for a full disk or missing data."""
    return not isinstance(reason, (OSError, StepscopeError))


def _told_limit(options: dict[str, Any]) -> int:
    told = options.get("timeline_limit")
    return (
        int(told) << 20 if isinstance(told, int) and not isinstance(told, bool) and told > 0 else TIMELINE_LIMIT_BYTES
    )
