"""What the pages of steps should say, worked out from the file of steps itself and from nothing of ours."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

from asked import Asked

from stepscope.run import Run

_TICKS_OF_MS = 1e5
_PHASES = ("iteration_interval", "fp_and_bp", "tail")
_LENGTHS = ("total", *_PHASES)


@cache
def _steps(file: Path) -> list[dict[str, float]]:
    """The lines of single steps, in ms; starts count from the start of the step. A call at 0 is none."""
    with file.open() as lines:
        raw = [{name: value for name, value in row.items() if value} for row in csv.DictReader(lines)]
    found = []
    for row in raw:
        if row["step_num"] == "-":  # the average
            continue
        absent = {
            name.removesuffix("_start_point") for name, value in row.items() if _is_call(name) and float(value) == 0
        }
        own = {name: value for name, value in row.items() if not any(name.startswith(call) for call in absent)}
        ticks = {name: float(value) for name, value in own.items() if name != "step_num"}
        ms = {name: value / _TICKS_OF_MS for name, value in ticks.items() if not name.endswith("_point")}
        starts = {n: (v - ticks["start_point"]) / _TICKS_OF_MS for n, v in ticks.items() if n.endswith("_point")}
        found.append({**ms, **starts})
    return found


def page(run: Run, asked: Asked) -> Any:
    """The right answer to a request for a step, the average or a phase."""
    folder = run.ranks[0].path
    steps = _steps(folder / f"step_trace_raw_{asked.rank}_detail_time.csv")
    average = _mean(steps[1:] or steps)
    summary = _summary(average, len(steps))
    kind = asked.parameters["type"]
    if asked.kind.endswith("target-time-info"):
        return {"info": {kind: [step[kind] for step in steps]}, "size": len(steps), "summary": summary}
    chosen = average if kind == 0 else steps[kind - 1]
    return {
        "point_info": _points(folder, asked.rank),
        "size": len(steps),
        "summary": summary,
        "training_trace_graph": [
            [_segment("", 0, chosen["total"])],
            _phases(chosen),
            *(_lane(chosen, calls) for calls in _calls(chosen)),
        ],
    }


def _mean(steps: list[dict[str, float]]) -> dict[str, float]:
    """The average of each column over the steps that have it."""
    values = {
        name: [step[name] for step in steps if name in step] for name in dict.fromkeys(n for s in steps for n in s)
    }
    return {name: sum(found) / len(found) for name, found in values.items()}


def _summary(average: dict[str, float], steps: int) -> dict[str, Any]:
    shares = {f"{phase}_percent": average[phase] / average["total"] * 100 for phase in _PHASES}
    return {**{p: average[p] for p in _PHASES}, **shares, "total_steps": steps, "total_time": average["total"]}


def _points(folder: Path, rank: int) -> dict[str, Any]:
    files = [folder / name for name in (f"step_trace_point_info_{rank}.json", "step_trace_point_info.json")]
    stated = next((json.loads(file.read_text()) for file in files if file.is_file()), {})
    return {key: stated[key] for key in ("fp_start", "bp_end") if key in stated}


def _segment(name: str, start: float, duration: float) -> dict[str, Any]:
    return {"name": name, "start": start, "duration": duration}


def _phases(step: dict[str, float]) -> list[dict[str, Any]]:
    starts = (0.0, step["iteration_interval"], step["iteration_interval"] + step["fp_and_bp"])
    return [_segment(phase, start, step[phase]) for phase, start in zip(_PHASES, starts, strict=True)]


def _calls(step: dict[str, float]) -> list[list[str]]:
    """The names of the calls in a line, by stream, the streams in order of their numbers."""
    streams: dict[int, list[str]] = {}
    for name in step:
        if _is_call(name):
            call = name.removesuffix("_start_point")
            streams.setdefault(int(call.split("_")[1]), []).append(call)
    return [sorted(streams[number], key=lambda call: step[f"{call}_start_point"]) for number in sorted(streams)]


def _is_call(column: str) -> bool:
    return column.startswith("stream_") and column.endswith("_start_point")


def _lane(step: dict[str, float], calls: list[str]) -> list[dict[str, Any]]:
    """The calls of a stream, and what lies between them from the start of forward, if that is before, to the end."""
    lane, until = [], step["iteration_interval"]
    for call in calls:
        start = step[f"{call}_start_point"]
        lane += [_segment("", until, start - until)] if lane or start >= until else []
        lane.append(_segment(call, start, step[call]))
        until = start + step[call]
    return [*lane, _segment("", until, step["total"] - until)]
