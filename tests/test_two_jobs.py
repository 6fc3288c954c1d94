"""Two jobs of one size at one time in one folder: their groups tell them apart, and sound jobs stay whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import test_agree

from stepscope import Run, open_runs
from test_bad_jobs import warnings
from traces import EPOCH_NS, write_kineto

ALL = range(test_agree.RANKS)
PAIRS = {rank: {"0": ALL, f"tp{rank // 2}": [rank // 2 * 2, rank // 2 * 2 + 1]} for rank in ALL}
"""Groups of each rank: of all ranks, and pairs of neighbours."""


def opened(folder: Path, form: str, groups: Mapping[int, Mapping[str, Sequence[int]]], factor: int = 1) -> list[Run]:
    """Runs of the job whose ranks list these groups; the last two have steps that are shorter by a factor."""
    for recorded in test_agree.job():
        scale = factor if recorded.rank > 1 else 1
        steps = [
            (
                n,
                replace(
                    span, start_ns=EPOCH_NS + (span.start_ns - EPOCH_NS) // scale, duration_ns=span.duration_ns // scale
                ),
            )
            for n, span in recorded.steps
        ]
        trace = replace(recorded, steps=steps, groups={"0": ALL, **groups[recorded.rank]})
        if form == "kineto":
            write_kineto(folder, trace)
            continue
        test_agree.write_text(folder, trace)
        (metadata,) = folder.glob(f"*{trace.rank}_ascend_pt/profiler_metadata.json")
        info = {name: {"group_name": "", "global_ranks": list(ranks)} for name, ranks in trace.groups.items()}
        metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "parallel_group_info": info}))
    return open_runs(folder)


@pytest.fixture(params=["kineto", "ascend_text"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("stray", ALL)
def test_a_rank_whose_groups_contradict_the_others_is_a_run_of_its_own(tmp_path: Path, form: str, stray: int) -> None:
    run, other = opened(tmp_path, form, {**PAIRS, stray: {"other": [rank for rank in ALL if rank != (stray + 2) % 4]}})

    assert [rank.rank for rank in run.ranks] == [rank for rank in ALL if rank != stray]
    assert [rank.rank for rank in other.ranks] == [stray]
    ((_, problem), (_, missing)) = warnings(run)
    assert problem.startswith(f"rank {stray} is of another job than ranks ")
    assert "which rank " in problem
    assert missing == f"3 of the job's 4 ranks are here; rank {stray} is missing"


def test_halves_of_two_jobs_are_two_runs_if_their_steps_differ(tmp_path: Path) -> None:
    groups = {**PAIRS, 2: {**PAIRS[2], "pp0": [0, 2]}, 3: {**PAIRS[3], "pp1": [1, 3]}}

    runs = opened(tmp_path, "kineto", groups, factor=2)

    assert [[rank.rank for rank in run.ranks] for run in runs] == [[0, 1], [2, 3]]
    problem = (
        "ranks 2-3 are of another job than ranks 0-1 by the process groups (rank 2 lists a group of ranks 0,2 which "
        "rank 0 lacks), so each job is a run of its own"
    )
    assert all(problem in [text for _, text in warnings(run)] for run in runs)


SOUND = {
    "whole": PAIRS,
    "not all list groups": {**PAIRS, 2: {}},
    "a group that one rank has not called": {**PAIRS, 0: {**PAIRS[0], "pp": [0, 2]}},
}


@pytest.mark.parametrize("case", SOUND)
def test_sound_jobs_stay_whole(tmp_path: Path, form: str, case: str) -> None:
    (run,) = opened(tmp_path, form, SOUND[case])

    assert [rank.rank for rank in run.ranks] == list(ALL)
    assert warnings(run) == []
