"""Jobs of pipeline stages in memory, one forward and one backward in turn: times follow from lengths of passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stepscope.run import Run
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, RANKS, STEPS

MS = 1_000_000
SENT = MS
"""Length of a transfer once both sides have entered it."""

_OF_KERNEL = ("name", "start_ns", "duration_ns", "kind", "step")
STREAMS = {("recv", 1): 20, ("send", 1): 21, ("recv", -1): 22, ("send", -1): 23}


@dataclass
class Made:
    """Rows of a rank."""

    kernels: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Pipeline:
    """A job.

    Args:
        stages, copies, micro_batches, steps: How many.
        forward_ns, backward_ns: Time of a pass.
        weights_ns: Time of the part of a backward pass that only has to be done before the step ends: done instead of
            waiting, as zero-bubble schedules do.
        factor: Stage to how many times as long its passes take.
        step_ns: Time between starts of steps.
        size_bytes: What a transfer moves.
        named: Whether calls name the other side and groups their members.
        sizes: Whether the parallel sizes are recorded.
        marked: Whether kernels and calls state their micro-batch.
    """

    stages: int = 4
    copies: int = 1
    micro_batches: int = 6
    steps: int = 3
    forward_ns: int = 10 * MS
    backward_ns: int = 20 * MS
    weights_ns: int = 0
    factor: Mapping[int, float] = field(default_factory=dict)
    step_ns: int = 1000 * MS
    size_bytes: int = 1 << 20
    named: bool = True
    sizes: bool = True
    marked: bool = False

    @property
    def even_ns(self) -> int:
        """Length of a step with even stages and transfers of no length."""
        return (self.micro_batches + self.stages - 1) * (self.forward_ns + self.backward_ns)

    def passes(self, stage: int) -> list[tuple[int, int]]:
        """Direction (1 or -1) and micro-batch in the order of a stage."""
        ahead = min(self.stages - 1 - stage, self.micro_batches)
        order = [(1, number) for number in range(ahead)]
        for number in range(self.micro_batches):
            order += [(1, number + ahead)] if number + ahead < self.micro_batches else []
            order.append((-1, number))
        return order

    def run(self, change: Callable[[dict[int, Made]], None] | None = None) -> Run:
        """The job, once `change` has changed its rows."""
        made = {stage: Made() for stage in range(self.stages)}
        for step in range(self.steps):
            self._step(made, step)
        rows = {
            stage * self.copies + copy: Made([dict(one) for one in some.kernels], [dict(one) for one in some.calls])
            for stage, some in made.items()
            for copy in range(self.copies)
        }
        for rank, some in rows.items():
            for call in some.calls:
                peer = rank + call.pop("to") * self.copies
                pair = f"pp{min(rank, peer)}-{max(rank, peer)}"
                call.update({"group": pair, "peer": peer} if self.named else {"group": f"{rank}"})
        if change is not None:
            change(rows)
        return Run.from_frames({rank: self._tables(rank, some) for rank, some in rows.items()})

    def _step(self, made: dict[int, Made], step: int) -> None:
        """The passes of a step, in an order in which each can be placed: when it is free and has its input."""
        queues = {stage: self.passes(stage) for stage in range(self.stages)}
        free = dict.fromkeys(range(self.stages), step * self.step_ns)
        sent: dict[tuple[int, int, int], tuple[int, dict[str, Any]]] = {}
        left = dict.fromkeys(range(self.stages), 0)

        def compute(stage: int, name: str, length: int, number: int | None) -> None:
            row = {"name": name, "start_ns": free[stage], "duration_ns": length, "kind": "compute", "step": step + 1}
            made[stage].kernels.append({**row, "micro_batch": number})
            free[stage] += length

        while any(queues.values()):
            for stage, queue in queues.items():
                while queue:
                    way, number = queue[0]
                    source = stage - way
                    has_input = 0 <= source < self.stages
                    if has_input and (way, source, number) not in sent:
                        break
                    queue.pop(0)
                    more = {"micro_batch": number, "step": step + 1}
                    if has_input:
                        since, call = sent[way, source, number]
                        while left[stage] and free[stage] < since:
                            compute(stage, "weights", self.weights_ns, None)
                            left[stage] -= 1
                        end = max(since, free[stage]) + SENT
                        call["duration_ns"] = end - since
                        made[stage].calls.append(self._call("recv", -way, way, free[stage], end - free[stage], more))
                        free[stage] = end
                    length = round((self.forward_ns if way > 0 else self.backward_ns) * self.factor.get(stage, 1.0))
                    name = "forward" if way > 0 else "backward"
                    compute(stage, name, length, number)
                    left[stage] += way < 0 < self.weights_ns
                    if 0 <= stage + way < self.stages:
                        call = self._call("send", way, way, free[stage], SENT, more)
                        made[stage].calls.append(call)
                        sent[way, stage, number] = (free[stage], call)
        for stage, count in left.items():
            for _ in range(count):
                compute(stage, "weights", self.weights_ns, None)

    def _call(self, operation: str, to: int, way: int, start: int, length: int, more: dict[str, Any]) -> dict[str, Any]:
        return {
            **{"operation": operation, "to": to, "start_ns": start, "duration_ns": length, **more},
            **{"name": operation, "stream": STREAMS[operation, way], "size_bytes": self.size_bytes},
        }

    def _tables(self, rank: int, rows: Made) -> dict[str, pl.DataFrame]:
        starts = [step * self.step_ns for step in range(self.steps)]
        ends = [start + self.step_ns for start in starts]
        world = self.stages * self.copies
        sizes = f'{{"pipeline_parallel_size": {self.stages}}}' if self.sizes else None
        kernels = sorted(rows.kernels, key=lambda row: row["start_ns"])
        calls = sorted(rows.calls, key=lambda row: (row["start_ns"], row["operation"]))
        counts: dict[str, int] = {}
        for call in calls:
            call["sequence"] = counts.get(call["group"], 0)
            counts[call["group"]] = call["sequence"] + 1
        named = {group: [int(end) for end in group[2:].split("-")] for group in counts if group[:2] == "pp"}
        marked = {name: [row[name] if self.marked else None for row in kernels] for name in ("micro_batch",)}
        told = {name: [row[name] if self.marked else None for row in calls] for name in ("micro_batch",)}
        return {
            "ranks": RANKS.frame(
                rank=[rank],
                world_size=[world],
                device_kind=["cuda"],
                parallelism=[sizes],
                start_ns=[0],
                end_ns=ends[-1:],
            ),
            "groups": GROUPS.frame(group=list(named), name=["pp"] * len(named), members=list(named.values())),
            "steps": STEPS.frame(
                **{"step": [step + 1 for step in range(self.steps)], "start_ns": starts, "end_ns": ends},
                **{"window_start_ns": starts, "window_end_ns": ends, "window": ["device"] * self.steps},
            ),
            "kernels": KERNELS.frame(
                kernel=range(len(kernels)),
                **{
                    name: [row[name] for row in kernels] for name in ("name", "start_ns", "duration_ns", "kind", "step")
                },
                stream=[7] * len(kernels),
                **marked,
            ),
            "collectives": COLLECTIVES.frame(
                collective=range(len(calls)),
                **{
                    name: [row.get(name) for row in calls]
                    for name in (
                        *("group", "sequence", "operation", "name", "size_bytes", "peer", "start_ns", "duration_ns"),
                        *("stream", "step"),
                    )
                },
                on_device=[True] * len(calls),
                **told,
            ),
        }
