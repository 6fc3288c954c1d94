"""What each step spends its time on: waiting for data, compiling, forward, backward, communication, optimizer."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.methods.step_points import BACKWARD, FORWARD, NO_PHASES, Evidence, NamedPoints, point
from stepscope.analysis.methods.step_windows import is_whole_recording, numbered
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import SPLIT, split_lengths
from stepscope.analysis.step.marked_steps import marked_steps
from stepscope.analysis.step.phase_ranges import PHASES as RANGES
from stepscope.tables.base import Column

SECTIONS = ("interval_ns", "forward_backward_ns", "tail_ns")
"""The parts into which two points cut a step."""

NO_NAMES = NamedPoints()

POINTS = ("forward_start", "backward_end")
"""Options with which a user names the operators at the points."""

CLAIMS: dict[str, pl.Expr | str] = {
    "exposed_communication_ns": pl.col("communication") & ~pl.col("computing"),
    "checkpoint_ns": "checkpoint",
    "validation_ns": "validation",
    "warm_up_ns": "warm_up",
    "data_wait_ns": pl.col("data") & ~pl.col("computing"),
    "compile_ns": pl.col("compile") & ~pl.col("computing"),
    "optimizer_ns": "optimizer",
    "backward_ns": "backward",
    "forward_ns": "forward",
}
"""When a phase of a recorded timeline claims a piece of time; of several, the first counts."""

PHASES = (
    *("data_wait_ns", "compile_ns", "forward_ns", "backward_ns", "exposed_communication_ns", "optimizer_ns"),
    *("validation_ns", "warm_up_ns", "checkpoint_ns", "other_ns"),
)
"""The phases of a recorded timeline, which add up to the step."""


@analysis(
    "rank",
    columns(
        "rank graph step window by_phases",
        meaning("start_ns", "Start of the step's window."),
        "step_ns",
        meaning("interval_ns", "From the start of the window to the start of forward."),
        Column(
            "forward_backward_ns",
            "int64",
            "From the start of forward to the end of backward; null without backward.",
            title="forward, backward",
        ),
        Column("tail_ns", "int64", "From the end of backward to the end of the window; null without backward."),
        Column("data_wait_ns", "int64", "Time spent waiting for data."),
        "compile_ns",
        Column("forward_ns", "int64", "Time in forward; without backward, all time from the start of forward."),
        Column("backward_ns", "int64", "In backward."),
        Column(
            "exposed_communication_ns",
            "int64",
            "Communication not hidden by computing; null if unknown.",
            title="comm. exposed",
        ),
        Column("optimizer_ns", "int64", "Time in the optimizer."),
        Column("validation_ns", "int64", "Time in validation, including loading its batches."),
        Column("warm_up_ns", "int64", "In warm-up."),
        "checkpoint_ns",
        Column("other_ns", "int64", "The rest; null if neither phases nor waiting for data are marked."),
        Column("forward_start_ns", "int64", "Start of forward.", moment=True),
        Column("forward_start_by", "string", "How that was found: `argument`, `environment`, `stated` or `phases`."),
        Column("forward_start_operator", "string", "Operator at that point."),
        Column("backward_end_ns", "int64", "End of backward.", moment=True),
        Column("backward_end_by", "string", "How that was found, as in `forward_start_by`."),
        Column("backward_end_operator", "string", "Operator at that point."),
        keep=(
            "step step_ns exposed_communication_ns data_wait_ns backward_ns forward_ns "
            "optimizer_ns forward_backward_ns interval_ns tail_ns"
        ),
    ),
    together=True,
)
def step_trace(
    steps: pl.LazyFrame,
    activity: pl.DataFrame | None,
    phase_ranges: pl.DataFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    rank_figures: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    forward_start: str | None = None,
    backward_end: str | None = None,
    environment: NamedPoints = NO_NAMES,
) -> pl.DataFrame:
    """Split each step's window at the start of forward and the end of backward, and by phases: one row per step.

    `interval_ns + forward_backward_ns + tail_ns` is the step; in a step without backward, `interval_ns + forward_ns`.
    If the work was recorded, the columns of `PHASES` also add up to the step; of several at a time, the first in
    `CLAIMS` counts. Steps without recorded operators only have what a step table states or marks of phases show.

    Args:
        forward_start: Name of the operator or kernel at which forward starts.
        backward_end: Likewise at which backward ends.
        environment: The operators named by the caller's environment; used if they were recorded. The recorded
            environment (`ranks`) may name them, too.

    Raises:
        Unavailable: If no step has an operator named by argument.
    """
    named = bool(forward_start or backward_end)
    windows = _windows(steps, None if named else activity)
    phase_ranges = NO_PHASES if phase_ranges is None else phase_ranges
    known = Evidence(operators, kernels, phase_ranges, rank_figures, ranks)
    points = [
        point(windows, FORWARD, known, forward_start, environment.forward_start),
        point(windows, BACKWARD, known, backward_end, environment.backward_end),
    ]
    plain = windows.select(
        *("rank", "graph", "step", "window", "recorded", "by_phases"),
        start_ns="window_start_ns",
        end_ns="window_end_ns",
    )
    whole = pl.concat([plain, *points], how="horizontal").with_columns(step_ns=pl.col("end_ns") - pl.col("start_ns"))
    names = [side.stated for side in (FORWARD, BACKWARD)]
    whole = whole.with_columns(pl.when(~pl.col("by_phases")).then(pl.col(names)))
    if not named:  # the start and end of a recording are not those of a step
        points_known = ~is_whole_recording()
        whole = whole.with_columns(pl.when(points_known).then(name) for one in points for name in one.columns)
    found = _sections(whole).with_columns(_phases(whole, activity, phase_ranges, named=named))
    return found.select(
        *("rank", "graph", "step", "window", "by_phases", "start_ns", "step_ns", *SECTIONS),
        *(pl.coalesce("forward_ns", "inference_ns").alias(c) if c == "forward_ns" else pl.col(c) for c in PHASES),
        *(name for point_columns in points for name in point_columns.columns),
    )


def _windows(steps: pl.LazyFrame, activity: pl.DataFrame | None) -> pl.DataFrame:
    """The steps with any known activity, rank by rank in order of time, with `by_phases`."""
    marked = marked_steps(steps, activity).select("rank", "step", by_phases=pl.lit(True))
    every = steps.join(marked, on=["rank", "step"], how="left").with_columns(pl.col("by_phases").fill_null(False))
    known = (pl.col("window") == "stated") | pl.col("recorded").fill_null(True) | pl.col("by_phases")
    return every.filter(known).sort("rank", "window_start_ns", "window_end_ns", "step").collect()


def _sections(steps: pl.DataFrame) -> pl.DataFrame:
    """The lengths between start, points and end, which must be in this order."""
    first = pl.col("forward_start_ns").clip("start_ns", "end_ns")
    last = pl.max_horizontal(pl.col("backward_end_ns").clip("start_ns", "end_ns"), first)
    last = pl.when(pl.col("backward_end_ns").is_not_null() & first.is_not_null()).then(last)
    return steps.with_columns(
        interval_ns=first - pl.col("start_ns"),
        forward_backward_ns=last - first,
        tail_ns=pl.col("end_ns") - last,
        inference_ns=pl.when(last.is_null()).then(pl.col("end_ns") - first),
    )


def _phases(
    steps: pl.DataFrame, activity: pl.DataFrame | None, ranges: pl.DataFrame, *, named: bool
) -> list[pl.Series]:
    """The columns of `PHASES`; null if the work of a rank was not recorded, and for phases that nothing marks."""
    if activity is None:
        return [pl.Series(name, [None] * steps.height, dtype=pl.Int64) for name in PHASES]
    phases = _adjusted(ranges, steps) if named else ranges
    layers = {phase: phases.lazy().filter(pl.col("phase") == phase).drop("phase") for phase in RANGES}
    windows = numbered(steps.select("rank", "start_ns", "end_ns"))
    sums = (
        split_lengths(activity, windows.lazy(), SPLIT, **layers)
        .with_columns(what=first_label(CLAIMS, otherwise="other_ns"))
        .group_by("window")
        .agg(pl.col("duration_ns").filter(pl.col("what") == name).sum().alias(name) for name in PHASES)
    )
    every = windows.join(sums, on="window", how="left", maintain_order="left").select(
        "rank", pl.when(steps["recorded"].fill_null(True) | steps["by_phases"]).then(pl.col(PHASES).fill_null(0))
    )
    done = _ranks_by(activity, "what")
    # calls made by an operator, like DDP's, are known if operators are; else they are part of their phase
    calls = pl.col("exposed_communication_ns")
    communicates = pl.col("rank").is_in([*done.get("communication", ())])
    every = every.with_columns(pl.when(~(steps["by_phases"] & communicates & (calls == 0))).then(calls))
    marked = {f"{phase}_ns": ranks for phase, ranks in _ranks_by(phases, "phase").items()}
    shown = {f"{phase}_ns": marked.get(f"{phase}_ns", set()) for phase in RANGES}
    shown |= {column: done.get(mark, set()) for mark, column in (("data", "data_wait_ns"), ("compile", "compile_ns"))}
    worked = {rank for what, ranks in done.items() if what not in ("sync", "gc", "python", "compile") for rank in ranks}
    shown = {column: ranks & worked for column, ranks in shown.items()}
    shown["exposed_communication_ns"] = worked
    # if only communication is known, the rest is unknown as well
    shown["other_ns"] = {
        rank for column, ranks in shown.items() if column != "exposed_communication_ns" for rank in ranks
    }
    own = {column: pl.col("rank").is_in([*ranks]) for column, ranks in shown.items()}
    return every.select(pl.when(own[name]).then(name) for name in PHASES).get_columns()


def _ranks_by(ranges: pl.DataFrame, column: str) -> dict[str, set[int]]:
    """The ranks that have ranges of each kind."""
    ranks: dict[str, set[int]] = {}
    for rank, kind in ranges.select("rank", column).unique().iter_rows():
        ranks.setdefault(kind, set()).add(rank)
    return ranks


def _adjusted(ranges: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The phases with the start of forward and the end of backward moved to the points that the user named. The start
    of backward is unchanged; without backward, all between the points is forward."""
    named = steps.select("rank", "start_ns", "end_ns", "forward_start_ns", "backward_end_ns").sort("start_ns", "end_ns")
    backward = (
        ranges.filter(pl.col("phase") == "backward")
        .sort("start_ns")
        .join_asof(
            named.select("rank", "start_ns", window_ns="start_ns"), on="start_ns", by="rank", check_sortedness=False
        )
        .group_by("rank", "window_ns")
        .agg(turn_ns=pl.col("start_ns").min())
    )
    turned = named.join(backward, left_on=["rank", "start_ns"], right_on=["rank", "window_ns"], how="left")
    turn = pl.coalesce("turn_ns", "backward_end_ns")
    parts = [
        turned.select("rank", phase=pl.lit("forward"), start_ns="forward_start_ns", end_ns=turn),
        turned.select("rank", phase=pl.lit("backward"), start_ns=turn, end_ns="backward_end_ns"),
        ranges.filter(~pl.col("phase").is_in(["forward", "backward"])).select("rank", "phase", "start_ns", "end_ns"),
    ]
    return pl.concat(parts).drop_nulls()
