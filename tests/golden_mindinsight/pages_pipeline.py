"""Ranks of a job side by side, as the executive overview draws them: FLOPs, memory, steps, operators of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pages_flops
import pages_strategy
import pages_usage
from asked import Asked
from differing import Figure
from said import rows

from stepscope.errors import StepscopeError
from stepscope.run import Run

_TICK_NS = 10
_CLOCK_US = 0.1
"""How far the same clock may be off that was worked out in another order of roundings."""
_UNITS = {"cube": "cube", "vector": "vector"}


def _each(run: Run, page: Callable[[Run], Any]) -> dict[str, Any]:
    """What a page says of each rank that it says something of."""
    found = {}
    for rank in run.ranks:
        assert rank.rank is not None
        try:
            found[f"device{rank.rank}"] = page(run.select(ranks=rank.rank))
        except StepscopeError:
            continue
    if not any(found.values()):
        raise StepscopeError("no rank says anything")
    return found


def flops(run: Run, asked: Asked) -> Any:
    """FLOPs of each rank and of its operators."""
    return _each(run, lambda rank: _flops(rank, asked))


def _flops(rank: Run, asked: Asked) -> Any:
    try:
        details = {one["full_name"]: _operator(one) for one in rows(rank, "operator_flops")}
    except StepscopeError:
        details = {}
    return {"summary": pages_flops.summary(rank, asked), **({"details": details} if details else {})}


def _operator(one: Mapping[str, Any]) -> dict[str, Any]:
    mega = {f"MFLOPs(10^6 {unit})": one[f"{name}_flops"] / 1e6 for name, unit in _UNITS.items()}
    giga = {f"GFLOPS(10^9 {unit})": one[f"{name}_flops_per_s"] / 1e9 for name, unit in _UNITS.items()}
    return {"full_kernel_name": one["full_name"], **mega, **giga}


def memory(run: Run, asked: Asked) -> Any:
    """Memory of each rank and of its graphs."""
    return _each(
        run,
        lambda rank: {**pages_usage.memory_summary(rank, asked), "details": pages_usage.memory_graphs(rank, asked)},
    )


def steps(run: Run, asked: Asked) -> Any:
    """The steps of each rank in ticks, and their average."""
    return _each(run, lambda rank: dict(_steps(rank)))


def _steps(rank: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    moments = {one["step"]: one for one in rank.table("steps").collect().to_dicts()}
    lengths = {"iteration_interval": "interval_ns", "fp_and_bp": "forward_backward_ns", "tail": "tail_ns"}
    lengths["total"] = "step_ns"
    points = {"start_point": "window_start_ns", "end_point": "window_end_ns"}
    points |= {"fp_point": "forward_start_ns", "bp_point": "backward_end_ns"}
    for one in rows(rank, "step_trace"):
        at = moments[one["step"]]
        if None in [at[name] for name in points.values()]:
            raise StepscopeError("the phases of the steps are not known")
        yield (
            str(one["step"]),
            {
                "step_num": str(one["step"]),
                **{key: at[name] // _TICK_NS for key, name in points.items()},
                **{key: one[name] // _TICK_NS for key, name in lengths.items()},
            },
        )
    means = {one["phase"]: one["mean_without_first_ns"] for one in rows(rank, "step_statistics")}
    phases = {"iteration_interval": "interval", "fp_and_bp": "forward_backward", "tail": "tail", "total": "step"}
    average = {key: Figure(means[name] / _TICK_NS, 0) for key, name in phases.items()}
    yield "-", {"step_num": "-", **average}


def timeline(run: Run, asked: Asked) -> Any:
    """When each operator of a step runs on each rank, and the mean and ends over the ranks of a stage.

    Times are in us since the first start of the step: of the rank itself for single ranks, of any rank for stages."""
    chosen, step = run, asked.parameters["step"]
    wanted = asked.parameters.get("device_list")
    if wanted:
        there = [rank.rank for rank in run.ranks]
        chosen = run.select(ranks=[rank for rank in map(int, wanted.split(",")) if rank in there])
    maps: dict[str, dict[str, Any]] = {}
    for one in rows(chosen, "operator_spans", step=step):
        maps.setdefault(f"device{one['rank']}", {})[_short(one["name"])] = one
    firsts = {device: min(one["start_ns"] for one in spans.values()) for device, spans in maps.items()}
    return {
        "maps": {
            device: {name: _span(one, firsts[device]) for name, one in spans.items()} for device, spans in maps.items()
        },
        "stage_data": _stages(chosen, step),
    }


def _stages(run: Run, step: int) -> dict[str, Any]:
    """The operators of each stage, over its ranks."""
    stages = {rank.rank: 0 for rank in run.ranks}
    with suppress(StepscopeError):
        stages = {one["rank"]: one["stage"] for one in rows(run, "pipeline_places") if one["recorded"]}
    found: dict[str, Any] = {
        f"stage{stage}": {"data": {}, "devices": [f"device{rank}" for rank in stages if stages[rank] == stage]}
        for stage in sorted(set(stages.values()))
    }
    for one in rows(run, "stage_timeline", step=step):
        found[f"stage{one['stage']}"]["data"][_short(one["name"])] = {
            "n": one["ranks"],
            **{
                f"{theirs}_{which}": Figure(one[f"{name}_{ours}_ns"] / 1e3, 3, _CLOCK_US)
                for theirs, ours in (("st", "start"), ("ed", "end"))
                for which, name in (("avg", "mean"), ("min", "first"), ("max", "last"))
            },
        }
    return found


def _span(one: Mapping[str, Any], first_ns: int) -> dict[str, Any]:
    start, end = ((one[name] - first_ns) / 1e3 for name in ("start_ns", "end_ns"))
    return {"st": start, "ed": end, "dur": one["total_ns"] / 1e3}


def _short(name: str) -> str:
    """The name as in MindInsight's timelines: without its place in the model, or its stream and number."""
    last = name.rsplit("/", 1)[-1]
    return last.rsplit("_", 1)[-1] if last.startswith("stream_") else last


def normal_steps(answer: Any) -> Any:
    """Their steps by number."""
    return {device: {row["step_num"]: row for row in found} for device, found in answer.items()}


def normal_flops(answer: Any) -> Any:
    """Their operators by name, rounded as they are."""
    return {
        device: {
            **found,
            **({"details": {row["full_kernel_name"]: row for row in found["details"]}} if "details" in found else {}),
        }
        for device, found in answer.items()
    }


def normal_timeline(answer: Any) -> Any:
    """Their operators since the first start of each rank."""
    maps = {}
    for device, spans in answer["maps"].items():
        first = min(span["st"] for span in spans.values())
        maps[device] = {
            name: {"st": span["st"] - first, "ed": span["ed"] - first, "dur": span["dur"]}
            for name, span in spans.items()
        }
    stages = {}
    for stage, found in answer["stage_data"].items():
        values = {
            name: {key: value if key == "n" else value - answer["minT"] for key, value in one.items()}
            for name, one in found["data"].items()
        }
        stages[stage] = {**found, "data": values}
    return {"maps": maps, "stage_data": stages}


NORMAL: Mapping[str, Callable[[Any], Any]] = {
    "marey-graph/overview-time": normal_steps,
    "marey-graph/flops-data": normal_flops,
    "marey-graph/timeline": normal_timeline,
    "parallel-strategy/graphs": lambda answer: (
        pages_strategy.normal(answer) if "op_nodes" in answer["data"] else answer
    ),
}
"""How answers about all ranks become comparable: rows by their names."""


def is_empty(asked: Asked) -> bool:
    """Whether an answer has only empty parts."""
    if asked.kind.startswith("marey-graph/"):
        parts = asked.answer.get("maps", asked.answer)
        return not any(parts.values())
    return asked.kind == "parallel-strategy/graphs" and not any(asked.answer["data"].values())


PAGES = {
    "marey-graph/flops-data": flops,
    "marey-graph/memory-data": memory,
    "marey-graph/overview-time": steps,
    "marey-graph/timeline": timeline,
}
