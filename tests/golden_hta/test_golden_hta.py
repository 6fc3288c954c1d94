"""HTA's results for real traces, value by value: equal to ours, or different by a fault of HTA that the trace shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from stepscope import Run, open_run
from stepscope.errors import Unavailable
from tests.golden_hta import comparisons as of
from tests.golden_hta.as_hta import RECORDINGS, as_hta_reads, trace_of
from tests.golden_hta.compared import FAULTS, Comparison, Given, Value
from tests.golden_hta.raw_traces import RawRank, read_raw

COMPARED: dict[str, Comparison] = {
    "aten_op_kernels_and_delay_r": of.operators,
    "comm_comp_overlap": of.overlap,
    "cuda_kernel_launch_stats_r": of.launches,
    "frequent_kernel_seq_linear": of.sequences,
    "gpu_kernel_breakdown_0": of.kernel_types,
    "gpu_kernel_breakdown_1": of.kernels,
    "gpu_user_annotation_breakdown": of.ranges,
    "idle_time_breakdown_0": of.idle_totals,
    "idle_time_breakdown_1": of.idle_statistics,
    "memory_bw_summary": of.copies,
    "queue_length_summary": of.queues,
    "temporal_breakdown": of.temporal,
    "user_annotation_breakdown_cpu": of.ranges,
}
"""Files of results, without the number of their rank, and what compares them."""

EXACT = ("memory_bw_summary",)
"""Results from times that HTA did not round, and of all calls."""


@cache
def opened(path: Path) -> tuple[Run, Run, Run, dict[int, RawRank]]:
    """A run as HTA reads it, without copies, and unrounded; and the raw traces."""
    run = open_run(path, use_store=False)
    rounded = as_hta_reads(run)
    kernels = {
        rank.rank: {
            name: rows.filter(pl.col("kind") != "memory") if name == "kernels" else rows
            for name, rows in ((name, rank.table(name).collect()) for name in rank.rows)
        }
        for rank in rounded.ranks
    }
    exact = as_hta_reads(run, rounded=False)
    return rounded, Run.from_frames(kernels), exact, {raw.rank: raw for raw in read_raw(path)}


def values(shared: Path, name: str, file: Path) -> list[Value]:
    """All values of a file."""
    kind = re.sub(r"(_r)\d+$", r"\1", file.stem)
    rounded, without_copies, exact, raw = opened(trace_of(shared, name))
    run = exact if kind in EXACT else without_copies if kind.startswith("aten_op") else rounded
    return list(COMPARED[kind](Given(name, file, run, raw)))


def files_of(shared: Path, name: str) -> list[Path]:
    """The results with anything in them to compare."""
    found = sorted((shared / "golden" / "hta" / name).iterdir())
    return [file for file in found if re.sub(r"(_r)\d+$", r"\1", file.stem) in COMPARED and file.suffix == ".csv"]


NOTHING = ("gpu_user_annotation_breakdown", "memory_bw_summary", "queue_length_summary")
"""Results that are `null` where a trace has nothing of the kind."""

OTHERS = {
    "critical_path_summary": "compared below",
    "critical_path_breakdown": "the events of the path whose shares are in the summary",
    "critical_path": "no path, as no step is marked",
    "potential_stragglers": "compared below",
    "ops_summary_head": "empty in all results",
}
"""Other files and why they are not compared value by value."""


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_value_is_equal_or_a_named_fault(shared: Path, name: str) -> None:
    unexplained = [
        (file.name, value)
        for file in files_of(shared, name)
        for value in values(shared, name, file)
        if not value.is_equal and not value.is_explained
    ]

    assert unexplained == []


def test_every_file_is_compared(shared: Path) -> None:
    files = [file for name in RECORDINGS for file in (shared / "golden" / "hta" / name).iterdir()]
    compared = {file for name in RECORDINGS for file in files_of(shared, name)}

    rest = [file for file in files if file not in compared and file.stem not in OTHERS]

    assert {file.read_text().strip() for file in rest} <= {"null"}
    assert {file.stem for file in rest} <= {*NOTHING}
    assert {*RECORDINGS} == {file.parent.name for file in (shared / "golden" / "hta").glob("*/*")}


def test_each_fault_excuses_something_and_most_values_are_equal(shared: Path) -> None:
    every = [value for name in RECORDINGS for file in files_of(shared, name) for value in values(shared, name, file)]

    excused = Counter(value.fault for value in every if not value.is_equal)

    assert {*excused} == {*FAULTS}
    assert len(every) > 20_000
    assert excused.total() < 0.1 * len(every)


@pytest.mark.parametrize("name", RECORDINGS)
def test_an_error_of_five_percent_is_noticed(shared: Path, name: str) -> None:
    known = [value for file in files_of(shared, name) for value in values(shared, name, file) if value.ours]
    wrong = [replace(value, ours=value.ours * 1.05) for value in known if value.ours]

    noticed = [value for value in wrong if not value.is_equal and not value.is_explained]

    assert len(noticed) >= 0.98 * len(wrong)


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_a_trace_does_not_have_has_no_answer(shared: Path, name: str) -> None:
    run = opened(trace_of(shared, name))[0]
    answers = {"memory_bw_summary": "copies", "queue_length_summary": "queues"}
    for file in (shared / "golden" / "hta" / name).glob("*.json"):
        if file.stem in answers:
            with pytest.raises(Unavailable):
                run.analyse(answers[file.stem])
        elif file.stem == "gpu_user_annotation_breakdown":
            assert "device" not in set(run.analyse("ranges")["place"])


@pytest.mark.parametrize("name", ["hta_nccl_data_r0", "hta_trace_filter_2rank", "param_dlrm_8rank"])
def test_the_host_decides_how_long_the_path_is(shared: Path, name: str) -> None:
    # HTA's path is that of one step of one rank, ours that of the job: shares differ by less than a hundredth
    file = shared / "golden" / "hta" / name / "critical_path_summary.csv"
    theirs = pl.read_csv(file).filter(pl.col("bound_by") == "cpu_bound")["duration"][0] / 100

    path = open_run(trace_of(shared, name), use_store=False).analyse("critical_path")

    on_host = path.filter(pl.col("lane") == "host")["duration_ns"].sum() / path["duration_ns"].sum()
    assert abs(on_host - theirs) < 0.01


def test_stragglers_are_ranks_that_began_late(shared: Path) -> None:
    # HTA names the three ranks that wait least, and their steps begin last: their own work takes no longer
    name = "param_dlrm_8rank"
    theirs = json.loads((shared / "golden" / "hta" / name / "potential_stragglers.json").read_text())
    raw = opened(trace_of(shared, name))[3]
    starts = {
        rank: one.start for rank, trace in raw.items() for one in trace.host if one.name.startswith("ProfilerStep")
    }
    run = open_run(trace_of(shared, name), use_store=False)

    last = sorted(starts, key=lambda rank: -starts[rank])

    assert {*theirs} == {*last[:3]}
    assert run.analyse("late_starts")["rank"].to_list() == last[:1]
    assert run.analyse("slow_ranks").is_empty()
