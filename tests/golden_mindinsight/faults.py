"""What MindInsight 2.3.1 gets wrong, and how a difference is known to be of that kind.

Each has a check that looks at the difference itself and, where figures are excused, the right value from the files or
from MindInsight's other pages: a fault of ours in the same place is not excused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pages_steps
import polars as pl
import raw_files
import raw_steps
from asked import Asked
from differing import MISSING, Difference, differences
from fault import Fault

from stepscope.run import Run

Page = Callable[[Run, Asked], Any]


def _of(page: Page) -> Callable[[Run, Asked, Difference], Any]:
    """The value in the place of a difference, of a page that is right."""

    def right(run: Run, asked: Asked, difference: Difference) -> Any:
        value = page(run, asked)
        for key in filter(None, difference.place.split("/")):
            is_list = isinstance(value, list)
            known = int(key) < len(value) if is_list else key in value
            value = (value[int(key)] if is_list else value[key]) if known else MISSING
            if not known:
                break
        return value

    return right


_PIPELINES: dict[str, Page] = {
    "minddata-pipeline/op-queue": raw_files.pipeline,
    "minddata-pipeline/queue": raw_files.pipeline_queue,
}
STEPS = _of(raw_steps.page)
PROCESSORS = _of(raw_files.processors)


def _counts_first(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is the average with the first step."""
    assert run is not None
    page = pages_steps.PAGES[asked.kind](run, asked, with_first=True)
    return difference.place not in {other.place for other in differences(asked.answer, page)}


def _of_more_steps(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether an average differs, and the reader found that its row is not of the steps in the file."""
    is_average = difference.place.startswith("summary") or asked.parameters["type"] == 0
    return is_average and _told(run, "its average row does not match the steps in the file")


def _is_empty(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether segments are empty, and those that are not are the same as ours."""
    if isinstance(difference.theirs, list):
        filled = [one for one in difference.theirs if one]
        return 0 < len(filled) < len(difference.theirs) and not list(
            differences(filled, difference.ours[-len(filled) :])
        )
    return difference.theirs is MISSING and all(one == {} for one in asked.answer["training_trace_graph"][2])


def _is_twice(asked: Asked, difference: Difference, run: Run | None) -> bool:
    return _told(run, "are written twice")


def _averages_nothing(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is ours with the zeros of a first sample, before which there was nothing to measure."""
    found: Any = _without_first(asked.answer)
    for key in difference.place.split("/"):
        found = found[int(key)] if isinstance(found, list) else found.get(key)
    return not list(differences(found, difference.ours))


def _without_first(answer: Any) -> Any:
    """Their answer without samples that are zero in all that the machine did."""
    device = answer["device_info"]
    if any(part["metrics"][:1] != [0] for part in device.values()):
        return answer
    operators = [{**one, "metrics": _later(one["metrics"])} for one in answer["op_info"]["op_list"]]
    sums = {
        key: sum(one["metrics"][key]["avg_value"] for one in operators)
        for key in answer["op_info"]["total_op_avg_value"]
    }
    return {
        **answer,
        "device_info": _later(device),
        "process_info": _later(answer["process_info"]),
        "op_info": {"op_list": operators, "total_op_avg_value": sums},
        "step_info": answer["step_info"][1:],
    }


def _later(parts: Any) -> dict[str, Any]:
    kept = {key: part["metrics"][1:] if part["metrics"][:1] == [0] else part["metrics"] for key, part in parts.items()}
    return {key: {"avg_value": round(sum(rest) / len(rest)), "metrics": rest} for key, rest in kept.items()}


def _is_cut_short(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs lacks the last of our samples, or is of those that are left."""
    theirs, ours = difference.theirs, difference.ours
    if isinstance(theirs, list):
        return len(theirs) == len(ours) - 1 and not list(differences(theirs, ours[: len(theirs)]))
    metrics = asked.answer["device_info"]["user_utilization"]["metrics"]
    assert run is not None
    return len(metrics) == run.analyse("cpu_utilization").filter(scope="host").height - 1


def _is_stated_rate(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is what the file states, and the same operations over the same times give ours."""
    assert run is not None
    unit = {"cube_FLOPS": "cube", "vec_FLOPS": "vector"}[difference.place]
    stated = run.analyse("model_flops")[f"stated_{unit}_flops_per_s"][0]
    one = run.analyse("operator_flops").select(
        flops=(pl.col(f"{unit}_flops") * pl.col("count")).sum(),
        busy_ns=pl.col("total_ns").filter(pl.col(f"{unit}_flops") > 0).sum(),
    )
    rate = one["flops"][0] / one["busy_ns"][0]
    return abs(stated / 1e9 - difference.theirs) < 1e-6 and abs(rate / difference.ours - 1) < 1e-6


def _is_stated_total(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is what the file states, and ours what its operators add up to in a step."""
    assert run is not None
    unit = {"cube_FLOPs": "cube", "vec_FLOPs": "vector"}[difference.place]
    total = run.analyse("model_flops")
    made = run.analyse("operator_flops").select((pl.col(f"{unit}_flops") * pl.col("count")).sum()).item()
    stated = total[f"stated_{unit}_flops"][0]
    return stated / 1e6 == difference.theirs and abs(made / total["steps"][0] / 1e6 / difference.ours - 1) < 1e-6


def _percent_twice(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether the shares add up to more than everything."""
    return sum(row[3] for row in asked.answer["object"]) > 105


def _is_first_only(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether no batch but the first found a queue empty."""
    assert run is not None
    return run.analyse("input_batches").filter((pl.col("queue_size") == 0) & (pl.col("number") > 1)).is_empty()


def _told(run: Run | None, problem: str) -> bool:
    return run is not None and run.issues.filter(pl.col("problem").str.contains(problem, literal=True)).height > 0


def _has_file(run: Run | None, name: str) -> bool:
    return run is not None and (run.ranks[0].path / name).is_file()


def _is_by_place(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is what stands in the column of that place."""
    _, row, column = difference.place.split("/")
    assert run is not None
    lines = (run.ranks[0].path / f"flops_{asked.rank}.txt").read_text().splitlines()
    name = sorted(asked.answer["object"], key=lambda one: one[:2])[int(row)][0]
    fields = next((line.split(",") for line in lines if line.startswith(f"{name},")), None)
    return fields is not None and float(fields[int(column) - 4]) == difference.theirs


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


FAULTS: tuple[Fault, ...] = (
    Fault(
        "average of other steps",
        "training-trace/.*",
        "summary/.*|training_trace_graph/.*",
        "The average row is shown as stored, although it covers more steps than the file; ours covers those in the "
        "file.",
        _of_more_steps,
        STEPS,
    ),
    Fault(
        "average with the first step",
        "training-trace/.*",
        "summary/.*|training_trace_graph/.*",
        "The first step has no step before it, so its interval of 0 is not a measurement; ours leaves it out (both "
        "are in `step_statistics`).",
        _counts_first,
        STEPS,
    ),
    Fault(
        "empty segments",
        "training-trace/graph",
        r"training_trace_graph/\d+(/\d+/.*)?",
        "A call that begins before its step, or in the average after it, is returned as empty segments; ours has it.",
        _is_empty,
        STEPS,
    ),
    Fault(
        "step trace hidden",
        "training-trace/graph",
        "",
        "Refused for runs with host operators, with dynamic shapes or without `profiler_info`, although the file of "
        "steps exists.",
        lambda asked, difference, run: (
            difference.theirs is None and _has_file(run, f"step_trace_raw_{asked.rank}_detail_time.csv")
        ),
        STEPS,
    ),
    Fault(
        "number as text",
        "minddata_op",
        "summary/time_summary/avg_cost",
        "The average cost is returned as text.",
        lambda asked, difference, run: (
            isinstance(difference.theirs, str) and abs((_number(difference.theirs) or 0) - difference.ours) < 1e-9
        ),
    ),
    Fault(
        "warning without cause",
        "process_summary",
        "device_queue_warning/status",
        "It returns `warning` when nothing is wrong; ours reports healthy.",
        lambda asked, difference, run: (
            (difference.theirs, difference.ours) == ("warning", "normal")
            and all(asked.answer[key]["status"] == "normal" for key in ("data_process", "data_transmission"))
        ),
    ),
    Fault(
        "advice hidden",
        "summary/propose",
        ".*",
        "All advice but the vendor's is dropped unless step trace and pipeline both have some; ours is kept.",
        lambda asked, difference, run: (
            difference.theirs in (None, MISSING)
            and not {"step_trace-iter_interval", "minddata_pipeline-general"} <= asked.answer.keys()
        ),
        raw_files.advice,
    ),
    Fault(
        "advice on what costs nothing",
        "summary/propose",
        "minddata_pipeline-.*",
        "Calls a pipeline operator slow although the host queue was hardly ever empty; ours does not.",
        lambda asked, difference, run: (
            difference.ours is MISSING and asked.answer.get("minddata_device_queue_rate", {}).get("empty_rate", 0) <= 30
        ),
    ),
    Fault(
        "first batch late",
        "summary/propose|process_summary",
        "minddata_device_queue_rate|device_queue_warning|data_(process|transmission)/status",
        "The first batch always finds empty queues, as none can be ready; ours only reports later ones.",
        _is_first_only,
    ),
    Fault(
        "values twice",
        "minddata-cpu-utilization-summary",
        ".*",
        "MindSpore 2.10 writes each value of the host twice, or followed by a zero; ours takes each once, at its time.",
        _is_twice,
        PROCESSORS,
    ),
    Fault(
        "nothing measured",
        "minddata-cpu-utilization-summary",
        ".*/metrics|.*/avg_value|step_info|op_info/total_op_avg_value/.*",
        "The first sample has no interval to measure; its zeros are averaged in, ours are unknown.",
        _averages_nothing,
        PROCESSORS,
    ),
    Fault(
        "sample lost",
        "minddata-cpu-utilization-summary",
        ".*/metrics|.*/avg_value|step_info|op_info/total_op_avg_value/.*",
        "Drops the first time even if lists are as long as the times, and with it a sample.",
        _is_cut_short,
        PROCESSORS,
    ),
    Fault(
        "two recordings in one",
        "minddata-cpu-utilization-summary",
        "sampling_interval|op_info/op_list/.*/num_workers",
        "With files of two recordings, workers are taken from one and operators from the other.",
        lambda asked, difference, run: _told(run, "lists other operators than"),
        PROCESSORS,
    ),
    Fault(
        "older word",
        "minddata-cpu-utilization-summary",
        "device_info/(runable_processes|runnable_process)",
        "The key of older files is passed on; ours has one name for both.",
        lambda asked, difference, run: MISSING in (difference.theirs, difference.ours),
        PROCESSORS,
    ),
    Fault(
        "one file of two",
        "minddata-pipeline/.*",
        "",
        "Only `minddata_pipeline_raw` is read; ours falls back to `pipeline_profiling`.",
        lambda asked, difference, run: (
            difference.theirs is None
            and _has_file(run, f"pipeline_profiling_{asked.rank}.json")
            and not _has_file(run, f"minddata_pipeline_raw_{asked.rank}.csv")
        ),
        lambda run, asked, difference: _PIPELINES[asked.kind](run, asked),
    ),
    Fault(
        "columns by place",
        "ops/aicore_detail",
        r"object/\d+/[5-8]",
        "Columns of `flops` are read by position, which differs between versions; ours uses headers and computes the"
        " rate.",
        _is_by_place,
        raw_files.flops_cell,
    ),
    Fault(
        "total of other operators",
        "flops-summary",
        "(cube|vec)_FLOPs",
        "The recorded total does not match its operators; ours does (both are in `model_flops`).",
        _is_stated_total,
    ),
    Fault(
        "rate of rates",
        "flops-summary",
        "(cube|vec)_FLOPS",
        "The model's rate is the sum of the operators' rates divided by that of their times; ours is operations "
        "divided by time.",
        _is_stated_rate,
    ),
    Fault(
        "percent of percent",
        "ops/aicore_type",
        r"object/\d+/3",
        "Older files have percent, later ones a share; both are multiplied by 100. Ours is computed from the totals.",
        _percent_twice,
        lambda run, asked, difference: raw_files.share(asked, difference),
    ),
    Fault(
        "peak not of the curve",
        "memory-summary",
        "summary/peak_mem",
        "The recorded peak is not the highest point of the file's own curve; ours is (both are in `memory_peak`).",
        lambda asked, difference, run: _told(run, "gives a peak of"),
        lambda run, asked, difference: raw_files.peak(asked),
    ),
)
