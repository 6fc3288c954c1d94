"""Who hangs a job, from dumps of all ranks, and when nobody does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stepscope import open_run
from stepscope.advice import advise, worded
from stepscope.analysis.hangs.recorded_positions import NO_DUMP
from stepscope.analysis.registry import Analysis
from stepscope.run.supply import Supplier
from tests.cli.calling import EXAMPLE, document, printed
from tests.sources.flight_dumps import BASE_NS, Call, call, dump, receive, send, waits, write_dump, write_job

DONE = [call()] * 3


def queued(operation: str = "all_reduce", group: str = "0") -> Call:
    """A call that the device has not begun."""
    return waits(operation, group, state="scheduled", time_discovered_started_ns=None)


def found(folder: Path) -> list[tuple[Any, ...]]:
    """Kind, ranks, waiting ranks, operation, sequence and cause of each hang."""
    rows = open_run(folder).analyse("hangs")
    return rows.select("kind", "ranks", "waiting_ranks", "operation", "sequence", "cause_call").rows()


def job(folder: Path, odd: dict[int, list[Call]], usual: list[Call], **options: Any) -> Path:
    """Dumps of four ranks, most of which did the usual."""
    return write_job(folder, {rank: odd.get(rank, usual) for rank in range(4)}, **options)


def test_a_rank_that_never_entered_a_call_is_missing(tmp_path: Path) -> None:
    job(tmp_path, {2: DONE}, [*DONE, waits()])

    assert found(tmp_path) == [("missing", "2", "0, 1, 3", "all_reduce", 4, None)]
    rows = open_run(tmp_path).analyse("unfinished_calls")
    assert rows.select("rank", "role", "own_sequence", "place").rows()[:2] == [
        (2, "missing", 3, "step (train.py:102)"),
        (0, "waits", 4, "step (train.py:103)"),
    ]


def test_further_calls_behind_the_first_accuse_nobody_else(tmp_path: Path) -> None:
    """NCCL's calls are queued: the host goes on and makes more calls while the first one waits."""
    job(tmp_path, {2: DONE, 1: [*DONE, waits(), waits()]}, [*DONE, waits(), waits(), waits("broadcast")])

    assert found(tmp_path) == [("missing", "2", "0, 1, 3", "all_reduce", 4, None)]


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        (waits("broadcast"), "other operation"),
        (waits(input_dtypes=["Half"]), "other type"),
        (waits(input_sizes=[[2048]]), "other size"),
    ],
)
def test_a_rank_that_called_something_else_is_named(odd: Call, kind: str, tmp_path: Path) -> None:
    job(tmp_path, {1: [*DONE, odd]}, [*DONE, waits()])

    assert found(tmp_path) == [(kind, "1", "0, 2, 3", "all_reduce", 4, None)]


def test_a_rank_that_is_missing_is_named_beside_one_that_called_something_else(tmp_path: Path) -> None:
    job(tmp_path / "both", {2: DONE, 3: [*DONE, waits("broadcast")]}, [*DONE, waits()])

    rows = open_run(tmp_path / "both").analyse("hangs")
    told = ("kind", "ranks", "missing_ranks", "waiting_ranks")
    assert rows.select(told).rows() == [("other operation", "3", "2", "0, 1")]
    (finding,) = advise(open_run(tmp_path / "both"), strict=True)
    assert (finding.ranks, worded(finding).summary.count("Rank 2 never made it at all.")) == ([2, 3], 1)
    # a dump that was written while others had just made the call accuses nobody of being missing
    job(tmp_path / "early", {2: DONE, 3: [*DONE, waits("broadcast")]}, [*DONE, waits()], waited_s=2)
    assert open_run(tmp_path / "early").analyse("hangs")["missing_ranks"].to_list() == [None]


@pytest.mark.parametrize(
    ("backend", "word", "other"),
    [
        ("nccl", "NCCL_DEBUG", "the hosts"),
        ("hccl", "ASCEND_GLOBAL_LOG_LEVEL", "NCCL"),
        ("gloo", "network between the hosts", "NCCL"),
    ],
)
def test_what_to_do_about_a_transfer_fits_the_library(backend: str, word: str, other: str, tmp_path: Path) -> None:
    ended = {"gloo": "nccl"}.get(backend, backend)  # gloo beside NCCL
    job(
        tmp_path,
        {},
        [call(profiling_name=f"{ended}:all_reduce"), waits(group="0", profiling_name=f"{backend}:barrier")],
    )

    (finding,) = advise(open_run(tmp_path), strict=True)

    action = worded(finding).action
    assert finding.message == "unfinished"
    assert word in action
    assert other not in action


def test_the_same_number_of_elements_in_another_shape_is_the_same(tmp_path: Path) -> None:
    job(tmp_path, {1: [*DONE, waits(input_sizes=[[32, 32]])]}, [*DONE, waits()], waited_s=2)

    assert found(tmp_path) == []


def test_parts_of_different_sizes_are_no_mistake_where_they_may_differ(tmp_path: Path) -> None:
    odd = waits("all_to_all", input_sizes=[[9]], output_sizes=[[7]])
    job(tmp_path, {1: [*DONE, odd]}, [*DONE, waits("all_to_all")], waited_s=2)

    assert found(tmp_path) == []


def test_two_ranks_that_disagree_are_both_named(tmp_path: Path) -> None:
    write_job(tmp_path, {0: [waits()], 1: [waits("broadcast")]}, {"0": [0, 1]})

    assert found(tmp_path) == [("other operation", "0, 1", None, "all_reduce", 1, None)]
    (finding,) = advise(open_run(tmp_path), strict=True)
    assert worded(finding).summary.startswith(
        "Ranks 0-1 called all_reduce and broadcast, not the same, in the place of all_reduce"
    )


def test_calls_in_another_order_are_told_by_what_others_call_next(tmp_path: Path) -> None:
    job(tmp_path, {2: [*DONE, waits()]}, [*DONE, waits("broadcast"), waits()])

    (finding,) = advise(open_run(tmp_path), strict=True)

    assert (finding.message, finding.ranks, finding.parameters["next"]) == ("other operation", [2], "all_reduce")


def test_ranks_that_wait_one_call_further_wait_too(tmp_path: Path) -> None:
    """A broadcast is over for who has got its part: they go on, and wait for rank 2 in the next call."""
    ahead = [*DONE, call("broadcast"), waits()]
    job(tmp_path, {0: [*DONE, waits("broadcast")], 2: [*DONE, waits()]}, ahead)

    assert found(tmp_path) == [("other operation", "2", "0, 1, 3", "broadcast", 4, None)]


def test_a_rank_whose_entry_was_overwritten_is_not_accused(tmp_path: Path) -> None:
    """Rank 1 has gone on in another group, so that its ring holds nothing of the default group any more."""
    groups = {"0": range(4), "1": [1]}
    for rank in (0, 2, 3):
        write_dump(tmp_path, rank, dump([*DONE, waits()], groups))
    write_dump(tmp_path, 1, dump([*DONE, waits(), *[call(group="1")] * 9], groups, ring=5))

    rows = open_run(tmp_path).analyse("unfinished_calls")

    assert rows.filter(rows["rank"] == 1)["role"].to_list() == ["unknown"]
    assert [row[:2] for row in found(tmp_path)] in ([], [("unfinished", None)])


def test_rings_of_different_lengths_still_show_who_is_missing(tmp_path: Path) -> None:
    long = [call()] * 50
    for rank, ring in enumerate((3, 50, 10, 1)):
        calls = long if rank == 2 else [*long, waits()]
        write_dump(tmp_path, rank, dump(calls, ring=ring))

    assert found(tmp_path) == [("missing", "2", "0, 1, 3", "all_reduce", 51, None)]


def test_a_rank_without_a_dump_is_unknown_and_not_accused(tmp_path: Path) -> None:
    write_job(tmp_path, {rank: [*DONE, waits()] for rank in range(3)})

    run = open_run(tmp_path)

    assert found(tmp_path) == [("no dump", None, "0, 1, 2", "all_reduce", 4, None)]
    (finding,) = advise(run, strict=True)
    assert finding.ranks == [3] and finding.severity == "medium"


def test_a_rank_whose_dump_is_empty_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path, {3: []}, [*DONE, waits()])

    assert found(tmp_path) == [("no dump", None, "0, 1, 2", "all_reduce", 4, None)]
    assert "no dump with calls of rank 3" in printed(capsys, "hangs", tmp_path)


def test_the_dumps_of_a_healthy_job_accuse_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Dumps of a job that runs are written one after the other: some ranks are a call ahead, some are in one."""
    job(tmp_path / "ended", {}, [call()] * 9)
    job(tmp_path / "moving", {1: [*DONE, waits()], 2: [*DONE, call(), waits()]}, [*DONE, call()], waited_s=2)
    job(tmp_path / "behind", {1: DONE[:1]}, [*DONE, waits()], waited_s=0.05)
    job(tmp_path / "in it", {}, [*DONE, waits()], waited_s=0.05)
    job(tmp_path / "copied", {}, [*DONE, waits()], waited_s=10**6)

    for folder in ("ended", "moving", "behind", "in it", "copied"):
        assert found(tmp_path / folder) == [], folder
        assert advise(open_run(tmp_path / folder), strict=True) == []
    assert "No rank is known to wait" in printed(capsys, "analyze", tmp_path / "moving")


@pytest.mark.parametrize("written_s", [-5.0, 5.0])
def test_a_dump_from_before_the_call_accuses_nobody(written_s: float, tmp_path: Path) -> None:
    """The others made the call when the dump of rank 2 was over, or about then."""
    job(tmp_path, {}, [*DONE, waits()])
    write_dump(tmp_path, 2, dump(DONE), waited_s=written_s)

    assert found(tmp_path) == [("no dump", None, "0, 1, 3", "all_reduce", 4, None)]
    (finding,) = advise(open_run(tmp_path), strict=True)
    assert finding.ranks == [2] and finding.severity == "medium"
    rows = open_run(tmp_path).analyse("unfinished_calls")
    assert rows.filter(rows["rank"] == 2)["role"].to_list() == ["unknown" if written_s < 0 else "missing"]
    job(tmp_path / "slow", {2: DONE}, [*DONE, waits()], waited_s=9)
    assert found(tmp_path / "slow") == []


def test_a_rank_that_died_is_unknown_though_it_threw_others_out_of_the_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gloo states neither how many ranks there are nor that a call failed."""
    for rank, last in {0: call(), 2: call(), 3: waits()}.items():
        write_dump(tmp_path / "long", rank, dump([*DONE, last], {}))
        write_dump(tmp_path / "short", rank, dump([*DONE, last], {}), waited_s=9)

    assert found(tmp_path / "long") == [("no dump", None, "3", "all_reduce", 4, None)]
    assert open_run(tmp_path / "long").analyse("hangs")["unknown_ranks"].to_list() == ["1"]
    assert found(tmp_path / "short") == []
    assert "no dump with calls of rank 1:" in printed(capsys, "hangs", tmp_path / "short")


def test_a_missing_rank_of_gloo_may_wait_in_a_call_that_is_not_recorded(tmp_path: Path) -> None:
    job(tmp_path / "gloo", {0: DONE, 1: DONE}, [*DONE, waits("barrier")], groups={})
    job(tmp_path / "nccl", {0: DONE, 1: DONE}, [*DONE, waits("barrier")])

    for name, unknown in {"gloo": 1, "nccl": None}.items():
        (finding,) = advise(open_run(tmp_path / name), strict=True)
        assert (finding.ranks, finding.parameters["unknown"]) == ([0, 1], unknown)
    for name, told in {"gloo": ("no dump", None), "nccl": ("missing", "0")}.items():
        written = BASE_NS + 5 * 10**9
        os.utime(tmp_path / name / "nccl_trace_rank_1", ns=(written, written))
        assert [row[:2] for row in found(tmp_path / name)] == [told]


def test_a_transfer_that_does_not_end_accuses_no_rank(tmp_path: Path) -> None:
    job(tmp_path, {}, [*DONE, waits()], waited_s=660)

    assert found(tmp_path) == [("unfinished", None, "0, 1, 2, 3", "all_reduce", 4, None)]


def test_only_the_rank_that_waits_for_nobody_is_the_cause(tmp_path: Path) -> None:
    """Ranks 0 and 1 wait for 2 and 3; 2 waits for 3 in their own group; 3 waits for nobody."""
    groups = {"0": range(4), "1": [2, 3]}
    before = [call(), call(group="1")]
    ahead = [call(), waits()]
    write_job(tmp_path, {0: ahead, 1: ahead, 2: [*before, waits(group="1")], 3: before}, groups)

    assert [row[:3] for row in found(tmp_path)] == [("missing", "3", "0, 1"), ("missing", "3", "2")]
    (finding,) = advise(open_run(tmp_path), strict=True)
    assert (finding.ranks, finding.parameters["group"], finding.parameters["also"]) == ([3], "sub1", 1)


def test_groups_in_another_order_hold_each_other_up(tmp_path: Path) -> None:
    """Rank 0 calls in group 1 first, rank 1 in group 2, and neither gets any further."""
    groups = {"0": [0, 1], "1": [0, 1], "2": [0, 1]}
    write_job(tmp_path, {0: [call(), waits(group="1")], 1: [call(), waits(group="2")]}, groups)

    assert [row[:2] for row in found(tmp_path)] == [("crossed", "0, 1"), ("missing", None)]


def causes(folder: Path) -> list[tuple[Any, ...]]:
    """Kind, ranks and group of each hang that no other one causes."""
    rows = open_run(folder).analyse("hangs")
    return rows.filter(rows["cause_call"].is_null()).select("kind", "ranks", "group_name").rows()


def test_ranks_that_disagree_in_another_call_are_held_up_there(tmp_path: Path) -> None:
    """Ranks 2 and 3 disagree in their group, 1 is missing in the group of 0 and 1: those are the two causes."""
    groups = {"0": range(4), "1": [2, 3], "2": [0, 1]}
    odd = {2: [call(), waits(group="1")], 3: [call(), waits(group="1", input_sizes=[[2048]])]}
    write_job(tmp_path / "one", {0: [call(), waits()], 1: [call(), waits()], **odd}, groups)
    write_job(tmp_path / "two", {0: [call(), waits(group="2")], 1: [call()], **odd}, groups)

    assert causes(tmp_path / "one") == [("other size", "2, 3", "sub1")]
    (finding,) = advise(open_run(tmp_path / "one"), strict=True)
    assert "give different sizes to all_reduce 1 of sub1 (4.10 kB to 8.19 kB)" in worded(finding).summary
    assert causes(tmp_path / "two") == [("other size", "2, 3", "sub1"), ("missing", "1", "sub2")]


@pytest.mark.parametrize("waited_s", [60, 10**6])
def test_ranks_wait_elsewhere_though_it_is_unknown_for_how_long(waited_s: float, tmp_path: Path) -> None:
    groups = {"0": range(4), "1": [2, 3]}
    inner, outer = [call(), waits(group="1")], [call(), waits()]
    write_job(tmp_path, {0: outer, 1: outer, 2: inner, 3: inner}, groups, waited_s=waited_s)

    assert causes(tmp_path) == [("unfinished", None, "sub1")]


def test_calls_that_devices_begin_in_another_order_are_crossed(tmp_path: Path) -> None:
    """Both ranks made both calls; the device of each is in the one that the other one has not begun."""
    groups = {"0": range(4), "1": [0, 1], "2": [0, 1]}
    two = {0: [call(), waits(group="1"), queued(group="2")], 1: [call(), waits(group="2"), queued(group="1")]}
    write_job(tmp_path / "two", {**two, 2: [call(), waits()], 3: [call(), waits()]}, groups)
    circle = {rank: [call(), waits(group=str(rank + 1)), queued(group=str((rank + 2) % 3 + 1))] for rank in range(3)}
    circled = {"0": range(4), "1": [0, 1], "2": [1, 2], "3": [2, 0]}
    write_job(tmp_path / "three", {**circle, 3: [call(), waits()]}, circled)

    assert causes(tmp_path / "two") == [("crossed", "0, 1", "sub1")]
    assert causes(tmp_path / "three") == [("crossed", "0, 1, 2", "sub1")]


def test_states_that_are_not_recorded_say_nothing_of_the_order(tmp_path: Path) -> None:
    """Without timing, NCCL's calls are `scheduled` until they are over."""
    first, second = queued(group="1"), queued(group="2")
    groups = {"0": [0, 1], "1": [0, 1], "2": [0, 1]}
    done = call(time_discovered_started_ns=None)
    write_job(tmp_path, {0: [done, first, second], 1: [done, second, first]}, groups)

    assert causes(tmp_path) == [("unfinished", None, "sub1"), ("unfinished", None, "sub2")]


def test_only_ranks_of_the_circle_cross(tmp_path: Path) -> None:
    """Ranks 2 and 3 wait for rank 1 as rank 0 does, and hold up nobody."""
    other = {1: [call(), waits(group="1")]}
    write_job(tmp_path, {rank: other.get(rank, [call(), waits()]) for rank in range(4)}, {"0": range(4), "1": [0, 1]})

    assert causes(tmp_path) == [("crossed", "0, 1", "default_pg")]


def test_a_device_that_does_not_come_to_a_call_is_named(tmp_path: Path) -> None:
    job(tmp_path / "all kept", {2: [*DONE, queued()]}, [*DONE, waits()])
    job(tmp_path / "overwritten", {2: [*DONE, queued(), queued()]}, [*DONE, waits(), queued()], ring=2)

    assert found(tmp_path / "all kept") == [("not started", "2", "0, 1, 3", "all_reduce", 4, None)]
    (finding,) = advise(open_run(tmp_path / "all kept"), strict=True)
    assert finding.ranks == [2] and "Rank 2 queued, but did not begin, the call all_reduce 4" in worded(finding).summary
    assert causes(tmp_path / "overwritten") == [("unfinished", None, "default_pg")]


def test_a_rank_left_behind_in_a_call_that_others_have_left_hangs(tmp_path: Path) -> None:
    job(tmp_path, {1: [*DONE, waits()]}, [*DONE, call(), waits()])

    assert found(tmp_path) == [
        ("unfinished", None, "1", "all_reduce", 4, None),
    ]


@pytest.mark.parametrize("ring", [None, 2])
def test_a_receive_without_a_send_waits_for_the_sender(ring: int | None, tmp_path: Path) -> None:
    both = [call(), call()]
    for rank, calls in {0: [*both, send(0, 1), receive(0, 1, ended=False)], 1: [*both, receive(1, 0)]}.items():
        write_dump(tmp_path, rank, dump(calls, {"0": [0, 1]}, ring=ring))

    assert found(tmp_path) == [("missing", "1", "0", "recv", 2, None)]


def test_two_ranks_that_both_send_first_hold_each_other_up(tmp_path: Path) -> None:
    calls = {0: [call(), send(0, 1, ended=False)], 1: [call(), send(1, 0, ended=False)]}
    write_job(tmp_path, calls, {"0": [0, 1]})

    assert [row[:2] for row in found(tmp_path)] == [("crossed", "0, 1"), ("missing", None)]
    assert open_run(tmp_path).analyse("hangs").select("sender", "receiver").rows() == [(0, 1), (1, 0)]


def test_the_sides_of_a_receive_are_named(tmp_path: Path) -> None:
    write_job(tmp_path, {0: [call(), receive(0, 1, ended=False)], 1: [call()]}, {"0": [0, 1]})

    assert open_run(tmp_path).analyse("hangs").select("sender", "receiver").rows() == [(1, 0)]


def test_a_pipeline_waits_for_its_last_stage(tmp_path: Path) -> None:
    """Each stage waits for the gradient of the next one; the last one is not in any call."""
    calls = {rank: [call(), receive(rank, rank + 1, ended=False)] for rank in range(3)} | {3: [call()]}
    write_job(tmp_path, calls)

    causes = [row for row in found(tmp_path) if row[-1] is None]

    assert causes == [("missing", "3", "2", "recv", 1, None)]


def test_a_pair_that_disagrees_about_the_size_is_named(tmp_path: Path) -> None:
    calls = {0: [send(0, 1, ended=False)], 1: [receive(1, 0, ended=False, input_sizes=[[9]])]}
    write_job(tmp_path, calls, {"0": [0, 1]})

    assert [row[:2] for row in found(tmp_path)] == [("other size", "0, 1")]
    (finding,) = advise(open_run(tmp_path), strict=True)
    assert "Ranks 0-1 give different sizes to send 1 of default_pg" in worded(finding).summary


def test_gloo_records_no_members_and_no_more_than_that_a_call_was_left(tmp_path: Path) -> None:
    def gloo(group: str = "0", *, left: bool = True) -> Call:
        name = "default_pg" if group == "0" else "undefined"
        plain = {"profiling_name": "gloo:all_reduce", "process_group": (group, name), "state": "scheduled"}
        return call(group=group, **plain, retired=left, time_discovered_completed_ns=None)

    ahead = [gloo(), gloo("1"), gloo(left=False)]
    calls = {0: ahead, 1: ahead, 2: [gloo(), gloo("2"), gloo("2", left=False)], 3: [gloo(), gloo("2")]}
    write_job(tmp_path, calls, {})

    assert [row[:3] for row in found(tmp_path)] == [("missing", "3", "0, 1"), ("missing", "3", "2")]
    healthy = {rank: [gloo(), gloo()] for rank in range(4)} | {2: [gloo()]}
    write_job(tmp_path / "healthy", healthy, {})
    assert found(tmp_path / "healthy") == []
    write_job(tmp_path / "given up", healthy, {}, waited_s=610)
    assert [row[:2] for row in found(tmp_path / "given up")] == [("missing", "2")]


def test_dumps_beside_traces_are_told_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "traces").symlink_to(EXAMPLE)
    job(tmp_path / "dumps", {2: DONE}, [*DONE, waits()])

    told = document(capsys, "analyze", tmp_path)

    assert told["findings"][0]["rule"] == "hang"
    assert {finding["rule"] for finding in told["findings"]} > {"hang"}
    assert document(capsys, "hangs", tmp_path)["tables"]["hangs"][0]["kind"] == "missing"


def test_ranks_without_a_dump_are_asked_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    call_one = Supplier._call

    def counted(self: Supplier, analysis: Analysis, options: Any, ranks: Any) -> Any:
        asked.append((analysis.name, ranks))
        return call_one(self, analysis, options, ranks)

    monkeypatch.setattr(Supplier, "_call", counted)
    run = open_run(EXAMPLE)

    assert {str(reason) for reason in run.silent_ranks("recorded_positions").values()} == {NO_DUMP}
    assert asked == [("recorded_positions", (0, 1, 2, 3))]
