"""Steps and their phases: by graph and iteration, as far as the recording knows them."""

from __future__ import annotations

import polars as pl

from stepscope.tables.steps import REPETITION, WHOLE_RECORDING
from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import Family, Part

STEPS, MERGED = "Steps", "Iterations"
ON_DEVICE = "Steps on the device"
_OF_DEVICE = ("device", "stated")
"""Windows that the device sets: it may run a step's work long after the host has launched it."""
_PHASES = {"forward_backward": "Forward and backward", "tail": "After backward"}


def _steps(part: Part) -> pl.LazyFrame | None:
    """Each step with the phases that lie in it."""
    steps = _numbered(part)
    if steps.is_empty():
        return None
    named = steps.with_columns(_titles(part))
    whole = named.select(
        "rank", "track", "order", "start_ns", "name", "step", "graph", "window",
        duration_ns=pl.col("end_ns") - pl.col("start_ns"),
        category=pl.lit("step"),
    )  # fmt: skip
    frames = [whole, _marked(named), _windows(named), _phases(part, named)]
    return pl.concat([each for each in frames if each is not None], how="diagonal").lazy()


def _numbered(part: Part) -> pl.DataFrame:
    """The steps: marked ones, else iterations, else none."""
    window = ("window", "window_start_ns", "window_end_ns")
    columns = ("rank", "step", "graph", "start_ns", "end_ns", *window, "forward_start_ns", "backward_end_ns")
    steps = part.table("steps").select(columns).filter(pl.col("window") != WHOLE_RECORDING).collect()
    if steps.is_empty() and (found := part.answer("iterations")) is not None:
        steps = pl.concat(
            [steps, found.select("rank", "step", "start_ns", "end_ns", window=pl.lit(REPETITION))], how="diagonal"
        )
    numbered = steps.join(_iterations(part), on=["rank", "step"], how="left", maintain_order="left")
    return numbered.filter(pl.col("end_ns") >= pl.col("start_ns")).sort("rank", "start_ns")


def _iterations(part: Part) -> pl.DataFrame:
    """What each step of a graph is called: `rank`, `step`, `iteration`.

    That is its number, unless there are several graphs: then steps of all of them are counted together, and the
    iterations of each graph are its steps in their order, also of those that are not shown.
    """
    names = ("rank", "step", "graph", "start_ns")
    every = [rank.whole.table("steps").select(names) for rank in part.run.ranks if rank.has("steps")]
    none = pl.DataFrame(schema={name: part.table("steps").collect_schema()[name] for name in names})
    known = pl.concat([none, *pl.collect_all(every)]).drop_nulls("graph").sort("rank", "start_ns")
    several = pl.col("graph").n_unique().over("rank") > 1
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("rank", "graph")
    iteration = pl.when(several).then(place).otherwise("step")
    return known.select("rank", "step", iteration=iteration).unique(["rank", "step"], keep="first", maintain_order=True)


def _titles(part: Part) -> list[pl.Expr]:
    """Track, its place and the name of each step: all graphs on one track, or a track a graph."""
    graph, iteration = pl.col("graph"), pl.col("iteration")
    if part.options.merge_graphs:
        name = pl.coalesce(filled_in("Model {} Iteration {}", graph, iteration), filled_in("Step {}", pl.col("step")))
        track = pl.when(graph.is_not_null().any().over("rank")).then(pl.lit(MERGED)).otherwise(pl.lit(STEPS))
        return [track.alias("track"), pl.lit(0, pl.Int64).alias("order"), name.alias("name")]
    alone = filled_in("Step {}", pl.col("step"))
    name = pl.when(graph.is_null()).then(alone).otherwise(filled_in("Iteration {}", iteration))
    track = pl.coalesce(filled_in("Step trace (model {})", graph), pl.lit(STEPS))
    return [track.alias("track"), graph.fill_null(-1).alias("order"), name.alias("name")]


def _marked(steps: pl.DataFrame) -> pl.DataFrame | None:
    """From the start of forward to the end of backward, and the rest of the step, where the source marks them."""
    known = steps.filter(
        pl.col("forward_start_ns").is_not_null()
        & (pl.col("backward_end_ns") >= pl.col("forward_start_ns"))
        & (pl.col("backward_end_ns") <= pl.col("end_ns"))
    )
    if known.is_empty():
        return None
    common = ("rank", "track", "order", "step", "graph")
    parts = [
        known.select(*common, start_ns="forward_start_ns", end_ns="backward_end_ns", phase=pl.lit("forward_backward")),
        known.select(*common, start_ns="backward_end_ns", end_ns="end_ns", phase=pl.lit("tail")),
    ]
    return pl.concat(parts).select(
        *common,
        "start_ns",
        duration_ns=pl.col("end_ns") - pl.col("start_ns"),
        name=pl.col("phase").replace_strict(_PHASES, return_dtype=pl.String),
        category=pl.lit("phase"),
    )


def _windows(steps: pl.DataFrame) -> pl.DataFrame:
    """When the device ran each step, if it is another time than that of the host; phases and findings lie there."""
    start, end = pl.col("window_start_ns"), pl.col("window_end_ns")
    moved = (start != pl.col("start_ns")) | (end != pl.col("end_ns"))
    return steps.filter(pl.col("window").is_in(_OF_DEVICE) & moved & (end > start)).select(
        "rank", "step", "graph", "name",
        track=pl.lit(ON_DEVICE),
        order=pl.lit(999_999, pl.Int64),
        start_ns=start,
        duration_ns=end - start,
        category=pl.lit("step_window"),
    )  # fmt: skip


def _phases(part: Part, steps: pl.DataFrame) -> pl.DataFrame | None:
    """Forward, backward and optimizer, found in the work of the rank, on tracks of their own."""
    found = part.answer("phase_ranges")
    if found is None or found.is_empty():
        return None
    ranks = steps["rank"].unique()
    if any(each.steps is not None for each in part.run.ranks):  # the answer is about all steps
        found = _within(found, steps)
    return found.filter(pl.col("rank").is_in(ranks.implode())).select(
        "rank",
        track=pl.lit("Phases"),
        order=pl.lit(1_000_000, pl.Int64),
        start_ns="start_ns",
        duration_ns=pl.col("end_ns") - pl.col("start_ns"),
        name="phase",
        category=pl.lit("phase"),
        on_device="on_device",
    )


def _within(phases: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The phases that overlap any of the steps, which do not overlap one another."""
    begun = steps.select("rank", begun_ns="start_ns", over_ns="end_ns").sort("begun_ns")
    ended = phases.with_row_index("row").sort("end_ns", maintain_order=True)
    last = ended.join_asof(begun, left_on="end_ns", right_on="begun_ns", by="rank", check_sortedness=False)
    return last.filter(pl.col("over_ns") > pl.col("start_ns")).sort("row").select(phases.columns)


FAMILY = Family(
    "steps",
    "Steps",
    "Each step on the host, and when the device ran it if that is another time; its forward and backward pass and "
    "optimizer as far as they are known; by graph (model) and iteration where the source counts steps by graph.",
    "summary",
    _steps,
    tables=("steps",),
    priority=0,
)
