"""What MindSpore's own summary of an input pipeline says, in its words, about what `pipeline_graph` observes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepscope.analysis.methods.pipeline_graph import (
    EMPTY_INPUT,
    FULLER_INPUT,
    IDLE,
    OVERLOADED,
    SLOW_READER,
    STARVED_DEVICE,
    TOO_MANY_WORKERS,
    Limits,
    Node,
    observations,
)


def advise(nodes: Sequence[Node], limits: Limits) -> dict[str, list[str]]:
    """Texts by key of the summary; keys without any text are left out."""
    by_name = {node.name: node for node in nodes}
    observed = {node.name: observations(node, nodes, limits) for node in nodes}
    details = {
        "cpu_analysis_details": [_about_cpu(node, observed[node.name]) for node in nodes],
        "queue_analysis_details": [_about_queues(node, observed[node.name], by_name) for node in nodes],
    }
    known = {key: [text for text in texts if text] for key, texts in details.items()}
    nearest_first = sorted(nodes, key=lambda node: node.number)  # to the training loop
    found = next(
        ((node.name, text) for node in nearest_first if (text := _suggestion(node, observed[node.name]))), None
    )
    if found:
        known |= {"bottleneck_warning": [found[0]], "bottleneck_suggestion": [found[1]]}
    return {key: texts for key, texts in known.items() if texts}


def percent(ratio: float) -> float:
    """A share as the file has it."""
    return round(100 * ratio, 2)


def _about_cpu(node: Node, observed: Sequence[str]) -> str:
    using = f"{node.name} is using {percent(node.worker_cpu or 0.0)}% CPU per worker."
    if OVERLOADED in observed:
        return (
            f"{using} More than num_parallel_workers={node.workers} might bring more benefit due to high CPU usage "
            "per worker."
        )
    if TOO_MANY_WORKERS in observed:
        return (
            f"{using} Using num_parallel_workers={node.workers} might not bring as much benefit due to low CPU usage "
            "per worker."
        )
    return ""


def _about_queues(node: Node, observed: Sequence[str], by_name: Mapping[str, Node]) -> str:
    if node.kind == "Batch":
        return ""
    if SLOW_READER in observed:
        return (
            f"{node.name}'s output queue usage={percent(node.usage or 0.0)}% is low: this reader might not produce as "
            "fast as its parent consumes. Try increasing num_parallel_workers, or reading from faster storage."
        )
    inputs = [by_name[name] for name in node.children if name in by_name]
    if STARVED_DEVICE in observed:
        empty = max(child.empty or 0.0 for child in inputs)
        return (
            f"{node.name}'s input queue is empty in {percent(empty)}% of the samples: the whole pipeline might be "
            "slower than the device. Look for its slowest operator."
        )
    if FULLER_INPUT in observed:
        child = max(inputs, key=lambda one: -1.0 if one.usage is None else one.usage)
        return (
            f"{node.name}'s input queue usage={percent(child.usage or 0.0)}% is greater output queue "
            f"usage={percent(node.usage or 0.0)}%. This indicates child op {child.name} might be producing faster than "
            f"its parent {node.name} can consume. If this op has low CPU utilization, try increasing prefetch_size or "
            "increasing num_workers."
        )
    return ""


def _suggestion(node: Node, observed: Sequence[str]) -> str:
    """What to try if this operator holds the pipeline up; empty if it does not."""
    use = f"CPU utilization per worker of {percent(node.worker_cpu or 0.0)}%"
    if OVERLOADED in observed:
        return f"{node.name} has high {use} Try increasing num_parallel_workers above {node.workers}."
    if IDLE in observed and (EMPTY_INPUT in observed or FULLER_INPUT in observed):
        return f"{node.name} has low {use} and abnormal queue usage. Try increasing prefetch_size."
    return ""
