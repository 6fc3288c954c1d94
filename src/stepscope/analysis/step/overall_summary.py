"""What each step of each rank consists of: computing by class of work, exposed communication, copies and idle time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, lengths, union
from stepscope.analysis.methods.statistics import first_label, share_of
from stepscope.analysis.methods.step_windows import known_steps, step_windows
from stepscope.analysis.methods.work_classes import work_class
from stepscope.analysis.registry import analysis
from stepscope.tables import KERNELS
from stepscope.tables.base import Column

CUBE = "cube"
AI_CPU = "ai_cpu"
CLASSES = ("attention", "matmul", "convolution", CUBE, "vector", AI_CPU)
"""Classes of computing on a device; where kernels of several classes run at once, the time is of the first."""

PARTS = (*CLASSES, "other", "wait", "transmit", "communication", "memory", "idle")
"""All parts in order. `other` is computing without kernels, i.e. on a host; `memory` is copies that nothing hides."""

GROUPS = ("computing", "communication", "memory", "idle")

_CUBE_CORES = ("AI_CORE", "MIX_AIC")

COLUMNS = columns(
    "rank step",
    Column(
        "group",
        "string",
        "What the part belongs to; communication and memory are exposed.",
        title="class",
        values=GROUPS,
    ),
    Column(
        "part",
        "string",
        "Computing by class: fused `attention`, `matmul`, `convolution`, other work of `cube` cores, `vector`, "
        "`ai_cpu`, "
        "`other` (on a host). Exposed communication: `wait` for other ranks, `transmit`, or `communication` if these "
        "are not known apart. Exposed `memory` operations. `idle`.",
        values=PARTS,
    ),
    Column("length_ns", "int64", "Its time; the parts of a step add up to the step.", title="time"),
    Column("share_ratio", "float64", "Share of the step.", title="share"),
    Column("kernel_ns", "int64", "Sum of its kernels, also of those that run at once; null for idle time and waiting."),
    Column("count", "int64", "Number of its kernels; null for idle time and waiting.", importance=60),
    nulls="kernel_ns count",
    keep="rank step part length_ns share_ratio",
)


@analysis("rank", COLUMNS, together=True)
def overall_summary(steps: pl.LazyFrame, step_parts: pl.DataFrame, kernels: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Split each step into parts that add up to it: `step_parts`, with computing cut by class of kernels."""
    windows = step_windows(known_steps(steps))
    layers, sums = _classes(KERNELS.or_empty(kernels))
    by_class = _lengths(layers, windows)
    computing = step_parts.filter(pl.col("part") == "computing").select("rank", "step", whole="length_ns")
    known = by_class.group_by("rank", "step").agg(known=pl.col("length_ns").sum())
    rest = computing.join(known, on=["rank", "step"], how="left").select(
        "rank", "step", part=pl.lit("other"), length_ns=pl.col("whole") - pl.col("known").fill_null(0)
    )
    busy = step_parts.filter(pl.col("part").is_in(["wait", "transmit", "communication", "memory"]))
    idle = step_parts.filter(~pl.col("part").is_in(["computing", "wait", "transmit", "communication", "memory"]))
    free = idle.group_by("rank", "step").agg(length_ns=pl.col("length_ns").sum())
    parts = [by_class, rest, busy, free.select("rank", "step", pl.lit("idle").alias("part"), "length_ns")]
    every = pl.concat([one.select("rank", "step", "part", "length_ns") for one in parts])
    counted = every.filter(pl.col("length_ns") > 0).join(sums, on=["rank", "step", "part"], how="left")
    part = pl.col("part")
    group = first_label(
        {
            "computing": part.is_in([*CLASSES, "other"]),
            "communication": part.is_in(["wait", "transmit", "communication"]),
            "memory": part == "memory",
        },
        otherwise="idle",
    )
    place = part.replace_strict(list(PARTS), range(len(PARTS)), return_dtype=pl.Int32)
    return (
        counted.with_columns(group=group, share_ratio=share_of(pl.col("length_ns"), "rank", "step"))
        .sort("rank", "step", place)
        .select(names(COLUMNS))
    )


def _classes(kernels: pl.LazyFrame) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """The ranges of the kernels of each class, and by rank, step and part the sums of kernels."""
    named = ["name", "type", "core", "kind"]
    known = kernels.select(named).unique().collect(engine="streaming").with_columns(part=_part())
    columns_of = kernels.select("rank", "step", *named, "start_ns", "duration_ns")
    ranges: dict[str, list[pl.DataFrame]] = {}
    sums = []
    for batch in batches(columns_of):
        rows = batch.join(known, on=named, nulls_equal=True, maintain_order="left")
        for (part,), own in (
            rows.select("rank", "part", "start_ns", end_ns=END).partition_by("part", as_dict=True).items()
        ):
            if part in CLASSES:
                ranges.setdefault(str(part), []).append(union(own.drop("part"), ["rank"]))
        duration = pl.col("duration_ns").sum()
        sums.append(rows.group_by("rank", "step", "part").agg(kernel_ns=duration, count=pl.len().cast(pl.Int64)))
    layers = {part: union(pl.concat(own), ["rank"]) for part, own in ranges.items()}
    total = pl.concat(sums).drop_nulls("step").group_by("rank", "step", "part").agg(pl.col("kernel_ns", "count").sum())
    return {part: layers[part] for part in CLASSES if part in layers}, total


def _part() -> pl.Expr:
    """The part of kernels; of communication and copies, those that one can tell."""
    work = work_class(pl.coalesce("type", "name"), pl.col("core"))
    return (
        pl.when(pl.col("kind") == "memory")
        .then(pl.lit("memory"))
        .when(pl.col("kind") == "communication")
        .then(pl.lit("calls"))
        .when(work == "other")
        .then(pl.lit(AI_CPU))
        .when((work == "vector") & pl.col("core").is_in(_CUBE_CORES))
        .then(pl.lit(CUBE))
        .otherwise(work)
    )


def _lengths(layers: dict[str, pl.DataFrame], windows: pl.DataFrame) -> pl.DataFrame:
    """How long each class is the first of those that run: `rank`, `step`, `part`, `length_ns`."""
    schema = {"rank": pl.Int32, "step": pl.Int32, "part": pl.String, "length_ns": pl.Int64}
    if not layers:
        return pl.DataFrame(schema=schema)
    cut = lengths(layers, windows.select("rank", "window", "start_ns", "end_ns"), by=["rank"])
    part = pl.coalesce(pl.when(pl.col(one)).then(pl.lit(one)) for one in layers)
    sums = cut.with_columns(part=part).drop_nulls("part").group_by("window", "part")
    named = sums.agg(length_ns=pl.col("duration_ns").sum()).join(windows.select("window", "rank", "step"), on="window")
    return named.select(pl.col(name).cast(kind) for name, kind in schema.items())
