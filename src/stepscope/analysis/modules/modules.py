"""What each module of a model costs: kernels, time on the device and host, FLOPs, and the share of the peak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.flops.flops import KEYS, countable
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.module_ranges import innermost, module_calls
from stepscope.analysis.modules.module_operators import MODULE, operator_places
from stepscope.analysis.registry import analysis
from stepscope.tables import OPERATORS
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank",
    MODULE,
    Column("depth", "int32", "Modules around it."),
    Column("calls", "int64", "Calls of the module.", importance=61),
    Column("host_ns", "int64", "Time of these calls on the host.", title="host time", importance=50),
    Column("kernels", "int64", "Pieces of device work launched in it and the modules in it.", importance=52),
    Column("kernel_ns", "int64", "Time of this work.", title="kernel time"),
    Column("forward_ns", "int64", "Part of it launched while the module ran.", title="forward", importance=58),
    Column("backward_ns", "int64", "Part of it in their backward pass.", title="backward", importance=57),
    Column("own_ns", "int64", "Part of it outside of the modules in it.", title="own", importance=56),
    meaning("share_ratio", "`kernel_ns` over all device work of the rank."),
    Column("flops", "float64", "FLOPs of all its calls, with the modules in it; null if unknown.", title="FLOPs"),
    meaning("flops_per_s", "FLOPs of operators whose device work is known, over `kernel_ns`."),
    Column("utilization_ratio", "float64", "`flops_per_s` over the peak of the device (MFU).", title="of peak"),
    nulls="flops flops_per_s utilization_ratio",
    keep="module kernel_ns calls share_ratio forward_ns backward_ns",
    titles={"flops_per_s": "rate"},
)


@analysis("rank", COLUMNS, passes=("peak_flops_per_s",))
def modules(
    module_operators: pl.DataFrame,
    slices: pl.LazyFrame,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame,
    flows: pl.LazyFrame | None,
    flops: pl.DataFrame | None,
    operator_flops: pl.DataFrame | None,
    model_flops: pl.DataFrame | None,
) -> pl.DataFrame:
    """Sum up the modules of a model: one row per module, by the place in the model, all parts of a module behind it.

    Returns:
        Figures of each module with all modules in it; of modules of one depth, the longest kernel time first.
    """
    ranges = module_calls(slices)
    sums = ranges.group_by("path", "parent").agg(calls=pl.len().cast(pl.Int64), host_ns=pl.col("duration_ns").sum())
    sums = sums.with_columns(depth=_depths(sums["path"].to_list(), sums["parent"].to_list()))
    of_phase = {
        f"{phase}_ns": pl.col("total_ns").filter(pl.col("phase") == phase).sum() for phase in ("forward", "backward")
    }
    own = (
        module_operators.drop_nulls("module")
        .group_by(path="module")
        .agg(own_ns=pl.col("total_ns").sum(), kernels=(pl.col("kernels") * pl.col("count")).sum(), **of_phase)
    )
    counted = _flops(slices, OPERATORS.or_empty(operators), kernels, flows, flops, operator_flops)
    rows = sums.join(own, on="path", how="left").join(counted, on="path", how="left")
    summed = _with_inner(rows.with_columns(pl.col("own_ns", "kernels", *of_phase).fill_null(0)))
    all_ns = module_operators["total_ns"].sum()
    peaks = [] if model_flops is None else model_flops["peak_flops_per_s"].drop_nulls().to_list()
    known = pl.when(pl.col("counted") > 0)
    rate = summed.with_columns(
        rank=module_operators["rank"].first(),
        module="path",
        share_ratio=pl.col("kernel_ns") / max(all_ns, 1),
        flops=known.then("flops"),
        flops_per_s=pl.when(pl.col("rated") > 0, pl.col("kernel_ns") > 0).then(
            pl.col("rated") / pl.col("kernel_ns") * 1e9
        ),
    )
    peak = pl.lit(peaks[0] if peaks else None, pl.Float64)
    return (
        rate.with_columns(utilization_ratio=pl.col("flops_per_s") / peak)
        .pipe(_in_order)
        .select(column.name for column in COLUMNS)
    )


def _flops(
    slices: pl.LazyFrame,
    operators: pl.LazyFrame,
    kernels: pl.LazyFrame,
    flows: pl.LazyFrame | None,
    flops: pl.DataFrame | None,
    by_operator: pl.DataFrame | None,
) -> pl.DataFrame:
    """FLOPs of the operators of each module itself: `path`, `flops`, `rated` (of those whose device work is known) and
    `counted` (operators with known FLOPs)."""
    if flops is not None and flops["flops"].count():
        calls = countable(operators).select("slice", "thread", "start_ns", "duration_ns", *KEYS).collect()
        known = calls.join(flops.select(*KEYS, "flops"), on=[*KEYS], how="left", nulls_equal=True).drop_nulls("flops")
        known = _with_work(known, kernels, operators, slices)
    elif by_operator is not None and by_operator["flops"].count():
        known = _of_kernels(kernels, operators, slices, by_operator).with_columns(has_work=True)
    else:
        return pl.DataFrame(
            schema={"path": pl.String, **dict.fromkeys(("flops", "rated"), pl.Float64), "counted": pl.Int64}
        )
    places = operator_places(slices, operators, flows, known["slice"])
    found = known.join(places, on="slice").drop_nulls("path").with_columns(pl.col("flops").cast(pl.Float64))
    rated = pl.col("flops").filter("has_work").sum()
    return found.group_by("path").agg(pl.col("flops").sum(), rated=rated, counted=pl.len().cast(pl.Int64))


def _with_work(
    calls: pl.DataFrame, kernels: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame
) -> pl.DataFrame:
    """Operators that do not call each other with `has_work`: whether device work is known that they launched."""
    owned = owners(kernels, operators, slices)["slice"].unique()
    moments = operators.filter(pl.col("slice").is_in(owned.implode())).select("thread", "start_ns").collect()
    rows = calls.sort("thread", "start_ns", nulls_last=True).with_columns(row_parent=pl.lit(None, pl.Int64))
    within = innermost(rows, moments).drop_nulls().unique()
    return rows.with_columns(has_work=pl.int_range(pl.len(), dtype=pl.Int64).is_in(within.implode()))


def _of_kernels(
    kernels: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame, by_operator: pl.DataFrame
) -> pl.DataFrame:
    """FLOPs of kernels, as stated for their type and shapes, by the operator that launched them: `slice`, `flops`."""
    keys = ["type", "input_shapes"]
    each = by_operator.drop_nulls(["flops", *keys]).group_by(keys).agg(pl.col("flops").unique())
    alike = each.filter(pl.col("flops").list.len() == 1).with_columns(pl.col("flops").list.first())
    rows = kernels.filter(pl.col("kind") == "compute").select("kernel", *keys).collect()
    known = rows.join(alike, on=keys)
    return known.join(owners(kernels, operators, slices), on="kernel").select("slice", "flops")


def _depths(paths: Sequence[str], parents: Sequence[str | None]) -> pl.Series:
    """How many of the modules contain each of them."""
    around = dict(zip(paths, parents, strict=True))
    depths = [sum(1 for _ in _outer(path, around)) for path in paths]
    return pl.Series(depths, dtype=pl.Int32)


def _outer(path: str, around: Mapping[str, str | None]) -> Iterator[str]:
    while (outer := around[path]) is not None:
        yield outer
        path = outer


def _with_inner(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the sums of all modules in each, added level by level from the innermost on."""
    added = ["kernel_ns", "kernels", "forward_ns", "backward_ns", "flops", "rated", "counted"]
    whole = rows.with_columns(
        pl.col("flops", "rated").fill_null(0.0), pl.col("counted").fill_null(0), kernel_ns="own_ns"
    )
    for depth in range(max(rows["depth"].to_list(), default=0), 0, -1):
        inner = whole.filter(pl.col("depth") == depth).group_by(path="parent").agg(pl.col(added).sum())
        more = whole.select("path").join(inner, on="path", how="left", maintain_order="left")
        whole = whole.with_columns(pl.col(name) + more[name].fill_null(0) for name in added)
    return whole


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Each module followed by those in it, the longest kernel time first."""
    below: dict[str | None, list[tuple[int, str]]] = {}
    for path, parent, spent in rows.select("path", "parent", "kernel_ns").iter_rows():
        below.setdefault(parent, []).append((-spent, path))
    order: list[str] = []
    left = sorted(below.get(None, []), reverse=True)
    while left:
        _, path = left.pop()
        order.append(path)
        left += sorted(below.get(path, []), reverse=True)
    places = pl.DataFrame({"path": order}).with_row_index("place")
    return rows.join(places, on="path").sort("place")
