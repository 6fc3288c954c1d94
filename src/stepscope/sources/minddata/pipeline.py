"""The operators of dataset pipelines: `minddata_pipeline_raw_N.csv`, otherwise `pipeline_profiling_N.json`.

The CSV file is what MindSpore's analysis made of the JSON file: the same queues, without operators that have none and
are no root. `dataset.csv` (in classic profiles `dataset_N.csv`) has how often each stage of an operation ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import as_text, list_of, object_of, small_number, whole_number
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
from stepscope.sources.side_files import AGAIN, read_object
from stepscope.tables import OPERATOR_TOTALS, PIPELINE_OPERATORS
from stepscope.tables.base import with_schema
from stepscope.text_columns import filled_in

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
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
            "output_queue_usage_rate,sample_interval,parent_id,children_id"
        ),
    ),
)
_STAGES = FileLayout(
    fields=(
        Field("type", "text", ("operation",), required=True),
        Field("name", "text", ("stage",), required=True),
        Field("count", "int", ("occurrences",), required=True),
        Field("mean", "float", ("avg._time", "avg_time"), required=True),
    ),
    report_empty=True,
    orders=(order("operation,stage,occurrences,avg_time,custom_info"),),
)
_LARGEST_US = 9e15


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
        children: Numbers of the operators that it takes from, as far as the file lists them.
        pipeline: Which pipeline it is in, from 0.
    """

    number: int
    type: str
    workers: int | None
    parent: int | None = None
    capacity: int | None = None
    sizes: list[int | None] = field(default_factory=list)
    interval_ns: int | None = None
    children: list[int] = field(default_factory=list)
    pipeline: int = 0

    @property
    def name(self) -> str:
        """What it is called in all tables."""
        return f"{self.type}_{self.number}"

    @property
    def average(self) -> float | None:
        """Mean fill of its queue; None without one."""
        sizes = [size for size in self.sizes if size is not None]
        return sum(sizes) / len(sizes) if sizes else None

    @property
    def empty(self) -> float | None:
        """Share of the samples in which its queue was empty, 0 to 1; None without one."""
        return self.sizes.count(0) / len(self.sizes) if self.sizes else None


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
    """The pipelines of one rank, of `minddata_pipeline_raw_N.csv`, or of `pipeline_profiling_N.json` if it has none."""
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
        listed = value_in(row["sizes"])
        is_list = isinstance(listed, list)
        damaged += not is_list and row["sizes"] is not None
        sizes = [whole_number(size) for size in listed] if is_list else []
        place = (row["workers"], row["parent"], row["capacity"])
        operators.append(Operator(row["number"], row["type"], *place, sizes, _interval_ns(row["interval"])))
        wrong += _differs(operators[-1], row["mean"], row["usage"])
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
    operators, lost = listed_operators(value)
    if lost or (not operators and value.get("op_info") != []):
        problem = f"{lost} operators have an impossible number and are left out" if lost else "lists no operators"
        sink.issue("warning", file, problem, AGAIN, place="op_info", lost=lost or None)
    return operators


def listed_operators(value: Mapping[str, Any]) -> tuple[list[Operator], int]:
    """The operators in the content of `pipeline_profiling_N.json`, and how many without a possible number it has."""
    operators: list[Operator] = []
    lost = 0
    interval_ns = _interval_ns(value.get("sampling_interval"))
    for entry in list_of(value, "op_info"):
        number = small_number(entry.get("op_id")) if isinstance(entry, dict) else None
        if number is None or number < 0:
            lost += 1
            continue
        queue = object_of(entry, "metrics", "output_queue")
        sizes = [whole_number(size) for size in list_of(queue, "size")]
        kind, workers = as_text(entry.get("op_type")) or "Operator", small_number(entry.get("num_workers"))
        children = [child for child in map(small_number, list_of(entry, "children")) if child is not None]
        length = whole_number(queue.get("length"))
        operators.append(Operator(number, kind, workers, None, length, sizes, interval_ns, children))
    parents = {child: operator.number for operator in operators for child in operator.children}
    for operator in operators:
        operator.parent = parents.get(operator.number)
    return operators, lost


def _interval_ns(interval_ms: Any) -> int | None:
    is_number = isinstance(interval_ms, (int, float)) and 0 < interval_ms < _LONGEST_INTERVAL_MS
    return round(interval_ms * _MS) if is_number else None


def _differs(operator: Operator, mean: float | None, usage: float | None) -> bool:
    """Whether a recorded mean or share does not match the samples."""
    own = operator.average
    if own is None:
        return False
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
    return with_schema(pl.DataFrame(rows, infer_schema_length=None), PIPELINE_OPERATORS.stored_schema)


def read_stages(file: Path, sink: Sink) -> pl.DataFrame:
    """Rows of `operator_totals` of unit `DATASET` and level `stage`: count times average (us)."""
    rows = read_csv(file, _STAGES, sink)
    if rows is None:
        return OPERATOR_TOTALS.frame()
    total_us = pl.col("count") * pl.col("mean")
    sound = rows.filter((pl.col("count") >= 0) & total_us.is_between(0, _LARGEST_US))
    if lost := rows.height - sound.height:
        sink.issue("error", file, f"{lost} rows have impossible numbers and are left out", "Copy it again.", lost=lost)
    totals = sound.select("name", "type", "count", total_ns=whole(total_us * 1000))
    named = totals.with_columns(full_name=filled_in("{}::{}", "type", "name"))
    return OPERATOR_TOTALS.shaped(named.with_columns(unit=pl.lit("DATASET"), level=pl.lit("stage")))
