"""`stepscope live timeline`: stored light records as a timeline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli import options as shared
from stepscope.cli.options import argument
from stepscope.cli.timeline import Align, Force, FormatName, Quiet
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.run import Run
    from stepscope.timeline import Written

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def timeline(
    job: Annotated[
        str, argument("[JOB]", "Task id of a job, or directory of its records or of one rank. Default: the newest job.")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", metavar="FILE")] = Path(
        "timeline.pftrace"
    ),
    last: Annotated[
        str | None, typer.Option(help="Only the last time, e.g. 60s, 10m or 1h.", metavar="TIME", show_default=False)
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", help="Only from this time on: 2026-01-31T12:00:00 or seconds.", metavar="TIME", show_default=False
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="Only until this time.", metavar="TIME", show_default=False)
    ] = None,
    steps: Annotated[
        str | None, typer.Option(help="Only these steps, e.g. 100-120.", metavar="STEPS", show_default=False)
    ] = None,
    ranks: Annotated[
        str | None, typer.Option(help="Only these ranks, e.g. 0,3-5.", metavar="RANKS", show_default=False)
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(help="Mark the verdicts in this file of events.", metavar="FILE", show_default=False),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also draw what analyses show: idle time by cause, critical path, findings. Takes several times as "
            "long.",
        ),
    ] = False,
    align: Align = True,
    form: FormatName = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: shared.Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Write stored light records as a timeline that `stepscope view`, ui.perfetto.dev and others open.

    Each rank is a process with its steps, host threads, device streams and communication by group, as stored, and what
    `stepscope timeline` draws of any recording. The job may run on meanwhile.
    """
    from stepscope.cli.live.stored import chosen, opened, ranks_below
    from stepscope.cli.live.verdict_marks import verdict_marks
    from stepscope.cli.timeline import note_rest
    from stepscope.live.show.events import read
    from stepscope.report.targets import check_target
    from stepscope.selection import parse_selection
    from stepscope.timeline import TimelineOptions, write_timeline

    wanted = parse_selection(steps, "steps")
    directory = _directory(job)
    found = chosen(ranks_below(directory), parse_selection(ranks, "ranks"))
    window = _window(found, last, from_, to)
    check_target(output, [directory], force=force)
    marks = [] if events is None else [verdict_marks(read(events))]
    run = opened(found, window, quiet=quiet)
    _tell_problems(run)
    shown = run if wanted is None else run.select(steps=wanted)
    options = TimelineOptions(explain=explain, align=align, window_ns=None if window == (None, None) else window)
    written = write_timeline(shown, output, options, format=form, extra=marks)
    note_rest(written)
    if not quiet:
        _tell(written, with_verdicts=events is not None)


def _tell_problems(run: Run) -> None:
    """Say what of the records could not be read, or only in part."""
    import polars as pl

    from stepscope.cli.notes import note

    for issue in run.unread:
        note(f"warning: {issue.file}: {issue.problem}. {issue.remedy}")
    issues = run.table("issues").filter((pl.col("severity") != "note") | (pl.col("lost") > 0)).collect()
    for severity, rank, problem in issues.select("severity", "rank", "problem").iter_rows():
        of_rank = "" if rank is None else f"rank {rank}: "
        note(f"{'' if severity == 'note' else 'warning: '}{of_rank}{problem}")


def _tell(written: Written, *, with_verdicts: bool) -> None:
    """Say what was written."""
    from stepscope.cli.live.verdict_marks import NAME
    from stepscope.present import plural
    from stepscope.timeline.tracks.light import FAMILY, ON_DEVICE

    ranges = [
        (rank, count)
        for (rank, family, category), count in written.events.items()
        if family == FAMILY.name and not category.startswith(ON_DEVICE)
    ]
    told = (
        f"{plural(sum(count for _, count in ranges), 'range')} of {plural(len({rank for rank, _ in ranges}), 'rank')}"
    )
    if with_verdicts:
        marks = sum(count for (_, family, _), count in written.events.items() if family == NAME)
        told += f", {plural(marks, 'mark')} of verdicts"
    print(f"{written.file}: {told}. Open it with `stepscope view {written.file}`, or in https://ui.perfetto.dev")


def _directory(job: str) -> Path:
    """Where the records of a job are.

    Raises:
        StepscopeError: If there are none.
    """
    from stepscope.live.places import base_directory, safe_name

    if job and Path(job).is_dir():
        return Path(job)
    base = base_directory()
    if job:
        directory = base / safe_name(job)
        if "/" in job or not directory.is_dir():
            raise StepscopeError(
                f"{job}: is neither a directory nor a job with records below {base}. Check STEPSCOPE_LIVE_DIR"
            )
        return directory
    try:
        jobs = [each for each in base.iterdir() if each.is_dir()]
    except OSError as error:
        raise StepscopeError(
            f"{base}: {error.strerror or error}. Give the directory of the records, or set STEPSCOPE_LIVE_DIR"
        ) from error
    if not jobs:
        raise StepscopeError(f"{base}: holds no records yet. Give the directory of the records of a job")
    return max(jobs, key=lambda each: each.stat().st_mtime)


def _window(
    found: Mapping[int, Path], last: str | None, from_: str | None, to: str | None
) -> tuple[int | None, int | None]:
    """The first and last moment that the options ask for, ns since the epoch.

    Raises:
        StepscopeError: If they contradict each other, or cannot be read.
    """
    from stepscope.cli.live.stored import newest_of

    if last is not None and (from_ is not None or to is not None):
        raise StepscopeError("--last cannot be used with --from or --to. Give one of them")
    from_ns = None if from_ is None else _moment("--from", from_)
    to_ns = None if to is None else _moment("--to", to)
    if from_ns is not None and to_ns is not None and to_ns < from_ns:
        raise StepscopeError(f"--to {to} is before --from {from_}")
    if last is not None:
        length = int(_seconds("--last", last) * 1e9)
        newest = newest_of(found)
        if newest is None:
            raise StepscopeError("nothing has been recorded yet. Leave --last out to see why, or wait")
        from_ns = newest - length
    return from_ns, to_ns


def _seconds(option: str, text: str) -> float:
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|m|min|h|)", text.strip())
    if match is None:
        raise StepscopeError(f"{option} {text}: is not a time. Examples: 60s, 10m, 1h")
    return float(match[1]) * _UNITS[match[2]]


def _moment(option: str, text: str) -> int:
    """A time in ns since the epoch, from seconds or an ISO date, local unless it names a zone."""
    if re.fullmatch(r"\d{1,11}(\.\d{1,9})?", text):
        whole, _, part = text.partition(".")
        return int(whole) * 10**9 + int(part.ljust(9, "0") or 0)
    try:
        return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e6) * 1000
    except (ValueError, OverflowError, OSError) as error:
        raise StepscopeError(
            f"{option} {text}: is not a time. Write it like 2026-01-31T12:00:00, or as seconds since 1970"
        ) from error
