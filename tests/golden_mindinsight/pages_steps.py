"""The step trace."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from asked import Asked
from said import Rows, ms, percent, rows

from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run

PHASES = {"iteration_interval": "interval", "fp_and_bp": "forward_backward", "tail": "tail"}


def training_trace(run: Run, asked: Asked, *, with_first: bool = False) -> Any:
    """One step, or the average, with its phases and the communication of each stream.

    Args:
        run: The rank.
        asked: The request.
        with_first: Average over all steps.
    """
    trace, step = rows(run, "step_trace"), asked.parameters["type"]
    means = _means(run, with_first)
    if step == 0:
        times = {phase: means[name] for phase, name in PHASES.items()}
        total, lanes = means["step"], _average_lanes(run, means, "" if with_first else "_without_first")
    else:
        row = next((row for row in trace if row["step"] == step), None)
        if row is None:
            raise StepscopeError(f"no step {step}")
        times = {phase: row[f"{name}_ns"] for phase, name in PHASES.items()}
        total, lanes = row["step_ns"], _lanes([one for one in _calls(run, "step_reduces") if one["step"] == step])
    starts = {
        "iteration_interval": 0,
        "fp_and_bp": times["iteration_interval"],
        "tail": times["iteration_interval"] + times["fp_and_bp"],
    }
    return {
        "point_info": _points(trace[0]),
        "size": len(trace),
        "summary": _summary(means, len(trace)),
        "training_trace_graph": [
            [_segment("", 0, total)],
            [_segment(phase, starts[phase], times[phase]) for phase in PHASES],
            *lanes,
        ],
    }


def target_time(run: Run, asked: Asked, *, with_first: bool = False) -> Any:
    """One phase over all steps; arguments as of `training_trace`."""
    phase = asked.parameters["type"]
    trace = rows(run, "step_trace")
    column = "forward_ns" if phase == "fp" else f"{PHASES[phase]}_ns"
    values = [row[column] for row in trace]
    if None in values or (phase == "fp" and trace[0]["tail_ns"] is not None):
        raise StepscopeError(f"no phase {phase}")
    means = _means(run, with_first)
    return {
        "info": {phase: [ms(value) for value in values]},
        "size": len(trace),
        "summary": _summary(means, len(trace)),
    }


def _means(run: Run, with_first: bool) -> dict[str, float]:
    """The average of each phase, usually without the first step, as nothing was before it.

    Raises:
        StepscopeError: If the phases are not known.
    """
    column = "mean_ns" if with_first else "mean_without_first_ns"
    statistics = rows(run, "step_statistics")
    found = {row["phase"]: row["mean_ns"] if row[column] is None else row[column] for row in statistics}
    if not found.keys() >= set(PHASES.values()):
        raise StepscopeError("the phases of the steps are not known")
    return found


def _calls(run: Run, question: str) -> Rows:
    """Communication by stream; none is an answer too."""
    try:
        return rows(run, question)
    except Unavailable:
        return []


def _points(row: dict[str, Any]) -> dict[str, Any]:
    named = {"fp_start": row["forward_start_operator"], "bp_end": row["backward_end_operator"]}
    by = {"fp_start": row["forward_start_by"], "bp_end": row["backward_end_by"]}
    return {key: name for key, name in named.items() if name is not None and by[key] == "stated"}


def _summary(means: dict[str, float], steps: int) -> dict[str, Any]:
    total = ms(means["step"])
    parts = {phase: ms(means[name]) for phase, name in PHASES.items()}
    shares = {f"{phase}_percent": percent(part, total) for phase, part in parts.items()}
    return {**parts, **shares, "total_steps": steps, "total_time": total}


def _segment(name: str, start_ns: float, duration_ns: float) -> dict[str, Any]:
    return {"name": name, "start": ms(start_ns, 3), "duration": ms(duration_ns, 1 if name else 3)}


def _lanes(segments: Rows) -> list[Any]:
    return [
        [_segment(one["name"] or "", one["start_ns"], one["duration_ns"]) for one in lane]
        for _, lane in groupby(segments, key=lambda one: one["stream"])
    ]


def _average_lanes(run: Run, means: dict[str, float], which: str) -> list[Any]:
    """The average calls of each stream, and what lies between them."""
    lanes = []
    for _, calls in groupby(_calls(run, "step_reduce_statistics"), key=lambda one: one["stream"]):
        lane, until = [], means["interval"]
        for call in calls:
            start, length = call[f"mean_start{which}_ns"], call[f"mean{which}_ns"]
            lane += [_segment("", until, start - until)] if lane or start >= until else []
            lane.append(_segment(call["name"], start, length))
            until = start + length
        lanes.append([*lane, _segment("", until, means["step"] - until)])
    return lanes


PAGES = {"training-trace/graph": training_trace, "training-trace/target-time-info": target_time}
