"""Simulates a job step by step: who computes how long, and who therefore waits for whom."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from simulated_live.jobs import HOST_RANKS, Job
from stepscope.live.messages import Calls, Digest, Group, Hello

S = 1_000_000_000
FORWARD_SHARE, BACKWARD_SHARE, OPTIMIZER_SHARE = 0.28, 0.52, 0.06
"""Of a step; the rest is communication."""
TRANSFER_SHARE = 0.1
BIG = 25_000_000


class Simulation:
    """A running job. `communication` may be switched while it runs."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.communication = job.communication
        self._random = random.Random(job.seed)
        world, noise, draw = job.layout.world, job.noise, self._random
        self.hosts = [f"host{rank // HOST_RANKS}" for rank in range(world)]
        self._lasting = [math.exp(draw.gauss(0, noise.ranks)) for _ in range(world)]
        self._host_state = [draw.gauss(0, noise.host) for _ in range((world - 1) // HOST_RANKS + 1)]
        self._phases = [draw.uniform(0, 2 * math.pi) for _ in range(2 * world)]
        self._garbage_at = [draw.uniform(0, noise.garbage_every) for _ in range(world)]
        self._links: dict[tuple[object, ...], float] = {}
        self._offsets = [draw.gauss(0, 2e6) for _ in self._host_state]
        """Clocks of hosts differ."""
        self._starts = [0.0] * world
        self._step_began = [0.0] * world
        self.groups = self._groups()

    def hellos(self) -> list[Hello]:
        """What the workers say first."""
        return [
            Hello(
                job="simulated",
                rank=rank,
                pid=1000 + rank,
                host=host,
                started_at_ns=1,
                world_size=self.job.layout.world,
                local_rank=rank % HOST_RANKS,
                framework="torch",
                device="cuda" if self.job.device else "cpu",
                groups=[group for group in self.groups if rank in group.members],
            )
            for rank, host in enumerate(self.hosts)
        ]

    def steps(self) -> Iterator[tuple[float, list[Digest]]]:
        """When each step has ended on all ranks, s since the start, and its digests."""
        for step in range(1, self.job.steps + 1):
            digests = self._step(step)
            yield max(self._starts), digests

    def _groups(self) -> list[Group]:
        layout, named = self.job.layout, self.job.groups_named
        groups = [Group("world", list(range(layout.world)), "default_pg")]
        if layout.tensor == layout.pipeline == 1:
            return groups
        axes = ("tp", layout.tensor), ("dp", layout.data), ("pp", layout.pipeline)
        for axis, (name, size) in enumerate(axes):
            if size == 1:
                continue
            sets: dict[tuple[int, ...], list[int]] = {}
            for rank in range(layout.world):
                place = list(layout.place(rank))
                place[axis] = -1
                sets.setdefault(tuple(place), []).append(rank)
            for number, members in enumerate(sets.values()):
                groups.append(Group(f"{name}{number}" if named else f"g{axis}{number}", members, name if named else ""))
        return groups

    def _factor(self, kind: str, rank: int, step: int) -> float:
        factor = 1.0
        for fault in self.job.faults:
            applies = fault.kind == kind or (fault.kind == "job" and kind == "compute")
            if applies and fault.strikes(rank, step):
                factor *= fault.factor
        return factor

    def _link(self, key: tuple[object, ...], ranks: tuple[int, ...], step: int, kind: str = "link") -> float:
        """How many times as long as usual a transfer takes."""
        noise, draw = self.job.noise, self._random
        lasting = self._links.setdefault(key, math.exp(draw.gauss(0, noise.links_apart)))
        factor = lasting * math.exp(abs(draw.gauss(0, noise.links)))
        for fault in self.job.faults:
            if fault.kind == kind and set(fault.ranks) == set(ranks) and fault.strikes(ranks[0], step):
                factor *= fault.factor
        return factor

    def _wander(self, step: int) -> list[float]:
        """What each host's work takes longer in this step."""
        noise, draw = self.job.noise, self._random
        innovation = noise.host * math.sqrt(1 - noise.host_memory**2)
        self._host_state = [noise.host_memory * s + draw.gauss(0, innovation) for s in self._host_state]
        angle = 2 * math.pi * step * self.job.step_s / 3600
        return [
            state + noise.drift / 2 * math.sin(angle + phase)
            for state, phase in zip(self._host_state, self._phases, strict=False)
        ]

    def _works(self, step: int) -> list[tuple[float, float, float, float, float, float, float]]:
        """Of each rank, s: forward, backward, optimizer, data, checkpoint, garbage, length."""
        job, noise, draw = self.job, self.job.noise, self._random
        layout = job.layout
        wander = self._wander(step)
        same_length = math.exp(draw.gauss(0, job.length_spread)) if job.lengths == "same" else 1.0
        lengths: dict[int, float] = {}
        angle = 2 * math.pi * step * job.step_s / 3600
        warm = 1 + 19 * draw.random() if step == 1 else (1.5 if step <= job.starts else 1.0)
        found = []
        for rank in range(layout.world):
            _, replica, stage = layout.place(rank)
            length = same_length
            if job.lengths == "each":
                length = lengths.setdefault(replica, math.exp(draw.gauss(0, job.length_spread)))
            work = 0.15 + 0.7 * length + 0.15 * length * length
            slow = self._factor("compute", rank, step)
            drift = noise.drift / 2 * math.sin(angle + self._phases[len(self._host_state) + rank - 1])
            common = self._lasting[rank] * math.exp(wander[rank // HOST_RANKS] + drift) * work * slow * warm
            if layout.pipeline > 1 and stage == layout.pipeline - 1:
                common *= layout.last_stage
            # the noise of the parts adds up to that of the step
            forward = job.step_s * FORWARD_SHARE * common * math.exp(draw.gauss(0, 1.3 * noise.step))
            backward = job.step_s * BACKWARD_SHARE * common * math.exp(draw.gauss(0, 1.3 * noise.step))
            optimizer = job.step_s * OPTIMIZER_SHARE * slow * math.exp(draw.gauss(0, noise.step))
            if draw.random() < noise.stalls:
                stall = job.step_s * min(20.0, noise.stall_ratio * draw.paretovariate(1.5))
                if draw.random() < 0.4:
                    forward += stall
                else:
                    backward += stall
            garbage = self._garbage(rank, step)
            backward += garbage
            if job.evaluates and step % job.evaluates == 0:
                forward += 20 * job.step_s * math.exp(draw.gauss(0, 0.02))
            data = noise.loader_s * math.exp(draw.gauss(0, 0.4))
            if draw.random() < noise.loader_stalls:
                data += draw.expovariate(1 / noise.loader_stall_s)
            data += (self._factor("data", rank, step) - 1) * job.step_s * math.exp(draw.gauss(0, 0.1))
            checkpoint = 0.0
            if noise.checkpoint_every and step % noise.checkpoint_every == 0:
                checkpoint = noise.checkpoint_s * math.exp(draw.gauss(0, noise.checkpoint_noise))
                checkpoint *= self._factor("checkpoint", rank, step)
            found.append((forward, backward, optimizer, data, checkpoint, garbage, length))
        return found

    def _garbage(self, rank: int, step: int) -> float:
        noise, draw = self.job.noise, self._random
        garbage = 0.0
        if noise.garbage_every and step >= self._garbage_at[rank]:
            self._garbage_at[rank] += noise.garbage_every * draw.uniform(0.7, 1.3)
            garbage = noise.garbage_s * draw.uniform(0.5, 1.7)
        for fault in self.job.faults:
            if fault.kind == "garbage" and fault.strikes(rank, step):
                garbage += (fault.factor - 1) * self.job.step_s * draw.uniform(0.8, 1.2)
        return garbage

    def _step(self, step: int) -> list[Digest]:
        works = self._works(step)
        layout = self.job.layout
        if layout.tensor == layout.pipeline == 1:
            return self._data_parallel(step, works)
        return self._three_dimensional(step, works)

    def _data_parallel(self, step: int, works: Sequence[tuple[float, ...]]) -> list[Digest]:
        """All gradients are reduced while the backward passes go on, so all wait for the last."""
        ready = [start + w[3] + w[0] + w[1] for start, w in zip(self._starts, works, strict=True)]
        everyone = tuple(range(len(works)))
        transfer = TRANSFER_SHARE * self.job.step_s * self._link(("world",), everyone, step)
        done = max(ready) + transfer
        digests = []
        for rank, (forward, backward, optimizer, data, checkpoint, garbage, length) in enumerate(works):
            start = self._starts[rank]
            end = done + optimizer + checkpoint
            wait = done - ready[rank]
            calls = [self._call("all_reduce", "world", 4, wait, 4 * BIG)] if self.communication else None
            digests.append(
                self._digest(
                    rank, step, start, end, forward, backward + wait, backward, optimizer, data, checkpoint, garbage,
                    length, calls,
                )
            )  # fmt: skip
            self._starts[rank] = end
        return digests

    def _three_dimensional(self, step: int, works: Sequence[tuple[float, ...]]) -> list[Digest]:
        """Tensor-parallel ranks wait for each other all the time, stages for the slowest, replicas at the end."""
        job, layout = self.job, self.job.layout
        share = TRANSFER_SHARE * job.step_s
        micro = layout.micro_batches
        own = [w[0] + w[1] for w in works]
        group_time: dict[tuple[int, int], float] = {}
        tensor_transfer: dict[tuple[int, int], float] = {}
        sends: dict[tuple[int, int], float] = {}
        replica_end: dict[int, float] = {}
        for replica in range(layout.data):
            for stage in range(layout.pipeline):
                members = tuple(layout.rank(t, replica, stage) for t in range(layout.tensor))
                transfer = 0.4 * share * self._link(("tp", replica, stage), members, step) if len(members) > 1 else 0.0
                tensor_transfer[replica, stage] = transfer
                arrive = [self._starts[m] + works[m][3] - min(self._starts[n] for n in members) for m in members]
                group_time[replica, stage] = transfer + max(o + own[m] for o, m in zip(arrive, members, strict=True))
                for t in range(layout.tensor):
                    if stage + 1 < layout.pipeline:
                        pair = layout.rank(t, replica, stage), layout.rank(t, replica, stage + 1)
                        sends[pair] = 0.3 * share * self._link(("pp", *pair), pair, step, "send")
            times = [group_time[replica, stage] for stage in range(layout.pipeline)]
            hops = [max(s for p, s in sends.items() if layout.place(p[0])[1:] == (replica, stage))
                    for stage in range(layout.pipeline - 1)]  # fmt: skip
            begin = min(self._starts[layout.rank(t, replica, 0)] for t in range(layout.tensor))
            length = sum(times) / micro + (micro - 1) / micro * max(times) + sum(hops)
            replica_end[replica] = begin + length
        last = max(replica_end.values())
        reduce: dict[tuple[int, int], float] = {}
        for t in range(layout.tensor):
            for stage in range(layout.pipeline):
                members = tuple(layout.rank(t, d, stage) for d in range(layout.data))
                reduce[t, stage] = 0.3 * share * self._link(("dp", t, stage), members, step) if layout.data > 1 else 0.0
        done = last + max(reduce.values())
        began = list(self._starts)
        return [
            self._of_rank(
                step, rank, works[rank], own, group_time, tensor_transfer, sends, replica_end, reduce, done, began
            )
            for rank in range(layout.world)
        ]

    def _of_rank(
        self,
        step: int,
        rank: int,
        work: tuple[float, ...],
        own: list[float],
        group_time: dict[tuple[int, int], float],
        tensor_transfer: dict[tuple[int, int], float],
        sends: dict[tuple[int, int], float],
        replica_end: dict[int, float],
        reduce: dict[tuple[int, int], float],
        done: float,
        began: list[float],
    ) -> Digest:
        layout = self.job.layout
        forward, backward, optimizer, data, checkpoint, garbage, length = work
        t, replica, stage = layout.place(rank)
        start = began[rank]
        end = done + optimizer + checkpoint
        in_tensor = 0.0
        if layout.tensor > 1:
            group_began = min(began[layout.rank(other, replica, stage)] for other in range(layout.tensor))
            late = began[rank] - group_began + data + own[rank]
            in_tensor = max(tensor_transfer[replica, stage], group_time[replica, stage] - late)
        mine = {pair: s for pair, s in sends.items() if rank in pair}
        rest = max(0.0, end - start - forward - backward - optimizer - data - checkpoint - in_tensor)
        in_reduce = min(rest, max(reduce[t, stage], done - replica_end[replica])) if layout.data > 1 else 0.0
        bubble = max(0.0, rest - in_reduce)
        calls = None
        if self.communication:
            calls = []
            if layout.tensor > 1:
                key = self._group_key(0, rank)
                calls.append(self._call("all_reduce", key, 4 * layout.micro_batches, in_tensor, 8 * BIG))
            micro = layout.micro_batches
            waits = bubble - sum(mine.values())
            for pair, seconds in mine.items():
                peer = pair[1] if pair[0] == rank else pair[0]
                # filling and draining the pipeline is spent in transfers, as is waiting for the other end
                extra = max(0.0, waits) / len(mine)
                key = self._group_key(2, rank)
                name = "send" if pair[0] == rank else "recv"
                calls.append(self._call(name, key, micro, seconds + extra, 2 * BIG, peer, seconds / micro))
            if layout.data > 1:
                calls.append(self._call("all_reduce", self._group_key(1, rank), 2, in_reduce, 4 * BIG))
        shown_forward = forward + in_tensor * FORWARD_SHARE / (FORWARD_SHARE + BACKWARD_SHARE)
        self._starts[rank] = end
        return self._digest(
            rank, step, start, end, shown_forward, backward + in_tensor + bubble, None, optimizer, data, checkpoint,
            garbage, length, calls,
        )  # fmt: skip

    def _group_key(self, axis: int, rank: int) -> str:
        keys = self.__dict__.setdefault("_keys", {})
        if not keys:
            for group in self.groups[1:]:
                for member in group.members:
                    name = group.name or {"g0": "tp", "g1": "dp", "g2": "pp"}[group.key[:2]]
                    keys[("tp", "dp", "pp").index(name), member] = group.key
        return str(keys[axis, rank])

    def _call(
        self, name: str, group: str, count: int, seconds: float, size: int, peer: int | None = None,
        shortest: float | None = None,
    ) -> Calls:  # fmt: skip
        ns = max(1, round(seconds * S))
        least = round((seconds / count if shortest is None else shortest) * S * self._random.uniform(0.9, 1.0))
        if self.job.device:
            return Calls(name, group, count, count * 20_000, 15_000, ns, size, peer, True, max(1, least))
        return Calls(name, group, count, ns, max(1, least), None, size, peer)

    def _digest(
        self, rank: int, step: int, start: float, end: float, forward: float, backward: float, own: float | None,
        optimizer: float, data: float, checkpoint: float, garbage: float, length: float, calls: list[Calls] | None,
    ) -> Digest:  # fmt: skip
        job = self.job
        step_ns = round((end - start) * S)
        launch = 0.2 if job.device else 1.0
        return Digest(
            rank=rank,
            step=step,
            end_at_ns=round(1.7e18 + end * S + self._offsets[rank // HOST_RANKS]),
            step_ns=step_ns,
            forward_ns=round(forward * launch * S),
            backward_ns=round(backward * launch * S),
            backward_own_ns=None if own is None or job.device else round(own * S),
            optimizer_ns=round(optimizer * launch * S),
            data_ns=round(data * S),
            checkpoint_ns=round(checkpoint * S),
            communication_ns=None if calls is None else sum(call.time_ns for call in calls),
            garbage_ns=round(garbage * S) if job.noise.garbage_shown else None,
            device_step_ns=step_ns if job.device else None,
            device_forward_ns=round(forward * S) if job.device else None,
            units=round(4096 * length) if job.units_known else None,
            calls=calls or [],
        )
