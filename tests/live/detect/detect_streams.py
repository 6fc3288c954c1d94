"""Small streams of digests with known faults, independent of the simulator of the benchmarks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from stepscope.live.detect import Detector
from stepscope.live.messages import Calls, Digest, Group, Hello
from stepscope.live.verdicts import Verdict

MS = 1_000_000
STEP_NS = 500 * MS
EPOCH_NS = 1_700_000_000_000_000_000

Change = Callable[[int, int], float]
"""Of rank and step."""


def nothing(rank: int, step: int) -> float:
    return 1.0


def slow(*ranks: int, factor: float, first: int = 1, last: int = 10**9, every: int = 1) -> Change:
    """Some ranks are slow in some steps."""
    return lambda rank, step: factor if rank in ranks and first <= step <= last and step % every == 0 else 1.0


@dataclass(frozen=True)
class Stream:
    """A data-parallel job; times are those of each rank before waits."""

    ranks: int = 8
    steps: int = 200
    compute: Change = nothing
    data: Change = nothing
    """How much longer waits for batches are, in steps, beyond 1."""
    checkpoint: Change = nothing
    checkpoint_every: int = 0
    stall: Callable[[int, int], float] = lambda rank, step: 0.0
    """Further time in the backward pass, in steps."""
    noise: float = 0.03
    seed: int = 1

    def digests(self) -> Iterator[list[Digest]]:
        draw = random.Random(self.seed)
        now = EPOCH_NS
        for step in range(1, self.steps + 1):
            rows = []
            for rank in range(self.ranks):
                factor = self.compute(rank, step) * math.exp(draw.gauss(0, self.noise))
                forward, backward = 130 * MS * factor, 260 * MS * factor
                backward += self.stall(rank, step) * STEP_NS
                data = 2 * MS * math.exp(draw.gauss(0, 0.3)) + (self.data(rank, step) - 1) * STEP_NS
                saves = self.checkpoint_every and step % self.checkpoint_every == 0
                checkpoint = 900 * MS * self.checkpoint(rank, step) * math.exp(draw.gauss(0, 0.1)) if saves else 0
                rows.append((rank, forward, backward, data, checkpoint))
            longest = max(forward + backward + data for _, forward, backward, data, _ in rows)
            saving = max(checkpoint for *_, checkpoint in rows)
            step_ns = longest + 60 * MS + saving
            now += round(step_ns)
            yield [
                Digest(
                    rank=rank,
                    step=step,
                    end_at_ns=now,
                    step_ns=round(step_ns),
                    forward_ns=round(forward),
                    backward_ns=round(longest - forward - data + 50 * MS),
                    backward_own_ns=round(backward),
                    optimizer_ns=10 * MS,
                    data_ns=round(data),
                    checkpoint_ns=round(checkpoint),
                )
                for rank, forward, backward, data, checkpoint in rows
            ]


def hello(rank: int, ranks: int, groups: Iterable[Group] = (), pid: int = 100, of_host: int = 4) -> Hello:
    return Hello(
        job="job",
        rank=rank,
        pid=pid + rank,
        host=f"host{rank // of_host}",
        started_at_ns=1,
        world_size=ranks,
        groups=[group for group in groups if rank in group.members],
    )


def watched(
    rounds: Iterable[list[Digest]],
    detector: Detector | None = None,
    groups: Iterable[Group] = (),
    *,
    greet: bool = True,
    ranks: int | None = None,
) -> tuple[Detector, list[Verdict]]:
    """Feed a detector step by step, with a look after each; return it and all that it said."""
    detector = detector or Detector()
    told: list[Verdict] = []
    for number, digests in enumerate(rounds):
        if greet and not number:
            for digest in sorted(digests, key=lambda one: one.rank):
                detector.hello(hello(digest.rank, ranks or len(digests), groups))
        now = max((digest.end_at_ns for digest in digests), default=EPOCH_NS)
        for digest in digests:
            detector.digest(digest)
        told += detector.look(now)
    return detector, told


def blamed(told: Iterable[Verdict]) -> set[tuple[str, tuple[int, ...]]]:
    """Causes and ranks of all verdicts."""
    return {(verdict.cause.value, tuple(verdict.ranks)) for verdict in told}


def three_dimensional(
    steps: int,
    own: Callable[[int, int], float],
    transfer: Callable[[str, int], float] = lambda group, step: 1.0,
    *,
    communication: bool = True,
    noise: float = 0.02,
    seed: int = 1,
) -> tuple[list[Group], Iterator[list[Digest]]]:
    """A job of 2 tensor-parallel ranks, 2 data-parallel ones and 2 stages, 8 ranks on 2 hosts.

    Args:
        steps: How many.
        own: How many times as long a rank computes in a step.
        transfer: How many times as long the calls of a group take.
        communication: Whether calls are known.
        noise: Of the times, as a standard deviation of logarithms.
        seed: Of the noise.
    """
    groups = [Group("world", list(range(8)), "default_pg")]
    groups += [Group(f"tp{n}", [2 * n, 2 * n + 1], "tp") for n in range(4)]
    groups += [Group(f"dp{stage}{t}", [4 * stage + t, 4 * stage + t + 2], "dp") for stage in (0, 1) for t in (0, 1)]
    groups += [Group(f"pp{n}", [n, n + 4], "pp") for n in range(4)]
    keys = {(group.name, member): group.key for group in groups for member in group.members}
    return groups, _three_dimensional(steps, own, transfer, communication, noise, random.Random(seed), keys)


def _three_dimensional(
    steps: int,
    own: Callable[[int, int], float],
    transfer: Callable[[str, int], float],
    communication: bool,
    noise: float,
    draw: random.Random,
    keys: dict[tuple[str, int], str],
) -> Iterator[list[Digest]]:
    now = EPOCH_NS
    for step in range(1, steps + 1):
        work = [300 * MS * own(rank, step) * math.exp(draw.gauss(0, noise)) for rank in range(8)]
        calls = {key: 20 * MS * transfer(key, step) * math.exp(draw.gauss(0, noise)) for key in keys.values()}
        pair = [max(work[rank - rank % 2], work[rank - rank % 2 + 1]) for rank in range(8)]
        after_tensor = [pair[rank] + calls[keys["tp", rank]] for rank in range(8)]
        after_pipeline = [
            max(after_tensor[rank], after_tensor[(rank + 4) % 8]) + calls[keys["pp", rank]] for rank in range(8)
        ]
        pairs = [max(after_pipeline[rank], after_pipeline[rank ^ 2]) for rank in range(8)]
        ends = [pairs[rank] + calls[keys["dp", rank]] for rank in range(8)]
        end = max(ends)
        now += round(end + 20 * MS)
        digests = []
        for rank in range(8):
            in_tensor = after_tensor[rank] - work[rank]
            in_pipeline = after_pipeline[rank] - after_tensor[rank]
            in_data = ends[rank] - after_pipeline[rank]
            listed = [
                Calls("all_reduce", keys["tp", rank], 8, round(in_tensor), 1, None, 8_000_000),
                Calls(
                    "send" if rank < 4 else "recv",
                    keys["pp", rank],
                    4,
                    round(in_pipeline),
                    round(calls[keys["pp", rank]] / 4),
                    None,
                    4_000_000,
                    (rank + 4) % 8,
                ),
                Calls("all_reduce", keys["dp", rank], 2, round(in_data), 1, None, 16_000_000),
            ]
            digests.append(
                Digest(
                    rank=rank,
                    step=step,
                    end_at_ns=now,
                    step_ns=round(ends[rank] + 20 * MS),
                    forward_ns=round((work[rank] + in_tensor) / 3),
                    backward_ns=round(2 * (work[rank] + in_tensor) / 3 + in_pipeline),
                    optimizer_ns=10 * MS,
                    data_ns=1 * MS,
                    checkpoint_ns=0,
                    communication_ns=sum(call.time_ns for call in listed) if communication else None,
                    calls=listed if communication else [],
                )
            )
        yield digests


def without(digest: Digest, *names: str) -> Digest:
    """A digest in which some times are unknown."""
    fields = {name: getattr(digest, name) for name in digest.__struct_fields__}
    return Digest(**{**fields, **dict.fromkeys(names)})


def numbered(digest: Digest, step: int) -> Digest:
    """A digest with another number of its step."""
    fields = {name: getattr(digest, name) for name in digest.__struct_fields__}
    return Digest(**{**fields, "step": step})


__all__ = ["Stream", "blamed", "hello", "numbered", "replace", "slow", "three_dimensional", "watched", "without"]
