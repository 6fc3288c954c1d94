"""`profiler_info`: who was profiled, how and when. Readers show no rank without it."""

from __future__ import annotations

import time
from typing import Any

from stepscope.export.forms import clock
from stepscope.export.job import Job

_MODES = {"graph": "graph", "jit": "graph", "pynative": "pynative"}


def write_profiler_info(job: Job) -> None:
    """Write it; its analysis ends now."""
    about = job.about
    parallel: dict[str, Any] = about.get("parallel") or {}
    size = job.world_size or 1
    spans = about.get("spans") or []
    start = about.get("started_ns") or (spans[0][0] if spans else job.facts["start_ns"])
    ends = [end for _, end in spans if end is not None]
    stop = ends[-1] if ends else about.get("updated_ns")
    info = {
        # Readers know two modes only, and pages of the second lack the step trace; an eager step is traced here.
        "context_mode": _MODES.get(str(about.get("mode")), "graph"),
        "rank_id": str(job.rank),
        "ms_version": str(about.get("framework_version") or job.facts["framework_version"] or ""),
        "framework": str(job.facts["framework"] or about.get("framework") or ""),
        "parallel_mode": parallel.get("parallel_mode") or ("data_parallel" if size > 1 else "stand_alone"),
        "stage_num": parallel.get("stage_num") or 1,
        "rank_size": size,
        "graph_ids": [1],
        "is_heterogeneous": False,
        "profiling_start_time": clock(start),
        "profiling_stop_time": clock(stop),
        "analyse_start_time": clock(job.began_ns),
        "analyse_end_time": clock(time.time_ns()),
        "all_export": True,
        "system_cnt": 0,
        "system_time": start or 0,
        "diff_time": 0,
    }
    job.write_json(f"profiler_info_{job.rank}.json", info)
