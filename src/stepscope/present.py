"""How figures are shown to people: column titles and units, the same on every surface."""

from __future__ import annotations

from typing import Any

TITLES = {
    "communication_not_overlapped_ns": "comm. exposed",
    "memory_not_overlapped_ns": "memory exposed",
    "data_loading_ns": "data wait",
    "free_ns": "free",
    "window_ns": "step",
    "computing_ns": "computing",
    "communication_ns": "comm.",
    "overlapped_ns": "comm. hidden",
    "preparing_ns": "preparing",
    "share_ratio": "share",
    "bandwidth_bytes_per_s": "bandwidth",
    "typical_bytes_per_s": "typical",
    "size_bytes": "size",
    "group_name": "group",
}
"""Titles that the column's own name does not give."""


def title(column: str) -> str:
    """A column's title: its name without unit suffix and underscores, or the one in `TITLES`."""
    if column in TITLES:
        return TITLES[column]
    for suffix in ("_ns", "_ratio", "_bytes_per_s", "_bytes"):
        column = column.removesuffix(suffix)
    return column.replace("_", " ")


def cell(column: str, value: Any) -> str:
    """A value as text, with its unit by the column's suffix; null is a dash."""
    if value is None:
        return "-"
    if column.endswith("_ns"):
        return duration(value)
    if column.endswith("_ratio"):
        return f"{value:.1%}"
    if column.endswith("_bytes_per_s"):
        return f"{value / 1e9:.2f} GB/s"
    if column.endswith("_bytes"):
        return size(value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def duration(ns: float) -> str:
    """A duration in the unit that keeps it short: us under 1 ms, ms under 10 s, else s."""
    magnitude = abs(ns)
    if magnitude >= 1e10:
        return f"{ns / 1e9:.2f} s"
    if magnitude >= 1e6:
        return f"{ns / 1e6:.2f} ms"
    return f"{ns / 1e3:.1f} us" if magnitude else "0"


def size(count: float) -> str:
    """A size in decimal units, as communication libraries report it."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(count) >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"


def is_number(column: str) -> bool:
    """Whether a column is shown flush right."""
    return column.endswith(("_ns", "_ratio", "_bytes", "_bytes_per_s")) or column in ("count", "calls", "rank", "step")
