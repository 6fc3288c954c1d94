"""`minddata_pipeline_summary`: the operators of the input pipeline side by side, and which of them holds it up."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from stepscope.export.classic.pipeline_raw import DatasetOperator, read_pipeline
from stepscope.export.rank_export import RankExport
from stepscope.json_files import read_object
from stepscope.json_values import list_of

NONE = -1
"""Stands for a figure that an operator does not have."""


def write_pipeline_summary(export: RankExport) -> None:
    """Write it as JSON and as CSV, a line a key."""
    stages, _ = read_pipeline(export)
    if not stages:
        return  # `write_pipeline_raw` has noted why
    stages = sorted(stages, key=lambda stage: stage.number)
    limits: Limits = export.run.limits.get("input_operators", LIMITS)
    samples = _cpu_samples(export)
    busy = {number: round(sum(values) / len(values), 2) for number, values in samples.items()}
    summary = {**_operators(stages), **_times(export)}
    if busy:
        summary = _in_order(summary, [busy.get(stage.number, float(NONE)) for stage in stages], stages)
    known = {number: cpu for number, cpu in busy.items() if len(samples[number]) >= limits.min_cpu_samples}
    summary.update(advise([_node(stage, known.get(stage.number), stages) for stage in stages], limits))
    export.write_json(f"minddata_pipeline_summary_{export.rank}.json", summary)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([key, *values] for key, values in summary.items())
    export.write(f"minddata_pipeline_summary_{export.rank}.csv", text.getvalue())


def _operators(stages: list[DatasetOperator]) -> dict[str, list[Any]]:
    return {
        "pipeline_ops": [_label(stage) for stage in stages],
        "op_names": [stage.kind.removesuffix("Op") for stage in stages],
        "op_ids": [stage.number for stage in stages],
        "num_workers": [stage.workers for stage in stages],
        "queue_average_size": [NONE if s.average is None else round(s.average, 2) for s in stages],
        "queue_utilization_pct": [NONE if (use := _use(stage)) is None else percent(use) for stage in stages],
        "queue_empty_freq_pct": [NONE if stage.empty is None else percent(stage.empty) for stage in stages],
        "children_ids": [stage.children for stage in stages],
        "parent_id": [NONE if stage.parent is None else stage.parent for stage in stages],
    }


def _label(stage: DatasetOperator) -> str:
    return f"{stage.kind.removesuffix('Op')}(id={stage.number})"


def _use(stage: DatasetOperator) -> float | None:
    """Use of its queue, of the rounded mean size as readers know it; None without a queue."""
    return None if stage.average is None or not stage.length else round(stage.average, 2) / stage.length


def _in_order(summary: dict[str, Any], cpu: list[float], stages: list[DatasetOperator]) -> dict[str, Any]:
    """The keys in the order in which readers of the CSV know them, with the use of CPU in percent of a processor."""
    times = {key: summary.pop(key) for key in ("per_batch_time", "per_pipeline_time", "per_push_queue_time")}
    each = [NONE if use == NONE else round(use / stage.workers, 2) for use, stage in zip(cpu, stages, strict=True)]
    return {**summary, "avg_cpu_pct": cpu, **times, "avg_cpu_pct_per_worker": each}


def _node(stage: DatasetOperator, cpu: float | None, stages: list[DatasetOperator]) -> Node:
    """One of all operators as analyses know it; `cpu` is in percent of a processor, None if unknown."""
    return Node(
        name=_label(stage),
        kind=stage.kind.removesuffix("Op"),
        number=stage.number,
        workers=stage.workers,
        usage=_use(stage),
        empty=stage.empty,
        worker_cpu=None if cpu is None else cpu / stage.workers / 100,
        children=tuple(_label(one) for one in stages if one.number in stage.children),
        depth=0 if stage.parent is None else 1,
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


@dataclass(frozen=True)
class _Record:
    """One line of the iterator's file: a time (kind 0; of the pipeline 0, of a push 1, of a batch 2) or a queue (1)."""

    kind: int
    part: int
    batch: int
    value: int
    time_ms: int


def _times(export: RankExport) -> dict[str, list[float]]:
    """Mean times in ms without those of the first batch, which waits for the pipeline to fill.

    Without the file of a device queue, the time of a batch is the mean over both its own time and the time since the
    batch before it, as the tool that this file comes from takes it; so figures can be compared with it.
    """
    sums: dict[int, list[int]] = {0: [], 1: [], 2: []}
    before = 0
    device_queue = f"device_queue_profiling_{export.rank}.txt" in export.written
    for record in _records(export, device_queue):
        if record.batch >= 2 and record.kind == 0:
            sums[record.part].append(record.value)
        elif record.batch >= 2 and not device_queue:
            sums[2].append(record.time_ms - before)
        if record.kind == 1 or record.batch < 2:
            before = record.time_ms
    mean = {part: round(sum(values) / len(values), 3) if values else NONE for part, values in sums.items()}
    return {"per_batch_time": [mean[2]], "per_pipeline_time": [mean[0]], "per_push_queue_time": [mean[1]]}


def _records(export: RankExport, device_queue: bool) -> list[_Record]:
    name = f"{'device_queue_profiling' if device_queue else ITERATOR}_{export.rank}.txt"
    if name not in export.written:
        return []
    found = []
    for line in (export.directory / name).read_text("utf-8", "replace").splitlines():
        fields = line.split()[:5]
        if len(fields) == 5 and all(field.lstrip("-").isdigit() for field in fields):
            record = _Record(*map(int, fields))
            if record.kind == 1 or (record.kind == 0 and record.part in (0, 1, 2)):
                found.append(record)
    return found


def advise(nodes: Sequence[Node], limits: Limits) -> dict[str, list[str]]:
    """What `pipeline_graph` observes in the words of MindSpore's own summary, by its keys, as far as there is any."""
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
