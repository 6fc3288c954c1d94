"""The helper's advice about one rank."""

from __future__ import annotations

from math import ceil
from typing import Any

from asked import Asked
from said import rows

from stepscope.advice import advise
from stepscope.errors import StepscopeError
from stepscope.run import Run

_KINDS = {"reader": "dataset_op", "generator": "generator_op", "map": "map_op", "batch": "batch_op"}


def advice(run: Run, asked: Asked) -> Any:
    """The findings under the labels of the helper, without headings."""
    findings = {finding.rule: finding for finding in advise(run)}
    said: dict[str, Any] = {}
    if "iteration-interval" in findings:
        said["step_trace-iter_interval"] = ["0.5"]
    queues = _queues(run)
    if taken := queues.get("get_next"):
        said["minddata_get_next_queue"] = [taken["empty"], taken["batches"]]
    host = queues.get("device_queue") or queues.get("dataset_iterator")
    if host:
        said["minddata_device_queue"] = [host["empty"], host["batches"], host["full"], host["batches"]]
        if "host-queue" in findings or "data-queue" in findings:
            rate = ceil(host["empty"] / host["batches"] * 100)
            said["minddata_device_queue_rate"] = {"empty_rate": rate, "empty_warning_threshold": 30}
        else:
            said["device_queue_warning"] = ["warning"]
    if busy := findings.get("cpu-busy"):
        said["minddata_cpu_utilization"] = [round(busy.evidence["busy_ratio"] * 100)]
    if slow := findings.get("pipeline-bottleneck"):
        chain = [slow.evidence["chain"]]
        said["minddata_pipeline-general"] = chain
        if kind := _KINDS.get(slow.evidence["kind"]):
            said[f"minddata_pipeline-{kind}"] = chain
    if advised := findings.get("ai-cpu"):
        said["msadvisor-proposer"] = {"AICPUModel": advised.evidence["recommendation"]}
    if not said:
        raise StepscopeError("no advice")
    return said


def _queues(run: Run) -> dict[str, dict[str, Any]]:
    try:
        return {row["queue"]: row for row in rows(run, "input_queues")}
    except StepscopeError:
        return {}


PAGES = {"summary/propose": advice}
