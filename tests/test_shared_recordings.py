"""Real and generated recordings beside the repository give the answers that are known of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

from stepscope import Run, open_run, open_runs

STEP_TABLE = {
    "Computing": pl.col("computing_ns"),
    "Communication(Not Overlapped)": pl.col("communication_not_overlapped_ns"),
    "Overlapped": pl.col("overlapped_ns"),
    "Communication": pl.col("communication_ns"),
    "Free": pl.col("free_ns") + pl.col("memory_not_overlapped_ns"),
    "Stage": pl.col("stage_ns"),
    "Bubble": pl.col("bubble_ns"),
    "Communication(Not Overlapped and Exclude Receive)": pl.col("communication_not_overlapped_exclude_receive_ns"),
    "Preparing": pl.col("preparing_ns"),
}
"""Columns of the Ascend profiler's step table, and what of `breakdown` they equal."""

EXPORTS = ("text", "db")


@cache
def opened(path: Path) -> Run:
    """A run that several tests look at, read once and never stored."""
    return open_run(path, use_store=False)


def generated(shared: Path, out: Path, *options: object) -> Run:
    """A job from the generator of Ascend recordings."""
    tool = shared / "tools" / "gen_ascend.py"
    command = [sys.executable, tool, "--out", out, "--ops-per-step", 60, *options]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    return open_run(out)


def accused(run: Run) -> list[tuple[int, str]]:
    """Ranks that are called slow, and at what."""
    return sorted(run.analyse("slow_ranks").select("rank", "kind").rows())


def slow_links(run: Run) -> list[tuple[int, int]]:
    """Links that are called slow."""
    rows: list[tuple[int, int]] = run.analyse("slow_links").select("rank_a", "rank_b").rows()
    return rows


def test_every_trace_of_the_pytorch_profiler_is_read(shared: Path) -> None:
    folder = shared / "data" / "pytorch"
    files = {path for path in folder.rglob("*.json*") if path.is_file()}

    runs = open_runs(folder)

    assert {rank.path for run in runs for rank in run.ranks} == {path.absolute() for path in files}
    assert not any(run.unread for run in runs)
    assert [len(run.ranks) for run in runs[:3]] == [8, 4, 2]


def test_rank_7_of_dlrm_is_last_at_the_first_five_collectives_as_it_began_late(shared: Path) -> None:
    run = opened(shared / "data" / "pytorch" / "dlrm_8rank_v100")

    arrivals = run.analyse("arrival")

    last = arrivals.filter("is_last").sort("sequence").select("sequence", "rank").rows()
    assert last[:5] == [(0, 7), (1, 7), (2, 7), (3, 7), (4, 7)]
    assert all(rank != 7 for _, rank in last[5:])
    # Its own work takes no longer: it began its only recorded step late.
    (late,) = run.analyse("late_starts").iter_rows(named=True)
    assert (late["rank"], late["calls_last"], late["start_late_ns"]) == (7, 5, 3_283_500)
    assert run.analyse("slow_ranks").is_empty()


def test_the_rank_with_the_slow_loader_is_the_only_one_accused(shared: Path) -> None:
    run = opened(shared / "data" / "pytorch" / "cpu_gloo_4rank_straggler_r2")

    slow = run.analyse("slow_ranks")

    assert slow.select("rank", "kind").rows() == [(2, "data_loading")]
    assert 40e6 < slow["excess_ns"][0] < 60e6


@pytest.mark.parametrize("export", EXPORTS)
def test_the_step_table_is_that_of_the_ascend_profiler(shared: Path, export: str) -> None:
    stated = pl.read_csv(shared / "golden" / "msprof" / "text_8rank" / "cluster_step_trace_time.csv")

    steps = opened(shared / "data" / "ascend" / f"{export}_8rank").analyse("breakdown")

    ours = steps.select("rank", "step", **STEP_TABLE)
    theirs = stated.select(
        rank=pl.col("Index").cast(pl.Int32),
        step=pl.col("Step").cast(pl.Int32),
        **{name: (pl.col(name) * 1000).round().cast(pl.Int64) for name in STEP_TABLE},
    ).sort("rank", "step")
    assert ours.height == 24
    difference = ours.select(pl.col(name) - theirs[name] for name in STEP_TABLE)
    assert ours.select("rank", "step").equals(theirs.select("rank", "step"))
    assert difference.select(pl.max_horizontal(pl.all().abs().max())).item() <= 1


@pytest.mark.parametrize("export", EXPORTS)
def test_exactly_the_injected_faults_of_the_ascend_jobs_are_named(shared: Path, export: str) -> None:
    run = opened(shared / "data" / "ascend" / f"{export}_8rank")

    assert accused(run) == [(2, "dispatch"), (6, "computing")]
    assert slow_links(run) == [(0, 1)]


@pytest.mark.parametrize(
    "question",
    [
        *("breakdown", "communication", "slow_ranks", "slow_links", "slow_groups", "idle", "kernel_totals"),
        "arrival",
    ],
)
def test_text_and_database_of_one_ascend_job_give_the_same_answer(shared: Path, question: str) -> None:
    text, database = (opened(shared / "data" / "ascend" / f"{export}_8rank") for export in EXPORTS)

    answers = [run.analyse(question) for run in (text, database)]

    # Only the database tells when copies were launched, so that a replay moves them.
    costs = answers[0].select(cs.matches("^(cost|saving|alone)_.*") & cs.numeric()).columns
    assert_frame_equal(*(answer.drop(costs) for answer in answers))
    for name in costs:
        assert answers[0][name].to_list() == pytest.approx(answers[1][name].to_list(), rel=0.005)


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("parallel", [(), ("--tp", 2, "--pp", 2)], ids=["dp", "tp2-pp2"])
def test_a_healthy_job_accuses_nobody(shared: Path, tmp_path: Path, export: str, parallel: Sequence[object]) -> None:
    run = generated(shared, tmp_path / "job", "--faults", "none", "--ranks", 16, "--format", export, *parallel)

    assert len(run.ranks) == 16
    assert accused(run) == []
    assert slow_links(run) == []
    assert run.analyse("slow_groups").is_empty()


@pytest.mark.parametrize("steps", [1, 3])
def test_two_slow_ranks_at_once_are_both_found(shared: Path, tmp_path: Path, steps: int) -> None:
    faults = ("--faults", "slow_compute,slow_dispatch", "--slow-compute", "3:1.15", "--slow-dispatch", "5:25")
    run = generated(shared, tmp_path / "job", *faults, "--steps", steps)

    assert accused(run) == [(3, "computing"), (5, "dispatch")]
    assert set(run.analyse("slow_ranks")["steps_late"]) == {steps}
    assert slow_links(run) == []


@pytest.mark.parametrize(
    ("fault", "rank", "kind"),
    [("slow-compute", "1:1.2", (1, "computing")), ("slow-dispatch", "4:30", (4, "dispatch"))],
)
def test_a_rank_that_is_slow_in_the_only_step_is_found(
    shared: Path, tmp_path: Path, fault: str, rank: str, kind: tuple[int, str]
) -> None:
    only = ("--faults", fault.replace("-", "_"), f"--{fault}", rank, "--steps", 1)
    run = generated(shared, tmp_path / "job", *only)

    assert accused(run) == [kind]


@pytest.mark.parametrize("export", EXPORTS)
def test_faults_are_found_through_tensor_and_pipeline_groups(shared: Path, tmp_path: Path, export: str) -> None:
    parallel = ("--tp", 2, "--pp", 2, "--ranks", 16, "--format", export)
    slow = generated(shared, tmp_path / "slow", *parallel, "--faults", "slow_compute,slow_dispatch")
    slow_and_link = generated(shared, tmp_path / "link", *parallel)

    assert accused(slow) == [(2, "dispatch"), (14, "computing")]
    # Behind the link, which takes longer, the slow ranks cost nothing before it is mended.
    assert accused(slow_and_link) == [(2, "dispatch"), (14, "computing")]
    assert slow_links(slow_and_link) == [(0, 1)]
