"""`flops_summary` and `flops_scope`: operations of the whole model in millions, and of its scopes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.json_values import as_amount
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.side_files import read_object
from stepscope.tables import FLOP_SCOPES, RANK_FIGURES

_MEGA, _GIGA, _PERCENT = 1e6, 1e9, 0.01
_NAMES = {
    "cube_FLOPs": ("cube_flops", _MEGA),
    "cube_FLOPS": ("cube_flops_per_s", _GIGA),
    "vec_FLOPs": ("vector_flops", _MEGA),
    "vec_FLOPS": ("vector_flops_per_s", _GIGA),
    "FLOPs": ("flops", _MEGA),
    "FLOPS": ("flops_per_s", _GIGA),
    "FLOPS_Utilization": ("flops_utilization_ratio", _PERCENT),
}
"""Key to our name and what the figure is times."""


def write_flops_summary(files: RankFiles, sink: Sink) -> None:
    """Write what the summary states."""
    path = files.one("flops_summary")
    if path is None:
        return
    content = read_object(path, sink) or {}
    found = {name: as_amount(content[key]) for key, (name, _) in _NAMES.items() if key in content}
    for key, (name, _) in _NAMES.items():
        if name in found and found[name] is None:
            sink.issue("error", path, f"{key} is not a valid amount", "Copy the file again.", place=key)
    if content and not found:
        sink.issue("error", path, "has no known figure", "Report the format if it is new.")
    stated = {name: value * factor for name, factor in _NAMES.values() if (value := found.get(name)) is not None}
    if stated:
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=list(stated), value=list(stated.values())))


def write_flop_scopes(files: RankFiles, sink: Sink) -> None:
    """Write the tree of scopes."""
    path = files.one("flops_scope")
    if path is None:
        return
    content = read_object(path, sink)
    if not content:
        return
    if (levels := as_amount(content.get("max_scope_num"))) is not None:
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=["flop_scope_levels"], value=[levels]))
    data = content.get("data")
    links = data.get("links") if isinstance(data, dict) else None
    if not isinstance(links, list):
        sink.issue("error", path, "has no list of links", "Copy the file again; everything else is read.", place="data")
        return
    _write_links(path, links, sink)


def _write_links(path: Path, links: list[Any], sink: Sink) -> None:
    edges = [edge for link in links if isinstance(link, dict) and (edge := _edge(link)) is not None]
    if lost := len(links) - len(edges):
        sink.issue("error", path, f"{lost} of {len(links)} links cannot be read", "Copy the file again.", lost=lost)
    if edges:
        parents, scopes, flops = zip(*edges, strict=True)
        sink.write(FLOP_SCOPES, FLOP_SCOPES.unchecked(parent=parents, scope=scopes, flops=flops))


def _edge(link: Mapping[str, Any]) -> tuple[str, str, float] | None:
    parent, scope, value = link.get("source"), link.get("target"), as_amount(link.get("value"))
    if not isinstance(parent, str) or not isinstance(scope, str) or value is None:
        return None
    return parent, scope, value * _MEGA
