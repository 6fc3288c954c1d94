"""A dataset pipeline as a tree of operators, and what the fill of their queues says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepscope.limits import limit

SINGLE = frozenset(("Barrier", "Concat", "EpochCtrl", "Rename", "Repeat", "Shuffle", "Skip", "Take", "Zip"))
"""Operators that run in one thread whatever the user sets, so nothing is said about their workers."""

OVERLOADED, IDLE, TOO_MANY_WORKERS = "workers overloaded", "workers idle", "too many workers"
SLOW_READER, STARVED_DEVICE = "reader too slow", "queue before the device often empty"
FULLER_INPUT, EMPTY_INPUT = "input much fuller than output", "input nearly empty"
"""What may be observed of an operator."""


@dataclass(frozen=True)
class Limits:
    """When the figures of a dataset operator tell something."""

    high_usage: float = limit(0.8, "of a queue's room, mean", "MindSpore Insight")
    low_usage: float = limit(0.6, "of a queue's room, mean", "MindSpore Insight")
    usage_gap: float = limit(0.1, "of a queue's room, input less output", "MindSpore Insight")
    high_worker_cpu: float = limit(0.75, "of a processor, for each worker", "MindSpore's dataset profiling")
    low_worker_cpu: float = limit(0.20, "of a processor, for each worker", "MindSpore's dataset profiling")
    low_reader_usage: float = limit(0.5, "of a reader's queue, mean", "MindSpore's dataset profiling")
    empty_root: float = limit(
        0.6, "of the samples with an empty queue before the device", "MindSpore's dataset profiling"
    )
    wide_gap: float = limit(0.5, "of a queue's room, input less output", "MindSpore's dataset profiling")
    low_input: float = limit(0.1, "of a queue's room, input", "MindSpore's dataset profiling")
    min_cpu_samples: int = limit(
        3, "samples of an operator's CPU use", "chosen by us: with fewer, one busy or idle moment would decide"
    )


LIMITS = Limits()


@dataclass(frozen=True)
class Node:
    """One operator of a pipeline.

    Args:
        name: Type and number.
        kind: Type without a trailing `Op`.
        number: Its number.
        workers: Threads or processes; None where unknown.
        usage: Mean fill of its output queue, 0 to 1; None without a queue.
        empty: Share of samples in which that queue was empty.
        worker_cpu: Processors that each of its workers used; None if unknown, or known from too few samples.
        children: The operators that it takes from.
        depth: Steps from the root, which has 0.
    """

    name: str
    kind: str
    number: int
    workers: int | None
    usage: float | None
    empty: float | None
    worker_cpu: float | None
    children: tuple[str, ...]
    depth: int


def bottlenecks(nodes: Sequence[Node], limits: Limits = LIMITS) -> list[str]:
    """The operators that hold a pipeline up, from the readers to the root.

    An operator does, if the queue before it is fuller than that behind it by more than `usage_gap`; a reader, if its
    queue is filled to less than `low_usage`; the root, if all queues are filled to `high_usage` (MindSpore Insight's
    rule).
    """
    by_name = {node.name: node for node in nodes}
    found = {node.name for node in nodes if _is_slow(node, by_name, limits)}
    used = [node.usage for node in nodes if node.usage is not None]
    if used and min(used) >= limits.high_usage:
        found |= {node.name for node in nodes if node.depth == 0}
    order = sorted(nodes, key=lambda node: (-node.depth, -node.number))
    return [node.name for node in order if node.name in found]


def _is_slow(node: Node, by_name: Mapping[str, Node], limits: Limits) -> bool:
    if node.usage is None:
        return False
    if not node.children:
        return node.usage < limits.low_usage
    return input_usage(node, by_name) - node.usage > limits.usage_gap


def input_usage(node: Node, by_name: Mapping[str, Node]) -> float:
    """Fill of the fullest queue before an operator; below 0 if there is none."""
    used = [by_name[name].usage for name in node.children if name in by_name]
    return max((usage for usage in used if usage is not None), default=-1.0)


def observations(node: Node, nodes: Sequence[Node], limits: Limits = LIMITS) -> list[str]:
    """What MindSpore's own limits say about an operator.

    Returns:
        Any of `workers overloaded`, `workers idle`, `too many workers`, `reader too slow`, `queue before the device
        often empty`, `input much fuller than output`, `input nearly empty`.
    """
    if node.kind in SINGLE:
        return []
    by_name = {one.name: one for one in nodes}
    before = input_usage(node, by_name)
    conditions: list[tuple[str, bool]] = [
        (OVERLOADED, (node.worker_cpu or 0.0) > limits.high_worker_cpu),
        (IDLE, _is_idle(node, limits)),
        (TOO_MANY_WORKERS, _is_idle(node, limits) and (node.workers or 1) > 1),
        (SLOW_READER, not node.children and node.usage is not None and node.usage < limits.low_reader_usage),
        (STARVED_DEVICE, _starves(node, by_name, limits)),
        (FULLER_INPUT, node.usage is not None and before - node.usage > limits.wide_gap),
        (EMPTY_INPUT, 0 <= before < limits.low_input),
    ]
    return [text for text, holds in conditions if holds]


def _is_idle(node: Node, limits: Limits) -> bool:
    return node.worker_cpu is not None and node.worker_cpu < limits.low_worker_cpu


def _starves(node: Node, by_name: Mapping[str, Node], limits: Limits) -> bool:
    """Whether the root, which hands batches to the device, often finds nothing to hand on."""
    if node.depth != 0 or node.kind not in ("DataQueue", "DeviceQueue"):
        return False
    empty = [by_name[name].empty or 0.0 for name in node.children if name in by_name]
    return max(empty, default=0.0) > limits.empty_root
