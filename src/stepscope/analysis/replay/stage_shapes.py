"""Which pipeline stages run the same kernels on other shapes by design, so that their times cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.memberships import stages_of
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """When stages have other shapes."""

    apart_ratio: float = limit(
        0.04, "of the shorter, that a stage computes longer", "as `gap_ratio`: healthy devices differ less"
    )
    calls_ratio: float = limit(
        0.1, "of the calls of a kernel, on shapes that the other stage has less often", "as ranks of one program"
    )
    time_ratio: float = limit(
        0.02, "of what a stage computes, in such calls", "chosen by us: less makes no stage longer by `apart_ratio`"
    )


LIMITS = Limits()

STAGES = columns("rank", Column("stage", "int32", "Its pipeline stage."), nulls="")

COLUMNS = columns(
    "rank",
    Column("shaped", "int32", "Lowest of the ranks of all stages with these shapes."),
    Column("names", "list[string]", "Operator types, else names, of the kernels that run on other shapes elsewhere."),
    nulls="",
)

Calls = dict[str, dict[str, float]]
"""Calls in a step on the mean rank of a stage, by class and variant."""


@analysis("job", STAGES, whole_job=True)
def uneven_stages(
    work: pl.DataFrame,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    parallel_layout: pl.DataFrame,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """The pipeline stage of each rank if stages do not all compute as long, asked first, since to look for shapes takes
    time.

    Raises:
        Unavailable: If there are no stages, or all compute as long.
    """
    numbers = stages_of(ranks.collect(), None if groups is None else groups.collect(), parallel_layout)
    stages = pl.DataFrame({"rank": list(numbers), "stage": list(numbers.values())}, schema=schema_of(STAGES))
    own = work.filter(pl.col("step").is_not_null(), kind="computing").group_by("rank", "step")
    sums = own.agg(length=(pl.col("end_ns") - pl.col("start_ns")).sum()).join(stages, on="rank")
    lengths = sums.group_by("stage").agg(pl.col("length").median())["length"]
    low, high = lengths.min(), lengths.max()
    if not isinstance(low, float) or not isinstance(high, float) or high <= low * (1 + limits.apart_ratio):
        raise Unavailable("no pipeline stage computes longer than others")
    return stages.join(sums, on="rank", how="semi").sort("rank")


@analysis("job", COLUMNS, whole_job=True)
def stage_shapes(uneven_stages: pl.DataFrame, kernel_classes: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sort stages by the shapes that their kernels get: one row per rank, in order.

    Shapes count as of another stage if each of the two runs a kernel on shapes on which the other runs it less often;
    further calls are more work of the same kind. Data-parallel ranks with other batches have them in all stages, so a
    stage is taken as a whole.

    Raises:
        Unavailable: If all stages have the same shapes, or none were recorded.
    """
    rows = kernel_classes.filter(~pl.col("on_host"), kind="compute").join(uneven_stages, on="rank")
    sized = (pl.col("sized_by") == "shapes").fill_null(False).all().over("name")
    total = pl.col("total_ns").sum()
    lengths = dict(rows.group_by("stage").agg(total).rows())
    known = rows.filter(sized)
    steps = rows.unique("rank").group_by("stage").agg(of=pl.col("steps").sum())
    calls = (
        known.group_by("stage", "name", "variant")
        .agg(pl.col("calls").sum())
        .join(steps, on="stage")
        .select("stage", "name", "variant", pl.col("calls") / pl.col("of"))
        .sort("stage", "name", "variant")
    )
    times = {(stage, name): time for stage, name, time in known.group_by("stage", "name").agg(total).iter_rows()}
    of_stage: dict[int, Calls] = {}
    for stage, name, variant, count in calls.iter_rows():
        of_stage.setdefault(stage, {}).setdefault(name, {})[variant] = count
    sets: dict[int, list[int]] = {}
    differing: dict[int, set[str]] = {}
    for stage, own in of_stage.items():
        same = None
        for first in sets:
            swapped = _swapped(own, of_stage[first], limits)
            shares = [
                sum(part * times[each, name] for name, part in swapped.items()) / max(1, lengths[each])
                for each in (stage, first)
            ]
            if max(shares) < limits.time_ratio:
                same = first if same is None else same
            else:
                differing.setdefault(stage, set()).update(swapped)
                differing.setdefault(first, set()).update(swapped)
        sets.setdefault(stage if same is None else same, []).append(stage)
    if len(sets) < 2:
        raise Unavailable("no pipeline stage is known to have other shapes than others")
    found = [
        (stage, first, sorted(set[str]().union(*(differing.get(one, set()) for one in members))))
        for first, members in sets.items()
        for stage in members
    ]
    told = pl.DataFrame(found, schema={"stage": pl.Int32, "first": pl.Int32, "names": pl.List(pl.String)}, orient="row")
    joined = uneven_stages.join(told, on="stage").with_columns(shaped=pl.col("rank").min().over("first"))
    return joined.select(names(COLUMNS)).sort("rank")


def _swapped(
    own: Mapping[str, Mapping[str, float]], other: Mapping[str, Mapping[str, float]], limits: Limits
) -> dict[str, float]:
    """The kernels that run on other shapes instead, and the share of their calls that do."""
    found = {}
    for name in sorted(own.keys() & other.keys()):
        here, there = own[name], other[name]
        common = sum(min(here[variant], there[variant]) for variant in here.keys() & there.keys())
        least = min(sum(here.values()), sum(there.values()))
        if least > 0 and least - common > limits.calls_ratio * least:
            found[name] = (least - common) / least
    return found
