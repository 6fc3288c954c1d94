"""Where forward starts and backward ends in each step: as named by the user, as stated, or from the phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, starting_in, union
from stepscope.analysis.methods.launched_work import launch_times, launched_within
from stepscope.analysis.methods.operator_phases import marks_launches
from stepscope.analysis.methods.shapes import read_json
from stepscope.analysis.methods.step_windows import numbered
from stepscope.errors import Unavailable
from stepscope.tables import KERNELS, RANK_FIGURES, RANKS
from stepscope.tables.operators import OPTIMIZER_SCOPE


@dataclass(frozen=True)
class Side:
    """One of the two points.

    Args:
        column: Column of `steps` with the point as the source states it.
        stated: Name in `rank_figures` of the operator at the point.
        variable: MindSpore's environment variable with which a user names it.
        is_start: Whether it is the start of an operator, else the end.
        phases: Phases whose first start, or last end, is the point if nothing names it.
    """

    column: str
    stated: str
    variable: str
    is_start: bool
    phases: tuple[str, ...]


FORWARD = Side("forward_start_ns", "forward_start_operator", "PROFILING_FP_START", True, ("forward", "backward"))
BACKWARD = Side("backward_end_ns", "backward_end_operator", "PROFILING_BP_END", False, ("backward",))


NO_PHASES = pl.DataFrame(schema={"rank": pl.Int32, "phase": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64})


@dataclass(frozen=True)
class NamedPoints:
    """The operators at the points as named by the user's environment (`Side.variable`); None if it does not."""

    forward_start: str | None = None
    backward_end: str | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> NamedPoints:
        """The operators named by an environment."""
        return cls(environment.get(FORWARD.variable) or None, environment.get(BACKWARD.variable) or None)


@dataclass(frozen=True)
class Evidence:
    """The data of a rank in which to find the points; None if there is no such table or answer.

    Args:
        stated: `rank_figures`, with the operator names that the source states.
        ranks: For the recorded environment.
    """

    operators: pl.LazyFrame | None
    kernels: pl.LazyFrame | None
    phase_ranges: pl.DataFrame
    stated: pl.LazyFrame | None
    ranks: pl.LazyFrame | None

    def environment(self) -> dict[str, str]:
        """The recorded environment."""
        texts = RANKS.or_empty(self.ranks).select("environment").collect()["environment"].drop_nulls()
        return next((found for text in texts if isinstance(found := read_json(text), dict)), {})


def point(windows: pl.DataFrame, side: Side, known: Evidence, named: str | None, variable: str | None) -> pl.DataFrame:
    """One of the points in each window of a rank.

    Args:
        windows: `window_start_ns`, `window_end_ns`, `graph` and the stated point's column; disjoint.
        side: Which point.
        known: Where to look.
        named: The operator named by argument, if any.
        variable: The operator named by the user's environment, if any; it precedes the recorded environment's.

    Returns:
        For each window the point, how it was found (`argument`, `environment`, `stated`, `phases`) and the name of the
        operator there, as in `step_trace`; null if unknown.

    Raises:
        Unavailable: If no window has the operator that an argument names.
    """
    if named:
        at = _named(windows, known, side, named)
        if not at.count():
            raise Unavailable(_not_found(known, named))
        return _with_names(side, at, "argument", [named] * windows.height)
    wanted = variable or known.environment().get(side.variable)
    if wanted and (at := _named(windows, known, side, wanted)).count():
        return _with_names(side, at, "environment", [wanted] * windows.height)
    stated = windows[side.column]
    # the stated end of backward may be only the end of launching (see `as_executed`)
    is_final = stated.count() and not (side is BACKWARD and marks_launches(known.ranks, known.kernels))
    ranges = NO_PHASES if is_final else known.phase_ranges
    executed = _in_windows(windows, ranges.filter(pl.col("phase").is_in(side.phases)), side)
    if stated.count() and not executed.count():
        names = _stated_names(windows, side, known)
        return _with_names(side, stated, "stated", names if any(names) else _standing_at(stated, known, side))
    return _with_names(side, executed, "phases", _standing_at(executed, known, side))


def _with_names(side: Side, at: pl.Series, by: str, operators: Sequence[str | None]) -> pl.DataFrame:
    """The points, how they were found and their operators."""
    frame = pl.DataFrame({side.column: at, side.stated: pl.Series(operators, dtype=pl.String)})
    is_known = pl.col(side.column).is_not_null()
    how = pl.when(is_known).then(pl.lit(by)).alias(side.column.replace("_ns", "_by"))
    return frame.select(side.column, how, pl.when(is_known).then(side.stated))


def _named(windows: pl.DataFrame, known: Evidence, side: Side, name: str) -> pl.Series:
    """The first start or last end, in each window, of kernels of a name, or else launched by operators of that name."""
    found = _ranges(KERNELS.or_empty(known.kernels).filter(_is_named(name))).collect()
    if found.is_empty() and known.operators is not None:
        found = union(_ranges(known.operators.filter(_is_named(name))), by=["rank"]).collect()
        if known.kernels is not None:
            found = launched_within(found, launch_times(known.kernels, known.operators))
    return _in_windows(windows, found, side)


def _not_found(known: Evidence, name: str) -> str:
    """Why the operator named by the user cannot be used, and what to do."""
    tables = [table for table in (known.operators, known.kernels) if table is not None]
    if any(table.filter(_is_named(name)).head(1).collect().height for table in tables):
        return f"{name!r} was recorded outside of all steps, or without the kernels that it launched. Name a kernel"
    return (
        f"no operator or kernel named {name!r} was recorded. Give its name in full or its last part, as "
        "`stepscope ops` shows it"
    )


def _is_named(name: str) -> pl.Expr:
    return (pl.col("name") == name) | pl.col("name").str.ends_with("/" + name)


def _ranges(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.select("rank", "start_ns", end_ns=END)


def _in_windows(windows: pl.DataFrame, ranges: pl.DataFrame, side: Side) -> pl.Series:
    """The first start, or last end, of the ranges that start in each window; null if none does."""
    bounds = numbered(windows.select("rank", start_ns="window_start_ns", end_ns="window_end_ns"))
    at = pl.col("start_ns").min() if side.is_start else pl.min_horizontal("end_ns", "until_ns").max()
    points = starting_in(ranges, bounds, "window").group_by("window").agg(at_ns=at)
    return bounds.join(points, on="window", how="left", maintain_order="left")["at_ns"]


def _stated_names(windows: pl.DataFrame, side: Side, known: Evidence) -> list[str | None]:
    """The operator that the source names for each window's graph, else for all graphs."""
    stated = RANK_FIGURES.or_empty(known.stated).filter(pl.col("name") == side.stated)
    names: dict[int | None, str] = dict(stated.select("graph", "text").sort("graph", "text").collect().rows())
    return [names.get(graph, names.get(None)) for graph in windows["graph"]]


def _standing_at(at: pl.Series, known: Evidence, side: Side) -> list[str | None]:
    """The first work to start at or after each point, or the last to end at or before it."""
    table = known.operators if known.kernels is None else known.kernels.filter(pl.col("kind") == "compute")
    if table is None:
        return [None] * len(at)
    if side is FORWARD:  # a graph may run an operator of its optimizer, such as the step counter, before all others
        table = table.filter(~pl.col("name").str.contains(OPTIMIZER_SCOPE))
    work = table.select("name", "duration_ns", at_ns=pl.col("start_ns") if side.is_start else END)
    asked = pl.DataFrame({"at_ns": at}).with_row_index("number")
    nearest = _nearest(work.select("at_ns"), asked.drop_nulls().sort("at_ns"), side)
    # If several coincide, the outermost one starts and the innermost one ends.
    there = work.filter(pl.col("at_ns").is_in(nearest["found_ns"].implode())).sort(-pl.col("duration_ns"), "name")
    names = (
        there.unique("at_ns", keep="first" if side.is_start else "last")
        .select("name", found_ns="at_ns")
        .collect(engine="streaming")
    )
    found = nearest.join(names, on="found_ns", how="left").select("number", "name")
    return asked.join(found, on="number", how="left", maintain_order="left")["name"].to_list()


def _nearest(times: pl.LazyFrame, asked: pl.DataFrame, side: Side) -> pl.DataFrame:
    """What was `asked`, each with the first time at or after it, or the last at or before it (`found_ns`)."""
    strategy: Any = "forward" if side.is_start else "backward"
    nearest = pl.min_horizontal if side.is_start else pl.max_horizontal
    found = asked.with_columns(found_ns=pl.lit(None, pl.Int64))
    for batch in batches(times):
        there = batch.drop_nulls().sort("at_ns").with_columns(other_ns="at_ns")
        joined = found.join_asof(there, on="at_ns", strategy=strategy, check_sortedness=False)
        found = joined.select(*asked.columns, found_ns=nearest("found_ns", "other_ns"))
    return found
