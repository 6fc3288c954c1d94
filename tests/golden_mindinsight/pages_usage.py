"""Use of processors and memory."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import median
from typing import Any

from asked import Asked
from said import Rows, rows

from stepscope.errors import StepscopeError
from stepscope.run import Run

_GIB = 1 << 30
_SHARES = {"user_utilization": "user_ratio", "sys_utilization": "system_ratio"}
_HOST_SHARES = {**_SHARES, "io_utilization": "io_ratio", "idle_utilization": "idle_ratio"}
_COUNTS = {"context_switch_count": "context_switches", "runnable_process": "runnable"}


def processors(run: Run, asked: Asked) -> Any:
    """CPU use of the host, the process and the dataset operators, by sample."""
    samples = rows(run, "cpu_utilization")
    chosen = asked.parameters["filter_condition"]
    first, last = chosen.get("start_step", 0), chosen.get("end_step", 1 << 30)
    samples = [row for row in samples if first <= (row["step"] or 0) <= last]
    host = [row for row in samples if row["scope"] == "host"]
    process = [row for row in samples if row["scope"] == "process"]
    whole = host[0]["processors"]
    return {
        "cpu_processor_num": whole,
        "device_info": {**_shares(host, _HOST_SHARES, 100), **_counts(host)},
        "process_info": _shares(process, _SHARES, 100 * whole),
        "op_info": _operators(run, samples, 100 * whole),
        "step_info": [str(row["step"] or 0) for row in host],
        "sampling_interval": _interval(host),
        "step_total_num": max((row["step"] or 0 for row in rows(run, "cpu_utilization")), default=0),
    }


def _interval(samples: Rows) -> float | None:
    """The usual time between samples, in ms."""
    times = [row["time_ns"] for row in samples]
    return median(later - earlier for earlier, later in pairwise(times)) / 1e6 if len(times) > 1 else None


def _operators(run: Run, samples: Rows, whole: int) -> dict[str, Any]:
    names = {row["operator"]: row for row in rows(run, "input_operators")}
    found = []
    for name, operator in sorted(names.items(), key=lambda item: item[1]["number"]):
        of_it = [row for row in samples if row["scope"] == "operator" and row["name"] == name]
        if of_it:
            metrics = _shares(of_it, _SHARES, whole)
            found.append({"op_id": operator["number"], "num_workers": operator["workers"], "metrics": metrics})
    sums = {key: sum(one["metrics"][key]["avg_value"] for one in found) for key in _SHARES}
    return {"op_list": found, "total_op_avg_value": sums}


def _shares(samples: Rows, keys: dict[str, str], whole: int) -> dict[str, Any]:
    return {key: _averaged([_percent(row[name], whole) for row in samples]) for key, name in keys.items()}


def _counts(samples: Rows) -> dict[str, Any]:
    return {key: _averaged([row[name] for row in samples]) for key, name in _COUNTS.items()}


def _percent(ratio: float | None, whole: int) -> float | None:
    return None if ratio is None else round(ratio * whole, 6)


def _averaged(values: list[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"avg_value": round(sum(known) / len(known)) if known else None, "metrics": values}


def memory_summary(run: Run, asked: Asked) -> Any:
    """Capacity, peak, static part and how many tensors were allocated."""
    peaks = [row for row in rows(run, "memory_peak") if row["graph"] is not None]
    if not peaks:
        raise StepscopeError("no memory plan")
    highest = max(peaks, key=lambda row: row["peak_bytes"])
    allocations = sum(row["allocations"] for row in peaks)
    summary = {
        "capacity": highest["capacity_bytes"] / _GIB,
        "peak_mem": highest["peak_bytes"] / _GIB,
        "static_mem": highest["static_bytes"] / _GIB,
        "allocations": allocations,
        "deallocations": allocations,
    }
    return {"summary": summary}


def memory_graphs(run: Run, asked: Asked) -> Any:
    """The curve of each graph with its nodes and what they make."""
    usage = [row for row in rows(run, "memory_usage") if row["graph"] is not None]
    if not usage:
        raise StepscopeError("no memory plan")
    tensors = run.table("graph_tensors").collect().to_dicts()
    inputs = {(row["graph"], row["node"]): row["inputs"] for row in run.table("graph_nodes").collect().to_dicts()}
    graphs = {}
    for graph in dict.fromkeys(row["graph"] for row in usage):
        nodes = [row for row in usage if row["graph"] == graph]
        marks = {row["mark"]: row["node"] for row in nodes if row["mark"]}
        graphs[str(graph)] = {
            "graph_id": graph,
            "static_mem": nodes[0]["static_bytes"] / _GIB,
            "fp_start": marks.get("forward_start"),
            "bp_end": marks.get("backward_end"),
            "lines": [row["total_bytes"] / _GIB for row in nodes],
            "nodes": [_node(row, inputs[graph, row["node"]], tensors) for row in nodes],
        }
    return graphs


def _node(row: dict[str, Any], inputs: str | None, tensors: Rows) -> dict[str, Any]:
    made = [tensor for tensor in tensors if (tensor["graph"], tensor["node"]) == (row["graph"], row["node"])]
    return {
        "node_id": row["node"],
        "name": row["name"],
        "fullname": row["full_name"],
        "size": row["size_bytes"] / _GIB,
        "allocated": row["allocated_bytes"] / _GIB,
        "allocations": row["allocations"],
        "inputs": json.loads(inputs or "[]"),
        "outputs": [_tensor(tensor) for tensor in made],
    }


def _tensor(tensor: dict[str, Any]) -> dict[str, Any]:
    return {
        "tensor_id": tensor["tensor"],
        "tensor_name": tensor["name"],
        "type": tensor["type"],
        "data_type": tensor["data_type"],
        "format": tensor["format"],
        "shape": tensor["shape"],
        "size": tensor["size_bytes"] / _GIB,
        "life_long": tensor["lifetime"] or "LifeLongNone",
        "life_start": tensor["life_start"],
        "life_end": tensor["life_end"],
    }


PAGES = {
    "minddata-cpu-utilization-summary": processors,
    "memory-summary": memory_summary,
    "memory-graphics": memory_graphs,
}
