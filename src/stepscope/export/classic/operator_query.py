"""What `Profiler.op_analyse` answers: calls and times of operators by type, side and input shapes.

Times are whole times here, those of the operators that an operator calls included, as "total" means everywhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.export.classic.cpu_operators import parsed_shapes
from stepscope.export.classic.gpu_operators import CALLS, owned_kernels
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import largest_first, us
from stepscope.export.rank_export import open_recording
from stepscope.run import Run, open_run

_NAMED = 20


def analyse_operators(recording: Path, names: Sequence[str], opener: Callable[[Path], Run] = open_run) -> str:
    """Look up operators by type, e.g. `Conv2D`, `aten::mm`, or by their short or full name.

    Args:
        recording: A directory of raw data.
        names: Operators; upper and lower case count.
        opener: Opens a recording as a run.

    Returns:
        JSON: for each name a list of `op_side`, `input_shape`, `op_occurrences`, `op_total_time(us)` and
        `op_avg_time(us)`, longest first; and `device_id`.

    Raises:
        StepscopeError: If the recording has no operators, or not this one.
        OSError: If the recording cannot be read.
    """
    export = open_recording(recording, opener)
    if not export.run.has("operators"):
        raise StepscopeError(
            f"{recording}: no operators were recorded. Record with op_time=True, and call stop() first"
        )
    operators = named_operators(export)
    sides = {"Host": operators, **({"Device": owned_kernels(export)} if export.on_gpu else {})}
    answer: dict[str, Any] = {name: _of_one(name, sides) for name in names}
    for name, found in answer.items():
        if not found:
            kinds = sorted(operators.select(pl.col("op_type").unique()).collect()["op_type"].drop_nulls())
            there = ", ".join(kinds[:_NAMED]) + (f" and {len(kinds) - _NAMED} more" if len(kinds) > _NAMED else "")
            raise StepscopeError(f"{recording}: there is no operator {name!r}. There are: {there}")
    device = export.about.get("device_id")
    return json.dumps({**answer, "device_id": str(export.rank if device is None else device)})


def _of_one(name: str, sides: dict[str, pl.LazyFrame]) -> list[dict[str, Any]]:
    found = []
    for side, rows in sides.items():
        mine = rows.filter((pl.col("op_type") == name) | (pl.col("op_name") == name) | (pl.col("full_name") == name))
        calls = pl.len() if side == "Host" else CALLS
        totals = largest_first(mine, "input_shapes", total=pl.col("duration_ns").sum(), calls=calls)
        for shapes, total, count in totals.iter_rows():
            shape = ",".join(json.dumps(one) for one in parsed_shapes(shapes))
            times = {"op_total_time(us)": us(total), "op_avg_time(us)": us(total / count)}
            found.append({"op_side": side, "input_shape": shape, "op_occurrences": count, **times})
    return found
