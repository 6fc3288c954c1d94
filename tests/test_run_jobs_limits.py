"""Where recordings stop being of one run: limits, ties and what is unknown of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from builders import EPOCH_NS, toy_recording
from grouped import S, all_members, at, members
from stepscope.run.job import Job
from stepscope.run.jobs import BARE, group
from stepscope.store import MemoryRecording


def untimed(path: str, rank: int | None = None, **facts: Any) -> MemoryRecording:
    """A recording without times."""
    return toy_recording(path, rank=rank, **facts)


def with_rows(recording: MemoryRecording, rows: int, table: str = "kernels") -> MemoryRecording:
    recording.rows = {table: rows}
    return recording


def written(recording: MemoryRecording, *times_s: int, folder: Path) -> MemoryRecording:
    """Give a recording files that were written at some times."""
    files = []
    for number, time_s in enumerate(times_s):
        file = folder / f"{len(list(folder.iterdir()))}_{number}"
        file.touch()
        os.utime(file, (time_s, time_s))
        files.append(file)
    recording.files = tuple(files)
    return recording


def used(*recordings: MemoryRecording) -> list[str]:
    """The paths of all members of all runs."""
    return sorted(str(m.recording.path.relative_to("/data")) for job in group(recordings) for m in job.members)


def problems(job: Job) -> list[tuple[str, str, str, str, int | None]]:
    return [(one.severity, one.file, one.problem, one.remedy, one.rank) for one in job.issues]


# Together in time


def test_a_recording_that_starts_within_ten_seconds_after_the_others_end_is_of_their_job() -> None:
    first = at("a/0", 0, length_s=1, rank=0)

    assert len(group([first, at("b/1", 11, rank=1)])) == 1
    assert len(group([first, at("b/1", 11.000000001, rank=1)])) == 2


def test_processes_without_a_rank_after_one_another_are_runs_of_their_own() -> None:
    first = at("a/0", 0, length_s=1, process=7, host="vm")

    assert len(group([first, at("b/1", 0.9, process=8, host="vm")])) == 1
    assert len(group([first, at("b/1", 1.1, process=8, host="vm")])) == 2


def test_ranks_of_a_size_that_are_more_than_a_day_apart_are_no_job() -> None:
    first = at("a/0", 0, rank=0, world_size=2)

    assert len(group([first, at("b/1", 86_400, rank=1, world_size=2)])) == 1
    assert len(group([first, at("b/1", 86_401, rank=1, world_size=2)])) == 2


@pytest.mark.parametrize("days", [0, 3])
def test_ranks_of_hosts_whose_clocks_count_from_their_start_are_a_job(days: int) -> None:
    zero = -EPOCH_NS / S
    others = at("b/1", zero + days * 86_400 + 7_200, rank=1, world_size=2)

    assert len(group([at("a/0", zero + 3_600, rank=0, world_size=2), others])) == 1
    assert len(group([at("a/0", 0, rank=0, world_size=2), others])) == 1


def test_a_long_recording_keeps_those_together_that_start_while_it_lasts() -> None:
    ranks = [at("a/0", 0, length_s=100, rank=0), at("a/1", 1, rank=1), at("a/2", 50, rank=2)]

    assert len(group(ranks)) == 1
    assert len(group(ranks[::-1])) == 1


def test_a_recording_without_any_name_gets_no_slack() -> None:
    first = at("x/0", 0)

    assert len(group([first, at("x/1", 1)])) == 1
    assert len(group([first, at("x/1", 1.000000001)])) == 2


def test_recordings_without_any_name_are_of_one_job_in_one_folder_only() -> None:
    assert len(group([at("x/0", 0), at("x/1", 0)])) == 1
    assert len(group([at("x/0", 0), at("y/1", 0)])) == 2


def test_processes_are_of_one_job_over_folders() -> None:
    assert len(group([at("x/0", 0, process=1), at("y/1", 0, process=2)])) == 1


def test_a_recording_of_which_only_the_start_or_the_end_is_known_has_no_times() -> None:
    ranks = [at("x/0", 0, rank=0), at("y/1", 0, rank=1)]

    assert len(group(ranks)) == 1
    for unknown in ("start_ns", "end_ns"):
        partly = at("y/1", 0, rank=1)
        partly.facts = {**partly.facts, unknown: None}
        assert len(group([ranks[0], partly])) == 2


# What they state


def test_a_rank_that_states_no_world_size_stays_alone_beside_ranks_of_two_sizes() -> None:
    sizes = [at("x/a", 0, rank=0, world_size=2), at("x/b", 0, rank=0, world_size=4)]

    assert [len(job.members) for job in group([*sizes, at("x/c", 0, rank=1)])] == [1, 1, 1]


@pytest.mark.parametrize("elsewhere", [("y/0", "toy"), ("x/0", "kineto")])
def test_a_rank_that_states_no_world_size_learns_it_from_its_own_folder_and_format_only(elsewhere) -> None:
    sized = toy_recording(*elsewhere, rank=0, world_size=2, start_ns=EPOCH_NS, end_ns=EPOCH_NS + S)

    assert len(group([sized, at("x/1", 0, rank=1)])) == 2


def test_a_stated_world_size_counts_beside_recordings_of_another() -> None:
    found = all_members(at("x/a0", 0, rank=0, world_size=2), at("x/b1", 0, rank=1, world_size=3))

    assert found == [{0: "x/a0"}, {1: "x/b1"}]


def test_ranks_are_taken_as_stated_in_content_unless_another_origin_is_known() -> None:
    (job,) = group([at("x/0", 0, rank=0), at("x/1", 0, rank=1, rank_origin="file name")])

    assert {member.rank: member.origin for member in job.members} == {0: "content", 1: "file name"}


def test_a_single_recording_without_a_rank_is_rank_0_without_a_word() -> None:
    (job,) = group([at("x/trace.json", 0)])

    assert ([(m.rank, m.origin) for m in job.members], job.issues) == ([(0, "numbered")], [])


def test_each_of_several_recordings_without_a_rank_is_reported_with_its_number() -> None:
    (job,) = group([at("x/w10", 0, process=10), at("x/w2", 0.5, process=2)])

    remedy = "Record after torch.distributed is initialised, or name the file like rank-0.json"
    assert problems(job) == [
        ("note", "/data/x/w2", "states no rank; it is called 0 by the order of file names", remedy, 0),
        ("note", "/data/x/w10", "states no rank; it is called 1 by the order of file names", remedy, 1),
    ]


def test_a_job_with_all_its_ranks_lacks_none() -> None:
    (job,) = group(at(f"x/{rank}", 0, rank=rank, world_size=2) for rank in range(2))

    assert job.issues == []


def test_missing_ranks_are_reported() -> None:
    remedy = "Open the recordings of all ranks together to compare them"

    (one,) = group([at("x/0.json", 0, rank=0, world_size=3)])
    assert problems(one) == [("note", "/data/x/0.json", "1 of the job's 3 ranks is here", remedy, None)]

    (two,) = group(at(f"x/{rank}", 0, rank=rank, world_size=3) for rank in range(2))
    told = "2 of the job's 3 ranks are here; rank 2 is missing"
    assert problems(two) == [("warning", "/data/x", told, remedy, None)]

    (few,) = group(at(f"x/{rank}", 0, rank=rank, world_size=5) for rank in range(2))
    assert problems(few) == [("note", "/data/x", "2 of the job's 5 ranks are here", remedy, None)]


def test_different_numbers_of_steps_are_reported_if_most_ranks_share_none() -> None:
    (job,) = group(with_rows(at(f"x/{rank}", 0, rank=rank), count, "steps") for rank, count in enumerate((2, 2, 3, 4)))

    told = "ranks have different numbers of steps, 2 (ranks 0-1) to 4 (rank 3), so their means cover different steps"
    remedy = "Copy the files again if all recordings should be equally long"
    assert problems(job) == [("warning", "/data/x/0", told, remedy, None)]


# Copies: the same rank and the very same window


@pytest.mark.parametrize("who", [{"rank": 1}, {"process": 7}, {"process": 7, "host": "a"}])
def test_of_copies_the_newest_is_used(tmp_path, who) -> None:
    old, new = (written(at(f"x/{t}", 0, **who), t, folder=tmp_path) for t in (1, 2))

    for order in ([old, new], [new, old]):
        (job,) = group(order)
        assert [str(m.recording.path) for m in job.members] == ["/data/x/2"]
        assert problems(job) == [
            (
                "warning",
                "/data/x/1",
                "records the same rank and time as /data/x/2, which is newer or more complete and was used",
                "Move one of the two elsewhere, or open each by itself",
                who.get("rank"),
            )
        ]


def test_of_two_processes_that_write_light_records_into_one_directory_the_advice_can_be_followed() -> None:
    one, other = (at("job/0", start, rank=0, process=process) for start, process in ((0, 7), (0, 8)))
    one.source = other.source = "light"

    (job,) = group([one, other])

    assert len(job.members) == 1
    told = "two processes have written there at the same time; that with newer or more complete records was used"
    remedy = "If they are of two jobs, give one of these another MINDX_TASK_ID or STEPSCOPE_LIVE_DIR"
    assert problems(job) == [("warning", "/data/job/0", told, remedy, 0)]


def test_a_recording_is_as_new_as_its_newest_file(tmp_path) -> None:
    one = written(at("x/1", 0, rank=0), 1, 9, 2, folder=tmp_path)
    other = written(at("x/2", 0, rank=0), 5, 6, 7, folder=tmp_path)

    assert used(one, other) == ["x/1"]


def test_files_that_are_gone_do_not_make_a_recording_older(tmp_path) -> None:
    one, other = at("x/1", 0, rank=0), written(at("x/2", 0, rank=0), 5, folder=tmp_path)
    one.files = (tmp_path / "gone", *written(one, 9, folder=tmp_path).files)

    assert used(other, one) == ["x/1"]


def test_of_copies_the_newest_is_used_even_if_it_holds_less(tmp_path) -> None:
    old = with_rows(written(at("x/1", 0, rank=0), 1, folder=tmp_path), 100)
    new = with_rows(written(at("x/2", 0, rank=0), 2, folder=tmp_path), 1)

    assert used(old, new) == ["x/2"]


def test_copies_in_two_folders_are_two_runs() -> None:
    jobs = group([at("a/0", 0, rank=0), at("b/0", 0, rank=0)])

    assert [(str(job.path), job.issues) for job in jobs] == [("/data/a/0", []), ("/data/b/0", [])]


def test_a_copied_run_is_a_run_whatever_was_changed_in_it() -> None:
    """Neither takes ranks from the other, also where ranks have folders of their own."""
    whole = [at(f"job/{rank}/profile", 0, rank=rank) for rank in range(4)]
    without = [at(f"old/job/{rank}/profile", 0, rank=rank) for rank in (0, 1, 3)]
    shifted = [at(f"shifted/{rank}", rank // 2, rank=rank) for rank in range(4)]

    found = {str(job.path): [member.rank for member in job.members] for job in group([*without, *whole, *shifted])}

    assert found == {"/data/job": [0, 1, 2, 3], "/data/old/job": [0, 1, 3], "/data/shifted": [0, 1, 2, 3]}


def test_copies_of_hosts_are_one_copy_of_the_job() -> None:
    hosts = [at(f"host{rank // 2}/{rank}", 0, rank=rank) for rank in range(4)]
    copies = [at(f"saved/host{rank // 2}/{rank}", 0, rank=rank) for rank in range(4)]

    assert [len(job.members) for job in group([*hosts, *copies])] == [4, 4]


def test_a_copied_folder_of_one_rank_beside_those_of_others_is_left_out(tmp_path) -> None:
    ranks = [written(at(f"x/device{rank}/profile", 0, rank=rank), 1, folder=tmp_path) for rank in range(3)]
    copy = written(at("x/device1 (copy)/profile", 0, rank=1), 0, folder=tmp_path)

    (job,) = group([*ranks, copy])

    assert [member.recording for member in job.members] == ranks
    assert [(issue.file, issue.rank) for issue in job.issues] == [("/data/x/device1 (copy)/profile", 1)]


def test_a_copy_is_reported_with_the_job_that_it_is_a_copy_of() -> None:
    jobs = group([*(at(f"x/{r}", 0, rank=r) for r in (0, 1)), at("x/copy", 0, rank=0), at("x/later", 99, rank=0)])

    assert [len(job.issues) for job in jobs] == [1, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"process": 7, "host": "a"}, {"process": 7, "host": "b"}),
        ({"process": 7}, {"process": 8}),
        ({"rank": 7}, {"rank": 8}),
        ({"rank": 7}, {"process": 7}),
        ({}, {}),
    ],
)
def test_recordings_with_the_same_window_are_no_copies_if_they_may_be_of_two_ranks(one, other) -> None:
    (job,) = group([at("x/0", 0, **one), at("x/1", 0, **other)])

    assert len(job.members) == 2


@pytest.mark.parametrize("different", [{"world_size": 2}, {"source": "kineto"}])
def test_recordings_with_the_same_rank_and_window_are_no_copies_if_they_are_of_two_jobs(different) -> None:
    one = at("x/0", 0, rank=0, world_size=4)
    other = at("x/1", 0, rank=0, world_size=different.get("world_size", 4))
    other.source = different.get("source", "toy")

    assert used(one, other) == ["x/0", "x/1"]


@pytest.mark.parametrize("window", [(0.0, 1.5), (0.5, 0.5)])
def test_recordings_of_a_rank_with_another_start_or_end_are_no_copies(tmp_path, window) -> None:
    """So the newest is not used if it was cut short."""
    old = with_rows(written(at("x/1", 0, 1.0, rank=0), 1, folder=tmp_path), 100)
    new = with_rows(written(at("x/2", *window, rank=0), 2, folder=tmp_path), 1)

    assert used(old, new) == ["x/1"]


# The same rank at the same time


def overlapping(folder: Path, *rows: int, path: str = "x/{}") -> list[MemoryRecording]:
    """Recordings of one rank at the same time with so many rows, each newer than the one before."""
    return [
        with_rows(written(at(path.format(k), k * 0.01, rank=0), k + 1, folder=folder), count)
        for k, count in enumerate(rows)
    ]


def test_of_two_recordings_at_the_same_time_the_newer_is_used_unless_it_was_cut_short(tmp_path) -> None:
    assert used(*overlapping(tmp_path, 10, 9)) == ["x/1"]
    assert used(*overlapping(tmp_path, 10, 8)) == ["x/0"]
    assert used(*overlapping(tmp_path, 10, 9)[::-1]) == ["x/1"]


def test_rows_of_all_tables_count(tmp_path) -> None:
    old, new = overlapping(tmp_path, 10, 5)
    new.rows = {**new.rows, "operators": 5}

    assert used(old, new) == ["x/1"]


def test_the_newer_file_counts_not_the_later_start(tmp_path) -> None:
    first, second = at("x/0", 0, rank=0), at("x/1", 0.5, rank=0)

    assert used(written(first, 9, folder=tmp_path), written(second, 1, folder=tmp_path)) == ["x/0"]


def test_the_newer_file_was_cut_short_also_if_it_starts_earlier(tmp_path) -> None:
    newer = with_rows(written(at("x/0", 0, rank=0), 9, folder=tmp_path), 1)
    older = with_rows(written(at("x/1", 0.5, rank=0), 1, folder=tmp_path), 100)

    assert used(newer, older) == ["x/1"]


def test_of_several_recordings_at_the_same_time_one_is_used_and_each_other_reported(tmp_path) -> None:
    (job,) = group(overlapping(tmp_path, 10, 10, 10))

    assert [str(m.recording.path) for m in job.members] == ["/data/x/2"]
    assert [issue.file for issue in job.issues] == ["/data/x/0", "/data/x/1"]


def test_of_several_recordings_the_newest_that_was_not_cut_short_is_used(tmp_path) -> None:
    (job,) = group(overlapping(tmp_path, 100, 95, 88))

    assert [str(m.recording.path) for m in job.members] == ["/data/x/1"]
    assert sorted(issue.file for issue in job.issues) == ["/data/x/0", "/data/x/2"]
    assert all("/data/x/1" in issue.problem for issue in job.issues)


def test_a_recording_gives_way_only_to_one_that_is_used(tmp_path) -> None:
    """The second is newer than the first and gives way to the third, which begins after the first has ended."""
    starts = ((0, 1), (0.5, 2), (2, 1))
    chain = [
        written(at(f"x/{k}", start, length_s=length, rank=0), k + 1, folder=tmp_path)
        for k, (start, length) in enumerate(starts)
    ]

    runs = group(chain)

    assert sorted(path for run in runs for path in members(run).values()) == ["x/0", "x/2"]
    assert [issue.file for run in runs for issue in run.issues] == ["/data/x/1"]
    assert ["/data/x/2" in issue.problem for run in runs for issue in run.issues] == [True]


def test_a_recording_across_two_others_displaces_neither_once_it_is_not_used(tmp_path) -> None:
    long = written(untimed("x/long", 0), 2, folder=tmp_path)
    before = written(at("x/before", 0, rank=0), 3, folder=tmp_path)
    after = written(at("x/after", 5, rank=0), 1, folder=tmp_path)

    assert used(before, after, long) == ["x/after", "x/before"]


def test_a_recording_of_no_length_is_before_one_that_starts_then() -> None:
    for lengths in ((0, 1), (1, 0)):
        assert len(used(*(at(f"x/{k}", 0, length_s=length, rank=0) for k, length in enumerate(lengths)))) == 2


def test_a_recording_that_starts_when_the_one_before_ends_is_the_next_run() -> None:
    first, second = at("x/0", 0, rank=0), at("x/1", 1, rank=0)

    assert all_members(first, second) == all_members(second, first) == [{0: "x/1"}, {0: "x/0"}]
    assert len(group([first, at("x/1", 0.999, rank=0)])) == 1


def test_recordings_of_a_rank_without_times_are_taken_to_be_of_the_same_time() -> None:
    assert len(used(untimed("x/0", 0), untimed("x/1", 0))) == 1
    assert len(used(at("x/0", 0, rank=0), untimed("x/1", 0))) == 1


def test_what_is_not_used_is_reported_with_the_first_run() -> None:
    runs = group([at("x/a", 0, rank=0), at("x/a2", 0.5, rank=0), at("x/b", 5, rank=0)])

    assert [(members(run), len(run.issues)) for run in runs] == [({0: "x/b"}, 0), ({0: "x/a2"}, 1)]


# Jobs at the same time in several folders


def test_two_ranks_twice_in_two_folders_are_two_jobs_though_the_folders_lie_deeper() -> None:
    found = all_members(*(at(f"all/{job}/{rank}/t", job == "b", rank=rank) for job in "ab" for rank in range(2)))

    assert sorted(sorted(run.values()) for run in found) == [
        ["all/a/0/t", "all/a/1/t"],
        ["all/b/0/t", "all/b/1/t"],
    ]


def test_folders_are_split_only_where_that_parts_recordings_of_one_rank() -> None:
    """Rank 0 was recorded twice in folder a: that makes no job of its own of folder b."""
    (job,) = group([at("x/a/0", 0, rank=0), at("x/a/0b", 0.5, rank=0), at("x/b/1", 0, rank=1)])

    assert (len(job.members), len(job.issues)) == (2, 1)


def test_a_folder_is_split_if_it_parts_some_recordings_of_one_rank_though_not_all() -> None:
    twice = [at("x/a/0", 0, rank=0), at("x/a/0b", 0.5, rank=0)]

    assert len(group([*twice, at("x/b/0", 0.2, rank=0)])) == 2


def test_jobs_in_folders_of_folders_are_split_again() -> None:
    recordings = [at(f"x/{job}/0", number * 0.1, rank=0) for number, job in enumerate(["a/a", "a/b", "b"])]

    assert len(group(recordings)) == 3


def test_a_recording_beside_a_folder_of_another_is_a_job_of_its_own() -> None:
    assert len(group([at("x/0", 0, rank=0), at("x/other/0", 0.5, rank=0)])) == 2


# Runs one after the other


def test_recordings_go_to_the_run_nearest_in_time_that_has_none_of_their_rank() -> None:
    every = [at(f"x/0_{start}", start, rank=0) for start in (0, 5, 10)]
    some = [at("x/1_a", 4.9, length_s=0.1, rank=1), at("x/1_b", 5.2, rank=1)]

    for recordings in ([*some, *every], [*every, *some[::-1]]):
        assert all_members(*recordings) == [{0: "x/0_10", 1: "x/1_b"}, {0: "x/0_5", 1: "x/1_a"}, {0: "x/0_0"}]


def test_ranks_with_equally_many_recordings_set_the_runs_in_the_order_of_their_names() -> None:
    """Rank 2 was recorded in the second run of rank 0, but in the first of rank 1."""
    recordings = [
        *(at(f"x/b{start}", start, rank=1) for start in (0, 20)),
        *(at(f"x/a{start}", start, rank=0) for start in (0, 10)),
        at("x/c", 8, rank=2),
    ]

    for order in (recordings, recordings[::-1]):
        assert all_members(*order)[0] == {0: "x/a10", 1: "x/b20", 2: "x/c"}


def test_a_rank_without_times_goes_into_the_first_of_several_runs() -> None:
    runs = [at(f"x/{start}", start, rank=0) for start in (0, 5)]

    assert all_members(*runs, untimed("x/u", 1)) == [{0: "x/0", 1: "x/u"}, {0: "x/5"}]


# Recordings without times


def test_recordings_without_times_and_names_are_of_one_job_in_one_folder() -> None:
    assert all_members(untimed("x/0"), untimed("x/1")) == [{0: "x/0", 1: "x/1"}]
    assert len(group([untimed("x/0"), untimed("y/0")])) == 2


def test_ranks_without_times_in_their_own_folders_are_one_job_whatever_else_lies_there() -> None:
    ranks = [untimed(f"x/device{rank}/0", rank, world_size=2) for rank in range(2)]

    found = all_members(*ranks, at("x/other/0", 0, rank=0, world_size=2))

    assert sorted(map(len, found)) == [1, 2]


def test_ranks_without_times_beside_two_jobs_are_a_job_of_their_own() -> None:
    jobs = [at(f"x/{k}", 60 * k, rank=0) for k in range(2)]

    assert len(group([*jobs, untimed("x/u", 1)])) == 3
    for order in ([jobs[0], untimed("x/u", 1)], [untimed("x/u", 1), jobs[0]]):
        assert all_members(*order) == [{0: "x/0", 1: "x/u"}]


@pytest.mark.parametrize("different", [{"source": "kineto"}, {"world_size": 4}])
def test_a_rank_without_times_stays_alone_beside_a_job_that_it_cannot_be_of(different) -> None:
    beside = untimed("x/u", 1, world_size=different.get("world_size", 2))
    beside.source = different.get("source", "toy")

    assert len(group([at("x/0", 0, rank=0, world_size=2), beside])) == 2


def test_a_rank_without_times_goes_with_the_only_job_that_has_recordings_in_its_folder() -> None:
    job = [at(f"{folder}/{rank}", 0, rank=rank) for rank, folder in enumerate("ab")]

    assert len(group([*job, untimed("a/u", 2), untimed("b/u", 3)])) == 1


# Order and names


def test_the_largest_job_comes_first_then_those_with_work_then_the_newest_then_by_name() -> None:
    large = [at(f"large/{rank}", 0, rank=rank) for rank in range(2)]
    idle = with_rows(at("idle/idle", 900, rank=0), 1, "steps")
    newer = with_rows(at("newer/newer", 600, rank=0), 1)
    a, b = (with_rows(at(f"{name}/{name}", 300, world_size=size, rank=0), 1) for name, size in (("a", 1), ("b", None)))

    assert [job.name for job in group([idle, b, a, newer, *large])] == ["large", "newer", "a", "b", "idle"]


@pytest.mark.parametrize("table", ["ranks", "groups", "steps", "slices", "rank_figures", "issues"])
def test_marks_and_what_is_known_of_a_rank_are_no_work(table) -> None:
    work, marks = with_rows(at("x/work", 0, rank=0), 1, "kernels"), with_rows(at("x/marks", 60, rank=0), 1, table)

    assert table in BARE
    assert [job.name for job in group([marks, work])] == ["work", "marks"]


def test_a_job_has_work_if_one_of_its_ranks_has() -> None:
    newer = [with_rows(at(f"newer/{rank}", 60, rank=rank), 1, "steps") for rank in range(2)]
    older = [with_rows(at(f"older/{rank}", 0, rank=rank), 1, table) for rank, table in enumerate(["steps", "kernels"])]

    assert [job.name for job in group([*newer, *older])] == ["older", "newer"]


def test_a_job_is_as_new_as_its_newest_rank() -> None:
    """Its end counts, and the time of writing where no time was recorded."""
    one = [at(f"one/{rank}", 60 * rank, length_s=70, rank=rank) for rank in range(2)]
    other = [at(f"other/{rank}", 50, length_s=60 - rank, rank=rank + 2) for rank in range(2)]

    (together,) = group([*one, *other])
    assert together.newest == EPOCH_NS + 130 * S


def test_a_job_without_times_is_as_new_as_its_newest_file(tmp_path) -> None:
    (job,) = group([written(untimed(f"x/{rank}", rank), 10 - rank, folder=tmp_path) for rank in range(2)])

    assert job.newest == 10 * S


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("job/rank0.json.gz", "rank0"),
        ("job/.hidden", ".hidden"),
        ("job/trace", "trace"),
    ],
)
def test_a_single_file_gives_its_name_without_its_endings_to_the_run(path, name) -> None:
    (job,) = group([at(path, 0)])

    assert (job.name, str(job.path)) == (name, f"/data/{path}")


@pytest.mark.parametrize(
    "made",
    [
        "recording",
        "profiler",
        "cluster_profiler",
        "rank0",
        "rank_0",
        "rank-12",
        "host_123_20240102030405678_ascend_pt",
        "host_123_20240102030405678_ascend_ms",
        "profiler/rank_0",
    ],
)
def test_directories_that_profilers_name_do_not_name_the_run(tmp_path, made) -> None:
    directory = tmp_path / "job" / made
    directory.mkdir(parents=True)

    (job,) = group([at(str(directory), 0)])

    assert (job.name, job.path) == ("job", directory)


@pytest.mark.parametrize("named", ["my_profiler", "rank_x", "rank0_again", "host_ascend_pt", "x_2024_ascend_pt"])
def test_directories_that_only_look_so_name_the_run(tmp_path, named) -> None:
    (tmp_path / named).mkdir()

    (job,) = group([at(str(tmp_path / named), 0)])

    assert job.name == named


def test_where_nobody_named_a_directory_the_last_one_names_the_run() -> None:
    (job,) = group(at(f"/profiler/rank0/{rank}", 0, rank=rank) for rank in range(2))

    assert job.name == "rank0"


def test_a_run_of_several_files_is_named_after_the_folder_that_they_have_in_common() -> None:
    (job,) = group(at(f"a/b/{folder}/0", 0, rank=rank) for rank, folder in enumerate(["c/d", "c"]))

    assert (job.name, str(job.path)) == ("c", "/data/a/b/c")


def test_runs_of_one_name_are_numbered_from_the_first_and_others_are_not() -> None:
    jobs = group([*(at(f"{k}/x", 60 * k, rank=0) for k in (2, 0, 1)), at("other/y", 0, rank=0, world_size=1)])

    assert [job.name for job in jobs] == ["x (1 of 3)", "x (2 of 3)", "x (3 of 3)", "y"]
