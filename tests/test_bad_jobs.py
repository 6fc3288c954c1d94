"""Jobs with a rank missing, twice, shorter, of another job or by another clock: told, and nobody wrongly accused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import test_agree
from test_agree import COMPUTES_SLOWLY, DISPATCHES_LATE, RANKS
from test_classic_legacy import cluster, table

from stepscope import Run, open_run, open_runs
from stepscope.advice import advise
from traces import RankTrace, write_kineto

HOUR_NS = 3600 * 10**9
OTHER = 3
"""A rank that is not slow."""

FORMATS: Mapping[str, Callable[[Path, RankTrace], object]] = {
    "kineto": write_kineto,
    "ascend_text": test_agree.write_text,
    "ascend_db": test_agree.write_database,
}


def written(folder: Path, form: str, traces: Sequence[RankTrace]) -> Run:
    """The first run of what these ranks recorded."""
    for trace in traces:
        FORMATS[form](folder, trace)
    return open_run(folder)


def accused(run: Run) -> set[int]:
    """Ranks that findings call slow."""
    return {int(rank) for text in run.analyse("slow_ranks")["ranks"] for rank in text.split(", ")}


def warnings(run: Run) -> list[tuple[str, str]]:
    """File and problem of each warning."""
    return run.issues.filter(severity="warning").select("file", "problem").rows()


@pytest.fixture(params=sorted(FORMATS))
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_whole_job_has_no_warning(tmp_path: Path, form: str) -> None:
    run = written(tmp_path, form, test_agree.job())

    assert accused(run) == {COMPUTES_SLOWLY, DISPATCHES_LATE}
    assert warnings(run) == []


def test_a_missing_rank_is_named_and_nobody_takes_its_blame(tmp_path: Path, form: str) -> None:
    run = written(tmp_path, form, [trace for trace in test_agree.job() if trace.rank != COMPUTES_SLOWLY])

    assert accused(run) <= {DISPATCHES_LATE}
    ((file, problem),) = warnings(run)
    assert Path(file).name == tmp_path.name
    assert problem == f"3 of the job's 4 ranks are here; rank {COMPUTES_SLOWLY} is missing"


def test_a_rank_that_is_there_twice_counts_once(tmp_path: Path, form: str) -> None:
    written(tmp_path, form, test_agree.job())
    (own,) = (
        path for path in tmp_path.iterdir() if f"-{OTHER}." in path.name or path.name.endswith(f"{OTHER}_ascend_pt")
    )
    again = tmp_path / "copy" / own.name
    if own.is_dir():
        shutil.copytree(own, again)
    else:
        again.parent.mkdir()
        shutil.copy(own, again)

    run = open_run(tmp_path)

    assert [rank.rank for rank in run.ranks] == list(range(RANKS))
    assert accused(run) == {COMPUTES_SLOWLY, DISPATCHES_LATE}
    ((_, problem),) = warnings(run)
    assert problem.startswith("records the same rank and time as ")


def test_a_rank_with_fewer_steps_is_named(tmp_path: Path, form: str) -> None:
    traces = test_agree.job()
    (_, last), end = traces[OTHER].steps[-1], traces[OTHER].steps[-2][1].end_ns
    assert last.start_ns >= end
    traces[OTHER] = replace(
        traces[OTHER],
        steps=traces[OTHER].steps[:-1],
        operators=[span for span in traces[OTHER].operators if span.end_ns <= end],
        runtime=[span for span in traces[OTHER].runtime if span.end_ns <= end],
        work=[work for work in traces[OTHER].work if work.end_ns <= end],
    )

    run = written(tmp_path, form, traces)

    assert accused(run) <= {COMPUTES_SLOWLY, DISPATCHES_LATE}
    assert COMPUTES_SLOWLY in accused(run)
    ((_, problem),) = warnings(run)
    assert problem.startswith(f"rank {OTHER} has 2 steps, most others have 3;")


@pytest.mark.parametrize("late", [{2, 3}, {OTHER}])
def test_clocks_an_hour_apart_are_one_job(tmp_path: Path, form: str, late: set[int]) -> None:
    traces = [trace.shifted(HOUR_NS) if trace.rank in late else trace for trace in test_agree.job()]

    run = written(tmp_path, form, traces)

    assert [rank.rank for rank in run.ranks] == list(range(RANKS))
    assert run.others == []
    assert accused(run) == {COMPUTES_SLOWLY, DISPATCHES_LATE}
    ((_, problem),) = warnings(run)
    named = "rank 3 is" if late == {OTHER} else "ranks 2-3 is"
    assert problem.startswith(f"the clock of {named} 3600 s ahead of that of ranks 0-{1 if late == {2, 3} else 2}")


def test_a_rank_of_another_job_is_not_compared(tmp_path: Path, form: str) -> None:
    """It states another number of ranks, at the same time, in the folder of the job."""
    traces = test_agree.job()
    traces[OTHER] = replace(traces[OTHER], world_size=8, groups={"0": range(8)})

    run = written(tmp_path, form, traces)

    assert [rank.rank for rank in run.ranks] == [0, 1, 2]
    assert accused(run) <= {COMPUTES_SLOWLY, DISPATCHES_LATE}
    problems = [problem for _, problem in warnings(run)]
    assert f"rank {OTHER} states a job of 8 ranks, the others one of 4, so it is not a part of this run" in problems


def test_ranks_that_recorded_other_sizes_are_reported(tmp_path: Path) -> None:
    for trace in test_agree.job():
        test_agree.write_text(tmp_path, trace)
    for metadata in tmp_path.glob("*/profiler_metadata.json"):
        content = json.loads(metadata.read_text())
        is_other = f"{OTHER}_ascend_pt" in metadata.parent.name
        content["distributed_args"] |= {"tensor_model_parallel_size": 4 if is_other else 2}
        metadata.write_text(json.dumps(content))

    run = open_run(tmp_path)

    ((_, problem),) = warnings(run)
    assert problem == (
        f"rank {OTHER} recorded other parallel sizes than most others (cp=1 pp=1 tp=4, not cp=1 pp=1 tp=2), so it may "
        "be of another job"
    )
    assert accused(run) == {COMPUTES_SLOWLY, DISPATCHES_LATE}


# Classic profiles, which have no times of the epoch


STEP_TRACE = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"


def step_trace(steps: int, slow: int = 0) -> str:
    """Steps of 1 ms (and more) in ticks of 10 ns, with their mean."""
    length = 100_000 + slow
    rows = [
        (n + 1, n * length, (n + 1) * length, length, n * length, (n + 1) * length - 1000, 0, length - 1000, 1000)
        for n in range(steps)
    ]
    mean = ("-", 0, 0, length, 0, 0, 0, length - 1000, 1000)
    return STEP_TRACE + "".join(",".join(map(str, row)) + "\n" for row in (*rows, mean))


def classic(folder: Path, rank: int, world: int = 4, steps: int = 5) -> None:
    """The files of one rank."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"step_trace_raw_{rank}_detail_time.csv").write_text(step_trace(steps))
    info = {"rank_id": str(rank), "rank_size": world, "ms_version": "2.3.1", "context_mode": "graph"}
    (folder / f"profiler_info_{rank}.json").write_text(json.dumps(info))


def test_a_missing_rank_of_a_flat_profile_is_named(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        classic(tmp_path / "profiler", rank)

    ((_, problem),) = warnings(open_run(tmp_path))

    assert problem == "3 of the job's 4 ranks are here; rank 2 is missing"


@pytest.mark.parametrize("name", ["device{}", "rank_{}/data", "node-{}"])
def test_folders_of_ranks_are_one_job_although_one_is_missing(tmp_path: Path, name: str) -> None:
    for rank in (0, 1, 3):
        classic(tmp_path / name.format(rank) / "profiler", rank)

    (run,) = open_runs(tmp_path)

    assert [rank.rank for rank in run.ranks] == [0, 1, 3]
    assert [problem for _, problem in warnings(run)] == ["3 of the job's 4 ranks are here; rank 2 is missing"]


def test_folders_that_are_not_numbered_as_the_ranks_stay_apart(tmp_path: Path) -> None:
    for name, rank in (("run1", 0), ("run2", 3), ("run7", 1)):
        classic(tmp_path / name / "profiler", rank)

    assert len(open_runs(tmp_path)) == 3


def test_a_rank_of_a_flat_profile_with_fewer_steps_or_of_another_job_is_named(tmp_path: Path) -> None:
    for rank in range(3):
        classic(tmp_path / "short" / "profiler", rank, world=3, steps=5 if rank else 3)
        classic(tmp_path / "other" / "profiler", rank, world=3 if rank else 8)

    short, other = (open_run(tmp_path / name) for name in ("short", "other"))

    assert warnings(short)[0][1].startswith("rank 0 has 3 steps, most others have 5;")
    told = "rank 0 states a job of 8 ranks, the others one of 3, so it is not a part of this run"
    assert told in [problem for _, problem in warnings(other)]
    assert {f.rule for f in advise(short)} == set()


def test_several_ranks_with_fewer_steps_are_told_in_one_sentence(tmp_path: Path) -> None:
    for rank in range(5):
        classic(tmp_path / "profiler", rank, world=5, steps=5 if rank > 1 else 3)

    assert warnings(open_run(tmp_path))[0][1].startswith("ranks 0-1 have 3 steps, most others have 5;")


def test_a_flat_profile_and_the_directories_of_its_ranks_count_each_rank_once(tmp_path: Path) -> None:
    """As MindSpore 2.3 leaves them: the directories of the ranks say more; the flat files are a run of their own."""
    for trace in test_agree.job():
        classic(tmp_path / "run" / "profiler", trace.rank)
        test_agree.write_text(tmp_path / "run" / "profiler", trace)
    for own in (tmp_path / "run" / "profiler").glob("host_*_ascend_pt"):
        own.rename(own.with_name(own.name.replace("_pt", "_ms")))

    run = open_run(tmp_path)

    assert [(rank.rank, rank.facts["format"]) for rank in run.ranks] == [(rank, "ascend_text") for rank in range(RANKS)]
    assert accused(run) == {COMPUTES_SLOWLY, DISPATCHES_LATE}
    assert [other.ranks[0].facts["format"] for other in run.others] == ["classic"]
    assert run.issues["problem"].str.contains("files of the same ranks, which are a run of their own").any()


def test_two_flat_profiles_side_by_side_are_two_jobs(tmp_path: Path) -> None:
    for rank in range(4):
        classic(tmp_path / "profiler", rank)
        classic(tmp_path / "profiler_again", rank, steps=7)

    runs = open_runs(tmp_path)

    assert sorted(len(run.steps) for run in runs) == [5, 7]
    assert [len(run.ranks) for run in runs] == [4, 4]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"rank_id": "7"', '"rank_id": "5"'), "gives rank 5 to another device as well"),
        (('{"device_id": "1", "rank_id": "7"}', ""), "does not list device 1 of host 2"),
        (("10.0.0.2", "10.0.0.9"), "does not list host 2"),
    ],
)
def test_a_rank_table_that_contradicts_the_files_is_reported(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    text = table().replace(*change).replace(", ]", "]")

    run = open_run(cluster(tmp_path / "run", {"hccl.json": text}))

    found = [(file, told) for file, told in warnings(run) if problem in told]
    assert found
    assert all(file.endswith("cluster_profiler/2/profiler") for file, _ in found)
    assert len(run.ranks) == 4


def flat_with_table(folder: Path, count: int) -> Run:
    """A flat profile of ranks 0 to 3 with a table of so many ranks beside it."""
    devices = [{"device_id": str(n), "device_ip": f"10.1.0.{n}", "rank_id": str(n)} for n in range(count)]
    folder.mkdir()
    (folder / "hccl.json").write_text(json.dumps({"server_list": [{"server_id": "node-a", "device": devices}]}))
    for rank in range(4):
        classic(folder / "profiler", rank)
    return open_run(folder)


def test_a_rank_table_beside_a_flat_profile_gives_hosts_and_devices_unless_it_is_of_another_job(tmp_path: Path) -> None:
    right, wrong = (flat_with_table(tmp_path / f"job{count}", count) for count in (4, 8))

    columns = ["rank", "host", "device", "nic", "place_by"]
    assert right.analyse("parallel_layout").select(columns).row(2) == (2, "node-a", 2, "10.1.0.2", "rank table")
    assert warnings(right) == []
    assert wrong.analyse("parallel_layout").select(columns).row(2) == (2, None, None, None, None)
    told = "lists 8 ranks, but the job has 4, so it is not used: host and device stay unknown"
    assert warnings(wrong) == [(str(tmp_path / "job8" / "hccl.json"), told)] * 4
    assert wrong.unread == []
