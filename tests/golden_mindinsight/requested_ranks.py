"""What a request asked of a table about all ranks: rows in some order, a page of them; the same for both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from asked import Asked

from stepscope.errors import StepscopeError

STEP_COLUMNS = {
    "iteration_interval": "interval",
    "fp_and_bp": "forward_backward",
    "tail": "tail",
    "iter_total_time": "step",
    "computation": "computing",
    "communication_alone": "alone",
    "stage": "stage_time",
    "receive_alone": "receive",
    "collective_communication_alone": "collective",
}
"""Names to sort by, and the keys of a rank's row."""

SHOWN = {
    "data-parallel": ("interval", "forward_backward", "tail", "step"),
    "model-parallel": ("interval", "computing", "alone"),
    "pipeline-parallel": ("interval", "computing", "alone", "stage_time", "receive", "collective"),
}
"""What is shown of a step, by how the job is parallel."""

LINK_COLUMNS = {"src_dst": 0, "link_type": 1, "communication_cost": 2, "communication_size": 3, "band_width": 4}
_LIMIT = 10


def step(asked: Asked) -> int:
    """The step asked about; 0 is the average."""
    return int((asked.parameters.get("filter_condition") or {}).get("step_id", 0))


def page_of(asked: Asked, rows: list[Any]) -> list[Any]:
    """A page of rows."""
    page = asked.parameters.get("group_condition")
    if page is None:
        return rows
    limit, number = page.get("limit", _LIMIT), page.get("offset", 0)
    return rows[number * limit : (number + 1) * limit]


def step_answer(asked: Asked, rows: list[dict[str, Any]], mode: str, stages: int, steps: int) -> dict[str, Any]:
    """The answer about steps of all ranks.

    Args:
        asked: The request.
        rows: A row for each rank, in their order: `rank`, `stage` (from 0, None without a pipeline), and times in ms.
        mode: How the job is parallel.
        stages: Its pipeline stages.
        steps: Number of steps.

    Raises:
        StepscopeError: If there is nothing to sort by.
    """
    stage = (asked.parameters.get("filter_condition") or {}).get("stage_id")
    kept = [row for row in rows if stage is None or (row["stage"] or 0) == stage - 1]
    if sort := asked.parameters.get("sort_condition"):
        key = STEP_COLUMNS[sort["name"]]
        if any(row[key] is None for row in kept):
            raise StepscopeError(f"no column {sort['name']}")
        kept = sorted(kept, key=lambda row: row[key], reverse=sort["type"] == "descending")
    is_old = "step_trace" in asked.answer if isinstance(asked.answer, dict) else False
    size = len(kept)
    if is_old:
        shown = [
            {
                **_who(row, old=True),
                "profiler_dir": "profiler",
                "step_trace_info": [row[name] for name in ("interval", "forward_backward", "tail")],
            }
            for row in page_of(asked, kept)
        ]
        return {"total_step_num": steps, "step_trace": shown, "size": size}
    info = "step_trace_info" if mode == "data-parallel" else "step_bottleneck_info"
    shown = [
        {"profiler_dir": "profiler", "rank_id": row["rank"], info: [row[name] for name in SHOWN[mode]]}
        for row in page_of(asked, kept)
    ]
    return {"info": shown, "parallel-mode": mode, "size": size, "stage_num": stages, "total_step_num": steps}


def _who(row: dict[str, Any], *, old: bool) -> dict[str, Any]:
    """The rank that a row is about; older versions tell its host and device as well."""
    if not old:
        return {"rank_id": row["rank"]}
    return {"host_ip": row["host"], "device_id": row["device"], "rank_id": row["rank"]}


def who(asked: Asked, row: dict[str, Any]) -> dict[str, Any]:
    """The rank that a row is about, as the version that was asked tells it."""
    return _who(row, old=asked.run == "synthetic_legacy_r13")


def link_answer(asked: Asked, links: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """The answer about links: source, destination, transport, ms, KB, KB/s each; filtered, sorted, a page of them."""
    filters = asked.parameters.get("filter_condition") or {}
    kept = [
        [f"{source}-{destination}", transport, *rest]
        for source, destination, transport, *rest in links
        if _fits(filters.get("src_rank"), source)
        and _fits(filters.get("dst_rank"), destination)
        and _fits(filters.get("link_type"), transport)
    ]
    size = len(kept)
    if sort := asked.parameters.get("sort_condition"):
        at = LINK_COLUMNS[sort["name"]]
        kept = sorted(kept, key=lambda row: row[at], reverse=sort["type"] == "descending")
    return {"cluster_link_info": page_of(asked, kept), "size": size}


def _fits(pattern: str | None, value: Any) -> bool:
    return pattern is None or re.fullmatch(pattern, str(value)) is not None
