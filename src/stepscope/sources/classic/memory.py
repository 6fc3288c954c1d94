"""Memory of a device in a classic profile: totals, the plan of graphs, and allocations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stepscope.json_values import whole_number
from stepscope.sources.ascend.headers import OPERATOR_MEMORY
from stepscope.sources.base import Sink
from stepscope.sources.classic.figures import write_figures
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.memory_details import read_details
from stepscope.sources.classic.memory_plan import GraphPlan, size_in_bytes, write_plans
from stepscope.sources.classic.memory_proto import read_proto
from stepscope.sources.csv_files.reading import read_csv_parts
from stepscope.sources.side_files import read_object
from stepscope.tables import ALLOCATIONS

_ALLOCATIONS = replace(OPERATOR_MEMORY, report_cells=True, report_empty=True)
_SIZES = {
    "capacity": "memory_capacity_bytes",
    "peak_mem": "memory_peak_bytes",
    "static_mem": "memory_static_bytes",
}
_COUNTS = {"allocations": "memory_allocations", "deallocations": "memory_deallocations"}
_ROUNDING_BYTES = 1 << 20
"""Totals are rounded to some decimals of a GiB."""


def write_memory(files: RankFiles, sink: Sink) -> None:
    """Write `rank_figures`, `graphs`, `graph_nodes`, `graph_tensors` and `allocations`."""
    details, proto = files.one("memory_details"), files.one("memory_proto")  # analysed, and as MindSpore wrote it
    plans, capacity = [] if details is None else read_details(details, sink), None
    if not plans and proto is not None:
        plans, capacity = read_proto(proto, sink)
    write_plans(plans, sink)
    stated = _stated(files.one("memory_summary"), sink)
    if capacity is not None:
        stated.setdefault("memory_capacity_bytes", capacity)
    _report_other_peak(stated.get("memory_peak_bytes"), plans, files, sink)
    write_figures(stated, sink)
    if (allocations := files.one("operator_memory")) is not None:
        for rows in read_csv_parts(allocations, _ALLOCATIONS, sink):
            sink.write(ALLOCATIONS, rows)


def _stated(summary: Path | None, sink: Sink) -> dict[str, int]:
    content = read_object(summary, sink)
    if content is None or summary is None:
        return {}
    values = {name: size_in_bytes(content.get(key)) for key, name in _SIZES.items()}
    values |= {name: whole_number(content.get(key)) for key, name in _COUNTS.items()}
    values = {name: value if value is None or value >= 0 else None for name, value in values.items()}
    if lacking := [key for key, name in (_SIZES | _COUNTS).items() if values[name] is None]:
        problem = f"has no value for {', '.join(lacking)}"
        sink.issue("warning", summary, problem, "Nothing to do unless you need them; if so, profile again.")
    return {name: value for name, value in values.items() if value is not None}


def _report_other_peak(stated: int | None, plans: Sequence[GraphPlan], files: RankFiles, sink: Sink) -> None:
    """Note if the totals name another peak than the nodes."""
    peaks = [peak for plan in plans if (peak := plan.peak_bytes) is not None]
    if stated is None or not peaks or abs(stated - max(peaks)) <= _ROUNDING_BYTES:
        return
    problem = f"gives a peak of {stated} bytes, but the nodes of the graphs reach {max(peaks)}; both are kept"
    remedy = "Use the peak of the nodes if all graphs are there, otherwise the given one."
    sink.issue("note", files.one("memory_summary") or files.path, problem, remedy, place="peak_mem")
