"""Light records of a made-up data-parallel job: as our workers write them, or as TaskD does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.live.messages import Group, Hello
from stepscope.live.store import RecordStore
from stepscope.live.store.lines import call_name, host_range, timed_range

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000
Ranged = tuple[int, str, int, int, int, int]
"""Id, kind, start and end on the host, and on the device."""
Of = Callable[[int, int], float]
"""A figure by rank and step."""


def always(value: float) -> Of:
    """The same for all."""
    return lambda rank, step: value


def one(rank: int, value: float, rest: float) -> Of:
    """Another figure for one rank."""
    return lambda this, step: value if this == rank else rest


@dataclass
class LightJob:
    """A job whose ranks load a batch, run forward and backward, and reduce their gradients, waiting for one another.

    Args:
        ranks: How many.
        steps: How many.
        data: ms that a rank waits for its batch.
        forward: ms of its forward pass.
        backward: ms of its backward pass, which nothing marks.
        transfer: ms that the reduction takes when all are there, and how much of that varies.
        checkpoint: ms that saving a checkpoint takes, 0 for none.
        calls: Calls of the reduction in a step.
        sizes: Bytes of the calls, in turn.
        communicates: Whether calls are recorded in a step of a rank.
        on_device: Whether forward passes, steps and calls are timed on a device as well, 1 ms later.
        first_step: Number of the first step.
        pid: Of rank 0; each rank has the next one.
    """

    ranks: int = 4
    steps: int = 150
    data: Of = field(default_factory=lambda: always(1))
    forward: Of = field(default_factory=lambda: always(10))
    backward: Of = field(default_factory=lambda: always(10))
    transfer: float = 2
    varies: float = 0
    sizes: tuple[int, ...] = (4096,)
    checkpoint: Of = field(default_factory=lambda: always(0))
    calls: int = 2
    communicates: Callable[[int, int], bool] = lambda rank, step: True
    on_device: bool = False
    first_step: int = 1
    pid: int = 100
    start_ns: int = START_NS
    noise: float = 0.01

    def lines(self) -> Iterator[tuple[int, int, str]]:
        """Rank, step and the lines of it as ours, in order of steps."""
        for rank, step, ranges in self.ranges():
            yield rank, step, "".join(self._as_ours(rank, each) for each in ranges)

    def ranges(self) -> Iterator[tuple[int, int, list[Ranged]]]:
        """Of each step of each rank: id, kind, start, end, start and end on the device."""
        chance = random.Random(1)
        ids = [0] * self.ranks
        at = [self.start_ns + 1000 * rank for rank in range(self.ranks)]

        def add(to: list[list[Ranged]], rank: int, kind: str, start: int, end: int) -> None:
            ids[rank] += 1
            to[rank].append((ids[rank], kind, start, end, start + MS, end + MS))

        def some(of: Of, rank: int, step: int) -> int:
            return round(of(rank, step) * MS * (1 + self.noise * chance.gauss(0, 1)))

        for step in range(self.first_step, self.first_step + self.steps):
            begun, ready = list(at), [0] * self.ranks
            found: list[list[Ranged]] = [[] for _ in range(self.ranks)]
            for rank in range(self.ranks):
                now = at[rank]

                if saving := some(self.checkpoint, rank, step):
                    add(found, rank, "save_checkpoint", now, now + saving)
                    now += saving
                for kind, of in (("dataloader", self.data), ("forward", self.forward)):
                    end = now + some(of, rank, step)
                    add(found, rank, kind, now, end)
                    now = end + 20_000
                ready[rank] = now + some(self.backward, rank, step)
            for call in range(self.calls):
                takes = self.transfer * (1 - self.varies * chance.random() ** 2)
                over = max(ready) + round(takes * MS / self.calls)
                for rank in range(self.ranks):
                    if self.communicates(rank, step):
                        add(found, rank, f"call {call}", ready[rank], over)
                    ready[rank] = over + 10_000 + chance.randrange(5_000)
            for rank in range(self.ranks):
                at[rank] = ready[rank] + 200_000
                add(found, rank, f"step {step}", begun[rank], at[rank])
                yield rank, step, found[rank]

    def _as_ours(self, rank: int, each: Ranged) -> str:
        number, kind, start, end, device_start, device_end = each
        name, domain = kind, "default"
        if kind.startswith("call"):
            size = self.sizes[int(kind.split()[1]) % len(self.sizes)]
            detail = {"group": "0", "group_size": self.ranks, "size_bytes": size, "element_type": "float32"}
            name, domain = call_name("all_reduce", json.dumps({**detail, "async": False})), "communication"
        if self.on_device and kind not in ("dataloader", "save_checkpoint"):
            times = (device_start, device_end, 0, 3)
            return timed_range(number, name, domain, start, end, self.pid + rank, self.pid + rank, *times)
        return host_range(number, name, domain, start, end, self.pid + rank, self.pid + rank)

    def write(self, base: Path, task: str = "job", *, about: bool = True, limit_mb: int = 1000) -> Path:
        """Write the job with our store; returns the directory of the job."""
        stores = [RecordStore(base, task, rank, limit_mb=limit_mb) for rank in range(self.ranks)]
        group = Group(key="0", members=list(range(self.ranks)), name="default_group")
        for rank, store in enumerate(stores):
            if about:
                hello = Hello(task, rank, self.pid + rank, "node0", self.start_ns, self.ranks, groups=[group])
                store.write_worker(hello)
                store.write_groups([group], rank)
        for rank, _, text in self.lines():
            stores[rank].write(text)
        for store in stores:
            assert not store.problem, store.problem
            store.close()
        return base / task

    def write_as_taskd(self, base: Path, task: str = "default_task_id_1700000000") -> Path:
        """Write the job as TaskD does: device times for all but batches, names on the first marker only, steps that
        begin after their batch was loaded, markers of the device after those of the host."""
        texts: dict[int, list[str]] = {rank: [] for rank in range(self.ranks)}
        for rank, _, ranges in self.ranges():
            late: list[str] = []
            step_ns = next(start for _, kind, start, *_ in ranges if kind == "forward") - 10_000
            for number, kind, start, end, device_start, device_end in sorted(ranges, key=lambda each: each[2]):
                begun = step_ns if kind.startswith("step") else start
                timed = kind not in ("dataloader", "save_checkpoint")
                name, domain = kind, "default"
                if kind.startswith("call"):
                    domain = "communication"
                    call = {"streamId": "3", "count": "1024", "dataType": "FP32", "opName": "hcclAllreduce"}
                    name = json.dumps({**call, "groupName": "hccl_world_group"})
                texts[rank].append(_marker(16 if timed else 2, 0, begun, number, (self.pid + rank, 7), name, domain))
                texts[rank].append(_marker(32 if timed else 4, 0, end, number, (self.pid + rank, 7), "", ""))
                if timed:
                    late.append(_marker(16, 1, device_start, number, (0, 3), "", ""))
                    late.append(_marker(32, 1, device_end, number, (0, 3), "", ""))
            texts[rank] += late
        for rank, lines in texts.items():
            directory = base / task / str(rank)
            directory.mkdir(parents=True)
            (directory / "1700000000").write_text("".join(lines))
            (directory / "parallel_group.json").write_text(
                json.dumps(
                    {
                        "hccl_world_group": {
                            "group_name": "default_group",
                            "group_rank": rank,
                            "global_ranks": [*range(self.ranks)],
                        }
                    }
                )
            )
        return base / task


def _marker(flag: int, source: int, at_ns: int, number: int, ids: tuple[int, int], name: str, domain: str) -> str:
    same = {"Pt": {"ProcessId": ids[0], "ThreadId": ids[1]}, "Ds": {"DeviceId": ids[0], "StreamId": ids[1]}}
    values = [1, flag, source, at_ns, number, same, name, domain]
    keys = ["Kind", "Flag", "SourceKind", "Timestamp", "Id", "MsptiObjectId", "Name", "Domain"]
    return json.dumps(dict(zip(keys, values, strict=True)), separators=(",", ":")) + "\n"
