"""What captures show: they are read by `stepscope compare`, `analyze` and `hangs` in processes of their own, and their
answers put into a sentence and figures."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.live.capture.child import output_of
from stepscope.live.capture.dumping import CALLS, STACKS
from stepscope.present import duration, plural
from stepscope.processes import worker_environment
from stepscope.selection import named_numbers

PATIENCE_S = 180.0
"""How long an analysis of captures may take."""
MOST_BYTES = 64 << 20
MOST_NAMED = 3
"""Operators that an explanation names."""
LEAST_SHARE = 0.1
"""Operators with less of the difference in a rank's own work are not named (chosen by us)."""
_MORE = ("more", "added", "too few", "untested")
"""Verdicts of rows that may be named: the last two are more in all steps, or in sum, but not proven."""
_IDLE = {
    "compile": "compiling",
    "garbage_collection": "in Python's garbage collection",
    "data_loading": "waiting for data",
    "checkpoint": "saving checkpoints",
    "synchronisation": "in which the host waits for the device",
    "dispatch": "in which the device waits for kernels, which the host launches too late",
    "dependency": "in which the device waits for another stream or the hardware",
    "python": "in Python code outside operators",
    "other": "in which no operator runs (Python code, input, waiting)",
}
"""Causes of idle time, in words."""
_WAITS = ("c10d::", "gloo:", "nccl:", "record_param_comms", "hccl")
_THREADS = 2


class NotAnalysed(StepscopeError):
    """An analysis of captures has failed; the text is the reason."""


@dataclass(frozen=True)
class Finding:
    """What a capture shows: sentences, the figures behind them by name, and ranks for which the others wait."""

    text: str
    figures: dict[str, float] = field(default_factory=dict)
    ranks: list[int] = field(default_factory=list)


async def answer_of(*arguments: str) -> dict[str, Any]:
    """The JSON that a command of stepscope prints.

    Raises:
        NotAnalysed: If it fails or takes too long.
    """
    command = [sys.executable, "-m", "stepscope", *arguments, "--json", "--no-store"]
    try:
        code, out, problems = await output_of(command, PATIENCE_S, {**os.environ, **worker_environment(_THREADS)})
    except asyncio.TimeoutError as error:
        raise NotAnalysed(f"the analysis took more than {PATIENCE_S:g} s") from error
    if code or len(out) > MOST_BYTES:
        reason = problems.strip().rpartition("\n")[2]
        raise NotAnalysed(reason.removeprefix("Error: ")[:300] or "the analysis failed without a reason")
    try:
        answer = json.loads(out)
    except ValueError as error:
        raise NotAnalysed(f"the answer of the analysis is damaged ({error})") from error
    if not isinstance(answer, dict):
        raise NotAnalysed("the analysis did not print a JSON object")
    return answer


async def compared(healthy: str, suspect: str, rank: int, like: int) -> Finding:
    """What a suspect does longer than a healthy rank.

    Args:
        healthy: Directory of its capture.
        suspect: The same of the suspect.
        rank: The suspect.
        like: The healthy rank.

    Raises:
        NotAnalysed: If they cannot be compared.
    """
    return difference(await answer_of("compare", healthy, suspect), rank, like)


def difference(answer: Mapping[str, Any], rank: int, like: int) -> Finding:
    """The same, of what `stepscope compare` has answered."""
    tables = answer.get("tables", {})
    own = next(iter(tables.get("own_work_difference") or ()), None)
    if own is None:
        raise NotAnalysed("the profiles have no steps in common that can be compared")
    more_ns, base_ns = own["difference_ns"], own["base_ns"]
    rows = tables.get("operator_differences") or tables.get("kernel_differences") or []
    rows = [row for row in rows if _counts(row) and row["difference_ns"] >= LEAST_SHARE * max(more_ns, 1)]
    figures = {"profiled_own_work_ns": float(own["new_ns"]), "profiled_own_work_of_healthy_ns": float(base_ns)}
    if more_ns <= 0 or own["verdict"] in ("same", "small") or (own["verdict"] == "noise" and not rows):
        return Finding(f"In its profile, rank {rank} shows no clear difference to rank {like}", figures)
    share = f" ({more_ns / base_ns:.0%})" if base_ns else ""
    text = f"In its profile, rank {rank} works {duration(more_ns)}{share} longer per step than rank {like}"
    named = sorted(rows, key=_difference, reverse=True)[:MOST_NAMED]
    parts = [row for row in tables.get("time_differences") or [] if row["level"] == 1 and row["difference_ns"] > 0]
    parts = [row for row in parts if row["part"] != "exposed communication"]
    if named and sum(row["difference_ns"] for row in named) >= more_ns / 2:
        text += ", most of it in " + ", ".join(map(_operator, named))
        figures["profiled_operators_ns"] = float(sum(row["difference_ns"] for row in named))
    elif parts:
        text += f", {_part(max(parts, key=_difference), tables['time_differences'])}"
        if named:
            text += "; also " + ", ".join(map(_operator, named))
    return Finding(text, figures)


async def summed_up(directories: Mapping[int, str], suspects: Sequence[int]) -> Finding:
    """The findings about captures of several ranks that name a suspect, or are about communication.

    Raises:
        NotAnalysed: If they cannot be analysed.
    """
    answer = await answer_of("analyze", *directories.values())
    found = []
    for one in answer.get("findings", ()):
        rule = str(one.get("rule", ""))
        if {*_ranks(one)} & {*suspects} or "communication" in rule or "link" in rule:
            found.append(str(one["summary"]).rstrip("."))
    if not found:
        return Finding(f"The profiles of {named_numbers('rank', sorted(directories))} show no cause")
    return Finding("In the profiles: " + "; ".join(found[:2]))


async def hanging(directories: Mapping[int, str]) -> Finding:
    """Which ranks are missing in which call, from dumps of the flight recorder.

    Raises:
        NotAnalysed: If there are none, or they cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="stepscope-dumps-") as room:
        for rank, directory in directories.items():
            for file in Path(directory).glob(f"{CALLS}*"):
                shutil.copy2(file, Path(room) / f"{CALLS}{rank}")
        if not any(Path(room).iterdir()):
            raise NotAnalysed("no last calls of torch.distributed were kept")
        answer = await answer_of("analyze", room)
    hangs = [one for one in answer.get("findings", ()) if one.get("rule") == "hang"][:2]
    if not hangs:
        raise NotAnalysed("the last calls of torch.distributed show no call that hangs")
    culprits = {rank for one in hangs if one.get("confidence") != "possible" for rank in _absent(one)}
    return Finding("; ".join(str(one["summary"]).rstrip(".") for one in hangs), ranks=sorted(culprits))


def _ranks(finding: Mapping[str, Any]) -> list[int]:
    """The ranks that a finding of `analyze` is about."""
    where = finding.get("where") or {}
    return [*(where.get("ranks") or ()), *([where["rank"]] if where.get("rank") is not None else ())]


def _absent(hang: Mapping[str, Any]) -> set[int]:
    """The ranks of a call that hangs which do not wait in it."""
    return {*_ranks(hang)} - {*((hang.get("evidence") or {}).get("waiting_ranks") or ())}


def _part(part: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """What takes longer, of a step: the cause of most of its idle time, if that is known."""
    words = part["part"]
    if words == "idle":
        causes = [row for row in rows if row["of"] == "idle" and row["part"] in _IDLE]
        cause = max(causes, key=_difference, default=None)
        known = cause is not None and _difference(cause) >= part["difference_ns"] / 2
        words = _IDLE[cause["part"]] if cause is not None and known else _IDLE["other"]
    return f"{duration(part['difference_ns'])} of it {words}"


def _difference(row: Mapping[str, Any]) -> int:
    return int(row["difference_ns"])


def own_stacks(directory: str) -> str:
    """The stacks that a worker has written about itself; empty if it has not."""
    try:
        return (Path(directory) / STACKS).read_text()[:MOST_BYTES]
    except (OSError, UnicodeDecodeError):
        return ""


def _counts(row: Mapping[str, Any]) -> bool:
    name = _name(row)
    return row["verdict"] in _MORE and row.get("kind", "work") == "work" and not name.startswith(_WAITS)


def _operator(row: Mapping[str, Any]) -> str:
    calls = ""
    if row.get("base_calls") and row.get("new_calls") and row["base_calls"] != row["new_calls"]:
        calls = f", {row['new_calls']:g} instead of {row['base_calls']:g} calls"
    elif not row.get("base_ns"):
        calls = ", which the other does not run"
    return f"{_name(row)} (+{duration(row['difference_ns'])}{calls})"


def _name(row: Mapping[str, Any]) -> str:
    """The operator at the end of a path of calls, or the kernel."""
    return str(row.get("path") or row.get("name") or "").rpartition(" > ")[2][:120]


def places(directories: Mapping[int, str], hosts: Mapping[int, str], most: int = 3) -> str:
    """Where captures are, for people: `HOST:DIRECTORY (rank N)`."""
    shown = [f"{hosts.get(rank, '')}:{directories[rank]} (rank {rank})" for rank in sorted(directories)[:most]]
    more = len(directories) - len(shown)
    return ", ".join(shown) + (f" and those of {plural(more, 'more rank')}" if more else "")
