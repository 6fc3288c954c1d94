"""A dataset pipeline as a tree of operators, judged by how full their queues are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepscope.limits import limit

SINGLE = frozenset(("Barrier", "Concat", "EpochCtrl", "Rename", "Repeat", "Shuffle", "Skip", "Take", "Zip"))
"""Operators that always run in one thread, so their workers are not judged."""

SENDERS = ("DataQueue", "DeviceQueue")
"""Roots that send batches to the device."""

OVERLOADED, IDLE, TOO_MANY_WORKERS = "workers overloaded", "workers idle", "too many workers"
SLOW_READER, STARVED_DEVICE = "reader too slow", "queue before the device often empty"
FULLER_INPUT, EMPTY_INPUT = "input much fuller than output", "input nearly empty"
ALL_FULL = "all queues full"
"""Possible observations about an operator."""


@dataclass(frozen=True)
class Limits:
    """When the figures of a dataset operator are worth an observation."""

    high_usage: float = limit(0.8, "of a queue's capacity, mean", "MindSpore Insight")
    low_usage: float = limit(0.6, "of a queue's capacity, mean", "MindSpore Insight")
    usage_gap: float = limit(0.1, "of a queue's capacity, input minus output", "MindSpore Insight")
    high_worker_cpu: float = limit(0.75, "of a processor, for each worker", "MindSpore's dataset profiling")
    low_worker_cpu: float = limit(0.20, "of a processor, for each worker", "MindSpore's dataset profiling")
    low_reader_usage: float = limit(0.5, "of a reader's queue, mean", "MindSpore's dataset profiling")
    empty_root: float = limit(
        0.6, "of the samples with an empty queue before the device", "MindSpore's dataset profiling"
    )
    wide_gap: float = limit(0.5, "of a queue's capacity, input minus output", "MindSpore's dataset profiling")
    low_input: float = limit(0.1, "of the input queue's capacity", "MindSpore's dataset profiling")
    min_cpu_samples: int = limit(
        3, "samples of an operator's CPU use", "chosen by us: with fewer, a single busy or idle sample would decide"
    )


LIMITS = Limits()


@dataclass(frozen=True)
class Node:
    """One operator of a pipeline.

    Args:
        name: Type and number.
        kind: Type without a trailing `Op`.
        number: Its number.
        workers: Threads or processes; None if unknown.
        usage: Mean fill of its output queue, 0 to 1; None without a queue.
        empty: Share of samples in which that queue was empty.
        worker_cpu: Processors used by each worker; None if unknown or from too few samples.
        children: The operators that provide its input.
        depth: Distance from the root.
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
    """The bottlenecks of a pipeline, from the readers to the root.

    An operator is a bottleneck if its input queue is fuller than its output queue by more than `usage_gap`; a reader,
    if its queue is filled to less than `low_usage`; the root, if all queues are filled to `high_usage` (MindSpore
    Insight's rule).
    """
    by_name = {node.name: node for node in nodes}
    found = {node.name for node in nodes if _is_slow(node, by_name, limits)}
    found |= {node.name for node in nodes if _ends_full_queues(node, nodes, limits)}
    order = sorted(nodes, key=lambda node: (-node.depth, -node.number))
    return [node.name for node in order if node.name in found]


def _ends_full_queues(node: Node, nodes: Sequence[Node], limits: Limits) -> bool:
    """Whether a node is the root of a pipeline whose queues are all full."""
    used = [one.usage for one in nodes if one.usage is not None]
    return node.depth == 0 and bool(used) and min(used) >= limits.high_usage


def _is_slow(node: Node, by_name: Mapping[str, Node], limits: Limits) -> bool:
    if node.usage is None:
        return False
    if not node.children:
        return node.usage < limits.low_usage
    return input_usage(node, by_name) - node.usage > limits.usage_gap


def input_usage(node: Node, by_name: Mapping[str, Node]) -> float:
    """Fill of an operator's fullest input queue; negative if there is none."""
    used = [by_name[name].usage for name in node.children if name in by_name]
    return max((usage for usage in used if usage is not None), default=-1.0)


def observations(node: Node, nodes: Sequence[Node], limits: Limits = LIMITS) -> list[str]:
    """Observations about an operator by MindSpore's own limits."""
    about_all = [ALL_FULL] if _ends_full_queues(node, nodes, limits) else []
    if node.kind in SINGLE:
        return about_all
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
    return [text for text, holds in conditions if holds] + about_all


def _is_idle(node: Node, limits: Limits) -> bool:
    return node.worker_cpu is not None and node.worker_cpu < limits.low_worker_cpu


def _starves(node: Node, by_name: Mapping[str, Node], limits: Limits) -> bool:
    """Whether the root, which sends batches to the device, often has none to send."""
    if node.depth != 0 or node.kind not in SENDERS:
        return False
    empty = [by_name[name].empty or 0.0 for name in node.children if name in by_name]
    return max(empty, default=0.0) > limits.empty_root
