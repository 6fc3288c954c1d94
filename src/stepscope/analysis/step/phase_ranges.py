"""When each rank ran forward, backward and optimizer, where the work ran (host or device)."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.asynchronous_phases import as_executed, marks_launches
from stepscope.analysis.methods.intervals import pieces, union
from stepscope.analysis.methods.launched_work import launch_times, launched_within
from stepscope.analysis.methods.micro_batches import ENGINE, in_turns, outside, turn_starts
from stepscope.analysis.methods.operator_phases import OPERATORS, phases_by_operators
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable

PHASES = ("forward", "backward", "optimizer", "validation", "warm_up", "checkpoint")

MARKED = {
    "forward": r"(?i)^forward(: |$)|^## ?forward ?##$|^(DistributedDataParallel|FullyShardedDataParallel)\.forward$",
    "backward": r"(?i)^backward(: |$)|^## ?backward ?##$",
    "optimizer": r"(?i)^optimizer(: |$)|^## ?optimizer ?##$|^Optimizer\.step#",
    "validation": r"(?i)^validation(: |$)|^## ?(validation|validate|evaluation|evaluate|eval) ?##$",
    "warm_up": r"(?i)^warm_up(: |$)",
    "checkpoint": r"(?i)^checkpoint(: |$)|^## ?(checkpoint|save_checkpoint) ?##$",
}
"""Annotations of the phases: PyTorch marks its wrappers' forward and every optimizer's step, stepscope's recorder marks
all phases, and the words between `##` are commonly used by training scripts."""

OWN = ("validation", "warm_up")
"""Phases whose forward passes do not belong to a training step."""

ON_HOST = ("checkpoint",)
"""Phases for which the device waits: they last as long as on the host."""

RESETS = r"(?i)^Optimizer\.zero_grad#|^## ?zero_grad ?##$"
"""Annotations inside which gradients are set to zero."""

UPDATES = r"^Optimizer\.step#"
"""PyTorch's own range of an optimizer step, which includes its closure."""

NO_FORWARD = (
    r"(?i)^Optimizer\.(step|zero_grad)#|__next__|^(data|validation|warm_up|checkpoint)(: |$)"
    r"|^## ?(data|zero_grad|wait_for_batch|dataload\w*) ?##$"
)
"""Annotations inside which an operator does not start the forward pass."""

_RANGE = ["rank", "step", "phase", "start_ns", "end_ns"]


@analysis(
    "rank",
    columns("rank", meaning("phase", "Phase of training.", values=PHASES), "start_ns end_ns on_device", nulls=""),
    together=True,
    every_step=True,
)
def phase_ranges(
    slices: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    steps: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Find the ranges of the phases.

    On the host, a phase is the range of its mark. Forward and backward inside an optimizer's closure count as such;
    only the rest is the optimizer. Without a mark, backward lasts from the first to the last operator of autograd in a
    step, and forward from the first operator that neither loads data nor sets gradients to zero until backward (in a
    step without backward, until its last operator). Without known steps, only marks define phases. On a device, a phase
    lasts from the first to the last kernel launched within the host's range.

    Args:
        slices: Annotations.
        operators: Operators, for phases that are not marked.
        kernels: Device work.
        steps: The steps, to know which ranks have none.
        ranks: Framework and mode: in MindSpore's PyNative mode, marks show launches (see `asynchronous_phases`).

    Returns:
        One row per range of a phase, in order of time.

    Raises:
        Unavailable: If no phase can be found.
    """
    marked = as_executed(_marked(slices), operators, marks_launches(ranks, kernels))
    known = _in_steps(operators, steps, marked)
    host = pl.concat([marked, *_unmarked(marked, slices, known)])
    if host.is_empty():
        raise Unavailable("neither annotations nor operators show forward, backward or optimizer")
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


def _in_steps(operators: pl.LazyFrame | None, steps: pl.LazyFrame | None, marked: pl.DataFrame) -> pl.LazyFrame | None:
    """The operators of ranks with known steps; of other ranks, those inside an optimizer's closure."""
    if operators is None or steps is None:
        return operators
    whole = steps.filter(is_whole_recording()).select("rank").unique()
    updates = union(marked.lazy().filter(pl.col("phase") == "optimizer"), by=["rank"])
    bounds = updates.select("rank", "start_ns", update_ns="start_ns", over_ns="end_ns").sort("start_ns")
    of_whole = operators.join(whole, on="rank", how="semi").sort("start_ns")
    inside = of_whole.join_asof(bounds, on="start_ns", by="rank", check_sortedness=False).filter(
        pl.col("start_ns") < pl.col("over_ns")
    )
    closes = pl.col("name").str.starts_with(ENGINE).any().over("rank", "update_ns")
    in_closures = inside.filter(closes).drop("update_ns", "over_ns")
    return pl.concat([operators.join(whole, on="rank", how="anti"), in_closures])


def _marked(slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The ranges that annotations mark."""
    if slices is None:
        types = {"rank": pl.Int32, "step": pl.Int32, "phase": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
        return pl.DataFrame(schema=types)
    marks = slices.filter(pl.col("category") == "annotation")
    phase = pl.coalesce(pl.when(pl.col("name").str.contains(words)).then(pl.lit(p)) for p, words in MARKED.items())
    end = pl.col("start_ns") + pl.col("duration_ns")
    return marks.select("rank", "step", phase.alias("phase"), "start_ns", end_ns=end).drop_nulls("phase").collect()


def _unmarked(marked: pl.DataFrame, slices: pl.LazyFrame | None, operators: pl.LazyFrame | None) -> list[pl.DataFrame]:
    """The phases of steps with operators but without marks of the phase."""
    if operators is None:
        return []
    rows = operators.filter(pl.col("step").is_not_null())
    turns = turn_starts(
        rows.with_columns(forward=~pl.col("name").str.contains(OPERATORS["backward"])),
        marked,
        None if slices is None else _annotated(slices, RESETS),
        union(_annotated(slices, NO_FORWARD), by=["rank"]) if slices is not None else marked.lazy().clear(),
    )
    found_phases = phases_by_operators(rows, turns)
    found = [_without(found_phases.filter(pl.col("phase") == phase), marked, phase) for phase in OPERATORS]
    later = pl.concat([marked, *found]).filter(pl.col("phase").is_in(["backward", "optimizer"]))
    found.append(_without(_forward(rows, later, slices, turns), marked, "forward"))
    return found


def _annotated(slices: pl.LazyFrame, words: str) -> pl.LazyFrame:
    """The ranges of annotations whose names match."""
    named = slices.filter((pl.col("category") == "annotation") & pl.col("name").str.contains(words))
    return named.select("rank", "name", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))


def _without(ranges: pl.DataFrame, marked: pl.DataFrame, phase: str) -> pl.DataFrame:
    """Ranges of the steps without marks of the phase."""
    of_phase = marked.filter(pl.col("phase") == phase)
    return ranges.join(of_phase, on=["rank", "step"], how="anti").select(_RANGE)


def _forward(
    operators: pl.LazyFrame, later: pl.DataFrame, slices: pl.LazyFrame | None, turns: pl.DataFrame
) -> pl.DataFrame:
    """The operators of each turn before backward; in a step without backward, those before the optimizer."""
    backward = pl.col("phase") == "backward"
    keys = ["rank", "step", "turn_ns"]
    first = in_turns(later, turns).filter(backward).group_by(keys).agg(until_ns=pl.col("start_ns").min())
    without = later.group_by("rank", "step").agg(step_until_ns=pl.col("start_ns").min(), trains=backward.any())
    before = operators
    if slices is not None:
        others = _annotated(slices, NO_FORWARD).with_columns(updates=pl.col("name").str.contains(UPDATES))
        before = outside(before, union(_but_closures(others, later.filter(backward).lazy()), by=["rank"]))
    rows = in_turns(before.select("rank", "step", "start_ns", "duration_ns").collect(), turns)
    known = rows.join(first, on=keys, how="left", nulls_equal=True).join(without, on=["rank", "step"], how="left")
    until = pl.coalesce("until_ns", pl.when(~pl.col("trains")).then("step_until_ns"))
    trains = pl.col("trains").fill_null(False)
    kept = known.with_columns(until_ns=until, turn_ns=pl.when(trains).then("turn_ns")).filter(
        (pl.col("start_ns") < pl.col("until_ns")) | (pl.col("until_ns").is_null() & ~trains)
    )
    end = (pl.col("start_ns") + pl.col("duration_ns")).max()
    forward = kept.group_by(keys).agg(
        start_ns=pl.col("start_ns").min(), end_ns=pl.coalesce(pl.col("until_ns").first(), end)
    )
    return forward.with_columns(phase=pl.lit("forward"))


def _but_closures(others: pl.LazyFrame, backward: pl.LazyFrame) -> pl.LazyFrame:
    """Ranges without those of optimizers in which backward begins, as their closure contains forward, too."""
    starts = backward.select("rank", "start_ns", turn_ns="start_ns").sort("rank", "start_ns")
    next_turn = others.sort("rank", "start_ns").join_asof(
        starts, on="start_ns", by="rank", strategy="forward", check_sortedness=False
    )
    closes = pl.col("updates") & (pl.col("turn_ns") < pl.col("end_ns"))
    return next_turn.filter(~closes.fill_null(False)).select("rank", "start_ns", "end_ns")


def _without_closures(merged: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Phases with forward and backward inside an optimizer's closure cut out of the optimizer.

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
    # an unmarked forward is assumed to begin with the step's first operator, perhaps before the optimizer
    nested = ends_inside.filter((pl.col("start_ns") >= pl.col("began_ns")) | (pl.col("phase") == "forward"))
    if not nested.height:
        return merged
    windows = own.lazy().select("rank", "window", "start_ns", "end_ns")
    cut = pieces({"closure": union(nested.lazy(), by=["rank"])}, windows, by=["rank"]).filter(~pl.col("closure"))
    rest = cut.select(
        "rank", "start_ns", phase=pl.lit("optimizer"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
    ).collect()
    return pl.concat([merged.filter(~optimizer), rest.select(merged.columns)])


def _on_device(
    host: pl.DataFrame, kernels: pl.LazyFrame | None, operators: pl.LazyFrame | None
) -> tuple[pl.DataFrame, list[int]]:
    """The phases by the time their kernels ran, and the ranks that compute on a device."""
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
