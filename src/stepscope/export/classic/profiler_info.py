"""`profiler_info`: who was profiled, how and when. Readers show no rank without it."""

from __future__ import annotations

import time

from stepscope.export.classic.cluster_analyse import stage_count
from stepscope.export.formatting import local_time
from stepscope.export.rank_export import RankExport

_MODES = {"graph": "graph", "jit": "graph", "pynative": "pynative"}


def write_profiler_info(export: RankExport) -> None:
    """Write it, with the end of the export as the time at which its analysis ended."""
    about, facts = export.about, export.facts
    parallel = export.parallel
    size = facts["world_size"] or 1
    spans = about.get("spans") or []
    start = about.get("started_ns") or (spans[0][0] if spans else facts["start_ns"])
    ends = [end for _, end in spans if end is not None]
    stop = ends[-1] if ends else about.get("updated_ns") or facts["end_ns"]
    info = {
        # Readers know two modes only, and pages of the second lack the step trace; an eager step is traced here.
        "context_mode": _MODES.get(str(about.get("mode") or facts["mode"]), "graph"),
        "rank_id": str(export.rank),
        "ms_version": str(facts["framework_version"] or ""),
        "framework": str(facts["framework"] or ""),
        "parallel_mode": parallel.get("parallel_mode") or ("data_parallel" if size > 1 else "stand_alone"),
        "stage_num": stage_count(parallel),
        "rank_size": size,
        "graph_ids": [1],
        "is_heterogeneous": False,
        "profiling_start_time": _clock(start),
        "profiling_stop_time": _clock(stop),
        "analyse_start_time": _clock(export.began_ns),
        "analyse_end_time": _clock(time.time_ns()),
        "all_export": True,
        "system_cnt": 0,
        "system_time": start or 0,
        "diff_time": 0,
    }
    export.write_json(f"profiler_info_{export.rank}.json", info)
    reason = "the sharded graph is not recorded: frameworks give it for automatic parallelism on Ascend only"
    export.leave_out(f"parallel_strategy_{export.rank}.json", reason)


def _clock(ns: float | None) -> str:
    """Local date and time to the second; empty if unknown."""
    return "" if ns is None else local_time(ns).strftime("%Y-%m-%d %H:%M:%S")
