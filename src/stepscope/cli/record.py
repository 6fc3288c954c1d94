"""`stepscope record`: run a training command with the recorder, without a change to its script."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.notes import note
from stepscope.cli.options import Debug, argument
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.record.signs import Signs

BOOTSTRAP = Path(__file__).resolve().parents[1] / "record" / "bootstrap"
"""The directory that arms the recorder in every Python process that has it in its path."""


def _range_of(what: str) -> Any:
    """An option that chooses steps or epochs."""
    return typer.Option(
        help=f"Record only these {what}, counted from 1, e.g. 10-20. Default: all.", metavar="FIRST-LAST"
    )


def record(
    command: Annotated[list[str], argument("-- COMMAND...", "Training command, after `--`.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Directory for the recording. Default: data; with --live, the base directory of live records.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[str | None, _range_of("steps")] = None,
    epochs: Annotated[str | None, _range_of("epochs")] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="Record steps in cycles, e.g. wait=10,warmup=2,active=5,repeat=1,skip_first=0.", metavar="CYCLE"
        ),
    ] = None,
    operators: Annotated[bool, typer.Option(help="Record operators; otherwise only steps, phases and samples.")] = True,
    memory: Annotated[bool, typer.Option(help="Record memory allocations.")] = False,
    stacks: Annotated[bool, typer.Option(help="Record Python call stacks.")] = False,
    shapes: Annotated[bool, typer.Option(help="Record input shapes of operators.")] = True,
    framework: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Framework to record, torch or mindspore, if the program loads both."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="Any other Profiler option, with its value as JSON.", metavar="NAME=VALUE"),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Trace lightly instead, to be switched and watched while it runs: see `stepscope live`."
        ),
    ] = False,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Run a command and record every training process it starts, e.g. `stepscope record -- torchrun ... train.py`.

    The exit code is that of the command. Each rank writes to its own directory under OUTPUT/profiler; files for other
    tools are written when the rank ends. The last line reports what was recorded, or why nothing was recorded.

    With --live, ranges of steps, forward passes, waits for data, checkpoints and communication are recorded at a cost
    below 0.5 %, and can be switched on and off while the command runs.
    """
    if live:
        given = {
            **{"--steps": steps, "--epochs": epochs, "--schedule": schedule, "--option": option},
            **{"--no-operators": not operators, "--memory": memory, "--stacks": stacks, "--no-shapes": not shapes},
        }
        raise typer.Exit(_run_live(command, output, framework, [name for name, value in given.items() if value]))
    options: dict[str, Any] = {
        "output_path": str((output or Path("data")).absolute()),
        "op_time": operators,
        "profile_memory": memory,
        "record_shapes": shapes,
        "steps": _range("--steps", steps),
        "epochs": _range("--epochs", epochs),
        "schedule": _schedule(schedule),
        "framework": framework,
        **({"host_stack": True} if stacks else {}),
        **_others(option or []),
    }
    needless = () if operators else ("profile_memory", "record_shapes")
    wanted = {name: value for name, value in options.items() if value is not None and name not in needless}
    check_options(wanted)
    raise typer.Exit(_run(command, wanted))


def _run(command: list[str], options: dict[str, Any]) -> int:
    """Run the command with the recorder in it, and report the outcome; returns its exit code."""
    from stepscope.cli.recorded import outcome

    variables = {"STEPSCOPE_OPTIONS": json.dumps(options)}
    return _run_with(command, variables, lambda said: outcome(said, options.get("framework")))


def _run_live(command: list[str], output: Path | None, framework: str | None, others: list[str]) -> int:
    """Run the command with live workers in it, and report the outcome; returns its exit code.

    Raises:
        StepscopeError: For options of recordings, an unknown framework, or a directory that is not writable.
    """
    from stepscope.cli.traced import outcome
    from stepscope.live.places import BASE_VARIABLE, base_directory
    from stepscope.record.autostart import LIVE_VARIABLE
    from stepscope.record.environment import FRAMEWORKS

    if others:
        raise StepscopeError(f"{others[0]} has no effect with --live, which records no operators; omit one of the two")
    if framework is not None and framework not in FRAMEWORKS:
        raise StepscopeError(f"--framework {framework}: give one of {', '.join(FRAMEWORKS)}")
    base = output.absolute() if output is not None else base_directory()
    _make(base, str(base))
    variables = {LIVE_VARIABLE: framework or "1", BASE_VARIABLE: str(base)}
    return _run_with(command, variables, lambda said: outcome(said, framework))


def _run_with(command: list[str], variables: dict[str, str], outcome: Callable[[Signs], str]) -> int:
    """Run the command with these variables, and report the outcome; returns its exit code."""
    from stepscope.cli.running import run_command
    from stepscope.record import signs

    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as room:
        said = signs.Signs(Path(room) / "signs")
        environment = {
            **os.environ,
            **variables,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(BOOTSTRAP), os.environ.get("PYTHONPATH")])),
            signs.VARIABLE: str(said.file),
        }
        shown: list[str] = []

        def look() -> None:
            said.look()
            if said.of(signs.ANALYSING) and not shown:
                shown.append("analysing the recording (Ctrl-C stops this; the recording is kept)")
                note(shown[0])

        try:
            code = run_command(command, environment, look)
        except OSError as error:
            raise StepscopeError(
                f"{command[0]}: cannot be run ({error.strerror}). Give the program as in a shell, e.g. "
                "stepscope record -- python train.py"
            ) from error
        said.look()
        note(outcome(said))
    return code


def check_options(options: dict[str, Any]) -> None:
    """Refuse mistakes that would leave the whole job unrecorded.

    Raises:
        StepscopeError: For an invalid value, or a directory that is not writable.
    """
    from stepscope.record.environment import output_root
    from stepscope.record.options import SPECS

    for name, value in options.items():
        try:
            SPECS[name].check(value)
        except ValueError as error:
            raise StepscopeError(f"{name} {error}, not {value!r}") from error
    try:
        root = output_root(options["output_path"])
    except RuntimeError as error:
        raise StepscopeError(str(error).removeprefix("Profiler: ")) from error
    _make(root, options["output_path"])


def _make(directory: Path, named: str) -> None:
    """Create a directory if it is missing.

    Args:
        named: What the user calls it.

    Raises:
        StepscopeError: If it cannot be created or is not writable.
    """
    from stepscope.record.files import make_private

    try:
        make_private(directory)
    except OSError as error:
        raise StepscopeError(
            f"{named}: cannot be created ({error.strerror}). Choose another directory with --output"
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StepscopeError(f"{directory}: is not writable. Choose another directory with --output")


def _range(name: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()) or not 1 <= int(first) <= int(last or first):
        raise StepscopeError(f"{name} {text}: give first and last, counted from 1, e.g. 10-20")
    return [int(first), int(last or first)]


def _schedule(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    from stepscope.record.schedule import Schedule

    names = [field.name for field in fields(Schedule)]
    example = "wait=10,warmup=2,active=5,repeat=1"
    numbers: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in names or not value.isdecimal():
            raise StepscopeError(
                f"--schedule {text}: {part.strip()!r} is not name=number with a name of: {', '.join(names)}. "
                f"Example: {example}"
            )
        numbers[name] = int(value)
    try:
        Schedule(**numbers)
    except (ValueError, TypeError) as error:
        raise StepscopeError(f"--schedule {text}: {error}. Example: {example}") from error
    return numbers


def _others(texts: list[str]) -> dict[str, Any]:
    from stepscope.record.options import SPECS

    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or name not in SPECS:
            raise StepscopeError(f"--option {text}: give name=value with a name of: {', '.join(SPECS)}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
