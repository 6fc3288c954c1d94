"""Floating point operations of the model and of its scopes."""

from __future__ import annotations

from typing import Any

from asked import Asked
from differing import Figure
from said import rows

from stepscope.errors import StepscopeError
from stepscope.run import Run

_PARTS = {"cube_FLOPs": "step_cube_flops", "vec_FLOPs": "step_vector_flops"}
_RATES = {"cube_FLOPS": "cube_flops_per_s", "vec_FLOPS": "vector_flops_per_s"}


def summary(run: Run, asked: Asked) -> Any:
    """MFLOPs of a step and GFLOPS, of both units or of all."""
    total = rows(run, "model_flops")[0]
    names = {**_PARTS, **_RATES}
    if total["stated_flops"] is not None:
        names = {"FLOPs": "step_flops", "FLOPS": "flops_per_s"}
    elif total["stated_cube_flops"] is None:
        raise StepscopeError("no summary")
    said: dict[str, Any] = {
        key: None if total[name] is None else Figure(total[name] / (1e6 if key.endswith("s") else 1e9), 4)
        for key, name in names.items()
    }
    if "FLOPs" in said:
        said["FLOPS_Utilization"] = total["stated_flops_utilization_ratio"] * 100
    return said


def scopes(run: Run, asked: Asked) -> Any:
    """The tree of scopes."""
    edges = rows(run, "flop_tree")
    if edges[0]["found_by"] != "stated":
        raise StepscopeError("no tree is stated")
    names = dict.fromkeys([name for edge in edges for name in (edge["parent"], edge["scope"])])
    links = [{"source": edge["parent"], "target": edge["scope"], "value": edge["flops"] / 1e6} for edge in edges]
    stated = run.table("rank_figures").collect().filter(name="flop_scope_levels")["value"]
    levels = int(stated[0]) if len(stated) else None
    data = {"nodes": [{"name": name} for name in names], "links": links}
    return in_order({"data": data, "max_scope_num": levels})


def in_order(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree whose nodes and edges stand in the order of their names."""
    nodes = sorted(tree["data"]["nodes"], key=lambda node: node["name"])
    links = sorted(tree["data"]["links"], key=lambda link: (link["source"], link["target"]))
    return {**tree, "data": {"nodes": nodes, "links": links}}


PAGES = {"flops-summary": summary, "flops-scope": scopes}
