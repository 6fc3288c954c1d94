"""Data preparation: queues, batches, the verdict and the pipeline."""

from __future__ import annotations

from typing import Any

from asked import Asked
from requested import chosen
from said import Rows, rows

from stepscope.errors import StepscopeError
from stepscope.run import Run

_HOST = ("device_queue", "dataset_iterator")
_COLUMNS = ("op_id", "op_type", "output_queue_average_size", "output_queue_length", "output_queue_usage_rate")
_DETAILS = ("op_id", "op_type", "num_workers", "output_queue_size", *_COLUMNS[2:])
_ENDS = ("sample_interval", "parent_id", "children_id")


def queue(run: Run, asked: Asked) -> Any:
    """The size of one queue by batch."""
    names = _names(asked)
    summary, batches = _of(rows(run, "input_queues"), names), _of(rows(run, "input_batches"), names)
    counts = {"empty_queue": summary[0]["empty"]}
    if names is _HOST:
        counts["full_queue"] = summary[0]["full"]
    sizes = [batch["queue_size"] for batch in batches]
    return {"info": {"queue": sizes}, "size": len(sizes), "summary": {"queue_summary": counts}}


def costs(run: Run, asked: Asked) -> Any:
    """What each batch cost, in ms."""
    names = _names(asked)
    summary, batches = _of(rows(run, "input_queues"), names)[0], _of(rows(run, "input_batches"), names)
    keys = {"get_cost": "get", "push_cost": "push", "avg_cost": "total"}
    if names is not _HOST:
        info = {"get_next": [batch["duration_ns"] / 1e6 for batch in batches]}
        times: dict[str, Any] = {"avg_cost": summary["mean_total_ns"] / 1e6}
    else:
        columns = {"get_cost": "get_ns", "push_cost": "push_ns", "total_cost": "duration_ns"}
        info = {key: [batch[name] / 1e6 for batch in batches] for key, name in columns.items()}
        times = {key: summary[f"mean_{name}_ns"] / 1e6 for key, name in keys.items()}
    return {"info": info, "size": len(batches), "summary": {"time_summary": times}}


def verdict(run: Run, asked: Asked) -> Any:
    """The three stages."""
    stages = {row["stage"]: row for row in rows(run, "input_stages")}
    host = _of(rows(run, "input_queues"), _HOST, optional=True)
    data = _of(rows(run, "input_queues"), ("get_next",), optional=True)
    status = {name: "warning" if stage["verdict"] == "bottleneck" else "normal" for name, stage in stages.items()}
    said: dict[str, Any] = {"data_process": {"status": status["data processing"]}}
    if data:
        said["data_transmission"] = {"status": status["data transmission"]}
        said["get_next"] = {"status": "normal"}
        counts = {"empty_batch_count": data[0]["empty"], "total_batch": data[0]["batches"]}
        said["get_next_queue_info"] = {"summary": counts}
    else:
        said["fpbp"] = {"status": "normal"}
    said["device_queue_warning"] = {"status": "normal"}
    if host:
        counts = {"empty_batch_count": host[0]["empty"], "full_batch_count": host[0]["full"]}
        said["device_queue_info"] = {"summary": {**counts, "total_batch": host[0]["batches"]}}
    return said


def operators(run: Run, asked: Asked) -> Any:
    """The operators of the pipeline with their queues."""
    is_detailed = asked.parameters["filter_condition"].get("is_display_op_detail")
    columns = (*(_DETAILS if is_detailed else _COLUMNS), *_ENDS)
    found = [_operator(run, row) for row in rows(run, "input_operators")]
    return chosen(asked, columns, [[row[name] for name in columns] for row in found])


def operator_queue(run: Run, asked: Asked) -> Any:
    """One operator, what takes from it, and the queue between."""
    by_name = {row["operator"]: row for row in rows(run, "input_operators")}
    row = next((row for row in by_name.values() if row["number"] == asked.parameters["op_id"]), None)
    if row is None:
        raise StepscopeError("no such operator")
    operator, parent = _operator(run, row), by_name.get(row["parent"])
    queue = None if parent is None else {key: operator[key] for key in (*_DETAILS[3:], "sample_interval")}
    return {"current_op": _who(row), "parent_op": parent and _who(parent), "queue_info": queue}


def _who(row: dict[str, Any]) -> dict[str, Any]:
    return {"op_id": row["number"], "op_type": row["type"], "num_workers": row["workers"]}


def _operator(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    numbers = {one["operator"]: one["number"] for one in rows(run, "input_operators")}
    samples = run.table("input_pipeline").collect().filter(operator=row["operator"])["queue_size"].to_list()
    return {
        "op_id": row["number"],
        "op_type": row["type"],
        "num_workers": row["workers"],
        "output_queue_size": samples or None,
        "output_queue_average_size": row["mean_size"],
        "output_queue_length": row["queue_capacity"],
        "output_queue_usage_rate": row["usage_ratio"] if row["usage_ratio"] is not None else 0,
        "sample_interval": row["sample_interval_ns"] / 1e6,
        "parent_id": None if row["parent"] is None else numbers[row["parent"]],
        "children_id": [numbers[child] for child in row["children"]] or None,
    }


def _names(asked: Asked) -> tuple[str, ...]:
    return _HOST if asked.parameters["type"] == "device_queue" else ("get_next",)


def _of(found: Rows, names: tuple[str, ...], *, optional: bool = False) -> Rows:
    chosen = [row for row in found if row["queue"] in names]
    if not chosen and not optional:
        raise StepscopeError(f"no queue {names}")
    return chosen


PAGES = {
    "queue_info": queue,
    "minddata_op": costs,
    "process_summary": verdict,
    "minddata-pipeline/op-queue": operators,
    "minddata-pipeline/queue": operator_queue,
}
