"""The operators of dataset pipelines: `minddata_pipeline_raw_N.csv`, otherwise `pipeline_profiling_N.json`.

The CSV file is what MindSpore's analysis made of the JSON file: the same queues, without operators that have none and
are no root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import list_of, small_number, whole_number
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.side_files import AGAIN, read_object

_MS = 1_000_000
_LONGEST_INTERVAL_MS = 10**9
_RAW = FileLayout(
    fields=(
        Field("number", "small", ("op_id",), required=True),
        Field("type", "text", ("op_type",), required=True),
        Field("workers", "small", ("num_workers",)),
        Field("sizes", "text", ("output_queue_size",)),
        Field("mean", "float", ("output_queue_average_size",)),
        Field("capacity", "int", ("output_queue_length",)),
        Field("usage", "float", ("output_queue_usage_rate",)),
        Field("interval", "float", ("sample_interval",)),
        Field("parent", "small", ("parent_id",)),
    ),
    ignored=frozenset({"children_id"}),
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
            "output_queue_usage_rate,sample_interval,parent_id,children_id"
        ),
    ),
)


@dataclass
class Operator:
    """One dataset operator.

    Args:
        number: Its number.
        type: Its type, e.g. `MapOp`.
        workers: Threads or processes of it.
        parent: Number of the operator that takes from it.
        capacity: Room of its output queue.
        sizes: Fill of the queue, sample by sample; empty without a queue.
        interval_ns: Time between samples.
        pipeline: Which pipeline it is in, from 0.
    """

    number: int
    type: str
    workers: int | None
    parent: int | None = None
    capacity: int | None = None
    sizes: list[int | None] = field(default_factory=list)
    interval_ns: int | None = None
    pipeline: int = 0

    @property
    def name(self) -> str:
        """What it is called in all tables."""
        return f"{self.type}_{self.number}"


@dataclass(frozen=True)
class Pipeline:
    """The operators by number; of several pipelines if they have several roots."""

    operators: Mapping[int, Operator]

    @property
    def count(self) -> int:
        """How many pipelines."""
        return max((operator.pipeline for operator in self.operators.values()), default=-1) + 1

    def name(self, number: int | None) -> str | None:
        """What an operator is called; None if there is none of the number."""
        operator = None if number is None else self.operators.get(number)
        return None if operator is None else operator.name


def read_pipeline(raw: Path | None, profiled: Path | None, sink: Sink) -> Pipeline:
    """The pipelines of one rank.

    Args:
        raw: `minddata_pipeline_raw_N.csv`.
        profiled: `pipeline_profiling_N.json`, read if the other has nothing.
        sink: Told about damage.
    """
    operators = _from_csv(raw, sink) if raw is not None else []
    if profiled is not None and (value := read_object(profiled, sink)) is not None:
        listed = _from_json(value, profiled, sink)
        if operators and raw is not None:
            _check_same(operators, listed, raw, profiled, sink)
        operators = operators or listed
    by_number = {operator.number: operator for operator in operators}
    _number_pipelines(by_number)
    return Pipeline(by_number)


def _from_csv(file: Path, sink: Sink) -> list[Operator]:
    rows = read_csv(file, _RAW, sink)
    operators, wrong, damaged, nameless = [], 0, 0, 0
    for row in rows.iter_rows(named=True) if rows is not None else ():
        if row["number"] < 0:
            nameless += 1
            continue
        sizes = _numbers(row.get("sizes"))
        damaged += sizes is None
        operator = Operator(
            row["number"],
            row["type"],
            row.get("workers"),
            row.get("parent"),
            row.get("capacity"),
            sizes or [],
            _interval_ns(row.get("interval")),
        )
        operators.append(operator)
        wrong += _differs(operator, row.get("mean"), row.get("usage"))
    if nameless:
        problem = f"{nameless} operators have a negative number and are left out"
        sink.issue("error", file, problem, AGAIN, place="op_id", lost=nameless)
    if damaged:
        problem = f"the queue of {damaged} operators is not a list of numbers and is left out"
        sink.issue("error", file, problem, AGAIN, place="output_queue_size", lost=damaged)
    if wrong:
        problem = f"mean or usage of {wrong} queues does not match their samples, which are used"
        sink.issue("note", file, problem, "Nothing to do: both are computed from the samples.")
    return operators


def _from_json(value: Mapping[str, Any], file: Path, sink: Sink) -> list[Operator]:
    operators: list[Operator] = []
    parents: dict[int, int] = {}
    lost = 0
    interval_ns = _interval_ns(value.get("sampling_interval"))
    for entry in list_of(value, "op_info"):
        number = small_number(entry.get("op_id")) if isinstance(entry, dict) else None
        if number is None or number < 0:
            lost += 1
            continue
        metrics = entry.get("metrics")
        queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
        capacity = whole_number(queue.get("length")) if isinstance(queue, dict) else None
        sizes = [whole_number(size) for size in list_of(queue, "size")]
        stated = entry.get("op_type")
        kind = stated if isinstance(stated, str) and stated else "Operator"
        workers = small_number(entry.get("num_workers"))
        operators.append(Operator(number, kind, workers, None, capacity, sizes, interval_ns))
        parents |= {child: number for child in map(small_number, list_of(entry, "children")) if child is not None}
    for operator in operators:
        operator.parent = parents.get(operator.number)
    if lost or (not operators and value.get("op_info") != []):
        problem = f"{lost} operators have an impossible number and are left out" if lost else "lists no operators"
        sink.issue("warning", file, problem, AGAIN, place="op_info", lost=lost or None)
    return operators


def _numbers(text: str | None) -> list[int | None] | None:
    """The numbers of a list as text; empty without one, None if it is damaged."""
    if text is None:
        return []
    value = value_in(text)
    return [whole_number(number) for number in value] if isinstance(value, list) else None


def _interval_ns(interval_ms: Any) -> int | None:
    is_number = isinstance(interval_ms, (int, float)) and 0 < interval_ms < _LONGEST_INTERVAL_MS
    return round(interval_ms * _MS) if is_number else None


def _differs(operator: Operator, mean: float | None, usage: float | None) -> bool:
    """Whether a recorded mean or share does not match the samples."""
    sizes = [size for size in operator.sizes if size is not None]
    if not sizes:
        return False
    own = sum(sizes) / len(sizes)
    shares = usage is not None and operator.capacity and abs(own / operator.capacity - usage) > 1e-3
    return bool((mean is not None and abs(own - mean) > 1e-3) or shares)


def _check_same(raw: Iterable[Operator], listed: Iterable[Operator], file: Path, other: Path, sink: Sink) -> None:
    """Report two files that are not about the same pipeline."""
    types = {operator.number: operator.type.removesuffix("Op") for operator in listed}
    if any(types.get(operator.number, "") != operator.type.removesuffix("Op") for operator in raw if types):
        problem = f"lists other operators than {file.name}, which is used"
        sink.issue("warning", other, problem, "One of them belongs to another run: remove it.")


def _number_pipelines(operators: Mapping[int, Operator]) -> None:
    """Give every operator the number of its pipeline: one for each root, in the order of the file."""
    roots: dict[int, int] = {}
    for operator in operators.values():
        seen, at = {operator.number}, operator
        while at.parent is not None and at.parent in operators and at.parent not in seen:
            at = operators[at.parent]
            seen.add(at.number)
        operator.pipeline = roots.setdefault(min(seen) if at.parent in seen else at.number, len(roots))


def operator_rows(pipeline: Pipeline, first: int) -> pl.DataFrame:
    """Rows of `pipeline_operators`; `first` is the number of the first pipeline."""
    rows = [
        {
            "pipeline": operator.pipeline + first,
            "operator": operator.name,
            "number": operator.number,
            "type": operator.type,
            "parent": pipeline.name(operator.parent),
            "workers": operator.workers,
            "queue_capacity": operator.capacity,
            "sample_interval_ns": operator.interval_ns,
        }
        for operator in pipeline.operators.values()
    ]
    schema = dict.fromkeys(("pipeline", "number", "workers"), pl.Int32) | dict.fromkeys(
        ("queue_capacity", "sample_interval_ns"), pl.Int64
    )
    return pl.DataFrame(rows, schema_overrides=schema)
