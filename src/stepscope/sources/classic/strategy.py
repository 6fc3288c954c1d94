"""The compiled graph of a rank with its parallel strategy: `parallel_strategy_<rank>.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_index, as_text, json_text, list_of, object_of, whole_number
from stepscope.sources.base import Sink
from stepscope.sources.side_files import AGAIN, read_object
from stepscope.tables import PARALLEL_GRAPHS, PARALLEL_NODES
from stepscope.tables.base import with_schema

LONGEST = 1000
"""Characters of an attribute that are kept: longer ones are constants, not strategy."""

_DEEPEST = 8
"""Lists in lists of values: strategies have two levels."""

_PREFIX = re.compile(r"^DT_(?:BASE_)?")
_PEERS = ("dest_rank", "src_rank")
_OWN = ("in_strategy", "gen_strategy", "group_ranks", "sr_tag", *_PEERS)
"""Attributes with a column of their own."""

COMMUNICATION = frozenset(
    (
        *(
            "AllReduce",
            "AllGather",
            "ReduceScatter",
            "AlltoAll",
            "AllToAll",
            "AlltoAllV",
            "NeighborExchange",
            "Broadcast",
        ),
        *("Send", "Receive", "_MirrorOperator", "_VirtualDiv", "NeighborExchangeV2", "CollectiveScatter", "Barrier"),
        *("CollectiveGather", "Reduce", "AllSwap", "_HostAllGather", "_HostReduceScatter"),
    )
)
"""Types of operators whose `group` is one of communication; that of a convolution is a number of channels."""


def write_strategy(path: Path, rank: int, sink: Sink) -> None:
    """Write the rows of `parallel_graphs` and `parallel_nodes`."""
    content = read_object(path, sink)
    if content is None:
        return
    config, graph = object_of(content, "config"), object_of(content, "graph")
    stated = as_index(config.get("rankId"))
    if stated is not None and stated != rank:
        problem = f"gives rank {stated} in a file named for rank {rank}; the name is used"
        sink.issue("note", path, problem, "Check that files were not renamed")
    listed = _stage_devices(config)
    stage = as_index(config.get("stageId"))
    if stage is None or not graph.get("node"):
        missing = " and ".join([*(["stage"] if stage is None else []), *([] if graph.get("node") else ["nodes"])])
        problem = f"states no {missing} that can be read, so they are unknown"
        sink.issue("warning", path, problem, AGAIN, place="parallel_graphs")
    about = {
        "stage": [stage],
        "parallel_mode": [as_text(config.get("parallelType"))],
        "stage_devices": [json_text(listed)],
    }
    sink.write(PARALLEL_GRAPHS, PARALLEL_GRAPHS.unchecked(**about))
    rows = _rows(graph)
    kept = {row["node"]: row for row in reversed(rows) if row["node"] is not None}
    if lost := len(rows) - len(kept):
        problem = f"{lost} nodes have no name, or that of another one, and are left out"
        sink.issue("warning", path, problem, AGAIN, place="parallel_nodes", lost=lost)
    if kept:
        ordered = [row for row in rows if kept.get(row["node"]) is row]
        wide = {name: pl.Int64() if dtype.is_integer() else dtype for name, dtype in _schema().items()}
        frame = pl.DataFrame(ordered, schema=wide)
        sink.write(PARALLEL_NODES, with_schema(frame, _schema(), strict=False))


def _schema() -> dict[str, Any]:
    return dict(PARALLEL_NODES.stored_schema)


def _stage_devices(config: dict[str, Any]) -> list[list[int]]:
    """The ranks of each stage."""
    stages = []
    for stage in list_of(config, "stageDevices"):
        ranks = [as_index(one.get("size")) for one in list_of(stage, "dim") if isinstance(one, dict)]
        stages.append([rank for rank in ranks if rank is not None])
    return stages


def _rows(graph: dict[str, Any]) -> list[dict[str, Any]]:
    """Operators, parameters and constants, as the file lists them."""
    operators = [_operator(node) for node in list_of(graph, "node") if isinstance(node, dict)]
    parameters = [_parameter(one) for one in list_of(graph, "parameters") if isinstance(one, dict)]
    constants = [_constant(one) for one in list_of(graph, "constVals") if isinstance(one, dict)]
    rows = [*operators, *parameters, *constants]
    return [{**dict.fromkeys(_schema()), **row, "position": place} for place, row in enumerate(rows)]


def _operator(node: dict[str, Any]) -> dict[str, Any]:
    attributes = {
        name: _value(one.get("value"))
        for one in list_of(node, "attribute")
        if isinstance(one, dict) and (name := as_text(one.get("name")))
    }
    kind = as_text(node.get("opType"))
    output = object_of(node, "outputType")
    shapes = _shapes(output)
    given, chosen = (attributes.get(name) for name in ("in_strategy", "gen_strategy"))
    own = set(_OWN)
    group = attributes.get("group")
    is_group = isinstance(group, str) and (kind in COMMUNICATION or "group_ranks" in attributes)
    if is_group:
        own.add("group")
    peer = next((attributes[name] for name in _PEERS if name in attributes), None)
    rest = {name: value for name, value in sorted(attributes.items()) if name not in own and _is_short(value)}
    return {
        "node": as_text(node.get("name")),
        "kind": "operator",
        "type": kind,
        "name": as_text(node.get("fullName")),
        "scope": as_text(node.get("scope")),
        "instance": as_text(node.get("instanceName")),
        "given_strategy": json_text(given),
        "strategy": json_text(chosen) or json_text(given),
        "group": group if is_group else None,
        "group_ranks": as_text(attributes.get("group_ranks")),
        "peer": as_index(peer),
        "tag": whole_number(attributes.get("sr_tag")),
        "output_types": _types(output) or None,
        "output_shapes": json_text(shapes if shapes else attributes.get("shapes")),
        "inputs": [
            name for one in list_of(node, "input") if isinstance(one, dict) and (name := as_text(one.get("name")))
        ],
        "attributes": json_text(rest),
    }


def _parameter(one: dict[str, Any]) -> dict[str, Any]:
    output = object_of(one, "type")
    name = as_text(one.get("name"))
    shapes = json_text(_shapes(output))
    return {
        "node": name,
        "kind": "parameter",
        "name": name,
        "output_types": _types(output) or None,
        "output_shapes": shapes,
        "inputs": [],
    }


def _constant(one: dict[str, Any]) -> dict[str, Any]:
    value = object_of(one, "value")
    name, content = as_text(one.get("key")), _value(value)
    types = [_word(value.get("dtype"))] if as_text(value.get("dtype")) else None
    kept = {"value": content} if content is not None and _is_short(content) else None
    return {
        "node": name,
        "kind": "constant",
        "name": name,
        "output_types": types,
        "inputs": [],
        "attributes": json_text(kept),
    }


def _is_short(value: Any) -> bool:
    return len(json.dumps(value)) <= LONGEST


def _value(part: Any, depth: int = 0) -> Any:
    """The value of an attribute: a number, a text, a type or a list of these."""
    if not isinstance(part, dict) or depth > _DEEPEST:
        return None
    if "values" in part:
        return [_value(one, depth + 1) for one in list_of(part, "values")]
    if "typeVal" in part:
        return as_text(object_of(part, "typeVal").get("dataType"))
    if "intVal" in part:
        return whole_number(part["intVal"])
    for key in ("strVal", "boolVal", "floatVal", "doubleVal", "uintVal"):
        if key in part:
            value = part[key]
            return value if isinstance(value, (str, bool, int, float)) else None
    return None


def _types(output: dict[str, Any], depth: int = 0) -> list[str]:
    """Data types of outputs, of a tuple those of its parts."""
    if depth > _DEEPEST:
        return []
    parts = list_of(object_of(output, "sequenceType"), "elemTypes")
    if parts:
        return [name for part in parts if isinstance(part, dict) for name in _types(part, depth + 1)]
    element = object_of(output, "tensorType").get("elemType") or output.get("dataType")
    return [_word(element)] if isinstance(element, str) else []


def _word(data_type: Any) -> str:
    """A data type as people write it.

    Examples:
        >>> _word("DT_FLOAT32"), _word("DT_BASE_INT")
        ('float32', 'int')
    """
    return _PREFIX.sub("", str(data_type)).lower()


def _shapes(output: dict[str, Any], depth: int = 0) -> list[Any]:
    """The shape of an output, of a tuple those of its parts; empty if none is known."""
    if depth > _DEEPEST:
        return []
    parts = list_of(object_of(output, "sequenceType"), "elemTypes")
    if parts:
        found = [_shapes(part, depth + 1) for part in parts if isinstance(part, dict)]
        return found if all(found) else []
    sizes = [
        one.get("size") for one in list_of(object_of(output, "tensorType", "shape"), "dim") if isinstance(one, dict)
    ]
    numbers = [whole_number(size) for size in sizes]
    return numbers if None not in numbers else []
