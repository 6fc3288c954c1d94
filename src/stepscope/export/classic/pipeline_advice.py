"""What the figures of an input pipeline say about its operators, by fixed limits, and which one holds it up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """When a figure is worth a word; all in percent, as MindSpore's own analysis of these figures sets them."""

    high_cpu: float = 75
    """CPU use of a worker: more of them may help."""
    low_cpu: float = 20
    """CPU use of a worker: fewer of them may do."""
    low_leaf_queue: float = 50
    """Use of the queue behind a reader: it does not keep up."""
    high_root_input_empty: float = 60
    """Share of samples in which the queue before the device was empty."""
    queue_gap: float = 50
    """Use of the queue before an operator less that behind it: it does not keep up."""
    low_input_queue: float = 10
    """Use of the queue before an operator: it waits."""


@dataclass(frozen=True)
class Figures:
    """One operator; use and emptiness of its queue and CPU in percent; None and -1 where unknown."""

    number: int
    name: str
    kind: str
    workers: int
    children: list[int]
    queue: float | None
    empty: float | None
    cpu_per_worker: float


SINGLE = frozenset(("Barrier", "Concat", "EpochCtrl", "Rename", "Repeat", "Shuffle", "Skip", "Take", "Zip"))
"""Operators that run in one thread whatever the user sets."""

LIMITS = Limits()


def advise(figures: list[Figures]) -> dict[str, list[str]]:
    """Texts by key; keys without any text are left out, but for the bottleneck's."""
    by_number = {one.number: one for one in figures}
    tunable = [one for one in figures if one.kind not in SINGLE]
    told: dict[str, list[str]] = {
        "cpu_analysis_details": [text for one in tunable if (text := _about_cpu(one))],
        "queue_analysis_details": [text for one in tunable if (text := _about_queues(one, by_number))],
    }
    told = {key: texts for key, texts in told.items() if texts}
    warning, suggestion = _bottleneck(tunable, by_number)
    return {**told, "bottleneck_warning": [warning], "bottleneck_suggestion": [suggestion]} if warning else told


def _about_cpu(one: Figures) -> str:
    if one.cpu_per_worker > LIMITS.high_cpu:
        return (
            f"{one.name} is using {one.cpu_per_worker}% CPU per worker. "
            f"More than num_parallel_workers={one.workers} might bring more benefit due to high CPU usage per worker."
        )
    if 0 <= one.cpu_per_worker < LIMITS.low_cpu and one.workers > 1:
        return (
            f"{one.name} is using {one.cpu_per_worker}% CPU per worker. Using num_parallel_workers={one.workers} "
            f"might not bring as much benefit due to low CPU usage per worker."
        )
    return ""


def _about_queues(one: Figures, by_number: dict[int, Figures]) -> str:
    if one.kind == "Batch":
        return ""
    if not one.children:
        if one.queue is not None and one.queue < LIMITS.low_leaf_queue:
            return (
                f"{one.name}'s output queue usage={one.queue}% is low: this reader might not produce as fast as its "
                f"parent consumes. Try increasing num_parallel_workers, or reading from faster storage."
            )
        return ""
    child = _fullest(one, by_number)
    if child is not None and one.kind == "DataQueue" and (child.empty or 0) > LIMITS.high_root_input_empty:
        return (
            f"{one.name}'s input queue is empty in {child.empty}% of the samples: the whole pipeline might be slower "
            f"than the device. Look for its slowest operator."
        )
    if child is not None and _gap(one, child) > LIMITS.queue_gap:
        return (
            f"{one.name}'s input queue usage={child.queue}% is greater output queue usage={one.queue}%. "
            f"This indicates child op {child.name} might be producing faster than its parent {one.name} can consume. "
            f"If this op has low CPU utilization, try increasing prefetch_size or increasing num_workers."
        )
    return ""


def _fullest(one: Figures, by_number: dict[int, Figures]) -> Figures | None:
    children = [by_number[number] for number in one.children if number in by_number]
    with_queue = [child for child in children if child.queue is not None]
    return max(with_queue, key=lambda child: child.queue or 0.0, default=None)


def _gap(one: Figures, child: Figures) -> float:
    return 0.0 if one.queue is None or child.queue is None else child.queue - one.queue


def _bottleneck(tunable: list[Figures], by_number: dict[int, Figures]) -> tuple[str, str]:
    """The operator nearest to the training loop that holds the pipeline up, and what to try; empty without one."""
    found: tuple[str, str] = ("", "")
    for one in sorted(tunable, key=lambda figures: -figures.number):
        child = _fullest(one, by_number)
        if one.cpu_per_worker > LIMITS.high_cpu:
            share = f"{one.name} has high CPU utilization per worker of {one.cpu_per_worker}%"
            found = (one.name, f"{share} Try increasing num_parallel_workers above {one.workers}.")
        elif 0 <= one.cpu_per_worker < LIMITS.low_cpu and _is_odd(one, child):
            share = f"{one.name} has low CPU utilization per worker of {one.cpu_per_worker}%"
            found = (one.name, f"{share} and abnormal queue usage. Try increasing prefetch_size.")
    return found


def _is_odd(one: Figures, child: Figures | None) -> bool:
    """Whether the queues around an operator say that something between them is slow."""
    if child is None or child.queue is None:
        return False
    return child.queue < LIMITS.low_input_queue or _gap(one, child) > LIMITS.queue_gap
