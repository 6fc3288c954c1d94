"""Stored records as the digests that a worker would have sent."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import pytest

from light_records import MS, START_NS, LightJob
from stepscope.errors import StepscopeError
from stepscope.live.messages import Digest, Hello
from stepscope.live.store.as_digests import RecordedRank, groups_of
from stepscope.live.store.lines import call_name, host_range, timed_range
from stepscope.live.store.replay import Replay
from stepscope.recording_format.marks import collective_text

JOB = LightJob(ranks=2, steps=5, noise=0)


def digests(directory: Path) -> list[Digest]:
    """All digests of a job, in order of time."""
    replay = Replay(directory)
    messages = [*replay.stored(), *replay.finish()]
    assert all(a.at_ns <= b.at_ns for a, b in pairwise(messages) if isinstance(b, Digest))
    return [timed.message for timed in messages if isinstance(timed.message, Digest)]


def of_lines(tmp_path: Path, *lines: str) -> list[Hello | Digest]:
    """What the lines of rank 3 tell."""
    rank = RecordedRank(tmp_path / "3")
    return [*rank.feed("".join(lines).encode()), *rank.finish()]


def simple(step: int, number: int, *, pid: int = 1, at_ns: int | None = None) -> str:
    """A step of 10 ms with a forward pass of 4 ms."""
    start = START_NS + step * 10 * MS if at_ns is None else at_ns
    return host_range(number, "forward", "default", start + MS, start + 5 * MS, pid, 1) + host_range(
        number + 1, f"step {step}", "default", start, start + 10 * MS, pid, 1
    )


@pytest.mark.parametrize("on_device", [False, True])
def test_sums_of_a_step_are_those_of_its_ranges(tmp_path: Path, on_device: bool) -> None:
    found = digests(dataclasses.replace(JOB, on_device=on_device).write(tmp_path))

    assert sorted((each.rank, each.step) for each in found) == [(rank, step) for rank in (0, 1) for step in range(1, 6)]
    for each in found:
        assert (each.data_ns, each.forward_ns, each.checkpoint_ns) == (MS, 10 * MS, None)
        assert each.device_forward_ns == (10 * MS if on_device else None)
        (call,) = each.calls
        assert (call.operation, call.group, call.count, call.size_bytes) == ("all_reduce", "0", 2, 8192)
        assert call.launched == on_device
        assert each.communication_ns == call.time_ns
        assert 23 * MS <= each.step_ns <= 24 * MS


def test_records_of_taskd_give_the_same_digests(tmp_path: Path) -> None:
    job = dataclasses.replace(JOB, on_device=True, checkpoint=lambda rank, step: 7 if step == 3 else 0)
    ours = digests(job.write(tmp_path / "ours", "job"))
    theirs = digests(job.write_as_taskd(tmp_path / "theirs"))

    def plain(each: Digest) -> object:
        calls = [(call.operation, call.count, call.device_ns, call.size_bytes) for call in each.calls]
        times = (each.step_ns, each.forward_ns, each.device_forward_ns, each.data_ns, each.checkpoint_ns)
        return each.rank, each.step, times, calls

    assert sorted(map(plain, theirs)) == sorted(map(plain, ours))  # type: ignore[type-var]


def test_what_was_switched_off_is_unknown_and_what_is_rare_is_zero(tmp_path: Path) -> None:
    job = dataclasses.replace(
        JOB, communicates=lambda rank, step: step > 2, checkpoint=lambda rank, step: 5 if step == 2 else 0
    )
    found = [each for each in digests(job.write(tmp_path)) if each.rank == 0]

    assert [each.communication_ns is None for each in found] == [True, True, False, False, False]
    assert [each.checkpoint_ns and each.checkpoint_ns // MS for each in found] == [None, 5, 0, 0, 0]


def test_steps_in_which_communication_was_switched_are_without_calls(tmp_path: Path) -> None:
    name = call_name("all_reduce", collective_text('"0"', 2, 4, "int8", None, is_async=False))
    lines = []
    for step, calls in ((1, 0), (2, 1), (3, 3), (4, 3), (5, 2), (6, 0)):
        start = START_NS + step * 10 * MS
        for call in range(calls):
            at = start + (3 + call) * MS
            lines.append(host_range(10 * step + call, name, "communication", at, at + MS // 2, 1, 1))
        lines.append(simple(step, 1000 * step))

    found = [each for each in of_lines(tmp_path, *lines) if isinstance(each, Digest)]

    assert [sum(call.count for call in each.calls) for each in found] == [0, 0, 3, 3, 0, 0]


def test_a_restarted_process_is_announced_and_begins_anew(tmp_path: Path) -> None:
    lines = [
        simple(1, 1),
        simple(2, 3),
        simple(1, 1, pid=2, at_ns=START_NS + 90 * MS),
        simple(2, 3, pid=2, at_ns=START_NS + 100 * MS),
    ]

    found = of_lines(tmp_path, *lines)

    kinds = [each.pid if isinstance(each, Hello) else each.step for each in found]
    assert kinds == [1, 1, 2, 2, 1, 2]
    assert all(each.step_ns == 10 * MS and each.forward_ns == 4 * MS for each in found if isinstance(each, Digest))


def test_a_process_with_the_same_id_is_known_by_its_steps(tmp_path: Path) -> None:
    found = of_lines(tmp_path, simple(7, 1), simple(1, 1, at_ns=START_NS + 500 * MS))

    assert [type(each).__name__ for each in found] == ["Hello", "Digest", "Hello", "Digest"]


def test_ranges_inside_others_of_their_kind_count_once(tmp_path: Path) -> None:
    start = START_NS + 10 * MS
    inner = host_range(50, "FORWARD", "default", start + 2 * MS, start + 3 * MS, 1, 1)

    found = of_lines(tmp_path, inner, simple(1, 1))

    assert isinstance(found[1], Digest) and found[1].forward_ns == 4 * MS


def test_bad_lines_are_counted_and_cost_only_themselves(tmp_path: Path) -> None:
    rank = RecordedRank(tmp_path / "0")
    bad = ['{"Kind":1,"Flag":2,"Sour', "", "null", "[1]", '{"Kind":"x"}', '{"Kind":1,"Timestamp":-5}', "\x00\x01", "é"]

    found = [*rank.feed((simple(1, 1) + "\n".join(bad) + "\n" + simple(2, 3)).encode("latin-1")), *rank.finish()]

    assert [each.step for each in found if isinstance(each, Digest)] == [1, 2]
    assert rank.assembler.problems.bad_lines == 7


def test_ids_that_are_never_closed_stay_bounded(tmp_path: Path) -> None:
    rank = RecordedRank(tmp_path / "0")
    start = host_range(1, "forward", "default", START_NS, START_NS + 1, 1, 1).split("\n")[0]

    for number in range(30_000):
        list(rank.feed(start.replace('"Id":1,', f'"Id":{number},').encode() + b"\n"))

    assert len(rank.assembler._open) <= rank.assembler.most_open
    assert rank.assembler.problems.unended >= 20_000


def test_without_steps_ranges_do_not_pile_up(tmp_path: Path) -> None:
    rank = RecordedRank(tmp_path / "0")
    for number in range(60_000):
        list(rank.feed(host_range(number, "forward", "default", START_NS, START_NS + 1, 1, 1).encode()))

    assert rank.left_out > 0 and len(rank._waiting) <= 50_000


def test_a_device_time_that_comes_late_belongs_to_its_step(tmp_path: Path) -> None:
    start = START_NS + 10 * MS
    late = timed_range(1, "forward", "default", start, start + 4 * MS, 1, 1, start + MS, start + 6 * MS, 0, 0)
    host, device = late.split("\n")[:2], late.split("\n")[2:4]
    step = host_range(2, "step 1", "default", start, start + 10 * MS, 1, 1)
    following = host_range(3, "step 2", "default", start + 10 * MS, start + 20 * MS, 1, 1)

    found = of_lines(tmp_path, "\n".join(host) + "\n", step, "\n".join(device) + "\n", following)

    first = next(each for each in found if isinstance(each, Digest))
    assert (first.step, first.device_forward_ns) == (1, 5 * MS)


def test_the_shortest_call_on_the_device_is_known_if_all_were_timed_there(tmp_path: Path) -> None:
    start, name = START_NS + 10 * MS, call_name("send", collective_text('"0"', 2, 4, "int8", 1, is_async=False))

    def call(number: int, *device: int) -> str:
        host = (number, name, "communication", start + number, start + number + 5, 1, 1)
        return timed_range(*host, *device, 0, 0) if device else host_range(*host)

    timed = call(1, start, start + 400) + call(2, start + 500, start + 800)
    ends = [host_range(8 + n, f"step {n}", "default", start + (n - 1) * MS, start + n * MS, 1, 1) for n in (1, 2)]

    def first(*lines: str) -> list[tuple[int, int | None, int | None]]:
        digest = next(each for each in of_lines(tmp_path, *lines) if isinstance(each, Digest))
        return [(each.count, each.device_ns, each.shortest_device_ns) for each in digest.calls]

    assert first(timed, *ends) == [(2, 700, 300)]
    assert first(call(1), call(2), *ends) == [(2, None, None)]


def test_groups_are_read_from_their_file(tmp_path: Path) -> None:
    world = {"group_name": "default_group", "global_ranks": [0, 1]}
    content = {"w": world, "t": {"group_name": "tp", "global_ranks": [1]}, "x": 5}
    (tmp_path / "parallel_group.json").write_text(json.dumps(content))

    assert [(group.key, group.name, group.members) for group in groups_of(tmp_path)] == [
        ("w", "", [0, 1]),
        ("t", "tp", [1]),
    ]
    (tmp_path / "parallel_group.json").write_text("{")
    assert groups_of(tmp_path) == []


def test_what_is_appended_later_follows(tmp_path: Path) -> None:
    job = LightJob(ranks=2, steps=3)
    job.write(tmp_path)
    replay = Replay(tmp_path / "job")
    before = list(replay.stored())
    dataclasses.replace(job, first_step=4, start_ns=START_NS + 1000 * MS).write(tmp_path)

    after = replay.appended()

    steps = [timed.message.step for timed in after if isinstance(timed.message, Digest)]
    assert sorted(steps) == [3, 3, 4, 4, 5, 5] and len(before) == 6
    assert replay.ranks == [0, 1]


def test_records_of_several_jobs_are_refused(tmp_path: Path) -> None:
    LightJob(ranks=1, steps=1).write(tmp_path, "one")
    LightJob(ranks=1, steps=1).write(tmp_path, "other")

    with pytest.raises(StepscopeError, match="2 jobs"):
        Replay(tmp_path)
