"""`stepscope attach`: record a training process that was started without stepscope."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from stepscope.cli.notes import note
from stepscope.cli.options import Debug, argument, worded
from stepscope.errors import StepscopeError
from stepscope.present import printable

if TYPE_CHECKING:
    from stepscope.live.attach.job import Job, Outcome

Method = Literal["auto", "remote-exec", "gdb", "lldb"]


def attach(
    pid: Annotated[int, argument("PID", "Training process, or its launcher with --children.")],
    steps: Annotated[int, typer.Option("--steps", help="Record this many steps, then leave.", metavar="N")] = 10,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the recording.", metavar="DIR")] = Path(
        "data"
    ),
    children: Annotated[
        bool, typer.Option("--children", help="Record all training processes below PID, the same steps of each.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Start a live worker (see `stepscope live`) instead; it stays.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Stop the live worker, and remove it.")] = False,
    operators: Annotated[bool, typer.Option(help="Record operators; otherwise only steps, phases and samples.")] = True,
    memory: Annotated[bool, typer.Option(help="Record memory allocations.")] = False,
    stacks: Annotated[bool, typer.Option(help="Record Python call stacks.")] = False,
    framework: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Framework to record, torch or mindspore, if the process has loaded both."),
    ] = None,
    method: Annotated[
        Method,
        worded(get_args(Method), "--method", help="How to attach: remote-exec (Python 3.14 or newer), gdb or lldb."),
    ] = "auto",
    timeout: Annotated[
        float, typer.Option(help="Give up when no step ends for this long.", metavar="SECONDS", min=1)
    ] = 300.0,
    disk_limit: Annotated[
        int, typer.Option("--disk-limit", help="With --live: most that the job's records take on disk.", metavar="MB")
    ] = 5000,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Record some steps of a training process that is already running, then leave it as it was.

    The process is stopped for some tenths of a second while a debugger (gdb or lldb) attaches; Python 3.14 and newer
    need no debugger. Only processes of the same user can be recorded, or any by root. Ctrl-C ends the recording early.
    """
    from stepscope.live.attach.job import PATIENCE, Job

    if live and detach:
        raise StepscopeError("--live starts a live worker and --detach stops it; give one of them")
    if steps < 1:
        raise StepscopeError(f"--steps {steps}: give at least 1")
    pids = _chosen(pid, children)
    job = Job(pids, note, method, replace(PATIENCE, wait_s=timeout))
    if live or detach:
        _switch_worker(job, live, disk_limit)
        return
    options = _options(output, operators, memory, stacks, framework)
    _give(output, pids[0])
    outcomes = job.record(steps, options)
    _summarise(outcomes, steps, output)


def _chosen(pid: int, children: bool) -> list[int]:
    """The processes to attach to.

    Raises:
        StepscopeError: If `pid` is a launcher, or has no training process below it.
    """
    from stepscope.live.attach.processes import look, training_below

    process = look(pid)
    if children:
        found = training_below(pid)
        if not found:
            raise StepscopeError(
                f"{process.shown()} has no training process below it that has loaded torch or mindspore. Give the "
                "number of the launcher, or of the training process without --children"
            )
        note(f"training processes below {pid}: {', '.join(_with_rank(one) for one in found)}")
        return [one.pid for one in found]
    if process.is_launcher and (found := training_below(pid)):
        raise StepscopeError(
            f"{process.shown()} is a launcher; its training processes are "
            f"{', '.join(_with_rank(one) for one in found)}. Give one of them, or add --children for all"
        )
    return [pid]


def _with_rank(process: Any) -> str:
    rank = process.rank()
    return str(process.pid) if rank is None else f"{process.pid} (rank {rank})"


def _options(output: Path, operators: bool, memory: bool, stacks: bool, framework: str | None) -> dict[str, Any]:
    from stepscope.cli.record import check_options

    options: dict[str, Any] = {"output_path": str(output.absolute()), "op_time": operators}
    options |= {"profile_memory": True} if memory else {}
    options |= {"host_stack": True} if stacks else {}
    options |= {"framework": framework} if framework else {}
    check_options(options)
    return options


def _give(output: Path, pid: int) -> None:
    """Let the process write there: if root records a process of another user, new directories are that user's."""
    from stepscope.live.attach.processes import look

    users = look(pid).users
    if os.geteuid() == 0 and users and users[-1]:
        root = output.absolute() / "profiler"
        for directory in (root, root.parent):
            if directory.stat().st_uid == 0 and not any(entry != root for entry in directory.iterdir()):
                os.chown(directory, users[-1], -1)


def _switch_worker(job: Job, live: bool, disk_limit: int) -> None:
    """Start or remove live workers.

    Raises:
        StepscopeError: If one was started, but the manager serves another job, so that nobody sees it.
    """
    answers = job.work(what="live" if live else "detach", disk_limit_mb=disk_limit)
    for pid, told in answers.items():
        if live:
            note(f"{pid}: started the live worker of rank {told['rank']}; its records are in {told['directory']}")
        else:
            note(f"{pid}: stopped the live worker and removed it")
    if not live:
        return
    if refused := [str(told["refused"]) for told in answers.values() if told["refused"]]:
        raise StepscopeError(
            f"it only writes records: the proxy of this node refuses it. {printable(refused[0])}. To remove it: "
            "stepscope attach PID --detach"
        )
    if not all(told["is_linked"] for told in answers.values()):
        note("no manager or proxy answers on this node yet. Start one: stepscope live manager")
    note("next: stepscope live status. To remove it: stepscope attach PID --detach")


def _summarise(outcomes: list[Outcome], steps: int, output: Path) -> None:
    """Report what was recorded.

    Raises:
        StepscopeError: If nothing was.
    """
    for one in outcomes:
        who = f"{one.pid}" if one.rank is None else f"{one.pid} (rank {one.rank})"
        if one.steps:
            less = f" of {steps}" if one.steps < steps else ""
            last = one.first + one.steps - 1
            why = f": {one.problem}" if one.problem else ""
            note(f"{who}: recorded {one.steps}{less} steps ({one.first} to {last}) in {one.directory}{why}")
        else:
            note(f"{who}: recorded nothing: {one.problem or 'no whole step was seen before the end'}")
    if not any(one.steps for one in outcomes):
        raise StepscopeError("nothing was recorded")
    note(f"next: stepscope analyze {shlex.quote(str(output))}")
