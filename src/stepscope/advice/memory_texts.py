"""Words about memory that rules share."""

from __future__ import annotations

from typing import Any


def of_what(row: dict[str, Any]) -> str:
    """Whose memory a row of `memory_hints` is about, e.g. ` of device 0`; empty where it is all of it."""
    if row["component"] is not None:
        return f" of component {row['component']}"
    if row["device"] is not None:
        return f" of device {row['device']}"
    return f" of graph {row['graph']}" if row["graph"] is not None else ""
