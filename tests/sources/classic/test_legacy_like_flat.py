"""One job in the layout of old clusters and in a flat directory gives the same answers."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns

import polars as pl

from stepscope import Run, open_run
from stepscope.advice import advise
from stepscope.analysis import ANALYSES
from stepscope.errors import StepscopeError

ONLY_FLAT = {
    **dict.fromkeys(("host_memory", "host_memory_curve", "host_time"), "host_info"),
    **dict.fromkeys(("strategy_edges", "strategy_nodes", "strategy_stages"), "parallel_strategy"),
}
"""Questions that only the flat directory answers, and the files that it has for them."""

ONLY_CLUSTER = ("host_means",)
"""Questions that only the cluster's directory answers, as only its table of ranks has hosts."""

DIFFERENT_FILES = {
    **dict.fromkeys(
        ("cluster_advice", "differing_sources", "rank_means", "rank_steps"),
        "only the flat directory has cluster_analyse",
    ),
    **dict.fromkeys(("operator_utilization", "rank_flops"), "as model_flops"),
    "flop_tree": "only the flat directory has flops_scope",
    "model_flops": "flops_summary has cube and vector with the peak, or their sum with the utilization",
    "parallel_dimensions": "only the flat directory has profiler_info, with the parallel mode",
    "parallel_layout": "only the flat directory has profiler_info, with the parallel mode",
    "work_names": "only the table of ranks has hosts",
}
"""Questions whose answers follow from files that differ, and how these do."""

OF_TABLE = ("host", "device", "nic", "place_by")
"""Columns that only the table of ranks gives."""


def answer(run: Run, question: str) -> pl.DataFrame | str:
    try:
        return run.analyse(question).drop(OF_TABLE, strict=False)
    except StepscopeError as error:
        return type(error).__name__


def test_answers_of_one_job_do_not_depend_on_its_layout(shared: Path, tmp_path: Path) -> None:
    profiles = shared / "data/mindspore"
    raw = ignore_patterns("mindstudio_profiler_output")  # only the flat directory has exported raw profiles
    same = Path(copytree(profiles / "synthetic_dp4", tmp_path / "flat", ignore=raw, copy_function=copyfile))
    flat, cluster = open_run(same), open_run(profiles / "synthetic_legacy_r13")

    only, differing = [], []
    for question in sorted(ANALYSES):
        one, other = answer(flat, question), answer(cluster, question)
        if isinstance(one, str) or isinstance(other, str):
            only += [question] if type(one) is not type(other) else []
        elif not one.equals(other):
            differing.append(question)
    found, found_too = ({(f.rule, f.message, f.saving_ns) for f in advise(run)} for run in (flat, cluster))

    assert only == sorted((*ONLY_FLAT, *ONLY_CLUSTER))
    assert differing == sorted(DIFFERENT_FILES)
    assert {rule for rule, *_ in found - found_too} == {"ai-cpu"}  # msadvisor is in the flat directory only
    assert found_too <= found
