"""Digests out of order, lost, repeated, hostile, and ranks that leave and return."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import msgspec
import pytest
from detect_streams import EPOCH_NS, Stream, blamed, hello, numbered, slow, watched, without

from stepscope.live.detect import Detector, Limits
from stepscope.live.messages import Digest
from stepscope.live.verdicts import Verdict


def fed(digests: list[Digest], ranks: int = 8) -> list[Verdict]:
    """Verdicts of a detector that gets digests in this order, and looks at the end."""
    detector = Detector()
    for rank in range(ranks):
        detector.hello(hello(rank, ranks))
    for digest in digests:
        detector.digest(digest)
    detector.look(EPOCH_NS)
    return detector.open


@pytest.mark.parametrize("step_ms", [500, 20])
def test_the_order_of_arrival_does_not_matter(step_ms: int) -> None:
    stream = Stream(steps=600 if step_ms < 100 else 150, compute=slow(3, factor=1.5, first=80), noise=0.03)
    shrunk = [_scaled(d, step_ms / 500) for rows in stream.digests() for d in rows]
    expected = fed(shrunk)
    draw = random.Random(7)
    for _ in range(3):
        shuffled = sorted(shrunk, key=lambda digest: digest.step + draw.uniform(0, 5))

        assert fed(shuffled) == expected

    assert [verdict.key for verdict in expected] == ["slow_compute:3"]


def _scaled(digest: Digest, factor: float) -> Digest:
    fields = {name: getattr(digest, name) for name in digest.__struct_fields__}
    times = {name: round(v * factor) for name, v in fields.items() if name.endswith("_ns") and isinstance(v, int)}
    return Digest(**{**fields, **times, "end_at_ns": digest.end_at_ns})


def test_short_steps_are_summed_and_judged() -> None:
    stream = Stream(steps=3000, compute=slow(3, factor=1.3, first=1500))
    rounds = ([_scaled(d, 0.02) for d in rows] for rows in stream.digests())

    detector, told = watched(rounds)

    assert blamed(told) == {("slow_compute", (3,))}
    assert 1400 <= detector.open[0].since_step <= 1600


def test_lost_digests_do_not_stop_the_detector() -> None:
    draw = random.Random(1)
    stream = Stream(steps=160, compute=slow(3, factor=1.4, first=80))
    rounds = ([digest for digest in rows if draw.random() > 0.05] for rows in stream.digests())

    _, told = watched(rounds, ranks=8)

    assert blamed(told) == {("slow_compute", (3,))}


def test_a_rank_that_falls_silent_does_not_stop_the_detector() -> None:
    stream = Stream(steps=220, compute=slow(3, factor=1.4, first=120))
    rounds = ([digest for digest in rows if digest.rank != 7 or digest.step < 60] for rows in stream.digests())

    _, told = watched(rounds, ranks=8)

    assert blamed(told) == {("slow_compute", (3,))}


def test_repeated_digests_count_once() -> None:
    stream = Stream(steps=120, compute=slow(3, factor=1.4, first=80))

    detector, told = watched([digest for digest in rows for _ in range(3)] for rows in stream.digests())

    assert blamed(told) == {("slow_compute", (3,))}
    assert detector.dropped == 2 * 8 * 120


def test_a_rank_that_leaves_takes_its_verdict_along_and_may_return() -> None:
    stream = Stream(steps=300, compute=slow(3, factor=1.5, first=60, last=99))
    detector, told = Detector(), []
    for rank in range(8):
        detector.hello(hello(rank, 8))
    for rows in stream.digests():
        step = rows[0].step
        if step == 100:
            detector.left(3, rows[0].end_at_ns)
        if step == 160:
            detector.hello(hello(3, 8, pid=900))
        for digest in rows:
            if digest.rank != 3 or step < 100:
                detector.digest(digest)
            elif step >= 160:
                detector.digest(numbered(digest, step - 159))
        told += detector.look(rows[0].end_at_ns)
        if step == 110:
            assert not detector.open

    assert blamed(told) == {("slow_compute", (3,))}
    assert not detector.open


def test_a_restarted_job_counts_from_one_again() -> None:
    first = list(Stream(steps=150).digests())
    again = list(Stream(steps=150, compute=slow(2, factor=1.4, first=80), seed=9).digests())
    detector = Detector()
    watched(first, detector)
    for rank in range(8):
        detector.hello(hello(rank, 8, pid=5000))

    _, told = watched(again, detector, greet=False)

    assert blamed(told) == {("slow_compute", (2,))}


def test_numbers_that_go_back_without_a_new_process_are_a_restart() -> None:
    rounds = list(Stream(steps=150).digests())
    rounds += list(Stream(steps=150, compute=slow(2, factor=1.4, first=80), seed=9).digests())

    _, told = watched(rounds)

    assert blamed(told) == {("slow_compute", (2,))}


def test_ranks_that_count_from_elsewhere_are_aligned() -> None:
    stream = Stream(steps=200, compute=slow(3, factor=1.4, first=120))
    rounds = ([numbered(d, d.step + 1000 * (d.rank % 2)) for d in rows] for rows in stream.digests())

    _, told = watched(rounds)

    assert blamed(told) == {("slow_compute", (3,))}


HOSTILE = {
    "step": [-5, 0, 2**62],
    "step_ns": [-1, 0, 2**62],
    "forward_ns": [-(10**9), 2**62, 0],
    "backward_own_ns": [-1, 2**60],
    "data_ns": [-1, 2**60],
    "checkpoint_ns": [-1, 2**60],
    "garbage_ns": [-1, 2**60],
    "run_delay_ns": [-1, 2**60],
    "units": [-1, 0, 2**61],
    "rank": [-1],
}


def test_impossible_digests_change_nothing() -> None:
    draw = random.Random(3)
    stream = Stream(steps=200, compute=slow(3, factor=1.4, first=120))

    def rounds():  # type: ignore[no-untyped-def]
        for rows in stream.digests():
            bad = []
            for digest in rows[:2]:
                name = draw.choice(sorted(HOSTILE))
                bad.append(msgspec.structs.replace(digest, **{name: draw.choice(HOSTILE[name])}))
            yield bad + rows

    _, told = watched(rounds(), ranks=8)

    assert ("slow_compute", (3,)) in blamed(told)
    assert not {ranks for cause, ranks in blamed(told) if ranks} - {(3,), (0,), (1,)}


def test_a_flood_of_one_rank_does_not_hide_the_others() -> None:
    stream = Stream(steps=200, compute=slow(3, factor=1.4, first=120))
    last = next(iter(Stream(ranks=1, steps=1, seed=4).digests()))[0]
    detector, told = Detector(), []
    for rank in range(9):
        detector.hello(hello(rank, 9))
    flood = 1
    for rows in stream.digests():
        for _ in range(50):
            detector.digest(msgspec.structs.replace(last, rank=8, step=flood))
            flood += 1
        for digest in rows:
            detector.digest(digest)
        told += detector.look(rows[0].end_at_ns)

    assert ("slow_compute", (3,)) in blamed(told)


def test_memory_is_bounded() -> None:
    limits = replace(Limits(), most_ranks=64)
    detector = Detector(limits)
    draw = random.Random(2)
    sizes = []
    for part in range(4):
        for number in range(3000):
            rank = draw.randrange(10_000) if number % 3 else draw.randrange(8)
            step = draw.choice((part * 1000 + number // 24, draw.randrange(1, 10**9)))
            detector.digest(Digest(rank, step, EPOCH_NS, 10**9, forward_ns=10**8, data_ns=10**6, checkpoint_ns=10**6))
        detector.look(EPOCH_NS + part * 10**10)
        sizes.append(_size(detector))

    assert sizes[-1] < 3_000_000
    assert sizes[-1] < 1.5 * sizes[1]


def _size(thing: object) -> int:
    """Bytes of an object and all that it holds."""
    seen: set[int] = set()
    stack, total = [thing], 0
    while stack:
        one = stack.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        if isinstance(one, dict):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)) or type(one).__name__ == "deque":
            stack += list(one)  # type: ignore[call-overload]
        else:
            stack += list(getattr(one, "__dict__", {}).values())
            stack += [getattr(one, name) for name in getattr(type(one), "__slots__", ()) if hasattr(one, name)]
            stack += [getattr(one, name) for name in getattr(one, "__struct_fields__", ())]
    return total


def test_fields_may_be_missing_for_some_time() -> None:
    stream = Stream(steps=240, compute=slow(3, factor=1.4, first=150))
    names = ("forward_ns", "backward_ns", "backward_own_ns", "optimizer_ns")
    rounds = ([without(d, *names) if 60 <= d.step < 100 else d for d in rows] for rows in stream.digests())

    _, told = watched(rounds)

    assert blamed(told) == {("slow_compute", (3,))}
