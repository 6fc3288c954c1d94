"""`memory_usage_details_N.json`: graphs with their nodes, their tensors and the memory in use at each node, in GiB.

By far the largest part of the file, `breakdowns`, lists for every node all tensors that live at it, which the tensors'
lifetimes say as well. It is not read into memory.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepscope.json_values import list_of, small_number, whole_number
from stepscope.sources.base import Sink
from stepscope.sources.classic.memory_plan import NO_LIFETIME, GraphPlan, gib_in_bytes, size_in_bytes
from stepscope.sources.side_files import AGAIN, object_in, report_unreadable

_BREAKDOWNS = re.compile(rb',?\s*"breakdowns"\s*:\s*\[')
_NEXT_GRAPH = re.compile(rb'\]\s*\}\s*,\s*(?="[^"\\]*"\s*:\s*\{)')
_END = re.compile(rb"\]\s*\}\s*\}\s*$")
_LONGEST_END = 64


def read_details(path: Path, sink: Sink) -> list[GraphPlan]:
    """The readable graphs of a file."""
    try:
        text, is_whole = _without_breakdowns(path)
    except OSError as error:
        report_unreadable(error, path, sink)
        return []
    content = object_in(text, path, sink)
    if content is None:
        return []
    if not is_whole:
        problem = "is truncated within the tensors of each node, which are not needed: nothing is lost"
        sink.issue("note", path, problem, "Copy the file again if other tools need it.", place="breakdowns")
    graphs = {"": content} if "nodes" in content else content
    found = [plan for graph in graphs.values() if (plan := _plan(graph)) is not None]
    if lost := sum(plan.lost for plan in found):
        problem = f"{lost} nodes and tensors have an impossible size; they are left out or have an unknown size"
        sink.issue("error", path, problem, AGAIN, place="nodes", lost=lost)
    if lost := len(graphs) - len(found):
        problem = f"{lost} graphs have no number or no nodes and are left out"
        sink.issue("error", path, problem, AGAIN, lost=lost)
    return found


def _without_breakdowns(path: Path) -> tuple[bytes, bool]:
    """The text of the file without `breakdowns`, which stands last in each graph; whether the file is whole."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return b"", True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            parts, at = [], 0
            while found := _BREAKDOWNS.search(text, at):
                parts.append(text[at : found.start()] + b"}")
                after = _NEXT_GRAPH.search(text, found.end())
                if after is None:
                    is_whole = _END.search(text, max(found.end() - 1, len(text) - _LONGEST_END)) is not None
                    return b"".join([*parts, b"}"]), is_whole
                parts.append(b",")
                at = after.end()
            return b"".join([*parts, text[at:]]), True


def _plan(graph: Any) -> GraphPlan | None:
    number = whole_number(graph.get("graph_id")) if isinstance(graph, dict) else None
    nodes = [node for node in list_of(graph, "nodes") if isinstance(node, dict)]
    if number is None or not nodes:
        return None
    lines = list_of(graph, "lines")
    plan = GraphPlan(number, size_in_bytes(graph.get("static_mem")), _node(graph, "fp_start"), _node(graph, "bp_end"))
    seen: set[int] = set()
    for at, node in enumerate(nodes):
        own = small_number(node.get("node_id"))
        own = at if own is None else own
        plan.nodes.append(_node_row(own, node, lines[at] if at < len(lines) else None))
        plan.lost += node.get("size") is not None and plan.nodes[-1]["size_bytes"] is None
        for tensor in _tensors(own, node):
            if tensor is None:
                plan.lost += 1
            elif tensor["tensor"] not in seen:
                seen.add(tensor["tensor"])
                plan.tensors.append(tensor)
    return plan


def _node_row(number: int, node: Mapping[str, Any], line: Any) -> dict[str, Any]:
    return {
        "node": number,
        "name": _text(node, "name"),
        "full_name": _text(node, "fullname"),
        "size_bytes": size_in_bytes(node.get("size")),
        "allocated_bytes": gib_in_bytes(node.get("allocated")),
        "total_bytes": size_in_bytes(line),
        "allocations": whole_number(node.get("allocations")),
        "inputs": json.dumps(inputs) if (inputs := list_of(node, "inputs")) else None,
    }


def _tensors(node: int, content: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """Rows of the tensors of a node; None for one without a number or a size."""
    for tensor in (*list_of(content, "outputs"), *list_of(content, "workspaces")):
        number = whole_number(tensor.get("tensor_id")) if isinstance(tensor, dict) else None
        size = size_in_bytes(tensor.get("size")) if number is not None else None
        if size is None:
            yield None
            continue
        lifetime = _text(tensor, "life_long")
        yield {
            "tensor": number,
            "node": node,
            "name": _text(tensor, "tensor_name"),
            "type": _text(tensor, "type"),
            "data_type": _text(tensor, "data_type"),
            "format": _text(tensor, "format"),
            "shape": _text(tensor, "shape"),
            "size_bytes": size,
            "lifetime": None if lifetime == NO_LIFETIME else lifetime,
            "life_start": whole_number(tensor.get("life_start")),
            "life_end": whole_number(tensor.get("life_end")),
        }


def _node(graph: Mapping[str, Any], key: str) -> int | None:
    number = small_number(graph.get(key))
    return number if number is not None and number >= 0 else None


def _text(part: Mapping[str, Any], key: str) -> str | None:
    value = part.get(key)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) and value else None
