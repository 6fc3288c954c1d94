"""What ranks or pipeline stages compute that others do not, and what it costs the job that this work is uneven."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.costs import quartiles
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.methods.memberships import stages_of
from stepscope.analysis.methods.shapley import shares
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.savings import without_slow_ranks
from stepscope.analysis.replay.work import HOST
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """Which extra work is replayed."""

    extra_ratio: float = limit(0.005, "of the mean step", "chosen by us: less is not worth a replay")
    most: int = limit(8, "sets of ranks that are replayed", "those with most extra work; each costs two dozen replays")
    named_ratio: float = limit(0.8, "of the extra work, in kernels that are named", "chosen by us: most of it")
    named: int = limit(3, "kernels that are named", "chosen by us: only the largest few matter")


COLUMNS = columns(
    Column("rank", "int32", "The lowest of these ranks.", importance=66),
    Column("ranks", "string", "All ranks that do it, e.g. `6, 7`.", importance=61),
    Column("stage", "int32", "The pipeline stage that they are; null if they are none.", importance=60),
    Column("last", "bool", "Whether that is the last stage."),
    Column("names", "list[string]", "Kernels that take most of it, longest first.", importance=59),
    Column("only", "bool", "Whether others never run these kernels; else they run them less often."),
    Column("larger", "bool", "Whether others run these kernels as often, on smaller shapes."),
    Column("extra_ns", "int64", "Extra work in the mean step, on the mean of these ranks.", importance=58),
    Column("computing_ns", "int64", "All that they compute in the mean step."),
    Column("others_ns", "int64", "What the other ranks compute in the mean step, that run mostly the same kernels."),
    Column(
        "saving_ns",
        "int64",
        "What the mean step would be shorter if all these ranks computed as long: its share if several do extra work.",
        importance=57,
    ),
    Column("saving_low_ns", "int64", "Lower quartile of that over the steps."),
    Column("saving_high_ns", "int64", "Upper quartile of that over the steps."),
    Column("alone_ns", "int64", "What dividing it evenly would save while slow ranks stay as slow."),
    Column("gone_ns", "int64", "What the mean step would be shorter without this extra work."),
    Column("step_ns", "int64", "The mean step."),
    meaning("steps", "Number of replayed steps."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="stage",
)

_CELL = ["rank", "step"]


@analysis("job", COLUMNS, whole_job=True)
def extra_work(
    extra_pieces: pl.DataFrame,
    alike_ranks: pl.DataFrame,
    work_graph: Prepared[JobGraph],
    excess: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    parallel_layout: pl.DataFrame,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Replay the job with extra work (`extra_pieces`) divided evenly: one row per set of ranks that does the same extra
    work, greatest saving first.

    In each step, ranks that compute longer than the mean of those that run mostly the same kernels give away as much of
    their extra work, and the others take it, as far as they compute less than the mean. Slow ranks (`slow_ranks`) are
    mended first, so this is what is left to save then.

    Raises:
        Unavailable: If no work lies in a step.
    """
    if extra_pieces.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    recorded = work_graph()
    lengths = recorded.recorded_step_times()
    if lengths.is_empty():
        raise Unavailable("no work lies in a step")
    graph, durations = without_slow_ranks(recorded, excess, slow_ranks, extra_pieces)
    error = sum(recorded.step_times()) / sum(lengths) - 1 if sum(lengths) else 0.0
    lag = recorded.simulation.lag_ns
    even = _Even(graph, durations, lag, extra_pieces, alike_ranks)
    unmended = recorded.simulation.duration_ns
    now = even if durations is unmended else _Even(recorded, unmended, lag, extra_pieces, alike_ranks)
    count, mean_ns = len(lengths), sum(now.step_ns) / len(lengths)
    sets = _sets(even.cells, extra_pieces, count, limits).filter(pl.col("extra_ns") >= limits.extra_ratio * mean_ns)
    who = [frozenset(found) for found in sets["ranks"].head(limits.most)]
    shared = shares(len(who), lambda mended: even.saved(frozenset[int]().union(*(who[place] for place in mended))))
    numbers = stages_of(ranks.collect(), None if groups is None else groups.collect(), parallel_layout)
    rows = []
    for row, values in zip(sets.head(limits.most).iter_rows(named=True), shared, strict=True):
        low, high = quartiles(values)
        stage = _stage(row["ranks"], numbers)
        rows.append(
            {
                **row,
                "rank": min(row["ranks"]),
                "ranks": rank_list(row["ranks"]),
                "stage": stage,
                "last": stage is not None and stage == max(numbers.values()),
                "saving_ns": max(0, round(sum(values) / count)),
                "saving_low_ns": max(0, round(low)),
                "saving_high_ns": max(0, round(high)),
                "alone_ns": max(0, round(sum(now.saved(frozenset(row["ranks"]))) / count)),
                "gone_ns": max(0, round(sum(even.saved(frozenset(row["ranks"]), given=False)) / count)),
                "step_ns": round(mean_ns),
                "steps": count,
                "error_ratio": error,
            }
        )
    if not rows:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    found = pl.DataFrame(rows, schema_overrides={"stage": pl.Int32, "rank": pl.Int32}, infer_schema_length=None)
    return found.select(names(COLUMNS)).sort("saving_ns", "rank", descending=[True, False])


def _stage(ranks: list[int], numbers: dict[int, int]) -> int | None:
    """The pipeline stage that these ranks are."""
    found = {numbers.get(rank) for rank in ranks}
    stage = found.pop()
    whole = sorted(rank for rank, number in numbers.items() if number == stage)
    return stage if not found and stage is not None and whole == sorted(ranks) else None


def _sets(cells: pl.DataFrame, pieces: pl.DataFrame, steps: int, limits: Limits) -> pl.DataFrame:
    """Ranks that do the same extra work, with what is known of it, most first."""
    by_name = pieces.group_by("rank", "name").agg(calls=pl.len(), only=pl.col("is_only").all())
    signature = (
        by_name.sort("rank", "name").group_by("rank", maintain_order=True).agg(does=pl.col("name").str.join("\n"))
    )
    sums = cells.group_by("rank", "cluster").agg(extra=pl.col("extra_ns").sum(), computing=pl.col("computing_ns").sum())
    own = sums.filter(pl.col("extra") > 0).join(signature, on="rank").sort("rank")
    found = own.group_by("cluster", "does", maintain_order=True).agg(
        ranks=pl.col("rank").cast(pl.Int64),
        extra_ns=(pl.col("extra").mean() / steps).round().cast(pl.Int64),
        computing_ns=(pl.col("computing").mean() / steps).round().cast(pl.Int64),
    )
    rows = []
    for row in found.iter_rows(named=True):
        others = sums.filter((pl.col("cluster") == row["cluster"]) & ~pl.col("rank").is_in(row["ranks"]))
        mine = pieces.filter(pl.col("rank").is_in(row["ranks"]))
        named = (
            mine.group_by("name")
            .agg(
                length=(pl.col("duration_ns") * pl.col("extra_ratio")).sum(),
                is_only=pl.col("is_only").all(),
                is_larger=pl.col("is_larger").all(),
            )
            .sort(-pl.col("length"), "name")
        )
        share = pl.col("length").cum_sum() - pl.col("length") < limits.named_ratio * pl.col("length").sum()
        named = named.filter(share).head(limits.named)
        mean = others["computing"].mean()
        rows.append(
            {
                **row,
                "names": named["name"].to_list(),
                "only": bool(named["is_only"].all()),
                "larger": bool(named["is_larger"].all()),
                "others_ns": round(mean / steps) if isinstance(mean, float) else 0,
            }
        )
    if not rows:
        return pl.DataFrame(schema={"ranks": pl.List(pl.Int64), "extra_ns": pl.Int64})
    return pl.DataFrame(rows).drop("cluster", "does").sort(-pl.col("extra_ns"), pl.col("ranks").list.first())


class _Even:
    """The job with extra work divided evenly."""

    def __init__(
        self,
        graph: JobGraph,
        durations: pl.Series,
        lag_ns: pl.Series,
        pieces: pl.DataFrame,
        alike: pl.DataFrame,
    ) -> None:
        self._graph, self._lag_ns = graph, lag_ns
        is_own = (pl.col("kind") == "computing") & (pl.col("lane") != HOST) & pl.col("step").is_not_null()
        nodes = graph.nodes.select(*_CELL, "work", "name", length=durations, is_own=is_own.fill_null(False))
        known = pieces.select("rank", "work", "is_spread", "extra_ratio")
        marked = nodes.join(known, on=["rank", "work"], how="left", maintain_order="left")
        here = pl.col("is_own") & pl.col("is_spread").is_not_null()
        self._nodes = marked.select(*_CELL, "length", "is_own", extra=_extra(marked.with_columns(here=here)))
        sums = (
            self._nodes.filter("is_own")
            .group_by(_CELL)
            .agg(computing_ns=pl.col("length").sum(), extra_ns=pl.col("extra").sum())
        )
        cells = sums.join(alike.select("rank", "cluster"), on="rank")
        mean = pl.col("computing_ns").mean().over("cluster", "step")
        self.cells = cells.with_columns(
            gives=pl.min_horizontal("extra_ns", (pl.col("computing_ns") - mean).clip(lower_bound=0)),
            takes=(mean - pl.col("computing_ns")).clip(lower_bound=0),
        )
        self._durations = durations
        self.step_ns = graph.step_times(durations, lag_ns)

    def saved(self, ranks: frozenset[int], *, given: bool = True) -> list[float]:
        """By how much each step is shorter if these ranks give away extra work; or do none, and nobody does."""
        if not ranks:
            return [0.0] * len(self.step_ns)
        gives = pl.when(pl.col("rank").is_in(sorted(ranks))).then("gives" if given else "extra_ns").otherwise(0)
        cells = self.cells.with_columns(gives=gives)
        among = ["cluster", "step"]
        room = pl.col("takes").sum().over(among)
        taken = pl.when(pl.lit(given) & (room > 0)).then(pl.col("gives").sum().over(among) * pl.col("takes") / room)
        factors = cells.select(
            *_CELL,
            of_extra=pl.when(pl.col("extra_ns") > 0).then(1 - pl.col("gives") / pl.col("extra_ns")).otherwise(1.0),
            of_all=1 + taken.otherwise(0.0) / pl.col("computing_ns").clip(lower_bound=1),
        )
        rows = self._nodes.join(factors, on=_CELL, how="left", maintain_order="left")
        left = pl.col("length") * pl.col("of_all") - pl.col("extra") * (pl.col("of_all") - pl.col("of_extra"))
        changed = rows.select(length=pl.when("is_own").then(left).otherwise("length").round().cast(pl.Int64))["length"]
        return [float(one) for one in self.step_ns - self._graph.step_times(changed, self._lag_ns)]


def _extra(nodes: pl.DataFrame) -> pl.Series:
    """How much of each node's length is extra work: all of it, none, or, where it is not known which of the calls of a
    kernel are extra, the same share of each.

    Args:
        nodes: `rank`, `step`, `name`, `length`, `here` (whether it is extra), and, null if not, `is_spread` and
            `extra_ratio`.
    """
    among = ["rank", "step", "name"]
    spread = (
        nodes.filter(pl.col("here") & pl.col("is_spread"))
        .group_by(among)
        .agg(of=(pl.col("length") * pl.col("extra_ratio")).sum())
    )
    if spread.is_empty():
        return nodes.select(extra=pl.when("here").then("length").otherwise(0).cast(pl.Float64))["extra"]
    every = (
        nodes.filter("is_own").join(spread, on=among).group_by(among).agg(pl.col("length").sum(), pl.col("of").first())
    )
    shares = every.select(*among, share=pl.col("of") / pl.col("length").clip(lower_bound=1))
    rows = nodes.join(shares, on=among, how="left", maintain_order="left")
    is_shared = pl.col("is_own") & pl.col("share").is_not_null()
    return rows.select(
        extra=pl.when(is_shared).then(pl.col("length") * pl.col("share")).when("here").then("length").otherwise(0.0)
    )["extra"]
