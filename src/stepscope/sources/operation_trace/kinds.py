"""What operations of a trace do, by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Members = Literal["neighbours", "stage", "replica", "job", "tensor"]
"""Who takes part: two neighbours in the pipeline; all ranks of a stage; those of a data-parallel rank that have the
operation; all ranks; ranks of a tensor-parallel group, of which one is recorded."""


@dataclass(frozen=True)
class Communication:
    """A kind of communication: a part of its name, its operation, and who takes part."""

    part: str
    operation: str
    members: Members


COMMUNICATION = (
    Communication("-send", "send", "neighbours"),
    Communication("-recv", "recv", "neighbours"),
    Communication("params-all-gather", "all_gather", "stage"),
    Communication("embedding-grads-all-reduce", "all_reduce", "replica"),
    Communication("grads-reduce-scatter", "reduce_scatter", "stage"),
    Communication("clip-main-grad", "all_reduce", "job"),
    Communication("all-gather", "all_gather", "tensor"),
    Communication("reduce-scatter", "reduce_scatter", "tensor"),
    Communication("all-reduce", "all_reduce", "tensor"),
    Communication("all-to-all", "all_to_all", "tensor"),
    Communication("broadcast", "broadcast", "tensor"),
)
"""The first whose part is in a name decides; all others compute."""

GARBAGE_COLLECTION = "gc"

STREAMS = {"forward-send": 2, "forward-recv": 3, "backward-send": 4, "backward-recv": 5}
"""Streams of transfers between stages; other communication has stream 1, computing has stream 0."""


def communication(name: str) -> Communication | None:
    """What an operation communicates; None if it computes."""
    return next((kind for kind in COMMUNICATION if kind.part in name), None)
