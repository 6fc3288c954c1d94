"""When each rank went forward, backward and updated its weights, where the work ran."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.intervals import pieces, union
from stepscope.analysis.step_windows import is_whole_recording
from stepscope.errors import Unavailable
from stepscope.tables.scopes import BACKWARD

PHASES = ("forward", "backward", "optimizer", "validation", "warm_up", "checkpoint")

MARKED = {
    "forward": r"(?i)^forward(: |$)|^## ?forward ?##$|^(DistributedDataParallel|FullyShardedDataParallel)\.forward$",
    "backward": r"(?i)^backward(: |$)|^## ?backward ?##$",
    "optimizer": r"(?i)^optimizer(: |$)|^## ?optimizer ?##$|^Optimizer\.step#",
    "validation": r"(?i)^validation(: |$)|^## ?(validation|validate|evaluation|evaluate|eval) ?##$",
    "warm_up": r"(?i)^warm_up(: |$)",
    "checkpoint": r"(?i)^checkpoint(: |$)|^## ?(checkpoint|save_checkpoint) ?##$",
}
"""Annotations of the phases: PyTorch marks its wrappers' forward and every optimizer's step by itself, stepscope's
recorder all of them; the words between `##` are what training scripts commonly mark."""

OWN = ("validation", "warm_up")
"""Phases in which a forward pass, or what is on its way, belongs to no training step."""

ON_HOST = ("checkpoint",)
"""Phases that a device waits for: they last as long as on the host."""

UPDATES = r"^Optimizer\.step#"
"""PyTorch's own range of an optimizer, which holds all that its closure does."""

OPERATORS = {
    "backward": r"^autograd::engine::|::AccumulateGrad$|Backward\d*$|_backward$|^npu::\w+_grad$|"
    + BACKWARD
    + r"|Grad(V\d+)?(-op\d+)?$|Backprop(Filter|Input)(-op\d+)?$",
    "optimizer": r"/optimizer-\w+/|(^|/)(Fused)?Apply[A-Z]\w*(-op\d+)?$",
}
"""Operators that tell a phase where nothing marks it: PyTorch's autograd, MindSpore's scopes."""

NO_FORWARD = (
    r"(?i)^Optimizer\.(step|zero_grad)#|__next__|^(data|validation|warm_up|checkpoint)(: |$)"
    r"|^## ?(data|zero_grad|wait_for_batch|dataload\w*) ?##$"
)
"""Annotations within which an operator is not the first of the forward pass."""

_RANGE = ["rank", "step", "phase", "start_ns", "end_ns"]


@analysis("rank", together=True)
def phase_ranges(
    slices: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    steps: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Find the ranges of the phases.

    On the host a phase is what marks it. What an optimizer runs by its closure, forward and backward, is that: only the
    rest is the optimizer. Without a mark, backward is from the first to the last operator of autograd in
    a step, and forward what lies before it, from the first operator that neither loads data nor sets gradients to
    zero; in a step without backward, to its last operator. Where no steps are known, only marks tell phases: first and
    last operators are those of the recording, not of a step. On a device a phase lasts from the first to the last
    kernel that was launched within the host's range.

    Args:
        slices: Annotations.
        operators: Operators, for phases that are not marked.
        kernels: Device work.
        steps: The steps, to know of which ranks none are.

    Returns:
        `rank`, `phase` (one of `PHASES`), `start_ns`, `end_ns`, `on_device`.

    Raises:
        Unavailable: If nothing tells any phase.
    """
    marked = _marked(slices)
    known = _in_steps(operators, steps)
    host = pl.concat([marked, *_unmarked(marked, slices, known)])
    if host.is_empty():
        raise Unavailable("neither annotations nor operators tell forward, backward and optimizer")
    merged = pl.concat(
        union(host.lazy().filter(pl.col("phase") == phase), by=["rank"]).select(
            "rank", pl.lit(phase).alias("phase"), "start_ns", "end_ns"
        )
        for phase in PHASES
    ).collect()
    merged = _without_closures(merged, host)
    device, with_device = _on_device(merged, kernels, operators)
    kept = merged.filter(~pl.col("rank").is_in(with_device) | pl.col("phase").is_in(ON_HOST))
    found = pl.concat([kept.with_columns(on_device=False), device.with_columns(on_device=True)])
    return found.sort("rank", "start_ns", "phase")


def _in_steps(operators: pl.LazyFrame | None, steps: pl.LazyFrame | None) -> pl.LazyFrame | None:
    """The operators of ranks whose steps are known."""
    if operators is None or steps is None:
        return operators
    return operators.join(steps.filter(is_whole_recording()).select("rank").unique(), on="rank", how="anti")


def _marked(slices: pl.LazyFrame | None) -> pl.DataFrame:
    """What annotations mark."""
    if slices is None:
        types = {"rank": pl.Int32, "step": pl.Int32, "phase": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
        return pl.DataFrame(schema=types)
    marks = slices.filter(pl.col("category") == "annotation")
    phase = pl.coalesce(pl.when(pl.col("name").str.contains(words)).then(pl.lit(p)) for p, words in MARKED.items())
    end = pl.col("start_ns") + pl.col("duration_ns")
    return marks.select("rank", "step", phase.alias("phase"), "start_ns", end_ns=end).drop_nulls("phase").collect()


def _unmarked(marked: pl.DataFrame, slices: pl.LazyFrame | None, operators: pl.LazyFrame | None) -> list[pl.DataFrame]:
    """The phases of steps in which operators were recorded and no mark tells the phase."""
    if operators is None:
        return []
    found: list[pl.DataFrame] = []
    rows = operators.filter(pl.col("step").is_not_null())
    end = pl.col("start_ns") + pl.col("duration_ns")
    for phase, words in OPERATORS.items():
        ranges = rows.filter(pl.col("name").str.contains(words)).group_by("rank", "step")
        told = ranges.agg(start_ns=pl.col("start_ns").min(), end_ns=end.max()).with_columns(phase=pl.lit(phase))
        found.append(_without(told.collect(), marked, phase))
    later = pl.concat([marked, *found]).filter(pl.col("phase").is_in(["backward", "optimizer"]))
    found.append(_without(_forward(rows, later, slices), marked, "forward"))
    return found


def _without(ranges: pl.DataFrame, marked: pl.DataFrame, phase: str) -> pl.DataFrame:
    """Ranges of the steps in which no mark tells the phase."""
    told = marked.filter(pl.col("phase") == phase)
    return ranges.join(told, on=["rank", "step"], how="anti").select(_RANGE)


def _forward(operators: pl.LazyFrame, later: pl.DataFrame, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The operators of each step before its backward pass, or before its optimizer where it has none."""
    first = later.group_by("rank", "step").agg(
        until_ns=pl.coalesce(pl.col("start_ns").filter(pl.col("phase") == "backward").min(), pl.col("start_ns").min())
    )
    before = operators.join(first.lazy(), on=["rank", "step"], how="left").filter(
        pl.col("until_ns").is_null() | (pl.col("start_ns") < pl.col("until_ns"))
    )
    if slices is not None:
        others = slices.filter((pl.col("category") == "annotation") & pl.col("name").str.contains(NO_FORWARD))
        updates = pl.col("name").str.contains(UPDATES)
        ends = others.select(
            "rank", "start_ns", updates.alias("updates"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
        )
        closed = later.filter(pl.col("phase") == "backward").lazy()
        before = _outside(before, union(_but_closures(ends, closed), by=["rank"]))
    end = (pl.col("start_ns") + pl.col("duration_ns")).max()
    told = before.group_by("rank", "step").agg(
        start_ns=pl.col("start_ns").min(), end_ns=pl.coalesce(pl.col("until_ns").first(), end)
    )
    return told.with_columns(phase=pl.lit("forward")).collect()


def _but_closures(others: pl.LazyFrame, backward: pl.LazyFrame) -> pl.LazyFrame:
    """Ranges but those of optimizers in which a backward pass begins: forward stands in their closure, too."""
    starts = backward.select("rank", "start_ns", turn_ns="start_ns").sort("rank", "start_ns")
    next_turn = others.sort("rank", "start_ns").join_asof(
        starts, on="start_ns", by="rank", strategy="forward", check_sortedness=False
    )
    closes = pl.col("updates") & (pl.col("turn_ns") < pl.col("end_ns"))
    return next_turn.filter(~closes.fill_null(False)).select("rank", "start_ns", "end_ns")


def _without_closures(merged: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Phases whose optimizers are without what runs forward and backward within them, in a closure that they call.

    Args:
        merged: The phases, disjoint ranges of each.
        ranges: The same before they were merged.
    """
    optimizer = pl.col("phase") == "optimizer"
    own = merged.filter(optimizer).sort("rank", "start_ns").with_row_index("window")
    around = own.select("rank", began_ns="start_ns", over_ns="end_ns", end_ns="start_ns")
    inner = ranges.filter(pl.col("phase").is_in(["forward", "backward"])).sort("rank", "end_ns")
    ends_inside = inner.join_asof(around, on="end_ns", by="rank", check_sortedness=False).filter(
        pl.col("end_ns") <= pl.col("over_ns"), pl.col("end_ns") > pl.col("began_ns")
    )
    # a forward pass that nothing marks is taken to begin with the step's first operator, perhaps before the optimizer
    nested = ends_inside.filter((pl.col("start_ns") >= pl.col("began_ns")) | (pl.col("phase") == "forward"))
    if not nested.height:
        return merged
    windows = own.lazy().select("rank", "window", "start_ns", "end_ns")
    cut = pieces({"closure": union(nested.lazy(), by=["rank"])}, windows, by=["rank"]).filter(~pl.col("closure"))
    rest = cut.select(
        "rank", "start_ns", phase=pl.lit("optimizer"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
    ).collect()
    return pl.concat([merged.filter(~optimizer), rest.select(merged.columns)])


def _outside(rows: pl.LazyFrame, ranges: pl.LazyFrame) -> pl.LazyFrame:
    """The rows that start in none of some disjoint ranges."""
    bounds = ranges.sort("rank", "start_ns").select("rank", "start_ns", over_ns="end_ns")
    last = rows.sort("rank", "start_ns").join_asof(bounds, on="start_ns", by="rank", check_sortedness=False)
    return last.filter(pl.col("over_ns").is_null() | (pl.col("start_ns") >= pl.col("over_ns"))).drop("over_ns")


def _on_device(
    host: pl.DataFrame, kernels: pl.LazyFrame | None, operators: pl.LazyFrame | None
) -> tuple[pl.DataFrame, list[int]]:
    """The same phases where their kernels ran, and the ranks that compute on a device."""
    if kernels is None:
        return host.clear(), []
    computing = kernels.filter(pl.col("kind") == "compute").select(pl.col("rank").unique()).collect()["rank"].to_list()
    launches = launch_times(kernels, operators)
    parts = [
        launched_within(host.filter(pl.col("phase") == phase), launches).select(
            "rank", pl.lit(phase).alias("phase"), "start_ns", "end_ns"
        )
        for phase in PHASES
    ]
    return pl.concat(parts), computing


def launch_times(kernels: pl.LazyFrame, operators: pl.LazyFrame | None) -> pl.DataFrame:
    """When the host asked for each kernel: when its operator began, else when it was launched.

    A launch may come after its operator, where another thread makes it (Ascend's task queue).

    Returns:
        `rank`, `at_ns`, `start_ns`, `end_ns` of each kernel of which that is known, in order of `at_ns`.
    """
    rows = kernels.select(
        *("rank", "external_id", "launch_start_ns", "start_ns"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    if operators is None:
        asked = rows.with_columns(at_ns="launch_start_ns")
    else:
        began = (
            operators.filter(pl.col("external_id").is_not_null())
            .group_by("rank", "external_id")
            .agg(operator_ns=pl.col("start_ns").min())
        )
        joined = rows.join(began, on=["rank", "external_id"], how="left")
        asked = joined.with_columns(at_ns=pl.coalesce("operator_ns", "launch_start_ns"))
    return asked.select("rank", "at_ns", "start_ns", "end_ns").drop_nulls().sort("rank", "at_ns").collect()


def launched_within(ranges: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """From the first start to the last end of the kernels that were asked for in each of some disjoint host ranges.

    Args:
        ranges: `rank`, `start_ns`, `end_ns`.
        launches: See `launch_times`.

    Returns:
        `rank`, `start_ns`, `end_ns` for each range that asked for any.
    """
    bounds = ranges.sort("rank", "start_ns").select("rank", at_ns="start_ns", over_ns="end_ns").with_row_index("range")
    return (
        launches.join_asof(bounds, on="at_ns", by="rank", check_sortedness=False)
        .filter(pl.col("at_ns") < pl.col("over_ns"))
        .group_by("rank", "range")
        .agg(start_ns=pl.col("start_ns").min(), end_ns=pl.col("end_ns").max())
        .sort("rank", "start_ns")
        .select("rank", "start_ns", "end_ns")
    )
