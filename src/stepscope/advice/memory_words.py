"""Words about memory that rules share."""

from __future__ import annotations

from typing import Any

from stepscope.advice.templates import Text

OF_WHAT = Text(
    "[ of component {component}][ of device {device}][ of graph {graph}]",
    "[（组件 {component}）][（设备 {device}）][（图 {graph}）]",
)
"""Which memory it is; empty if it is all memory."""


def of_what(row: dict[str, Any]) -> dict[str, Any]:
    """The parameters of `OF_WHAT` for a row of `memory_hints`: only the first known one, as it includes the others."""
    names = ("component", "device", "graph")
    known = next((name for name in names if row[name] is not None), None)
    return {name: row[name] if name == known else None for name in names}
