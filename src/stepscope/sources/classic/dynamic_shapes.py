"""`dynamic_shape_info_N.json`: executions of operators by step, if shapes change.

Ascend: operators by type, each with the durations (ms) and shapes of its executions. GPU: operators and kernels by step
(us).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import json_text, list_of, small_number
from stepscope.sources.base import Sink
from stepscope.sources.side_files import AGAIN, read_object
from stepscope.tables import OPERATOR_STEPS
from stepscope.tables.base import with_schema

_MS, _US = 1_000_000, 1_000
_LONGEST_NS = 1e18
_TYPES = "op_type"
"""Mean of each type by step: follows from the operators."""
_BY_STEP = {"operator": "GPU", "kernel": "CUDA"}
_HOST = {"cpu": "HOST_CPU"}
"""Unit of an operator that does not run on the device, by `op_side`."""
Row = dict[str, Any]


def write_dynamic_shapes(file: Path, sink: Sink) -> None:
    """Write `operator_steps`."""
    content = read_object(file, sink)
    if content is None:
        return
    is_by_step = any(isinstance(content.get(part), dict) for part in _BY_STEP)
    lost: Counter[str] = Counter()
    rows = list(_by_step(content, lost) if is_by_step else _by_type(content, lost))
    if rows:
        schema = OPERATOR_STEPS.stored_schema
        sink.write(OPERATOR_STEPS, with_schema(pl.DataFrame(rows, infer_schema_length=None), schema))
    for reason, count in lost.items():
        sink.issue("error", file, f"{count} {reason} and are left out", AGAIN, lost=count)
    if not rows and not lost:
        sink.issue("warning", file, "lists no executions", AGAIN)


def _by_type(content: Mapping[str, Any], lost: Counter[str]) -> Iterator[Row]:
    """Rows of an Ascend device: an execution is a step, from 1."""
    for kind, operators in content.items():
        if kind == _TYPES:
            continue
        for named in operators if isinstance(operators, list) else ():
            for name, runs in named.items() if isinstance(named, dict) else ():
                times, shapes = list_of(runs, "op_exe_time"), list_of(runs, "op_shape")
                for at, time in enumerate(times):
                    if (duration := _ns(time, _MS)) is None:
                        lost["executions have no readable duration"] += 1
                        continue
                    shape = shapes[at] if at < len(shapes) else None
                    row = {"step": at + 1, "unit": "AI_CORE", "type": kind, "name": name, "duration_ns": duration}
                    yield row | {"input_shapes": _text(shape)}
        if not isinstance(operators, list):
            lost["operator types are not lists"] += 1


def _by_step(content: Mapping[str, Any], lost: Counter[str]) -> Iterator[Row]:
    """Rows of a GPU."""
    for part, unit in _BY_STEP.items():
        steps = content.get(part)
        for key, entries in steps.items() if isinstance(steps, dict) else ():
            for entry in entries if isinstance(entries, list) else ():
                row = _gpu_row(key, unit, entry) if isinstance(entry, dict) else None
                if row is None:
                    lost["executions have no readable step, name or duration"] += 1
                else:
                    yield row


def _gpu_row(key: str, unit: str, entry: Mapping[str, Any]) -> Row | None:
    step, duration = small_number(entry.get("step", key)), _ns(entry.get("dur"), _US)
    name, kind = entry.get("op_name"), entry.get("op_type")
    if step is None or duration is None or not isinstance(name, str) or not isinstance(kind, str):
        return None
    return {
        "step": step,
        "unit": _HOST.get(str(entry.get("op_side", "")).lower(), unit),
        "type": kind,
        "name": name,
        "full_name": _text(entry.get("op_full_name")),
        "duration_ns": duration,
        "input_shapes": _text(entry.get("shape_info")),
        "block": _text(entry.get("block_dim")),
        "grid": _text(entry.get("grid_dim")),
    }


def _ns(value: Any, unit: int) -> int | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value * unit < _LONGEST_NS
    return round(value * unit) if is_number else None


def _text(value: Any) -> str | None:
    return (value or None) if isinstance(value, str) else json_text(value)
