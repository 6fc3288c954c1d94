"""`minddata_pipeline_summary`: the operators of the input pipeline side by side, and which of them holds it up."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace
from typing import Any

from stepscope.export.classic.framework_files import CPU, ITERATOR
from stepscope.export.classic.pipeline_advice import Figures, advise
from stepscope.export.classic.pipeline_raw import Stage, read_pipeline
from stepscope.export.rank_export import RankExport

NONE = -1
"""Stands for a figure that an operator does not have."""

MIN_CPU_SAMPLES = 3
"""With fewer, one busy or idle moment would decide what is advised."""


def write_pipeline_summary(export: RankExport) -> None:
    """Write it as JSON and as CSV, a line a key."""
    stages, _ = read_pipeline(export)
    if not stages:
        return  # `write_pipeline_raw` has said why
    stages = sorted(stages, key=lambda stage: stage.number)
    samples = _cpu_samples(export)
    busy = {number: round(sum(values) / len(values), 2) for number, values in samples.items()}
    summary = {**_operators(stages), **_times(export)}
    cpu = [busy.get(stage.number, float(NONE)) for stage in stages]
    if busy:
        summary["avg_cpu_pct"] = cpu
    figures = [_figures(stage, share) for stage, share in zip(stages, cpu, strict=True)]
    if busy:
        summary = _in_order(summary, cpu, figures)
    summary.update(advise(_telling(figures, samples)))
    export.write_json(f"minddata_pipeline_summary_{export.rank}.json", summary)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([key, *values] for key, values in summary.items())
    export.write(f"minddata_pipeline_summary_{export.rank}.csv", text.getvalue())


def _operators(stages: list[Stage]) -> dict[str, list[Any]]:
    return {
        "pipeline_ops": [_label(stage) for stage in stages],
        "op_names": [stage.kind.removesuffix("Op") for stage in stages],
        "op_ids": [stage.number for stage in stages],
        "num_workers": [stage.workers for stage in stages],
        "queue_average_size": [NONE if s.average is None else round(s.average, 2) for s in stages],
        "queue_utilization_pct": [NONE if (use := _use(s)) is None else use for s in stages],
        "queue_empty_freq_pct": [_percent(s.sizes.count(0) / len(s.sizes)) if s.sizes else NONE for s in stages],
        "children_ids": [stage.children for stage in stages],
        "parent_id": [NONE if stage.parent is None else stage.parent for stage in stages],
    }


def _label(stage: Stage) -> str:
    return f"{stage.kind.removesuffix('Op')}(id={stage.number})"


def _use(stage: Stage) -> float | None:
    """Use of its queue in percent, of the rounded mean size as readers know it; None without a queue."""
    return None if stage.average is None or not stage.length else _percent(round(stage.average, 2) / stage.length)


def _percent(share: float) -> float:
    return round(100 * share, 2)


def _in_order(summary: dict[str, Any], cpu: list[float], figures: list[Figures]) -> dict[str, Any]:
    """The keys in the order in which readers of the CSV know them."""
    times = {key: summary.pop(key) for key in ("per_batch_time", "per_pipeline_time", "per_push_queue_time")}
    return {**summary, "avg_cpu_pct": cpu, **times, "avg_cpu_pct_per_worker": [one.cpu_per_worker for one in figures]}


def _figures(stage: Stage, cpu: float) -> Figures:
    return Figures(
        number=stage.number,
        name=_label(stage),
        kind=stage.kind.removesuffix("Op"),
        workers=stage.workers,
        children=stage.children,
        queue=_use(stage),
        empty=_percent(stage.sizes.count(0) / len(stage.sizes)) if stage.sizes else None,
        cpu_per_worker=NONE if cpu == NONE else round(cpu / stage.workers, 2),
    )


def _telling(figures: list[Figures], samples: dict[int, list[int]]) -> list[Figures]:
    """The figures without those that rest on too little for advice."""
    few = {one.number for one in figures if len(samples.get(one.number, ())) < MIN_CPU_SAMPLES}
    return [replace(one, cpu_per_worker=NONE) if one.number in few else one for one in figures]


def _cpu_samples(export: RankExport) -> dict[int, list[int]]:
    """CPU use of each operator in percent of one processor, sample by sample; empty where it is not known."""
    path = export.directory / f"{CPU}_{export.rank}.json"
    if path.name not in export.written:
        return {}
    found = {}
    for told in json.loads(path.read_bytes()).get("op_info") or []:
        metrics = told["metrics"]
        if metrics["user_utilization"]:
            both = zip(metrics["user_utilization"], metrics["sys_utilization"], strict=False)
            found[int(told["op_id"])] = [user + system for user, system in both]
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
