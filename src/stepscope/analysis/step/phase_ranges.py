"""When each rank ran forward, backward and optimizer, where the work ran (host or device)."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, outside, pieces, starting_in, union
from stepscope.analysis.methods.launched_work import launch_times, launched_within
from stepscope.analysis.methods.names import named, names_of
from stepscope.analysis.methods.operator_phases import (
    ENGINE,
    OPERATORS,
    as_executed,
    in_turns,
    marks_launches,
    phases_by_operators,
    turn_starts,
)
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable
from stepscope.tables import SLICES

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

_PHASE = ["rank", "phase", "start_ns", "end_ns"]
_RANGE = ["rank", "step", "phase", "start_ns", "end_ns"]


NO_PHASE = "neither annotations nor operators show forward, backward or optimizer"


@analysis(
    "rank",
    columns("rank", meaning("phase", "Phase of training.", values=PHASES), "start_ns end_ns on_device", nulls=""),
    together=True,
    nothing=NO_PHASE,
    every_step=True,
)
def phase_ranges(
    slices: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    steps: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Find the ranges of the phases: one row per range, in order of time.

    On the host, a phase is the range of its mark. Forward and backward inside an optimizer's closure count as such;
    only the rest is the optimizer. Without a mark, backward lasts from the first to the last operator of autograd in a
    step, and forward from the first operator that neither loads data nor sets gradients to zero until backward (in a
    step without backward, until its last operator). Without known steps, only marks define phases. On a device, a phase
    lasts from the first to the last kernel launched within the host's range. In MindSpore's PyNative mode (`ranks`),
    marks are those of launches (see `as_executed`).

    Raises:
        Unavailable: If no phase can be found.
    """
    annotations = _annotations(slices)
    marked = as_executed(_marked(annotations), operators, marks_launches(ranks, kernels))
    known = _in_steps(operators, steps, marked)
    host = pl.concat([marked, *_unmarked(marked, annotations, known)])
    if host.is_empty():
        raise Unavailable(NO_PHASE)
    merged = _without_closures(union(host, by=["rank", "phase"]), host)
    device, with_device = _on_device(merged, kernels, operators)
    kept = merged.filter(~pl.col("rank").is_in(with_device) | pl.col("phase").is_in(ON_HOST))
    found = pl.concat([kept.with_columns(on_device=False), device.with_columns(on_device=True)])
    return found.sort("rank", "start_ns", "phase")


def _in_steps(operators: pl.LazyFrame | None, steps: pl.LazyFrame | None, marked: pl.DataFrame) -> pl.LazyFrame | None:
    """The operators of ranks with known steps; of other ranks, those inside an optimizer's closure."""
    if operators is None or steps is None:
        return operators
    without = ranks_of(steps.filter(is_whole_recording()))
    if not without:
        return operators
    whole = pl.col("rank").is_in(without)
    updates = union(marked.lazy().filter(pl.col("phase") == "optimizer"), by=["rank"])
    inside = starting_in(operators.filter(whole), updates)
    closes = pl.col("name").str.starts_with(ENGINE).any().over("rank", "until_ns")
    return pl.concat([operators.filter(~whole), inside.filter(closes).drop("until_ns")])


def _annotations(slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The annotations that say anything about phases."""
    marks = SLICES.or_empty(slices).filter(pl.col("category") == "annotation")
    says = pl.any_horizontal(pl.col("name").str.contains(words) for words in (*MARKED.values(), RESETS, NO_FORWARD))
    rows = marks.select("rank", "step", "name", "start_ns", end_ns=END)
    return pl.concat(batch.filter(says) for batch in batches(rows))


def _marked(annotations: pl.DataFrame) -> pl.DataFrame:
    """The ranges that annotations mark."""
    phase = first_label({phase: pl.col("name").str.contains(words) for phase, words in MARKED.items()})
    return annotations.select("rank", "step", phase.alias("phase"), "start_ns", "end_ns").drop_nulls("phase")


def _unmarked(marked: pl.DataFrame, annotations: pl.DataFrame, operators: pl.LazyFrame | None) -> list[pl.DataFrame]:
    """The phases of steps with operators but without marks of the phase."""
    if operators is None:
        return []
    rows = operators.filter(pl.col("step").is_not_null())
    names = names_of(rows)
    turns = turn_starts(
        rows.with_columns(**named(rows, names, forward=~pl.col("name").str.contains(OPERATORS["backward"]))),
        marked,
        _annotated(annotations, RESETS),
        union(_annotated(annotations, NO_FORWARD), by=["rank"]),
    )
    found_phases = phases_by_operators(rows, turns, names)
    found = [_without(found_phases.filter(pl.col("phase") == phase), marked, phase) for phase in OPERATORS]
    later = pl.concat([marked, *found]).filter(pl.col("phase").is_in(["backward", "optimizer"]))
    found.append(_without(_forward(rows, later, annotations, turns), marked, "forward"))
    return found


def _annotated(annotations: pl.DataFrame, words: str) -> pl.DataFrame:
    """The ranges of annotations whose names match."""
    return annotations.filter(pl.col("name").str.contains(words)).select("rank", "name", "start_ns", "end_ns")


def _without(ranges: pl.DataFrame, marked: pl.DataFrame, phase: str) -> pl.DataFrame:
    """Ranges of the steps without marks of the phase."""
    of_phase = marked.filter(pl.col("phase") == phase)
    return ranges.join(of_phase, on=["rank", "step"], how="anti").select(_RANGE)


def _forward(
    operators: pl.LazyFrame, later: pl.DataFrame, annotations: pl.DataFrame, turns: pl.DataFrame
) -> pl.DataFrame:
    """The operators of each turn before backward; in a step without backward, those before the optimizer."""
    backward = pl.col("phase") == "backward"
    keys = ["rank", "step", "turn_ns"]
    first = in_turns(later, turns).filter(backward).group_by(keys).agg(until_ns=pl.col("start_ns").min())
    without = later.group_by("rank", "step").agg(step_until_ns=pl.col("start_ns").min(), trains=backward.any())
    others = _annotated(annotations, NO_FORWARD).with_columns(updates=pl.col("name").str.contains(UPDATES))
    around = union(_but_closures(others, later.filter(backward)), by=["rank"])
    until = pl.coalesce("until_ns", pl.when(~pl.col("trains")).then("step_until_ns"))
    trains = pl.col("trains").fill_null(False)
    parts = []
    for batch in batches(operators.select("rank", "step", "start_ns", "duration_ns")):
        rows = in_turns(outside(batch, around), turns)
        # rows of one turn follow each other, so the limits of turns are looked up once for many rows
        place = rows.select(pl.sum_horizontal(pl.col(key).rle_id() for key in keys).rle_id()).to_series()
        changes = place.ne_missing(place.shift(1))
        heads = rows.select(keys).filter(changes)
        known = heads.join(first, on=keys, how="left", nulls_equal=True, maintain_order="left")
        limits = known.join(without, on=["rank", "step"], how="left", maintain_order="left").select(
            *("rank", "step"),
            until_ns=until,
            turn_ns=pl.when(trains).then("turn_ns"),
            is_whole=until.is_null() & ~trains,
        )
        ends, is_whole = limits["until_ns"].gather(place), limits["is_whole"].gather(place)
        kept = (
            rows.select("start_ns", end_ns=END).with_columns(place=place).filter((rows["start_ns"] < ends) | is_whole)
        )
        spans = kept.group_by("place").agg(start_ns=pl.col("start_ns").min(), end_ns=pl.col("end_ns").max())
        parts.append(limits.drop("is_whole").with_row_index("place").join(spans, on="place").drop("place"))
    end = pl.coalesce(pl.col("until_ns").first(), pl.col("end_ns").max())
    found = pl.concat(parts).group_by(keys)
    return found.agg(start_ns=pl.col("start_ns").min(), end_ns=end, phase=pl.lit("forward"))


def _but_closures(others: pl.DataFrame, backward: pl.DataFrame) -> pl.DataFrame:
    """Ranges without those of optimizers in which backward begins, as their closure contains forward, too."""
    starts = backward.select("rank", "start_ns", turn_ns="start_ns").sort("rank", "start_ns")
    next_turn = others.sort("rank", "start_ns").join_asof(
        starts, on="start_ns", by="rank", strategy="forward", check_sortedness=False
    )
    closes = pl.col("updates") & (pl.col("turn_ns") < pl.col("end_ns"))
    return next_turn.filter(~closes.fill_null(False)).select("rank", "start_ns", "end_ns")


def _without_closures(merged: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Merged phases with forward and backward (`ranges`, not merged) inside an optimizer's closure cut out of the
    optimizer."""
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
    rest = cut.select("rank", "start_ns", phase=pl.lit("optimizer"), end_ns=END).select(merged.columns).collect()
    return pl.concat([merged.filter(~optimizer), rest])


def _on_device(
    host: pl.DataFrame, kernels: pl.LazyFrame | None, operators: pl.LazyFrame | None
) -> tuple[pl.DataFrame, list[int]]:
    """The phases by the time their kernels ran, and the ranks that compute on a device."""
    if kernels is None:
        return host.clear(), []
    computing = ranks_of(kernels.filter(pl.col("kind") == "compute"))
    launches = launch_times(kernels, operators)
    parts = {phase: launched_within(host.filter(pl.col("phase") == phase), launches) for phase in PHASES}
    named = [rows.with_columns(phase=pl.lit(phase)).select(_PHASE) for phase, rows in parts.items()]
    return pl.concat(named), computing
