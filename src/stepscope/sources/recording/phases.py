"""The purpose of a forward pass: training, validation or warm-up. Marks only record its mode.

A pass in evaluation mode or without gradients may be part of a training step all the same (a teacher, a frozen part),
so the passes of a step are judged by what stands around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from stepscope.recording_format.marks import BACKWARD, DATA, EVALUATES, FORWARD, NO_GRADIENT, STEP, VALIDATION

WARM_UP = "warm_up"
"""The kind that passes for warming up get here. The kind of validation is also one that the recorder marks by itself,
where a trainer reports it."""

_APART = f"{EVALUATES}|{NO_GRADIENT}"
_REGULAR = 0.8
"""Share of the steps: passes in that many steps belong to the training step and are not validation."""
_FEW = 3
"""With fewer steps, nothing is called regular."""


def whole_steps(parts: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows, with all marks of a step in one part, and the last step with others before it."""
    ready: pl.DataFrame | None = None
    begun: pl.DataFrame | None = None
    for part in parts:
        rows = part if begun is None else pl.concat([begun, part])
        others = rows["step"].ne_missing(rows["step"].last()).arg_true()
        cut = int(others[-1]) + 1 if len(others) else 0
        if ready is not None and cut:
            yield ready
        ready = rows.head(cut) if cut else ready
        begun = rows.slice(cut)
    left = [rows for rows in (ready, begun) if rows is not None]
    if left:
        yield pl.concat(left)


def with_purposes(rows: pl.DataFrame) -> pl.DataFrame:
    """Marks whose forward passes for validation and warm-up have a kind of their own.

    A pass is a candidate if it has no gradients, or is in evaluation mode while others of its step are not, and comes
    before the first pass that trains. It validates if a batch was loaded between it and that pass, or if it runs the
    model that trains, in evaluation mode, and not in most steps.

    Args:
        rows: Marks of whole steps: `kind`, `name`, `start_ns`, `end_ns`, `step`, `detail`.

    Returns:
        The same rows in their order, and after those of each run of passes one `validation` that spans it, with the
        loading of its batches, on which `name` is null.
    """
    detail = pl.col("detail").fill_null("")
    reported = rows.filter(pl.col("kind") == VALIDATION)
    if not (reported.height or rows.filter(pl.col("kind") == FORWARD, detail.str.contains(_APART)).height):
        return rows
    numbered = rows.with_row_index("mark").with_columns(pass_=_passes(rows), of=_entered(rows))
    inside = _inside(numbered, reported)
    judged = _judged(numbered.filter(~inside)).filter(pl.col("purpose").is_not_null())
    kinds = pl.concat([judged, numbered.filter(inside).select("mark", purpose=pl.lit(VALIDATION))])
    named = numbered.join(kinds, on="mark", how="left", maintain_order="left").with_columns(
        kind=pl.coalesce("purpose", "kind")
    )
    return pl.concat([named.select(rows.columns), _runs(named).select(rows.columns)])


def _passes(rows: pl.DataFrame) -> pl.Series:
    """`train`, `eval` (evaluation mode, with gradients), `no_grad`; null for anything but a forward pass."""
    detail = pl.col("detail").fill_null("")
    modes = [pl.when(detail.str.contains(mode)).then(pl.lit(mode)) for mode in (NO_GRADIENT, EVALUATES)]
    mode = pl.when(pl.col("kind") == FORWARD).then(pl.coalesce(*modes, pl.lit("train")))
    return rows.select(mode).to_series()


def _inside(marks: pl.DataFrame, reported: pl.DataFrame) -> pl.Series:
    """Whether each is a forward pass within a validation that a trainer reported."""
    bounds = reported.sort("start_ns").select("start_ns", over_ns="end_ns")
    found = marks.sort("start_ns", maintain_order=True).join_asof(bounds, on="start_ns").sort("mark")
    is_inside = pl.col("pass_").is_not_null() & (pl.col("start_ns") < pl.col("over_ns")).fill_null(False)
    return found.select(is_inside).to_series()


def _entered(rows: pl.DataFrame) -> pl.Series:
    """How often step numbers restarted: each entry into the loop has its own step 1."""
    number = pl.when(pl.col("kind") == STEP).then(pl.col("step")).forward_fill()
    return rows.select((number < number.shift(1)).fill_null(False).cum_sum()).to_series()


_STEP = ["of", "step"]


def _judged(marks: pl.DataFrame) -> pl.DataFrame:
    """The candidates: `mark`, `purpose` (null: part of the training step)."""

    def of_step(value: pl.Expr) -> pl.Expr:
        """A value of all marks of a step, for each of them; null outside of steps."""
        return pl.when(pl.col("step").is_not_null()).then(value.over(_STEP))

    start_ns, trains, is_backward = pl.col("start_ns"), pl.col("pass_") == "train", pl.col("kind") == BACKWARD
    # a model that is trained in evaluation mode, for the sake of its frozen parts, trains nevertheless
    trains |= (pl.col("pass_") == EVALUATES) & of_step(is_backward.any() & ~trains.any())
    loads = (pl.col("kind") == DATA) & (start_ns < pl.col("first_ns"))
    known = (
        marks.with_columns(trains=trains.fill_null(False))
        .with_columns(first_ns=of_step(start_ns.filter(pl.col("trains") | is_backward).min()))
        .with_columns(loaded_ns=of_step(start_ns.filter(loads).max()))
    )
    before = start_ns < pl.coalesce("first_ns", pl.lit(2**62))
    found = known.filter(pl.col("pass_").is_not_null() & ~pl.col("trains") & before)
    training = known.filter(pl.col("trains") | is_backward)
    if training.is_empty():
        return found.select("mark", purpose=pl.lit(None, pl.String))  # inference: nothing here trains
    steps = training.select(_STEP).unique()
    having = steps.join(found, on=_STEP, how="semi")
    is_regular = steps.height >= _FEW and having.height >= _REGULAR * steps.height
    return _with_purpose(found, is_regular, known.filter("trains")["name"].unique())


def _with_purpose(found: pl.DataFrame, regular: bool, trained: pl.Series) -> pl.DataFrame:
    evaluates = pl.col("detail").fill_null("").str.contains(EVALUATES)
    same = pl.col("name").is_in(trained.to_list()) if len(trained) else pl.lit(True)
    loaded_after = (pl.col("start_ns") < pl.col("loaded_ns")).fill_null(False)
    validates = loaded_after | (evaluates & same & pl.lit(not regular))
    judged = found.with_columns(validates=validates)
    # the last pass of a run is not followed by a batch of the same run
    judged = judged.with_columns(validates=pl.col("validates").any().over(*_STEP, "name"))
    warms = (pl.col("step") == 1) & ~evaluates & pl.lit(not regular)
    purpose = pl.when("validates").then(pl.lit(VALIDATION)).when(warms).then(pl.lit(WARM_UP))
    return judged.select("mark", purpose=purpose)


def _runs(named: pl.DataFrame) -> pl.DataFrame:
    """One mark for all of the validation of a step: from the loading of its first batch to its last pass."""
    passes = named.filter(pl.col("kind") == VALIDATION).drop_nulls(["pass_", "step"])
    if not passes.height:
        return named.clear()
    spans = passes.group_by(_STEP, maintain_order=True).agg(pl.min("start_ns"), pl.max("end_ns"), pl.first("thread"))
    loads = named.filter(pl.col("kind") == DATA).select(*_STEP, load_ns="start_ns", loaded_ns="end_ns")
    inside = spans.join(loads, on=_STEP)
    # where several batches were loaded in a run, the one right before its first pass is its first
    several = inside.filter(pl.col("load_ns").is_between("start_ns", "end_ns")).select(_STEP).unique()
    begins = (
        inside.filter(pl.col("loaded_ns") <= pl.col("start_ns"))
        .join(several, on=_STEP, how="semi")
        .group_by(_STEP)
        .agg(pl.col("load_ns").max())
    )
    begun = spans.join(begins, on=_STEP, how="left", maintain_order="left")
    made = begun.with_columns(start_ns=pl.coalesce("load_ns", "start_ns"), kind=pl.lit(VALIDATION))
    return pl.concat([named.clear(), made.select(c for c in made.columns if c in named.columns)], how="diagonal")
