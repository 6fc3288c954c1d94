"""Where forward starts and backward ends in each step: as named by the user, as stated, or from the phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, starting_in, union
from stepscope.analysis.methods.launched_work import launch_times, launched_within
from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.operator_phases import marks_launches
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.shapes import read_json
from stepscope.analysis.methods.step_windows import numbered
from stepscope.analysis.registry import ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.sources.matching import last_started
from stepscope.tables import KERNELS, RANKS
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

    @cached_property
    def environments(self) -> dict[int, dict[str, str]]:
        """The recorded environment of each rank that has one."""
        texts = RANKS.or_empty(self.ranks).select("rank", "environment").drop_nulls().collect().rows()
        return {rank: found for rank, text in texts if isinstance(found := read_json(text), dict)}


def point(windows: pl.DataFrame, side: Side, known: Evidence, named: str | None, variable: str | None) -> pl.DataFrame:
    """One of the points in each window, rank by rank.

    Args:
        windows: `rank`, `window_start_ns`, `window_end_ns`, `graph` and the stated point's column; disjoint in a rank.
        side: Which point.
        known: Where to look.
        named: The operator named by argument, if any.
        variable: The operator named by the user's environment, if any; it precedes the recorded environment's.

    Returns:
        For each window the point, how it was found (`argument`, `environment`, `stated`, `phases`) and the name of the
        operator there, as in `step_trace`; null if unknown.

    Raises:
        Unavailable: If no window of a rank has the operator that an argument names.
    """
    if named:
        at = _named(windows, known, side, named)
        if lacking := without_rows(ranks_of(RANKS.or_empty(known.ranks)), windows.filter(at.is_not_null())):
            raise _not_found(known, named, lacking)
        if not at.count():
            raise _not_found(known, named, [])
        return _with_names(side, at, pl.repeat("argument", len(at), eager=True), [named] * len(at))
    ranks = windows["rank"].unique().to_list()
    wanted = {rank: variable or known.environments.get(rank, {}).get(side.variable) for rank in ranks}
    found = windows.select("rank", at=pl.lit(None, pl.Int64), by=pl.lit("phases"), operator=pl.lit(None, pl.String))
    by_name: set[int] = set()
    for name in {name: None for name in wanted.values() if name}:
        at = _named(windows, known, side, name)
        having = {rank for rank in _with_any(windows, at) if wanted[rank] == name}
        own = pl.col("rank").is_in(sorted(having))
        found = found.with_columns(
            at=pl.when(own).then(at).otherwise("at"),
            by=pl.when(own).then(pl.lit("environment")).otherwise("by"),
            operator=pl.when(own).then(pl.lit(name)).otherwise("operator"),
        )
        by_name |= having
    stating = _with_any(windows, windows[side.column]) - by_name
    # the stated end of backward may be only the end of launching (see `as_executed`)
    final = stating.difference(marks_launches(known.ranks, known.kernels) if side is BACKWARD else ())
    in_phase = pl.col("phase").is_in(side.phases) & ~pl.col("rank").is_in([*final, *by_name])
    executed = _in_windows(windows, known.phase_ranges.filter(in_phase), side)
    stated = pl.col("rank").is_in(sorted(stating - _with_any(windows, executed)))
    other = ~stated & ~pl.col("rank").is_in(sorted(by_name))
    names = pl.Series(_stated_names(windows, side, known), dtype=pl.String)
    found = found.with_columns(
        at=pl.when(stated).then(windows[side.column]).when(other).then(executed).otherwise("at"),
        by=pl.when(stated).then(pl.lit("stated")).otherwise("by"),
        operator=pl.when(stated).then(names).otherwise("operator"),
    )
    standing = other | (stated & (pl.col("operator").fill_null("") == "").all().over("rank"))
    there = _standing_at(found.select("rank", at_ns=pl.when(standing).then("at")), known, side)
    operators = found.select(pl.when(standing).then(pl.Series(there, dtype=pl.String)).otherwise("operator"))
    return _with_names(side, found["at"], found["by"], operators.to_series().to_list())


def _with_any(windows: pl.DataFrame, at: pl.Series) -> set[int]:
    """The ranks of which any window has a point."""
    return {*windows.filter(at.is_not_null())["rank"].unique()}


def _with_names(side: Side, at: pl.Series, by: pl.Series, operators: Sequence[str | None]) -> pl.DataFrame:
    """The points, how they were found and their operators."""
    frame = pl.DataFrame({side.column: at, "by": by, side.stated: pl.Series(operators, dtype=pl.String)})
    is_known = pl.col(side.column).is_not_null()
    how = pl.when(is_known).then("by").alias(side.column.replace("_ns", "_by"))
    return frame.select(side.column, how, pl.when(is_known).then(side.stated))


def _named(windows: pl.DataFrame, known: Evidence, side: Side, name: str) -> pl.Series:
    """The first start or last end, in each window, of kernels of a name, or else launched by operators of that name."""
    found = _ranges(KERNELS.or_empty(known.kernels).filter(_is_named(name))).collect()
    others = without_rows(windows["rank"].unique(), found)
    if others and known.operators is not None:
        own = pl.col("rank").is_in(others)
        called = union(_ranges(known.operators.filter(own & _is_named(name))), by=["rank"]).collect()
        if known.kernels is not None:
            called = launched_within(called, launch_times(known.kernels.filter(own), known.operators.filter(own)))
        found = pl.concat([found, called])
    return _in_windows(windows, found, side)


def _not_found(known: Evidence, name: str, ranks: Sequence[int]) -> Unavailable:
    """Why the operator named by the user cannot be used on some ranks, and what to do."""
    tables = [table for table in (known.operators, known.kernels) if table is not None]
    recorded = {rank for table in tables for rank in ranks_of(table.filter(_is_named(name)))}
    if recorded.issuperset(ranks[:1]) and recorded:
        why = f"{name!r} was recorded outside of all steps, or without the kernels that it launched. Name a kernel"
        return Unavailable(why, of=[rank for rank in ranks if rank in recorded])
    why = (
        f"no operator or kernel named {name!r} was recorded. Give its name in full or its last part, as "
        "«`stepscope ops`» shows it"
    )
    return Unavailable(why, of=[rank for rank in ranks if rank not in recorded])


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
    if known.stated is None:
        return [None] * windows.height
    stated = known.stated.filter(pl.col("name") == side.stated)
    rows = stated.select("rank", "graph", "text").sort("rank", "graph", "text").collect().iter_rows()
    names: dict[tuple[int, int | None], str] = {(rank, graph): text for rank, graph, text in rows}
    places = windows.select("rank", "graph").iter_rows()
    return [names.get((rank, graph), names.get((rank, None))) for rank, graph in places]


def _standing_at(at: pl.DataFrame, known: Evidence, side: Side) -> list[str | None]:
    """The first work to start at or after each point (`rank`, `at_ns`), or the last to end at or before it."""
    table = known.operators if known.kernels is None else known.kernels.filter(pl.col("kind") == "compute")
    if table is None or not at["at_ns"].count():
        return [None] * at.height
    if side is FORWARD:  # a graph may run an operator of its optimizer, such as the step counter, before all others
        table = table.filter(~named(table, scoped=pl.col("name").str.contains(OPTIMIZER_SCOPE))["scoped"])
    work = table.select("rank", "name", "duration_ns", at_ns=pl.col("start_ns") if side.is_start else END)
    asked = at.with_row_index("number")
    nearest, there = _nearest(work, asked.drop_nulls().sort("at_ns"), side)
    # If several coincide, the outermost one starts and the innermost one ends.
    ordered = there.sort(-pl.col("duration_ns"), "name")
    names = ordered.unique(["rank", "at_ns"], keep="first" if side.is_start else "last")
    named_there = names.select("rank", "name", found_ns="at_ns")
    found = nearest.join(named_there, on=["rank", "found_ns"], how="left").select("number", "name")
    return asked.join(found, on="number", how="left", maintain_order="left")["name"].to_list()


def _nearest(work: pl.LazyFrame, asked: pl.DataFrame, side: Side) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What was `asked`, each with the first time of work at or after it, or the last at or before it (`found_ns`); and
    the work at these times."""
    strategy: Any = "forward" if side.is_start else "backward"
    nearest = pl.min_horizontal if side.is_start else pl.max_horizontal
    found = asked.with_columns(found_ns=pl.lit(None, pl.Int64))
    parts = []
    for batch in batches(work):
        times = _likely(batch.select("rank", "at_ns").drop_nulls(), asked, side)
        near = in_order(times, "at_ns").with_columns(other_ns="at_ns")
        joined = found.join_asof(near, on="at_ns", by="rank", strategy=strategy, check_sortedness=False)
        found = joined.select(*asked.columns, found_ns=nearest("found_ns", "other_ns"))
        parts.append(batch.filter(pl.col("at_ns").is_in(joined["other_ns"].implode())))
    return found, pl.concat(parts).filter(pl.col("at_ns").is_in(found["found_ns"].implode()))


def _likely(times: pl.DataFrame, asked: pl.DataFrame, side: Side) -> pl.DataFrame:
    """Those of many `times` of one rank that are the first, or the last, between two points; else all."""
    rank = times["rank"].min()
    if rank is None or rank != times["rank"].max():
        return times
    points, at = asked.filter(pl.col("rank") == rank)["at_ns"], times["at_ns"]
    before = last_started(at if side.is_start else at - 1, points)
    nearest = pl.col("at_ns").min() if side.is_start else pl.col("at_ns").max()
    found = times.with_columns(before.alias("before")).group_by("before").agg(pl.col("rank").first(), nearest)
    return found.drop("before")
