"""`stepscope live capture`: profile some steps of a running job."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.live.connecting import ChosenManager, JobArgument, asks_manager, status_of
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.client import Client
    from stepscope.live.messages import Captured
    from stepscope.live.show.status import Status

EXIT_INCOMPLETE = 1
"""Exit code if a rank or process has left no profile."""
DEFAULT_STEPS = 8
MOST_UNNAMED = 16
"""Ranks that are profiled if none are named."""


@asks_manager
def capture(
    job: JobArgument = "",
    ranks: Annotated[
        str | None,
        typer.Option(
            help="Ranks to profile, e.g. 0,3. Default: all of a job of up to 16.", metavar="LIST", show_default=False
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="How many steps.", metavar="N", min=1, max=50)] = DEFAULT_STEPS,
    stacks: Annotated[bool, typer.Option("--stacks", help="Record Python call stacks.")] = False,
    shapes: Annotated[bool, typer.Option(help="Record input shapes of operators.")] = True,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Also copy the profiles that this host can read into DIR. With --kineto, where they are written "
            "(default: the current directory).",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[float, typer.Option(help="Wait this long for the profiles.", metavar="SECONDS")] = 120.0,
    kineto: Annotated[
        str | None,
        typer.Option(
            help="Instead of ranks, profile these processes of this host, which were started with "
            "KINETO_USE_DAEMON=1 and need no other preparation.",
            metavar="PID,...",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="With --kineto: record this long instead of steps, for programs without a torch optimizer.",
            metavar="S",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    *,
    manager: ChosenManager,
) -> int:
    """Profile some steps of a running job, e.g. `stepscope live capture --ranks 0,3 -o profiles`.

    All chosen ranks record the same steps. The profiles are written below the records of each rank, on its host; they
    are recordings as of `stepscope record`, for `stepscope analyze` and all other commands.

    The exit code is 0 if all have left a profile, 1 if some have not.
    """
    if kineto is not None:
        from stepscope.cli.live.kineto import profile_processes

        return profile_processes(
            kineto, steps, seconds, output or Path(), wait_s=wait, shapes=shapes, stacks=stacks, as_json=as_json
        )
    if seconds is not None:
        raise StepscopeError("--seconds only goes with --kineto; ranks are profiled for whole steps: use --steps")
    from stepscope.live.control.bounds import BOUNDS
    from stepscope.live.messages import Captured

    if not 0 < wait <= BOUNDS.wait_s:
        raise StepscopeError(f"--wait {wait:g}: give a number above 0, at most {BOUNDS.wait_s:g} seconds")
    if output is not None:
        _check_empty(output)

    async def ask(client: Client) -> tuple[Any, dict[int, str]]:
        known = await status_of(client)
        there = taking_part(known)
        _few(ranks, there)
        chosen = chosen_ranks(ranks, there)
        answers = await client.capture(chosen, steps, shapes=shapes, stacks=stacks, wait_s=wait)
        return answers, {one.rank: one.host for one in known.ranks}

    answers, hosts = manager.call(ask, job)
    results = [one for one in answers.results if isinstance(one, Captured)]
    copies = {} if output is None else _copied(results, output)
    if as_json:
        print(json.dumps(_as_json(answers.id, results, answers.pending, hosts, copies)))
    else:
        _show(results, answers.pending, hosts, copies, wait)
    return 0 if results and not answers.pending and not any(one.error for one in results) else EXIT_INCOMPLETE


def _few(ranks: str | None, there: list[int]) -> None:
    """Profiles of all ranks of a large job are never meant, unless they are asked for by name."""
    if ranks is None and len(there) > MOST_UNNAMED:
        raise StepscopeError(
            f"{len(there):,} ranks take part; name those to profile, e.g. --ranks 0,3 (all of them: --ranks all)"
        )


def taking_part(known: Status) -> list[int]:
    """The ranks that take part at the moment."""
    return [one.rank for one in known.ranks if one.state != "lost"]


def chosen_ranks(text: str | None, there: list[int]) -> list[int]:
    """The ranks that a user names; also those that take no part, which the manager then reports."""
    from stepscope.selection import parse_selection

    selection = parse_selection(text, "--ranks")
    if selection is None:
        return []
    stated = [number for first, last in selection.ranges if last is not None for number in range(first, last + 1)]
    open_ended = [rank for rank in there if rank in selection]
    return sorted({*stated, *open_ended})


def _check_empty(output: Path) -> None:
    try:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise StepscopeError(f"{output}: is not an empty directory. Choose a new one with --output")
    except OSError as error:
        raise StepscopeError(f"{output}: cannot be read ({error.strerror}). Choose another with --output") from error


def _copied(results: list[Captured], output: Path) -> dict[int, Path]:
    """Copy the profiles that this host can read; by rank."""
    from stepscope.live.capture.room import MARKER

    copies = {}
    for one in results:
        source = Path(one.directory)
        if one.directory and (source / MARKER).is_file():
            target = output / f"rank-{one.rank}"
            try:
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(MARKER))
            except (OSError, shutil.Error) as error:
                raise StepscopeError(f"{target}: cannot be written ({error}). Choose another with --output") from error
            copies[one.rank] = target
    return copies


def _as_json(
    name: str, results: list[Captured], pending: list[int], hosts: Mapping[int, str], copies: Mapping[int, Path]
) -> dict[str, Any]:
    rows = [
        {
            "rank": one.rank,
            "host": hosts.get(one.rank),
            "directory": one.directory or None,
            "copy": str(copies[one.rank]) if one.rank in copies else None,
            "files": one.files,
            "steps": one.steps,
            "note": one.note,
            "error": one.error,
        }
        for one in results
    ]
    return {"capture": name, "ranks": rows, "pending": pending}


def _show(
    results: list[Captured],
    pending: list[int],
    hosts: Mapping[int, str],
    copies: Mapping[int, Path],
    wait_s: float,
) -> None:
    from stepscope.present import printable
    from stepscope.selection import named_numbers

    here = socket.gethostname()
    lines = []
    readable = []
    for one in results:
        if one.error:
            lines.append(f"Rank {one.rank} has no profile: {one.error}")
            continue
        place = copies.get(one.rank) or Path(one.directory)
        is_here = one.rank in copies or hosts.get(one.rank) == here or place.is_dir()
        if is_here:
            readable.append(str(place))
        where = "" if is_here else f"{hosts.get(one.rank, 'its host')}:"
        steps = f"steps {one.steps[0]} to {one.steps[-1]}" if one.steps else "no whole step"
        note = f" ({one.note})" if one.note else ""
        lines.append(f"Rank {one.rank}, {steps}: {where}{place}{note}")
    if pending:
        late = named_numbers("rank", pending)
        lines.append(f"No answer within {wait_s:g} s from {late}: a profile needs whole steps.")
        lines.append("Wait longer (--wait), or see where training is: stepscope live stacks")
    if len(readable) == len(results) - sum(bool(one.error) for one in results) and readable:
        lines.append(f"Next: stepscope analyze {' '.join(readable)}")
    elif readable or any(one.directory for one in results):
        lines.append("Next: copy all of them to one host (stepscope collect), then: stepscope analyze DIR")
    for line in lines:
        print(printable(line))
