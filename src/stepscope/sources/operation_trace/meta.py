"""The file that describes the job of an operation-level trace: `key: value` lines, or JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope import json_files
from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink

_LINE = re.compile(r"^(\w{1,64}):\s*(.*?)\s*(?:#.*)?$")
_MOST_BYTES = 1 << 20
_SIZES = {
    "data": "dp_size",
    "pipeline": "pp_size",
    "tensor": "tp_size",
    "virtual_pipeline": "vpp_size",
    "world": "world_size",
}
_REMEDY = "Sizes are taken from the operations; copy the file again if you need what it states"


@dataclass(frozen=True)
class Sizes:
    """Parallel sizes of a job."""

    data: int
    pipeline: int
    tensor: int
    virtual_pipeline: int
    world: int


def meta_beside(trace: Path) -> Path | None:
    """The file that describes a trace: `meta-X` beside `trace-X`."""
    name = trace.stem.removeprefix("trace-")
    beside = (trace.with_name(f"meta-{name}{ending}") for ending in (".yaml", ".yml", ".json"))
    return next((file for file in beside if file.is_file()), None)


def sizes(places: pl.DataFrame, meta: Path | None, sink: Sink, *, report: bool) -> Sizes:
    """The sizes that the meta file states; what it lacks, or the operations contradict, follows from the operations.

    Args:
        places: `rank`, `stage`, `dp_rank`, `model_chunk` of the ranks with operations.
        meta: The file.
        sink: Gets its faults.
        report: Whether to report them.
    """
    least = _seen(places)
    stated = _stated(meta, sink, report=report)
    found = {}
    for field, key in _SIZES.items():
        seen, value = getattr(least, field), stated.get(key)
        if value is not None and not (
            isinstance(value, int) and max(seen if field != "tensor" else 1, 1) <= value < 1 << 31
        ):
            if report and meta is not None:
                problem = f"{key} is {value}, but the operations are those of at least {seen}"
                sink.issue("warning", meta, problem, "Check whether it belongs to this trace", place=key)
            value = None
        found[field] = seen if value is None else value
    if "world_size" not in stated:
        found["world"] = max(found["world"], found["data"] * found["pipeline"] * found["tensor"])
    return Sizes(**found)


def _seen(places: pl.DataFrame) -> Sizes:
    """The least sizes that fit the operations."""
    data, pipeline, chunks, last = places.select(
        pl.col("dp_rank").max() + 1, pl.col("stage").max() + 1, pl.col("model_chunk").max() + 1, pl.col("rank").max()
    ).row(0)
    ranks = places["rank"].unique().sort()
    # One of each tensor-parallel group is recorded, so ranks are as far apart as it is large.
    step = ranks.diff().drop_nulls().min() if len(ranks) == data * pipeline else None
    tensor = step if isinstance(step, int) and (ranks % step == 0).all() else 1
    return Sizes(data, pipeline, tensor, max(chunks or 1, 1), max(data * pipeline * tensor, last + 1))


def _stated(meta: Path | None, sink: Sink, *, report: bool) -> Mapping[str, Any]:
    if meta is None:
        return {}
    try:
        if meta.suffix == ".json":
            return {key: _number(value) for key, value in json_files.read_object(meta, most_bytes=_MOST_BYTES).items()}
        text = meta.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace")
    except (OSError, UnreadableInput) as error:
        if report:
            problem = (
                error.problem if isinstance(error, UnreadableInput) else f"cannot be read: {error.strerror or error}"
            )
            sink.issue("warning", meta, problem, _REMEDY)
        return {}
    lines = [match for line in text.splitlines() if (match := _LINE.match(line))]
    if report and not lines:
        sink.issue("warning", meta, "has no lines of a name, a colon and a value", _REMEDY)
    return {match[1]: _number(match[2].strip("\"'")) for match in lines}


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value) else value
