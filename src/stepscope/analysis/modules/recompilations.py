"""Which functions torch.compile compiles during the recording, and what differs from the version before."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.compiled_calls import COMPILED, REGION, RUN, compiled_calls
from stepscope.analysis.methods.shapes import read_json, tensors
from stepscope.analysis.registry import analysis
from stepscope.tables import OPERATORS
from stepscope.tables.base import Column

SIZES, TYPES, NEITHER = "sizes", "types", "neither"

COLUMNS = columns(
    "rank step",
    Column("function", "int64", "Number of the compiled function; null if not recorded."),
    Column("version", "int64", "Number of the version that is compiled, from 0; null if not recorded."),
    "start_ns",
    Column("compile_ns", "int64", "Time of compiling it, without its backward pass if that is compiled later."),
    Column("ran", "bool", "True if it runs afterwards; false if the compiler gave up."),
    Column(
        "varied",
        "string",
        "What of its inputs differs from the version that ran before; null if unknown.",
        values=(SIZES, TYPES, NEITHER),
    ),
    Column("before", "string", "Shape (or type) of the first input that differs, before; null if none does."),
    Column("after", "string", "The same of this version."),
    nulls="step function version varied before after",
    keep="rank step function version varied before after",
)

_DATA = r"^(dynamo|entire_frame_compile)_data: .*compile_id=(\d{1,18})/(\d{1,18})\b"
"""Marks at the start of compiling that name what is compiled."""

_INPUTS = "CompiledFunction"
"""The operator of a version that has the inputs, where gradients are computed."""

NO_RECOMPILATIONS = "torch.compile compiled nothing during the recording"


@analysis("rank", COLUMNS, together=True, nothing=NO_RECOMPILATIONS)
def recompilations(slices: pl.LazyFrame, operators: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Find what torch.compile compiles: one row per compiled version, in order of time.

    Its inputs, as recorded of the version that runs right afterwards, are compared with those of the version of the
    same function that ran last before. Inputs that are no tensors are left out.
    """
    calls = compiled_calls(slices)
    compilers = calls.filter(pl.col("what") == COMPILED)
    if compilers.is_empty():
        return pl.DataFrame(schema={column.name: None for column in COLUMNS})
    ids = _ids(slices, compilers)
    ran = (pl.col("next") == RUN).fill_null(value=False)
    found = compilers.join(ids, on=["rank", "slice"], how="left").with_columns(
        ran=ran,
        function=pl.coalesce("function", pl.when(ran).then(pl.col("next_name").str.extract(REGION, 1).cast(pl.Int64))),
        version=pl.coalesce("version", pl.when(ran).then(pl.col("next_name").str.extract(REGION, 2).cast(pl.Int64))),
        compile_ns=pl.col("end_ns") - pl.col("start_ns"),
    )
    inputs = _inputs(calls.filter(pl.col("what") == RUN), operators)
    now = inputs.select("rank", next_slice="slice", shapes="input_shapes", types="input_types")
    earlier = inputs.select(
        "rank", "function", "start_ns", shapes_before="input_shapes", types_before="input_types"
    ).sort("start_ns")
    rows = (
        found.join(now, on=["rank", "next_slice"], how="left")
        .sort("start_ns", "rank", "slice")
        .join_asof(earlier, on="start_ns", by=["rank", "function"], check_sortedness=False)
    )
    return (
        pl.DataFrame([{**row, **_varied(row)} for row in rows.to_dicts()], schema_overrides=_VARIED)
        .select(names(COLUMNS))
        .sort("rank", "start_ns", maintain_order=True)
    )


_VARIED = {"varied": pl.String, "before": pl.String, "after": pl.String}


def _ids(slices: pl.LazyFrame, compilers: pl.DataFrame) -> pl.DataFrame:
    """Function and version of compilers (`rank`, `slice`), where they are marked."""
    marks = (
        slices.filter((pl.col("category") == "compile") & pl.col("name").str.contains(_DATA))
        .select(
            *("rank", "thread", "start_ns"),
            function=pl.col("name").str.extract(_DATA, 2).cast(pl.Int64),
            version=pl.col("name").str.extract(_DATA, 3).cast(pl.Int64),
        )
        .collect(engine="streaming")
        .sort("start_ns", "function", "version")
    )
    begun = compilers.select("rank", "thread", "slice", "end_ns", "start_ns").sort("start_ns")
    placed = marks.join_asof(begun, on="start_ns", by=["rank", "thread"], check_sortedness=False)
    inside = placed.filter(pl.col("start_ns") <= pl.col("end_ns"))
    return inside.unique(["rank", "slice"], keep="first", maintain_order=True).select(
        "rank", "slice", "function", "version"
    )


def _inputs(regions: pl.DataFrame, operators: pl.LazyFrame | None) -> pl.DataFrame:
    """Shapes and types of the inputs of versions that ran, by `rank`, `slice`, `function`, in order of `start_ns`."""
    calls = (
        OPERATORS.or_empty(operators)
        .filter((pl.col("name") == _INPUTS) & pl.col("input_shapes").is_not_null())
        .select("rank", "thread", "start_ns", "input_shapes", "input_types")
        .collect(engine="streaming")
        .sort("start_ns")
    )
    begun = regions.select(
        *("rank", "thread", "slice", "end_ns", "start_ns"),
        since_ns="start_ns",
        function=pl.col("name").str.extract(REGION, 1).cast(pl.Int64),
    ).sort("start_ns", "slice")
    placed = calls.join_asof(begun, on="start_ns", by=["rank", "thread"], check_sortedness=False)
    inside = placed.filter(pl.col("start_ns") <= pl.col("end_ns")).drop_nulls("function")
    first = inside.unique(["rank", "slice"], keep="first", maintain_order=True)
    return first.with_columns(start_ns="since_ns")


def _varied(row: dict[str, Any]) -> dict[str, str | None]:
    """What differs between the inputs of two versions."""
    unknown: dict[str, str | None] = {"varied": None, "before": None, "after": None}
    before, after = (_tensors(row[shapes], row[types]) for shapes, types in _SIDES)
    if not before or len(before) != len(after):
        return unknown
    for what, place in ((SIZES, 0), (TYPES, 1)):
        for one, other in zip(before, after, strict=True):
            if one[place] != other[place]:
                return {"varied": what, "before": one[place], "after": other[place]}
    return {**unknown, "varied": NEITHER}


_SIDES = (("shapes_before", "types_before"), ("shapes", "types"))


def _tensors(shapes: str | None, types: str | None) -> list[tuple[str, str]]:
    """Shape and type of the inputs that are tensors with dimensions."""
    sizes = tensors(shapes)
    kinds = read_json(types) if types else None
    known = kinds if isinstance(kinds, list) and len(kinds) == len(sizes) else [""] * len(sizes)
    return [(str(one), str(kind)) for one, kind in zip(sizes, known, strict=True) if one]
