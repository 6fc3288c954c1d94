"""`stepscope live timeline`: stored light records as a trace for a viewer."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.options import Debug, argument
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.show.timeline import Window

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def timeline(
    job: Annotated[
        str, argument("[JOB]", "Task id of a job, or directory of its records or of one rank. Default: the newest job.")
    ] = "",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; compressed if it ends in .gz.", metavar="FILE")
    ] = Path("timeline.json.gz"),
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
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Export stored light records as a timeline; open it in ui.perfetto.dev or chrome://tracing.

    Each rank is a process with its steps, host threads, device streams and communication by group. Clocks of different
    hosts are not corrected. The job may run on meanwhile.
    """
    from stepscope.cli.notes import note
    from stepscope.live.show.events import read
    from stepscope.live.show.timeline import chosen, export, ranks_below
    from stepscope.present import plural
    from stepscope.selection import parse_selection

    directory = _directory(job)
    found = chosen(ranks_below(directory), parse_selection(ranks, "ranks"))
    window = _window(found, last, from_, to, steps)
    done = export(found, output, window, read(events) if events is not None else ())
    problems = done.problems
    if problems.bad_lines:
        note(f"warning: {plural(problems.bad_lines, 'line')} could not be read and were left out")
    if problems.unended:
        note(f"{plural(problems.unended, 'range')} without a recorded end: shown as instants")
    if problems.startless:
        note(f"{plural(problems.startless, 'range')} without a recorded start: left out")
    if problems.others:
        note(f"{plural(problems.others, 'record')} other than markers of ranges: left out")
    told = f"{plural(done.ranges, 'range')} of {plural(len(done.by_rank), 'rank')}"
    if events is not None:
        told += f", {plural(done.verdicts, 'mark')} of verdicts"
    print(f"{output}: {told}. Open it in https://ui.perfetto.dev or chrome://tracing")


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


def _window(found: dict[int, Path], last: str | None, from_: str | None, to: str | None, steps: str | None) -> Window:
    """The window that the options describe.

    Raises:
        StepscopeError: If they contradict each other, or cannot be read.
    """
    from stepscope.live.show.timeline import Window, last_ns
    from stepscope.selection import parse_selection

    if last is not None and (from_ is not None or to is not None):
        raise StepscopeError("--last cannot be used with --from or --to. Give one of them")
    from_ns = None if from_ is None else _moment("--from", from_)
    to_ns = None if to is None else _moment("--to", to)
    if from_ns is not None and to_ns is not None and to_ns < from_ns:
        raise StepscopeError(f"--to {to} is before --from {from_}")
    if last is not None:
        newest = last_ns(found)
        if newest is None:
            raise StepscopeError("nothing has been recorded yet. Leave --last out to see why, or wait")
        from_ns = newest - int(_seconds("--last", last) * 1e9)
    return Window(from_ns, to_ns, parse_selection(steps, "steps"))


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
