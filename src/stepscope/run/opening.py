"""From paths to runs: find the inputs, read those that are not in the store, and group recordings into jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from stepscope import plugins
from stepscope.errors import NothingReadable, StepscopeError
from stepscope.run.answer_cache import DEFAULT_MB, AnswerCache
from stepscope.run.engine import Engine, Ray, engine_of
from stepscope.run.job import Job
from stepscope.run.jobs import group
from stepscope.run.rank import Rank
from stepscope.run.run import Run
from stepscope.selection import Choice
from stepscope.sources.discover import discover
from stepscope.tables.issues import OTHER_RUNS, Issue

Paths = str | Path | Sequence[str | Path]
_MAX_LISTED = 5
_MAX_NAMED = 20


def open_runs(
    paths: Paths,
    *,
    use_store: bool = True,
    ranks: Choice = None,
    steps: Choice = None,
    progress: Callable[[int, int, str], None] | None = None,
    engine: Engine | str | None = None,
    answers_mb: float = DEFAULT_MB,
) -> list[Run]:
    """Open every job recorded under some paths: largest first, then newest.

    Args:
        paths: Trace files and directories of them, one or more.
        use_store: Store the rows, and answers about them, for the next call.
        ranks: Only these ranks: `0,3-5` or numbers.
        steps: Only these steps; tables without steps keep their rows.
        progress: Called with bytes read, total bytes and a name while inputs are read.
        engine: Runs analyses over ranks: `Threads` of this process (default), `Processes` or `Ray`, which reads inputs
            as well; or the name of one, see `engine_of`. Default: `STEPSCOPE_ENGINE`.
        answers_mb: MB of answers to keep per run, see `Run`.

    Raises:
        NothingReadable: If there is no readable recording.
        StepscopeError: If a path does not exist, or no job has these ranks or steps.
    """
    from stepscope.ingest import ingest  # noqa: PLC0415 - runs of frames in memory need no readers

    engine = engine_of(engine)
    cluster = engine.cluster if isinstance(engine, Ray) else None
    plugins.install()
    found = discover([paths] if isinstance(paths, (str, Path)) else paths)
    done = ingest(found.inputs, use_store=use_store, progress=progress, cluster=cluster)
    unread = [*found.problems, *done.unread]
    if not done.recordings:
        raise NothingReadable(_explain_nothing(paths, unread, found.skipped))
    warnings = [*done.warnings, *plugins.problems.values()]
    runs = [
        run_of(
            job,
            unread=unread,
            warnings=warnings,
            skipped=found.skipped,
            engine=engine,
            answers_mb=answers_mb,
            store=done.store,
        )
        for job in group(done.recordings)
    ]
    return _narrow(runs, ranks, steps)


def run_of(
    job: Job,
    *,
    unread: Sequence[Issue] = (),
    warnings: Sequence[str] = (),
    skipped: int = 0,
    engine: Engine | None = None,
    answers_mb: float = DEFAULT_MB,
    store: Path | None = None,
    prepared: AnswerCache | None = None,
) -> Run:
    """The run of a job; for the arguments see `Run`."""
    return Run(
        job.name,
        job.path,
        [Rank(one.rank, one.origin, one.recording, supplement=one.supplement) for one in job.members],
        unread=unread,
        own_issues=job.issues,
        warnings=warnings,
        skipped=skipped,
        engine=engine,
        answers_mb=answers_mb,
        store=store,
        prepared=prepared,
    )


def open_run(
    paths: Paths,
    *,
    use_store: bool = True,
    run: str | int | None = None,
    ranks: Choice = None,
    steps: Choice = None,
    progress: Callable[[int, int, str], None] | None = None,
    engine: Engine | str | None = None,
    answers_mb: float = DEFAULT_MB,
) -> Run:
    """Open one of the jobs recorded under some paths. Default: the largest, then the newest.

    The run's `others` holds the rest, and one of its issues names them.

    Args:
        paths, use_store, ranks, steps, progress, engine, answers_mb: See `open_runs`.
        run: Name of a run, or its number in the order of `open_runs`, counted from 1.

    Raises:
        NothingReadable: If there is no readable recording.
        StepscopeError: If a path does not exist, or no job has this name, these ranks or steps.
    """
    runs = open_runs(paths, use_store=use_store, progress=progress, engine=engine, answers_mb=answers_mb)
    if run is None:
        chosen, *others = _narrow(runs, ranks, steps)
    else:
        whole = named(runs, str(run))
        (chosen,), others = _narrow([whole], ranks, steps), [other for other in runs if other is not whole]
    chosen.others = others
    if others:
        listed = ", ".join(f"{other.name} ({other.path})" for other in others[:_MAX_LISTED])
        more = f" and {len(others) - _MAX_LISTED} more" if len(others) > _MAX_LISTED else ""
        count = "1 more run lies" if len(others) == 1 else f"{len(others)} more runs lie"
        problem = f"{count} under the same path: {listed}{more}"
        remedy = "Name its path, or choose with --run NAME"
        chosen.own_issues.append(Issue("note", str(chosen.path), problem, remedy, place=OTHER_RUNS))
    return chosen


def named(runs: Sequence[Run], run: str) -> Run:
    """The run with this name, or else this number.

    Raises:
        StepscopeError: If there is none; the message lists the runs.
    """
    for each in runs:
        if each.name == run:
            return each
    if run.isdecimal() and 1 <= int(run) <= len(runs):
        return runs[int(run) - 1]
    there = ", ".join(f"{number} ({each.name})" for number, each in enumerate(runs[:_MAX_NAMED], start=1))
    more = f" and {len(runs) - _MAX_NAMED} more" if len(runs) > _MAX_NAMED else ""
    raise StepscopeError(f"no run {run}. Give the number or name of one of these: {there}{more}")


def _narrow(runs: list[Run], ranks: Choice, steps: Choice) -> list[Run]:
    """The runs that have the chosen ranks and steps; raises the largest run's error if none has."""
    if ranks is None and steps is None:
        return runs
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


def _explain_nothing(paths: Paths, unread: Sequence[Issue], skipped: int) -> str:
    where = str(paths) if isinstance(paths, (str, Path)) else ", ".join(map(str, paths))
    lines = [f"{where}: no recording that can be read."]
    lines.extend(f"  {u.file}: {u.problem}. {u.remedy}" for u in unread[:_MAX_LISTED])
    if len(unread) > _MAX_LISTED:
        lines.append(f"  and {len(unread) - _MAX_LISTED} more")
    lines.extend(f"  {problem}" for problem in plugins.problems.values())
    if skipped:
        lines.append(f"  {skipped} other files are in no format that stepscope reads.")
    lines.append("Name a trace file (*.json, *.json.gz, *.db) or a directory with profiles.")
    return "\n".join(lines)
