"""What `stepscope record` says when its command is over: what was recorded and what to do next, or why nothing was."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.present import plural
from stepscope.record import signs
from stepscope.record.signs import Signs
from stepscope.recording_format.marks import STEP
from stepscope.recording_format.reading import read_about
from stepscope.recording_format.rows import MARKS

NO_PYTHON = (
    "no Python process of the command could load stepscope: it runs no Python, or one that ignores PYTHONPATH "
    "(python -I or -E), or another environment"
)
NO_TRAINING = (
    "{framework} was loaded, but nothing showed that it trains: no batch, forward or backward pass, or optimizer step"
)


@dataclass(frozen=True)
class _Recorded:
    """One recording: where, of which rank, its steps, whether it was ended, and what the recorder could not do."""

    output: Path
    rank: int
    steps: int
    ended: bool
    problems: list[str]


def outcome(said: Signs, framework: str | None) -> str:
    """What a command recorded, given the signs of its processes and the framework to record, if one was chosen."""
    found = [one for place in said.of(signs.RECORDING) if (one := _recorded(Path(place))) is not None]
    if not any(one.steps for one in found):
        return f"no step was recorded{_in(found)}: {_why_nothing(said, found, framework)}"
    steps = Counter[int]()
    for one in found:
        steps[one.rank] += one.steps
    what = f"{plural(len(steps), 'rank')}, {counted_steps(steps.values())}{_in(found)}"
    killed = cut_off({one.rank for one in found if not one.ended}, "the last moments")
    outputs = " ".join(shlex.quote(_named(place).rstrip(os.sep)) for place in _places(found))
    return f"{what}{killed}{_unanalysed(said)}; next: stepscope analyze {outputs}"


def _why_nothing(said: Signs, found: Sequence[_Recorded], framework: str | None) -> str:
    reported = (problem.removeprefix("nothing was recorded: ") for one in found for problem in one.problems)
    problems = list(dict.fromkeys(reported))
    if problems or said.of(signs.FAILED):
        return "; ".join([*said.of(signs.FAILED), *problems])
    if found:
        killed = not all(one.ended for one in found)
        return "it was killed before a step was written" if killed else "the training ended before its first step did"
    return why_none_trained(said, framework)


def why_none_trained(said: Signs, framework: str | None) -> str:
    """Why no process of the command was seen to train."""
    if frameworks := said.of(signs.FRAMEWORK):
        return NO_TRAINING.format(framework=" and ".join(frameworks))
    if said.of(signs.PYTHON):
        return f"no process loaded {framework or 'torch or mindspore'}"
    return NO_PYTHON


def counted_steps(counts: Collection[int]) -> str:
    """How many steps there are of each rank, in words."""
    least, most = min(counts), max(counts)
    counted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return f"{counted} step{'s' * (most != 1)}"


def cut_off(ranks: set[int], missing: str) -> str:
    """That ranks were killed, so that something may be missing; empty if there are none."""
    if not ranks:
        return ""
    who = f"rank {min(ranks)} was" if len(ranks) == 1 else f"{len(ranks)} ranks were"
    return f" ({who} killed: {missing} may be missing)"


def _unanalysed(said: Signs) -> str:
    is_open = set(said.of(signs.ANALYSING)) - set(said.of(signs.ANALYSED))
    return " (files for other tools were not made: the analysis was interrupted or failed)" if is_open else ""


def _recorded(directory: Path) -> _Recorded | None:
    try:
        about = read_about(directory)
    except UnreadableInput:
        return None
    return _Recorded(directory.parents[2], about.rank or 0, _steps(directory), about.was_stopped, about.problems)


def _steps(directory: Path) -> int:
    try:
        with (directory / MARKS.name).open("rb") as file:
            return sum(line.startswith(f"{STEP},".encode()) for line in file)
    except OSError:
        return 0


def _in(found: Sequence[_Recorded]) -> str:
    return f" in {' and '.join(map(_named, _places(found)))}" if found else ""


def _places(found: Sequence[_Recorded]) -> list[Path]:
    return list(dict.fromkeys(one.output for one in found))


def _named(path: Path) -> str:
    """A directory as a user would name it here."""
    shorter = os.path.relpath(path)
    if shorter == ".":
        return shorter
    return f"{path if shorter.startswith('..') else shorter}{os.sep}"
