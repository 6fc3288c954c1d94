"""The graphs of a job with their parallel strategy, by pipeline stage."""

from __future__ import annotations

import json
from typing import Any

from asked import Asked
from said import Row, rows

from stepscope.errors import StepscopeError
from stepscope.run import Run

_ROLES = {"gradient aggregation": "GradientAggregation", "redistribution": "Redistribution"}


def graphs(run: Run, asked: Asked) -> Any:
    """The ranks of the stages, or the nodes of one."""
    stages = rows(run, "strategy_stages")
    stage = asked.parameters["stage_id"]
    if stage == "metadata":
        modes = {one["parallel_mode"] for one in stages}
        devices = {str(one["stage"]): _ranks(one["ranks"]) for one in stages}
        return {"data": {"parallel_type": modes.pop(), "stage_devices": devices}, "status": "finish"}
    nodes = [one for one in rows(run, "strategy_nodes") if one["stage"] == stage]
    if not nodes:
        raise StepscopeError(f"no stage {stage}")
    by_kind: dict[str, dict[str, Any]] = {"operator": {}, "parameter": {}, "constant": {}}
    for one in nodes:
        by_kind[one["kind"]][one["node"]] = _node(one)
    recorded = next(one["recorded"] for one in stages if one["stage"] == stage)
    data = {
        "op_nodes": by_kind["operator"],
        "parameter_nodes": by_kind["parameter"],
        "const_nodes": by_kind["constant"],
        "rank_ids": _ranks(recorded),
    }
    return {"data": data, "status": "finish"}


def normal(answer: Any) -> Any:
    """Their answer with nodes by their names."""
    data = answer["data"]
    lists = {key: {node["node_id"]: node for node in data[key]} for key in data if key.endswith("_nodes")}
    return {**answer, "data": {**data, **lists}}


def _ranks(text: str) -> list[int]:
    return [int(rank) for rank in text.split(", ")]


def _node(one: Row) -> dict[str, Any]:
    kinds = {"parameter": "Parameter", "constant": "Const"}
    is_operator = one["kind"] == "operator"
    return {
        "attr": _attributes(one) if is_operator else {},
        "input": one["inputs"],
        "instance_type": _ROLES.get(one["role"], ""),
        "name": one["name"],
        "node_id": one["node"],
        "output_data_type": _types(one["output_types"]) if one["kind"] != "constant" else "",
        "output_shape": _shapes(one["output_shapes"]),
        "parallel_group": [] if one["group"] is None else [one["group"]],
        "parallel_group_rank": one["group_ranks"] or "",
        "parallel_shard": one["strategy"] or [],
        "scope": one["scope"] or "",
        "type": one["type"] or kinds[one["kind"]],
    }


def _attributes(one: Row) -> dict[str, str]:
    """All attributes but the chosen strategy, as texts."""
    stated = dict(json.loads(one["attributes"] or "{}"))
    given = None if one["given_strategy"] is None else json.loads(one["given_strategy"])
    side = "src_rank" if one["type"] == "Receive" else "dest_rank"
    own = {"in_strategy": given, "group_ranks": one["group_ranks"], side: one["peer"], "sr_tag": one["tag"]}
    if one["group"] is not None:
        own["group"] = one["group"]
    return {name: str(value) for name, value in {**stated, **own}.items() if value is not None}


def _types(types: list[str] | None) -> str:
    words = [f"DT_TENSOR[DT_{one.upper()}]" for one in types or ()]
    return words[0] if len(words) == 1 else f"DT_TUPLE{words}" if words else ""


def _shapes(text: str | None) -> Any:
    """The sizes of one output as texts; of several, their shapes as a text."""
    shapes = json.loads(text or "[]")
    return str(shapes) if shapes and isinstance(shapes[0], list) else [str(size) for size in shapes]


PAGES = {"parallel-strategy/graphs": graphs}
