"""Which recordings form one run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl

from builders import EPOCH_NS, toy_recording
from grouped import S, all_members, at, members
from stepscope.run.jobs import group
from stepscope.store import MemoryRecording


def test_ranks_recorded_at_one_time_are_one_job() -> None:
    (job,) = group(at(f"job/rank{r}.json", 0, rank=r, world_size=4) for r in range(4))

    assert members(job) == {r: f"job/rank{r}.json" for r in range(4)}
    assert (job.name, str(job.path), job.issues) == ("job", "/data/job", [])


def test_clocks_of_hosts_may_differ_by_seconds() -> None:
    assert len(group([at("a/r0.json", 0, rank=0), at("b/r1.json", 9, rank=1)])) == 1
    assert len(group([at("a/r0.json", 0, rank=0), at("b/r1.json", 60, rank=1)])) == 2


def test_unrelated_traces_in_one_folder_are_runs_of_their_own() -> None:
    jobs = group([at(f"single/{name}.json", day * 86400) for day, name in enumerate(["old", "new", "other"])])

    assert [members(job) for job in jobs] == [{0: "single/other.json"}, {0: "single/new.json"}, {0: "single/old.json"}]
    assert [job.name for job in jobs] == ["other", "new", "old"]


def test_other_world_sizes_and_formats_are_other_jobs() -> None:
    found = all_members(
        at("x/a0.json", 0, rank=0, world_size=2),
        at("x/a1.json", 0, rank=1, world_size=2),
        at("x/b0.json", 0, rank=0, world_size=8),
    )
    mixed = group([toy_recording("x/0", "ascend_text", rank=0), toy_recording("x/1", "ascend_db", rank=1)])
    apart = group([toy_recording("x/0", "ascend_text", rank=0), toy_recording("x/1", "kineto", rank=1)])

    assert found == [{0: "x/a0.json", 1: "x/a1.json"}, {0: "x/b0.json"}]
    assert (len(mixed), len(apart)) == (1, 2)


def test_a_rank_that_states_no_world_size_goes_with_those_beside_it() -> None:
    assert all_members(at("x/0.json", 0, rank=0, world_size=2), at("x/1.json", 0, rank=1)) == [
        {0: "x/0.json", 1: "x/1.json"}
    ]


def test_recordings_one_after_the_other_are_runs_one_after_the_other() -> None:
    found = all_members(
        *(at(f"x/rank{r}_step_12.json", r * 0.1, rank=r) for r in range(2)),
        *(at(f"x/rank{r}_step_24.json", 3 + r * 0.1, rank=r) for r in range(2)),
    )

    assert found == [
        {0: "x/rank0_step_24.json", 1: "x/rank1_step_24.json"},
        {0: "x/rank0_step_12.json", 1: "x/rank1_step_12.json"},
    ]


def test_the_kth_recording_belongs_to_the_kth_run_although_clocks_differ() -> None:
    found = all_members(
        at("x/0_a.json", 0, rank=0),
        at("x/0_b.json", 2, rank=0),
        at("x/1_a.json", 5, rank=1),
        at("x/1_b.json", 7, rank=1),
    )

    assert found == [{0: "x/0_b.json", 1: "x/1_b.json"}, {0: "x/0_a.json", 1: "x/1_a.json"}]


def test_a_rank_without_its_first_recording_joins_the_later_run() -> None:
    found = all_members(at("x/0_a.json", 0, rank=0), at("x/0_b.json", 5, rank=0), at("x/1_b.json", 5.1, rank=1))

    assert found == [{0: "x/0_b.json", 1: "x/1_b.json"}, {0: "x/0_a.json"}]


def test_processes_without_a_rank_recorded_twice_are_two_runs() -> None:
    found = all_members(at("x/step_12.json", 0, process=7), at("x/step_24.json", 2, process=7))

    assert found == [{0: "x/step_24.json"}, {0: "x/step_12.json"}]


def test_runs_of_one_name_are_numbered_as_they_are_listed_the_newest_first() -> None:
    newest, oldest = group([at(f"job/{r}_{k}.json", 2 * k, rank=r) for r in range(2) for k in range(2)])

    assert (newest.name, oldest.name) == ("job (1 of 2)", "job (2 of 2)")
    assert newest.newest > oldest.newest


def test_of_a_copied_file_the_newest_is_used_and_the_other_told(tmp_path: Path) -> None:
    for age, name in enumerate(["new.json", "old.json"]):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1000 - age,) * 2)
    facts: dict[str, Any] = {"rank": 1, "start_ns": EPOCH_NS, "end_ns": EPOCH_NS + S}
    recordings = [toy_recording(str(tmp_path / name), **facts) for name in ("old.json", "new.json")]

    (job,) = group(recordings)
    (issue,) = job.issues

    assert [member.recording.path.name for member in job.members] == ["new.json"]
    assert "old.json" in issue.file
    assert "new.json" in issue.problem
    assert "Move" in issue.remedy


def test_rivals_in_one_folder_are_told() -> None:
    (job,) = group([at("x/0.json", 0, rank=0), at("x/0 (1).json", 0.5, rank=0)])

    assert len(job.members) == len(job.issues) == 1


def test_jobs_that_ran_at_one_time_are_told_apart_by_folder() -> None:
    found = all_members(
        *(at(f"jobs/{job}/host{r}/{r}.json", shift, rank=r) for r in range(2) for job, shift in (("a", 0), ("b", 0.5)))
    )

    assert sorted(member[0] for member in found) == ["jobs/a/host0/0.json", "jobs/b/host0/0.json"]
    assert [len(member) for member in found] == [2, 2]


def test_ranks_collected_in_a_folder_per_host_are_one_job() -> None:
    (job,) = group(at(f"job/host{r}/trace.json", 0, rank=r) for r in range(3))

    assert (members(job)[2], job.name) == ("job/host2/trace.json", "job")


def test_ranks_unknown_are_numbered_by_name_among_free_numbers() -> None:
    (job,) = group(
        [
            at("x/w10.json", 0, process=10),
            at("x/w2.json", 0, process=2),
            at("x/w5.json", 0, rank=1, rank_origin="file name"),
        ]
    )

    assert members(job) == {0: "x/w2.json", 1: "x/w5.json", 2: "x/w10.json"}
    assert {m.rank: m.origin for m in job.members} == {0: "numbered", 1: "file name", 2: "numbered"}
    assert sorted((r.severity, r.rank) for r in job.issues) == [("note", 0), ("note", 2)]


def test_recordings_without_times_go_by_folder() -> None:
    found = all_members(*(toy_recording(f"{folder}/{r}.json", rank=r) for folder in "ab" for r in range(2)))

    assert sorted(map(len, found)) == [2, 2]


def test_ranks_without_times_in_folders_of_their_own_are_one_job_if_they_are_all_of_it() -> None:
    def rank(path: str, number: int, world_size: int | None = 2) -> MemoryRecording:
        return toy_recording(f"{path}/profiler", rank=number, world_size=world_size)

    assert all_members(rank("a/device0/data", 0), rank("a/device1/data", 1)) == [
        {0: "a/device0/data/profiler", 1: "a/device1/data/profiler"}
    ]
    two_jobs = [rank(f"{job}/device{number}", number) for job in "ab" for number in (0, 1)]
    assert [sorted(job) for job in all_members(*two_jobs)] == [[0, 1], [0, 1]]
    assert len(all_members(rank("a", 0), rank("b", 0))) == 2
    assert len(all_members(rank("a", 0, 4), rank("b", 1, 4))) == 2
    assert len(all_members(rank("a", 0, None), rank("b", 1, None))) == 2


def test_a_recording_without_times_goes_with_the_only_job_beside_it() -> None:
    beside = [at(f"a/{r}.json", 0, rank=r, world_size=3) for r in range(2)]

    assert len(group([*beside, toy_recording("a/2.json", rank=2, world_size=3)])) == 1
    assert len(group([*beside, toy_recording("b/2.json", rank=2, world_size=3)])) == 2
    assert len(group([*beside, at("a/x.json", 99, rank=0, world_size=3), toy_recording("a/2.json", rank=2)])) == 3


def test_ranks_that_are_not_here_are_told() -> None:
    (job,) = group(at(f"x/{r}.json", 0, rank=r, world_size=128) for r in range(2))

    assert [(r.severity, r.problem) for r in job.issues] == [("note", "2 of the job's 128 ranks are here")]


def test_thousands_of_ranks_are_grouped_quickly() -> None:
    (job,) = group(at(f"job/{r}.json", 0, rank=r, world_size=4096) for r in range(4096))

    assert len(job.members) == 4096


def test_a_last_recording_that_holds_no_work_does_not_hide_the_one_before() -> None:
    """As a profiler leaves that its schedule had just begun anew when training ended."""
    first, last = at("a/1.json", 0), at("a/2.json", 60)
    first.rows = {"steps": 1, "operators": 1}
    last.rows = {"steps": 1}

    assert all_members(last, first) == [{0: "a/1.json"}, {0: "a/2.json"}]


def test_captures_of_a_job_come_after_its_light_records() -> None:
    light = [at(f"job/{rank}", 0, 60, source="light", rank=rank, world_size=2) for rank in (0, 1)]
    captures = []
    for rank in (0, 1):
        path = f"job/{rank}/captures/c1/recording/r"
        made = at(path, 61, source="recording", rank=rank, world_size=2)
        frames = {"operators": pl.DataFrame({"rank": [rank] * 9})}
        captures.append(MemoryRecording(made.source, made.path, made.files, made.facts, frames))

    first, second = group([*captures, *light])

    assert members(first) == {0: "job/0", 1: "job/1"}
    assert members(second)[0] == "job/0/captures/c1/recording/r"
    assert first.issues == []
