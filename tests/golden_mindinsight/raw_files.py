"""What other pages should say where MindInsight is wrong, worked out from the files and from nothing of ours."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import mean, median
from typing import Any

from asked import Asked
from differing import MISSING, Difference
from requested import chosen

from stepscope.run import Run

_SHARES = ("user_utilization", "sys_utilization")
_HOST = (*_SHARES, "io_utilization", "idle_utilization")


def folder(run: Run) -> Path:
    """Where the files of a rank lie."""
    return run.ranks[0].path


# ---------------------------------------------------------------- processors


def processors(run: Run, asked: Asked) -> Any:
    """Use of processors. Only which step a sample belongs to is taken from our own answer."""
    raw = json.loads((folder(run) / f"minddata_cpu_utilization_{asked.rank}.json").read_text())
    count = len(raw["time_stamp"])
    known = run.analyse("cpu_utilization").filter(scope="host")["step"].fill_null(0).to_list()
    steps = [None] * (count - len(known)) + known  # the host has no sample before the first interval
    chosen = asked.parameters["filter_condition"]
    first, last = chosen.get("start_step", 0), chosen.get("end_step", 1 << 30)
    kept = [n for n, step in enumerate(steps) if step is not None and first <= step <= last]
    times = [raw["time_stamp"][n] for n in kept]
    host, counts = raw["device_info"], ("context_switch_count", "runnable_process")
    host = {**host, "runnable_process": host.get("runnable_process", host.get("runable_processes"))}
    listed = _operators(folder(run), asked.rank)
    machine = _values(host, (*_HOST, *counts), count)
    process = _values(raw["process_info"], _SHARES, count)
    empty = {n for n, sample in enumerate(machine) if all(sample[key] == 0 for key in _HOST)}
    nothing = empty | ({0} if process[0][_SHARES[0]] is None else set())  # the process lacks what measured nothing
    operators = [
        {
            "op_id": one["op_id"],
            "num_workers": listed[one["op_id"]]["num_workers"],
            "metrics": _metrics(_values(one["metrics"], _SHARES, count), kept, nothing),
        }
        for one in raw["op_info"]
        if one["op_id"] in listed
    ]
    return {
        "cpu_processor_num": raw["cpu_processor_num"],
        "device_info": _metrics(machine, kept, empty),
        "process_info": _metrics(process, kept, nothing),
        "op_info": {
            "op_list": operators,
            "total_op_avg_value": {key: sum(one["metrics"][key]["avg_value"] for one in operators) for key in _SHARES},
        },
        "step_info": [str(steps[n]) for n in kept],
        "sampling_interval": median(b - a for a, b in pairwise(times)) if len(times) > 1 else None,
        "step_total_num": max(known),
    }


def _values(part: dict[str, Any], keys: tuple[str, ...], count: int) -> list[dict[str, Any]]:
    """The values of each sample: the first of each two where values stand twice; a shorter list lacks the first."""
    doubled = max(len(part[key]) for key in keys) >= 2 * count
    lists = {key: part[key][::2] if doubled else [None] * (len(part[key]) < count) + part[key] for key in keys}
    return [{key: found[n] if n < len(found) else None for key, found in lists.items()} for n in range(count)]


def _metrics(samples: list[dict[str, Any]], kept: list[int], nothing: set[int]) -> dict[str, Any]:
    """The values of the samples that have any, and their means. A zero at a time that measured nothing is unknown."""
    known = [{key: None if n in nothing and not value else value for key, value in samples[n].items()} for n in kept]
    shown = [sample for sample in known if any(value is not None for value in sample.values())]
    said = {}
    for key in samples[0]:
        values = [sample[key] for sample in shown]
        measured = [value for value in values if value is not None]
        said[key] = {"avg_value": round(mean(measured)) if measured else None, "metrics": values}
    return said


# ---------------------------------------------------------------- the pipeline


def _operators(place: Path, rank: int) -> dict[int, dict[str, Any]]:
    """The operators of a pipeline by number, from the table of it, else from the samples."""
    table, samples = place / f"minddata_pipeline_raw_{rank}.csv", place / f"pipeline_profiling_{rank}.json"
    if table.is_file():
        with table.open() as lines:
            return {
                int(row["op_id"]): {"num_workers": int(row["num_workers"]), "op_type": row["op_type"]}
                for row in csv.DictReader(lines)
            }
    raw = json.loads(samples.read_text())
    found = {one["op_id"]: {**one, "parent": None} for one in raw["op_info"]}
    for number, one in found.items():
        for child in one.get("children") or []:
            found[child]["parent"] = number
        queue = (one.get("metrics") or {}).get("output_queue") or {}
        one["queue"] = queue if queue.get("size") else {}
    interval = raw.get("sampling_interval")
    return {number: {**one, "interval": interval} for number, one in found.items()}


def _queue(one: dict[str, Any]) -> dict[str, Any]:
    queue = one["queue"]
    average = mean(queue["size"]) if queue else None
    return {
        "output_queue_size": queue.get("size"),
        "output_queue_average_size": average,
        "output_queue_length": queue.get("length"),
        "output_queue_usage_rate": average / queue["length"] if queue else 0,
        "sample_interval": one["interval"],
    }


def _who(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("op_id", "op_type", "num_workers")}


def pipeline_queue(run: Run, asked: Asked) -> Any:
    """One operator and its queue, from the file of samples."""
    found = _operators(folder(run), asked.rank)
    one = found[asked.parameters["op_id"]]
    parent = None if one["parent"] is None else found[one["parent"]]
    return {
        "current_op": _who(one),
        "parent_op": parent and _who(parent),
        "queue_info": None if parent is None else _queue(one),
    }


def pipeline(run: Run, asked: Asked) -> Any:
    """All operators with their queues, from the file of samples."""
    detailed = asked.parameters["filter_condition"].get("is_display_op_detail")
    columns = ["op_id", "op_type", *(["num_workers", "output_queue_size"] if detailed else [])]
    columns += ["output_queue_average_size", "output_queue_length", "output_queue_usage_rate"]
    columns += ["sample_interval", "parent_id", "children_id"]
    rows = []
    for _, one in sorted(_operators(folder(run), asked.rank).items()):
        row = {**_who(one), **_queue(one), "parent_id": one["parent"], "children_id": one.get("children") or None}
        rows.append([row[name] for name in columns])
    return chosen(asked, columns, rows)


# ---------------------------------------------------------------- operators


def flops_cell(run: Run, asked: Asked, difference: Difference) -> Any:
    """A cell of the operators' FLOPs by the header of the file; rates are operations over the time of an execution."""
    _, row, column = difference.place.split("/")
    ordered = sorted(asked.answer["object"], key=lambda one: one[:2])
    name, time_us = ordered[int(row)][0], ordered[int(row)][3]
    shown = asked.answer["col_name"][int(column)]
    unit = shown.split()[-1]
    with (folder(run) / f"flops_{asked.rank}.txt").open() as lines:
        table = [{key.strip(): value.strip() for key, value in one.items()} for one in csv.DictReader(lines)]
    stated = next(one for one in table if one["full_kernel_name"] == name)
    mega = [value for key, value in stated.items() if key.startswith("MFLOPs") and key.endswith(unit)]
    if not mega:
        return MISSING
    return float(mega[0]) if shown.startswith("MFLOPs") else float(mega[0]) / time_us * 1e3


def share(asked: Asked, difference: Difference) -> Any:
    """The share of a type by the times that stand beside it, in percent."""
    times = [row[1] for row in sorted(asked.answer["object"], key=lambda row: row[0])]
    return times[int(difference.place.split("/")[1])] / sum(times) * 100


# ---------------------------------------------------------------- advice and memory


def advice(run: Run, asked: Asked, difference: Difference) -> Any:
    """A piece of advice, or all, with the figures of other pages. Names are as we say: they stand on no other page."""
    figures = dict(_advice(run, asked))
    ours = {difference.place: difference.ours} if difference.place else difference.ours
    said = {label: value if _is_names(value) else figures.get(label, MISSING) for label, value in ours.items()}
    return said[difference.place] if difference.place else said


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _advice(run: Run, asked: Asked) -> Iterator[tuple[str, Any]]:
    summary = asked.beside("process_summary") or {}
    if taken := summary.get("get_next_queue_info"):
        counts = taken["summary"]
        yield "minddata_get_next_queue", [counts["empty_batch_count"], counts["total_batch"]]
    if host := summary.get("device_queue_info"):
        counts = host["summary"]
        empty, full, total = (counts[key] for key in ("empty_batch_count", "full_batch_count", "total_batch"))
        yield "minddata_device_queue", [empty, total, full, total]
        rate = {"empty_rate": ceil(empty / total * 100), "empty_warning_threshold": 30}
        yield "minddata_device_queue_rate", rate
    if (folder(run) / f"minddata_cpu_utilization_{asked.rank}.json").is_file():
        idle = processors(run, replace(asked, parameters={**asked.parameters, "filter_condition": {}}))
        known = [value for value in idle["device_info"]["idle_utilization"]["metrics"][1:] if value is not None]
        yield "minddata_cpu_utilization", [round(100 - mean(known))]


def peak(asked: Asked) -> Any:
    """The highest point of the curves that MindInsight shows itself."""
    return max(point for graph in asked.beside("memory_graphics").values() for point in graph["lines"])
