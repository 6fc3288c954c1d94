"""`step_trace_point_info`: at which operators forward begins and backward ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.side_files import read_object
from stepscope.tables import RANK_FIGURES

_NAMES = {"fp_start": "forward_start_operator", "bp_end": "backward_end_operator"}
_GRAPH = re.compile(r"(?:model|graph)_(\d{1,18})")


def write_step_points(files: RankFiles, sink: Sink) -> None:
    """Write the operators at the points, by graph if the file separates graphs."""
    path = files.one("step_points")
    if path is None:
        return
    content = read_object(path, sink) or {}
    rows = [(name, graph, text) for graph, points in _by_graph(content) for name, text in _stated(points)]
    odd = [key for _, points in _by_graph(content) for key in _NAMES if not isinstance(points.get(key, ""), str)]
    if odd:
        sink.issue("error", path, f"{', '.join(sorted(set(odd)))} is not a name", "Copy the file again.", place=odd[0])
    if content and not rows:
        known = ", ".join(_NAMES)
        sink.issue("error", path, f"has none of {known}", "Copy the file again, or report the format if it is new.")
    if rows:
        names, graphs, texts = zip(*rows, strict=True)
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=names, graph=list(graphs), text=texts))


def _by_graph(content: Mapping[str, Any]) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Graph (None: of all) to points."""
    yield None, content
    for key, value in content.items():
        if isinstance(value, dict) and (match := _GRAPH.fullmatch(key)):
            yield int(match[1]), value


def _stated(points: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name in _NAMES.items():
        text = points.get(key)
        if isinstance(text, str) and text:
            yield name, text
