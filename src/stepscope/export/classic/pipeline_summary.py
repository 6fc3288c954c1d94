"""`minddata_pipeline_summary`: the operators of the input pipeline side by side, and which of them holds it up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepscope.analysis.methods.pipeline_graph import (
    EMPTY_INPUT,
    FULLER_INPUT,
    IDLE,
    LIMITS,
    OVERLOADED,
    SLOW_READER,
    STARVED_DEVICE,
    TOO_MANY_WORKERS,
    Limits,
    Node,
    observations,
)
from stepscope.export.classic.framework_files import CPU, ITERATOR
from stepscope.export.classic.pipeline_raw import read_pipeline
from stepscope.export.rank_export import RankExport
from stepscope.json_files import read_object
from stepscope.json_values import list_of
from stepscope.recording_format.rows import row_lines
from stepscope.sources.minddata.pipeline import Operator

NONE = -1
"""Stands for a figure that an operator does not have."""
_WORKERS = {
    OVERLOADED: "More than num_parallel_workers={} might bring more benefit due to high CPU usage per worker.",
    TOO_MANY_WORKERS: "Using num_parallel_workers={} might not bring as much benefit due to low CPU usage per worker.",
}


def write_pipeline_summary(export: RankExport) -> None:
    """Write it as JSON and as CSV, a line a key."""
    operators = sorted(read_pipeline(export), key=lambda operator: operator.number)
    if not operators:
        return  # `write_pipeline_raw` has noted why
    limits: Limits = export.run.limits.get("input_operators", LIMITS)
    samples = _cpu_samples(export)
    busy = {number: round(sum(values) / len(values), 2) for number, values in samples.items()}
    known = {number: cpu for number, cpu in busy.items() if len(samples[number]) >= limits.min_cpu_samples}
    nodes = [_node(operator, known.get(operator.number), operators) for operator in operators]
    summary: dict[str, list[Any]] = {
        "pipeline_ops": [node.name for node in nodes],
        "op_names": [node.kind for node in nodes],
        "op_ids": [node.number for node in nodes],
        "num_workers": [node.workers for node in nodes],
        "queue_average_size": [NONE if one.average is None else round(one.average, 2) for one in operators],
        "queue_utilization_pct": [NONE if node.usage is None else percent(node.usage) for node in nodes],
        "queue_empty_freq_pct": [NONE if node.empty is None else percent(node.empty) for node in nodes],
        "children_ids": [one.children for one in operators],
        "parent_id": [NONE if one.parent is None else one.parent for one in operators],
    }
    # the order of the keys is the one in which readers of the CSV know them
    if busy:
        summary["avg_cpu_pct"] = [busy.get(operator.number, float(NONE)) for operator in operators]
    summary |= _times(export)
    if busy:
        summary["avg_cpu_pct_per_worker"] = [
            round(busy[operator.number] / (operator.workers or 1), 2) if operator.number in busy else NONE
            for operator in operators
        ]
    summary |= advise(nodes, limits)
    export.write_json(f"minddata_pipeline_summary_{export.rank}.json", summary)
    export.write(
        f"minddata_pipeline_summary_{export.rank}.csv", row_lines([k, *values] for k, values in summary.items())
    )


def _label(operator: Operator) -> str:
    return f"{operator.type.removesuffix('Op')}(id={operator.number})"


def _node(operator: Operator, cpu: float | None, operators: list[Operator]) -> Node:
    """One of all operators as analyses know it; `cpu` is in percent of a processor, None if unknown."""
    workers, mean = operator.workers or 1, operator.average
    return Node(
        name=_label(operator),
        kind=operator.type.removesuffix("Op"),
        number=operator.number,
        workers=workers,
        usage=None if mean is None or not operator.capacity else round(mean, 2) / operator.capacity,  # readers round it
        empty=operator.empty,
        worker_cpu=None if cpu is None else cpu / workers / 100,
        children=tuple(_label(one) for one in operators if one.number in operator.children),
        depth=0 if operator.parent is None else 1,
    )


def _cpu_samples(export: RankExport) -> dict[int, list[int]]:
    """CPU use of each operator in percent of one processor, sample by sample; empty if unknown."""
    path = export.directory / f"{CPU}_{export.rank}.json"
    if path.name not in export.written:
        return {}
    found = {}
    for operator in list_of(read_object(path), "op_info"):
        metrics = operator["metrics"]
        if metrics["user_utilization"]:
            both = zip(metrics["user_utilization"], metrics["sys_utilization"], strict=False)
            found[int(operator["op_id"])] = [user + system for user, system in both]
    return found


def _times(export: RankExport) -> dict[str, list[float]]:
    """Mean times in ms without those of the first batch, which waits for the pipeline to fill.

    Without the file of a device queue, the time of a batch is the mean over both its own time and the time since the
    batch before it, as the tool that this file comes from takes it; so figures can be compared with it.
    """
    sums: dict[int, list[int]] = {0: [], 1: [], 2: []}
    before = 0
    device_queue = f"device_queue_profiling_{export.rank}.txt" in export.written
    for kind, part, batch, value, time_ms in _records(export, device_queue):
        if batch >= 2 and kind == 0:
            sums[part].append(value)
        elif batch >= 2 and not device_queue:
            sums[2].append(time_ms - before)
        if kind == 1 or batch < 2:
            before = time_ms
    mean = {part: round(sum(values) / len(values), 3) if values else NONE for part, values in sums.items()}
    return {"per_batch_time": [mean[2]], "per_pipeline_time": [mean[0]], "per_push_queue_time": [mean[1]]}


def _records(export: RankExport, device_queue: bool) -> Iterator[list[int]]:
    """The lines of the iterator's file: kind, part, batch, value and time in ms. The kind is a time (0; of the pipeline
    if the part is 0, of a push if 1, of a batch if 2) or a queue (1)."""
    name = f"{'device_queue_profiling' if device_queue else ITERATOR}_{export.rank}.txt"
    text = (export.directory / name).read_text("utf-8", "replace") if name in export.written else ""
    for line in text.splitlines():
        fields = line.split()[:5]
        if len(fields) == 5 and all(field.lstrip("-").isdigit() for field in fields):
            record = [int(field) for field in fields]
            if record[0] == 1 or (record[0] == 0 and record[1] in (0, 1, 2)):
                yield record


def advise(nodes: Sequence[Node], limits: Limits) -> dict[str, list[str]]:
    """What `pipeline_graph` observes in the words of MindSpore's own summary, by its keys, as far as there is any."""
    by_name = {node.name: node for node in nodes}
    observed = {node.name: observations(node, nodes, limits) for node in nodes}
    nearest_first = sorted(nodes, key=lambda node: node.number)  # to the training loop
    suggested = ((node.name, text) for node in nearest_first if (text := _suggestion(node, observed[node.name])))
    warning, suggestion = next(suggested, ("", ""))
    texts = {
        "cpu_analysis_details": [_about_cpu(node, observed[node.name]) for node in nodes],
        "queue_analysis_details": [_about_queues(node, observed[node.name], by_name) for node in nodes],
        "bottleneck_warning": [warning],
        "bottleneck_suggestion": [suggestion],
    }
    return {key: known for key, of_key in texts.items() if (known := [text for text in of_key if text])}


def percent(ratio: float) -> float:
    """A share as the file has it."""
    return round(100 * ratio, 2)


def _about_cpu(node: Node, observed: Sequence[str]) -> str:
    advice = next((text.format(node.workers) for seen, text in _WORKERS.items() if seen in observed), None)
    return f"{node.name} is using {percent(node.worker_cpu or 0.0)}% CPU per worker. {advice}" if advice else ""


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
