"""Figures of a rank as a whole, each from a small JSON file: `rank_figures`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_amount, as_index, as_text, json_text, list_of
from stepscope.sources.base import Sink
from stepscope.sources.side_files import AGAIN, read_object
from stepscope.tables import RANK_FIGURES

_MEGA, _GIGA, _PERCENT = 1e6, 1e9, 0.01
_FLOPS = {
    "cube_FLOPs": ("cube_flops", _MEGA),
    "cube_FLOPS": ("cube_flops_per_s", _GIGA),
    "vec_FLOPs": ("vector_flops", _MEGA),
    "vec_FLOPS": ("vector_flops_per_s", _GIGA),
    "FLOPs": ("flops", _MEGA),
    "FLOPS": ("flops_per_s", _GIGA),
    "FLOPS_Utilization": ("flops_utilization_ratio", _PERCENT),
}
"""Key to our name and what the figure is times."""
_TIMELINE = {
    "num_of_streams": ("timeline_streams", 1.0),
    "num_of_ops": ("timeline_operators", 1.0),
    "op_exe_times": ("timeline_executions", 1.0),
    "max_scope_name_num": ("timeline_scope_levels", 1.0),
    "total_time": ("timeline_total_ns", 1.0),
}
"""Likewise; the total has no unit."""
_UNITS = {"ms": 1e6, "us": 1e3}
_POINTS = {"fp_start": "forward_start_operator", "bp_end": "backward_end_operator"}
_GRAPH = re.compile(r"(?:model|graph)_(\d{1,18})")
_FLOPS_PER_CYCLE = 4096 * 2
"""Of the cube of an AI core: 16 x 16 x 16 multiplications of half precision and as many additions, the figure by which
MindSpore computes its FLOPS utilisation."""
_MHZ = 1_000_000


def write_figures(figures: Mapping[str, float], sink: Sink) -> None:
    """Write figures by name, if there are any."""
    if figures:
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=list(figures), value=list(figures.values())))


def write_averages(averages: Mapping[str, float | None], sink: Sink) -> None:
    """Write averages that a file states of more steps than it has, by the names of their times."""
    write_figures({f"average_{name}": float(value) for name, value in averages.items() if value is not None}, sink)


def write_flops_summary(path: Path, sink: Sink) -> None:
    """Write operations of the whole model, from `flops_summary`."""
    write_figures(_amounts(read_object(path, sink) or {}, _FLOPS, path, sink), sink)


def write_timeline_summary(path: Path, operations_ns: int, steps: pl.DataFrame | None, sink: Sink) -> None:
    """Write how much a timeline holds, from `timeline_summary`: its total is in us up to 1.x and in ms later.

    The sum of the operations that were read (0 if none were) gives the unit of the total, otherwise rows of `steps` do.
    """
    content = {key: value for key, value in (read_object(path, sink) or {}).items() if value is not None}
    figures = _amounts(content, _TIMELINE, path, sink)
    total = figures.pop("timeline_total_ns", None)
    if total is not None:
        unit = next((unit for unit in _UNITS if _agrees(total * _UNITS[unit], operations_ns)), None)
        unit = unit or _guessed_unit(path, total, figures.get("timeline_streams"), steps, sink)
        figures |= {} if unit is None else {"timeline_total_ns": total * _UNITS[unit]}
    write_figures(figures, sink)


def _amounts(
    content: Mapping[str, Any], names: Mapping[str, tuple[str, float]], path: Path, sink: Sink
) -> dict[str, float]:
    """The figures in a file by our names; other values than amounts are reported."""
    found = {}
    for key, (name, factor) in names.items():
        amount = as_amount(content.get(key))
        if amount is not None:
            found[name] = amount * factor
        elif key in content:
            sink.issue("error", path, f"{key} is not a valid amount", "Copy the file again.", place=key)
    if content and not content.keys() & names.keys():
        sink.issue("error", path, "has no known figure", "Report the format if it is new.")
    return found


def _agrees(total_ns: float, operations_ns: int) -> bool:
    return bool(total_ns and operations_ns) and 0.5 < total_ns / operations_ns < 2


def _guessed_unit(
    path: Path, total: float, streams: float | None, steps: pl.DataFrame | None, sink: Sink
) -> str | None:
    """The unit of a total that fits the length of the steps; None if no step is known."""
    guess: str | None = None
    if steps is not None and not steps.is_empty():
        first, last = steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
        guess = "ms" if total * _UNITS["ms"] <= (last - first) * max(streams or 1, 1) else "us"
    read_as = f"read as {guess}, which fits the length of the steps" if guess else "left out"
    sink.issue("note", path, f"total_time has no unit; it is {read_as}", "Nothing to do.", place="total_time")
    return guess


def write_step_points(path: Path, sink: Sink) -> None:
    """Write at which operators forward begins and backward ends, by graph if `step_trace_point_info` has graphs."""
    content = read_object(path, sink) or {}
    by_graph: list[tuple[int | None, Mapping[str, Any]]] = [(None, content)]
    for key, value in content.items():
        if isinstance(value, dict) and (match := _GRAPH.fullmatch(key)):
            by_graph.append((int(match[1]), value))
    stated = [(key, graph, points[key]) for graph, points in by_graph for key in _POINTS if key in points]
    rows = [(_POINTS[key], graph, name) for key, graph, value in stated if (name := as_text(value))]
    if odd := [key for key, _, value in stated if not isinstance(value, str)]:
        sink.issue("error", path, f"{', '.join(sorted(set(odd)))} is not a name", "Copy the file again.", place=odd[0])
    if content and not rows:
        known = ", ".join(_POINTS)
        sink.issue("error", path, f"has none of {known}", "Copy the file again, or report the format if it is new.")
    if rows:
        names, graphs, texts = zip(*rows, strict=True)
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=names, graph=list(graphs), text=texts))


def write_recommendation(path: Path, sink: Sink) -> None:
    """Write what MindSpore's own advisor recommended (`msadvisor/`): the JSON of its models, as it stands."""
    content = read_object(path, sink)
    if content is None:
        return
    model = content.get("model")
    text = json_text(model) if isinstance(model, dict) else None
    if text is None:
        sink.issue("warning", path, "holds no recommendation", AGAIN, place="model")
        return
    sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=["recommendation"], text=[text]))


def write_device_peak(path: Path, sink: Sink) -> None:
    """Write what the device could do at most, from `info.json`: cores times their frequency times FLOPs per cycle."""
    info = read_object(path, sink)
    if info is None:
        return
    devices = [device for device in list_of(info, "DeviceInfo") if isinstance(device, Mapping)]
    device: Mapping[str, object] = next(iter(devices), {})
    cores, frequency = as_index(device.get("ai_core_num")), as_index(device.get("aic_frequency"))
    if cores and frequency:
        write_figures({"device_peak_flops_per_s": float(cores * frequency * _MHZ * _FLOPS_PER_CYCLE)}, sink)
    else:
        problem = "does not give the number and frequency of the device's AI cores, so its peak is unknown"
        sink.issue("note", path, problem, "Pass the peak of the device to get shares of it.")
