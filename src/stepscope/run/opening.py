"""From paths to runs: find the inputs, read what is not in the store, and sort recordings into jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from stepscope.errors import NothingReadable, StepscopeError
from stepscope.run.jobs import Job, group
from stepscope.run.rank import Rank
from stepscope.run.remark import Remark
from stepscope.run.run import Run
from stepscope.selection import Choice
from stepscope.sources.discover import Unread, discover

Paths = str | Path | Sequence[str | Path]
_MAX_LISTED = 5


def open_runs(
    paths: Paths,
    *,
    use_store: bool = True,
    ranks: Choice = None,
    steps: Choice = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Run]:
    """Open every job that is recorded under some paths, the largest first, then the newest.

    Args:
        paths: Trace files and directories of them, one or more.
        use_store: Keep what is read for the next time.
        ranks: Only these ranks: `0,3-5` or numbers.
        steps: Only these steps; tables without steps keep their rows.
        progress: Called with bytes read, bytes in all and a name, while inputs are read.

    Raises:
        NothingReadable: If there is no recording that can be read.
        StepscopeError: If a path does not exist, or no job has such ranks or steps.
    """
    from stepscope.ingest import ingest  # noqa: PLC0415 - runs of frames in memory need no readers

    found = discover([paths] if isinstance(paths, (str, Path)) else paths)
    done = ingest(found.inputs, use_store=use_store, progress=progress)
    unread = [*found.problems, *done.unread]
    if not done.recordings:
        raise NothingReadable(_explain_nothing(paths, unread, found.skipped))
    runs = [_run(job, unread, done.warnings, found.skipped) for job in group(done.recordings)]
    return runs if ranks is None and steps is None else _narrow(runs, ranks, steps)


def open_run(
    paths: Paths,
    *,
    use_store: bool = True,
    ranks: Choice = None,
    steps: Choice = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Run:
    """Open the largest job that is recorded under some paths; the newest of several.

    `others` of the run holds the rest, and a note among its issues names them.

    Args:
        paths: Trace files and directories of them, one or more.
        use_store: Keep what is read for the next time.
        ranks: Only these ranks: `0,3-5` or numbers.
        steps: Only these steps; tables without steps keep their rows.
        progress: Called with bytes read, bytes in all and a name, while inputs are read.

    Raises:
        NothingReadable: If there is no recording that can be read.
        StepscopeError: If a path does not exist, or no job has such ranks or steps.
    """
    run, *others = open_runs(paths, use_store=use_store, ranks=ranks, steps=steps, progress=progress)
    run.others = others
    if others:
        listed = ", ".join(f"{other.name} ({other.path})" for other in others[:_MAX_LISTED])
        more = f" and {len(others) - _MAX_LISTED} more" if len(others) > _MAX_LISTED else ""
        count = "1 more run lies" if len(others) == 1 else f"{len(others)} more runs lie"
        problem = f"{count} under the same path: {listed}{more}"
        run.remarks.append(Remark("note", str(run.path), problem, "Name the path of one to open it"))
    return run


def _run(job: Job, unread: Sequence[Unread], warnings: Sequence[str], skipped: int) -> Run:
    ranks = [Rank(member.rank, member.origin, member.recording) for member in job.members]
    return Run(job.name, job.path, ranks, unread=unread, remarks=job.remarks, warnings=warnings, skipped=skipped)


def _narrow(
    runs: Sequence[Run],
    ranks: Choice,
    steps: Choice,
) -> list[Run]:
    """The runs that have the chosen ranks and steps.

    Raises:
        StepscopeError: What the largest run says, if none has.
    """
    narrowed: list[Run] = []
    refusals: list[StepscopeError] = []
    for run in runs:
        try:
            narrowed.append(run.select(ranks, steps))
        except StepscopeError as refusal:
            refusals.append(refusal)
    if not narrowed:
        raise refusals[0]
    return narrowed


def _explain_nothing(paths: Paths, unread: Sequence[Unread], skipped: int) -> str:
    where = str(paths) if isinstance(paths, (str, Path)) else ", ".join(map(str, paths))
    lines = [f"{where}: no recording that can be read."]
    lines.extend(f"  {u.file}: {u.problem}. {u.remedy}" for u in unread[:_MAX_LISTED])
    if len(unread) > _MAX_LISTED:
        lines.append(f"  and {len(unread) - _MAX_LISTED} more")
    if skipped:
        lines.append(f"  {skipped} other files are in no format that stepscope reads.")
    lines.append("Name a trace file (*.json, *.json.gz, *.db) or a directory with profiles.")
    return "\n".join(lines)
