"""Operation-level traces of small pipelines: times follow from lengths of operations as in a real pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

TRANSFER = 0.5
Length = Callable[[str, int, int, int, int], float]
"""Seconds that computing takes: `forward` or `backward`, data-parallel rank, stage, micro-batch, step."""


def usual(way: str, *_: int) -> float:
    """A second forward, two backward."""
    return 1.0 if way == "forward" else 2.0


@dataclass(frozen=True)
class Pipeline:
    """The sizes of a job; `late` is what the optimizer is started late by."""

    data: int = 2
    stages: int = 2
    tensor: int = 2
    chunks: int = 1
    micro_batches: int = 2
    late: float = 0.0

    def rank(self, replica: int, stage: int) -> int:
        return (stage * self.data + replica) * self.tensor

    def passes(self, stage: int) -> list[tuple[str, int, int]]:
        """Direction, chunk and micro-batch in the order of a stage: one forward, one backward; with several chunks all
        forward, then all backward."""
        if self.chunks > 1:
            forward = [("forward", chunk, one) for chunk in range(self.chunks) for one in range(self.micro_batches)]
            return forward + [
                ("backward", chunk, one) for chunk in reversed(range(self.chunks)) for one in range(self.micro_batches)
            ]
        ahead = min(self.stages - 1 - stage, self.micro_batches)
        order = [("forward", 0, one) for one in range(ahead)]
        for one in range(self.micro_batches):
            if one + ahead < self.micro_batches:
                order.append(("forward", 0, one + ahead))
            order.append(("backward", 0, one))
        return order

    def rows(self, step: int = 0, length: Length = usual) -> list[dict[str, Any]]:
        """The operations of a step, as rows of a trace."""
        found: list[dict[str, Any]] = []
        done: dict[tuple[str, int, int, int], float] = {}
        for replica in range(self.data):
            done |= self._replica(found, replica, step, length)
        for stage in range(self.stages):
            at = max(done["compute", replica, stage, 0] for replica in range(self.data))
            for replica in range(self.data):
                begin = done["compute", replica, stage, 0]
                self._add(found, replica, stage, step, "grads-reduce-scatter", begin, at + 1 - begin, mc=0)
                self._add(found, replica, stage, step, "optimizer", at + 1 + self.late, 1.0)
        return found

    def _replica(self, found: list[dict[str, Any]], replica: int, step: int, length: Length) -> dict[Any, float]:
        """One replica: passes run in the order of their stage as soon as their input is there."""
        done: dict[Any, float] = {}
        free = dict.fromkeys(range(self.stages), 1.0)
        sent: dict[Any, float] = {}
        last = self.stages * self.chunks - 1
        order = {stage: self.passes(stage) for stage in range(self.stages)}
        for stage in range(self.stages):
            self._add(found, replica, stage, step, "params-all-gather", 0.0, 1.0, mc=0)
        received: dict[tuple[str, int], float] = {}
        counts: dict[tuple[str, int], int] = {}
        while any(order.values()):
            for stage, left in order.items():
                if not left:
                    continue
                way, chunk, one = left[0]
                at = chunk * self.stages + stage
                source = at - 1 if way == "forward" else at + 1
                needs_input = 0 <= source <= last
                if needs_input and (way, source, one) not in done:
                    continue
                ready = free[stage]
                if needs_input:
                    posted, begun = received.get((way, stage), 0.0), done[way, source, one]
                    entered = max(posted, begun, sent.get((way, source % self.stages), 0.0))
                    arrived = entered + TRANSFER
                    sent[way, source % self.stages] = arrived
                    ready = max(ready, arrived)
                    for end, name, start in ((source, "send", begun), (at, "recv", posted)):
                        kind = f"{way}-{name}"
                        number = counts.get((kind, end % self.stages), 0)
                        counts[kind, end % self.stages] = number + 1
                        self._add(found, replica, end % self.stages, step, kind, start, arrived - start, seq=number)
                took = length(way, replica, stage, one, step)
                number = counts.get((way, stage), 0)
                counts[way, stage] = number + 1
                self._add(found, replica, stage, step, f"{way}-compute", ready, took, seq=number, mc=chunk, mb=one)
                free[stage] = done[way, at, one] = ready + took
                if needs_input:
                    received[way, stage] = ready + took
                left.pop(0)
        return {("compute", replica, stage, 0): end for stage, end in free.items()}

    def _add(
        self,
        found: list[dict[str, Any]],
        replica: int,
        stage: int,
        step: int,
        optype: str,
        start: float,
        took: float,
        *,
        seq: int = 0,
        mc: int = -1,
        mb: int = -1,
    ) -> None:
        place = {"dp_rank": replica, "stage": stage, "rank": self.rank(replica, stage), "step": step}
        chunk = mc * self.stages + stage if mb >= 0 else -1
        row = {
            "optype": optype,
            "start_ts": start,
            "duration": took,
            "seq_id": seq,
            "mc": mc,
            "mb_id": mb,
            "gmc": chunk,
        }
        found.append(place | row)


TYPES = {
    **dict.fromkeys(("dp_rank", "stage", "mc", "mb_id"), pl.Int8),
    **dict.fromkeys(("rank", "gmc"), pl.Int16),
    **dict.fromkeys(("start_ts", "duration"), pl.Float32),
    "step": pl.Int64,
    "seq_id": pl.Int32,
    "optype": pl.Categorical,
}


def write(
    directory: Path,
    pipeline: Pipeline = Pipeline(),
    *,
    steps: Sequence[int] = (3, 5),
    length: Length = usual,
    change: Callable[[pl.DataFrame], pl.DataFrame] = lambda rows: rows,
    name: str = "trace-AB.parquet",
) -> Path:
    """Write a trace; `change` makes others of its rows."""
    rows: Iterable[dict[str, Any]] = [row for step in steps for row in pipeline.rows(step, length)]
    frame = change(pl.DataFrame(rows).cast(TYPES))  # type: ignore[arg-type]
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    frame.write_parquet(file)
    return file
