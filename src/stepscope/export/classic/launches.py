"""`cpu_op_execute_timestamp` and `cpu_framework`: when each operator ran on the host, and on what shapes.

Times of nested operators overlap here, since each line states when its operator ran; totals are in other files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from stepscope.export.classic.cpu_operators import NO_OPERATORS
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import ms
from stepscope.export.rank_export import RankExport
from stepscope.json_files import value_in

_PART = 100_000
NO_SHAPE = "NoShape"
_NO_TENSOR = ("", "Scalar", "ScalarList")


def write_launches(export: RankExport) -> None:
    """Write both files, a line an operator and a line a launch."""
    times, launches = f"cpu_op_execute_timestamp_{export.rank}.txt", f"cpu_framework_{export.rank}.txt"
    if not export.run.has("operators"):
        export.leave_out(times, NO_OPERATORS)
        export.leave_out(launches, NO_OPERATORS)
        return
    rows = named_operators(export).select(
        "full_name", "op_type", "op_name", "start_ns", "duration_ns", "thread", "input_shapes", "input_types"
    )
    found = rows.sort("start_ns", maintain_order=True).collect()
    export.write(times, _times(found))
    export.write(launches, _launches(found))


def _times(operators: pl.DataFrame) -> Iterator[str]:
    threads = thread_numbers(operators)
    for group in operators.group_by("full_name", maintain_order=True):
        (name,), rows = group
        calls = rows.select("start_ns", "duration_ns", "thread").iter_rows()
        yield (
            f"{name};HostCpuOps;"
            + "".join(f"{start},{ms(ns)},{threads[thread]} " for start, ns, thread in calls)
            + "\n"
        )


def thread_numbers(operators: pl.DataFrame) -> dict[str | None, int]:
    """Threads numbered from 0 in the order in which they first ran an operator (`operators` is in order of time)."""
    return {thread: number for number, thread in enumerate(operators["thread"].unique(maintain_order=True))}


def _launches(operators: pl.DataFrame) -> Iterator[str]:
    for part in operators.iter_slices(_PART):
        columns = part.select("op_type", "op_name", "input_shapes", "input_types")
        yield "".join(
            f"{kind.replace(';', ',')};{name.replace(';', ',')};0;{launch_shapes(shapes, types)}\n"
            for kind, name, shapes, types in columns.iter_rows()
        )


@lru_cache(maxsize=65536)
def parsed_shapes(text: str | None) -> tuple[Any, ...]:
    """The inputs in a text of shapes: sizes, a list of sizes, or None each. Empty if the text is not a JSON list."""
    found = value_in(text)
    return tuple(found) if isinstance(found, list) else ()


@lru_cache(maxsize=65536)
def launch_shapes(shapes: str | None, types: str | None) -> str:
    """The inputs as `cpu_framework` has them.

    Examples:
        >>> launch_shapes("[[8, 3], [], []]", '["float", "Scalar", ""]')
        'input_1:[8, 3];input_2:NoShape;input_3:NoShape;'
    """
    kinds = parsed_shapes(types)
    parts = []
    for number, shape in enumerate(parsed_shapes(shapes)):
        kind = kinds[number] if number < len(kinds) else None
        no_tensor = shape is None or shape == NO_SHAPE or (not shape and kind in _NO_TENSOR)
        parts.append(f"input_{number + 1}:{NO_SHAPE if no_tensor else json.dumps(shape)};")
    return "".join(parts)
