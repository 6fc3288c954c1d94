"""Telling a file of an Ascend recording from others by its first bytes."""

from __future__ import annotations

import csv
import re

from stepscope.sources.ascend.trace_layout import KNOWN_PROCESSES
from stepscope.sources.csv_files.layout import column_key

_SIGNATURES: tuple[tuple[str, frozenset[str]], ...] = (
    ("kernels", frozenset({"start_time", "accelerator_core"})),
    ("kernels", frozenset({"task_start_time", "task_type", "op_name"})),
    ("step_totals", frozenset({"computing", "communication(not_overlapped)", "overlapped", "free"})),
    ("kernel_totals", frozenset({"op_type", "core_type", "count", "total_time"})),
    ("api_totals", frozenset({"level", "api_name", "count", "variance"})),
    ("allocations", frozenset({"allocation_time", "active_release_time", "size"})),
    ("memory_curve", frozenset({"component", "timestamp", "total_allocated"})),
    ("module_memory", frozenset({"component", "timestamp", "total_reserved"})),
)
"""Part of a recording, and headers that no other CSV file has together."""

_PROCESS = re.compile(rb'"name"\s*:\s*"(?:' + b"|".join(re.escape(p.encode()) for p in KNOWN_PROCESSES) + rb')"')
_ARGUMENTS = re.compile(rb'"(?:Fwd thread id|Sequence number|Task Type|connection_id|notify_id)"\s*:')
_TEXT_TIME = re.compile(rb'"ts"\s*:\s*"\d+\.\d{3}"')
_STEP_KEY = re.compile(rb'^\{\s*"step\d*"\s*:\s*\{\s*"(?:p2p|collective)"')


def text_part(head: bytes) -> str | None:
    """Which part of a text export a file with this head is; None for any other file."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return "trace" if _is_trace_view(start) else None
    if _STEP_KEY.match(start):
        if b'"Communication Time Info"' in start:
            return "communication"
        return "matrix" if b'"Transport Type"' in start else None
    return None if start.startswith((b"{", b"SQLite")) else _table_part(start)


def _table_part(start: bytes) -> str | None:
    """Which part a CSV file is, by its first line."""
    line, found, _ = start.partition(b"\n")
    try:
        row = next(csv.reader([line.decode("utf-8", "replace")]), []) if found else []
    except csv.Error:
        return None
    names = {column_key(name) for name in row}
    if {"type", "index"} <= names:
        return None  # a table of all ranks that other tools derived
    return next((part for part, needed in _SIGNATURES if needed <= names), None)


def _is_trace_view(start: bytes) -> bool:
    """A bare list of events whose times are text, or whose processes or arguments only this export has."""
    if b'"ph"' not in start[:65536]:
        return False
    known = _PROCESS.search(start) or _ARGUMENTS.search(start)
    return bool(known and (_TEXT_TIME.search(start) or b'"process_name"' in start))
