"""What looks like slowness and is none: nobody is accused."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest
from detect_streams import MS, STEP_NS, Stream, blamed, three_dimensional, watched

from stepscope.live.messages import Digest


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_a_healthy_job_accuses_nobody(ranks: int) -> None:
    _, told = watched(Stream(ranks=ranks, steps=1500, noise=0.05).digests())

    assert told == []


def test_random_stalls_accuse_nobody() -> None:
    draw = random.Random(5)
    stalls = lambda rank, step: min(10.0, 0.1 * draw.paretovariate(1.3)) if draw.random() < 0.02 else 0.0  # noqa: E731

    _, told = watched(Stream(steps=1500, stall=stalls).digests())

    assert told == []


def test_one_long_stall_accuses_nobody() -> None:
    _, told = watched(Stream(steps=200, stall=lambda rank, step: 20.0 if (rank, step) == (3, 120) else 0.0).digests())

    assert told == []


@pytest.mark.parametrize("shown", [True, False])
def test_garbage_collection_of_each_rank_in_its_own_time_accuses_nobody(shown: bool) -> None:
    def rounds() -> Iterator[list[Digest]]:
        stall = lambda rank, step: 0.3 if (step + 7 * rank) % 60 == 0 else 0.0  # noqa: E731
        for rows in Stream(steps=1200, stall=stall).digests():
            yield [_with(d, garbage_ns=round(stall(d.rank, d.step) * STEP_NS) if shown else None) for d in rows]

    _, told = watched(rounds())

    assert told == []


@pytest.mark.parametrize("known", [True, False])
def test_other_lengths_on_each_rank_and_step_accuse_nobody(known: bool) -> None:
    def rounds() -> Iterator[list[Digest]]:
        draw = random.Random(8)
        lengths: dict[tuple[int, int], float] = {}

        def work(rank: int, step: int) -> float:
            length = lengths[rank, step] = math.exp(draw.gauss(0, 0.3))
            return 0.2 + 0.8 * length

        for rows in Stream(steps=1000, compute=work).digests():
            yield [_with(d, units=round(4096 * lengths[d.rank, d.step]) if known else None) for d in rows]

    _, told = watched(rounds())

    assert told == []


def test_known_lengths_do_not_hide_a_slow_rank() -> None:
    def rounds() -> Iterator[list[Digest]]:
        draw = random.Random(8)
        lengths: dict[tuple[int, int], float] = {}

        def work(rank: int, step: int) -> float:
            length = lengths[rank, step] = math.exp(draw.gauss(0, 0.3))
            return (0.2 + 0.8 * length) * (1.15 if rank == 6 and step > 100 else 1.0)

        for rows in Stream(steps=200, compute=work).digests():
            yield [_with(d, units=round(4096 * lengths[d.rank, d.step])) for d in rows]

    _, told = watched(rounds())

    assert blamed(told) == {("slow_compute", (6,))}


def test_a_last_stage_that_is_slower_by_design_is_no_fault() -> None:
    groups, digests = three_dimensional(600, lambda rank, step: 1.3 if rank >= 4 else 1.0)

    _, told = watched(digests, groups=groups)

    assert told == []


def test_a_last_stage_is_no_fault_where_groups_have_no_names() -> None:
    groups, digests = three_dimensional(600, lambda rank, step: 1.3 if rank >= 4 else 1.0, communication=False)
    unnamed = [type(group)(group.key, group.members) for group in groups]

    _, told = watched(digests, groups=unnamed)

    assert told == []


def test_a_rank_of_the_last_stage_that_differs_from_its_peers_is_found() -> None:
    groups, digests = three_dimensional(
        120, lambda rank, step: (1.3 if rank >= 4 else 1.0) * (1.25 if rank == 6 else 1.0)
    )

    _, told = watched(digests, groups=groups)

    assert blamed(told) == {("slow_compute", (6,))}


def test_a_stage_without_peers_is_judged_by_its_past() -> None:
    _, told = watched(_pipeline(3, 1.0))
    assert told == []

    _, told = watched(_pipeline(3, 1.3))
    assert ("slow_compute", (3,)) in blamed(told)
    assert not {ranks for cause, ranks in blamed(told) if cause == "slow_compute"} - {(3,)}


def _pipeline(rank: int, factor: float) -> Iterator[list[Digest]]:
    """Four stages, all of one pipeline; the last is slower, and a rank becomes so in step 150."""
    draw = random.Random(2)
    for step in range(1, 260):
        own = [(1.4 if r == 3 else 1.0) * math.exp(draw.gauss(0, 0.03)) * 300 * MS for r in range(4)]
        if step >= 150:
            own[rank] *= factor
        total = max(own) * 1.4
        yield [
            Digest(
                rank=r,
                step=step,
                end_at_ns=step * STEP_NS + 10**18,
                step_ns=round(total),
                forward_ns=round(own[r] / 3),
                optimizer_ns=MS,
                data_ns=MS,
                checkpoint_ns=0,
                communication_ns=round(total - own[r] - MS),
                calls=[_transfer(r, total - own[r] - MS)],
            )
            for r in range(4)
        ]


def _transfer(rank: int, time_ns: float):  # type: ignore[no-untyped-def]
    from stepscope.live.messages import Calls

    peer = rank + 1 if rank < 3 else 2
    name = "send" if rank < 3 else "recv"
    return Calls(name, "world", 4, round(time_ns), round(5 * MS), None, 4_000_000, peer)


@pytest.fixture(autouse=True)
def _group_of_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs here have a group of all ranks unless they say otherwise."""
    import detect_streams as streams

    plain = streams.hello

    def hello(rank, ranks, groups=(), **more):  # type: ignore[no-untyped-def]
        from stepscope.live.messages import Group

        return plain(rank, ranks, list(groups) or [Group("world", list(range(ranks)))], **more)

    monkeypatch.setattr(streams, "hello", hello)


def test_warm_up_checkpoints_and_evaluation_accuse_nobody() -> None:
    def stall(rank: int, step: int) -> float:
        if step <= 3:
            return 40.0 / step * (1 + rank / 8)
        return 30.0 if step % 100 == 0 else 0.0

    stream = Stream(steps=900, stall=stall, checkpoint_every=50)

    _, told = watched(stream.digests())

    assert told == []


def test_a_rank_that_alone_evaluates_now_and_then_is_no_slow_rank() -> None:
    stall = lambda rank, step: 15.0 if rank == 0 and step % 120 == 0 else 0.0  # noqa: E731

    _, told = watched(Stream(steps=900, stall=stall).digests())

    assert told == []


def test_waits_for_a_late_loader_do_not_accuse_the_ranks_that_wait() -> None:
    def rounds() -> Iterator[list[Digest]]:
        # the forward pass of rank 1 begins with a broadcast, for which it waits
        for rows in Stream(ranks=2, steps=150, data=lambda r, s: 1.3 if r == 0 and s > 60 else 1.0).digests():
            late = rows[0].data_ns or 0
            yield [rows[0], _with(rows[1], forward_ns=(rows[1].forward_ns or 0) + late)]

    _, told = watched(rounds())

    assert blamed(told) <= {("slow_data", (0,))}


def test_a_host_that_wanders_a_little_is_no_fault() -> None:
    draw = random.Random(4)
    state = dict.fromkeys(range(4), 0.0)

    def wander(rank: int, step: int) -> float:
        if rank % 4 == 0:
            state[rank // 4] = 0.95 * state[rank // 4] + draw.gauss(0, 0.012 * math.sqrt(1 - 0.95**2))
        return math.exp(state[rank // 4])

    _, told = watched(Stream(ranks=16, steps=1200, compute=wander).digests())

    assert told == []


def _with(digest: Digest, **changes: object) -> Digest:
    fields = {name: getattr(digest, name) for name in digest.__struct_fields__}
    return Digest(**{**fields, **changes})
