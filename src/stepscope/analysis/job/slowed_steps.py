"""Steps in which all ranks need longer for the same kernels or operators: what they share is slower then."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.step_work import CELL, by_kernel, by_operator, in_same_work
from stepscope.analysis.methods.costs import quartiles
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.savings import without_slow_ranks
from stepscope.analysis.replay.work import HOST
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """When steps are slower for all."""

    least_steps: int = limit(4, "steps that can be compared", "chosen by us: of fewer, none can be told to be usual")
    few_steps: int = limit(6, "steps that can be compared", "chosen by us: fewer show little of what is usual")
    few_gap_ratio: float = limit(0.15, "of the usual time, between usual and slow steps of few", "chosen by us")
    few_spread_ratio: float = limit(3.0, "of the spread of the usual steps, of few", "chosen by us")
    host_gap_ratio: float = limit(
        0.3, "of the usual time, between usual and slow steps of a CPU", "chosen by us: whatever else runs disturbs it"
    )
    host_slow_steps: int = limit(2, "slow steps of a CPU", "chosen by us: a single one happens on any machine")
    host_wait_ratio: float = limit(
        0.1, "of a step, waiting for a processor on any rank of a CPU", "chosen by us: that alone makes it slower"
    )
    usual_ratio: float = limit(0.5, "of the steps, that are as fast as the fastest", "chosen by us: most are usual")
    gap_ratio: float = limit(0.04, "of the usual time, between usual and slow steps", "chosen by us: clocks vary less")
    spread_ratio: float = limit(
        1.0, "of the spread of the usual steps, between them and slow ones", "our simulation of uneven batches"
    )
    ranks_ratio: float = limit(0.8, "of the ranks, that are slower in these steps", "chosen by us: nearly all")
    alike_ratio: float = limit(0.02, "of the kernels, that others have in the typical step", "chosen by us: same work")
    named_ratio: float = limit(0.8, "of the extra time, in kernels that are named", "chosen by us: most of it")
    named: int = limit(3, "kernels that are named", "chosen by us: if it takes more, all are slower")


LIMITS = Limits()

COLUMNS = columns(
    Column("kind", "string", "Kind of work.", values=("computing", "memory"), importance=60),
    Column("slow_steps", "list[int32]", "The steps in which all ranks take longer for it.", importance=61),
    meaning("steps", "Number of compared steps."),
    Column("compared_ranks", "int32", "Number of compared ranks."),
    Column("factor", "float64", "How many times as long as in other steps it takes, on the median rank."),
    Column("excess_ns", "int64", "Extra time of the median rank in the mean slow step.", importance=58),
    Column("names", "list[string]", "Kernels, on a CPU operators, that explain most of it; none if it takes many."),
    Column("cost_ns", "int64", "What the mean of all steps would be shorter without it, by replay.", importance=57),
    Column("cost_ratio", "float64", "`cost_ns` over the mean step."),
    Column("saving_low_ns", "int64", "Lower quartile of that over the slow steps, averaged over all steps."),
    Column("saving_high_ns", "int64", "Upper quartile of that."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def slowed_steps(
    work: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    work_graph: Prepared[JobGraph],
    outer_steps: pl.DataFrame,
    excess: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    extra_pieces: pl.DataFrame | None,
    operators: pl.LazyFrame | None = None,
    processor_waits: pl.DataFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Compare steps with one another: one row per kind of work that takes longer in some steps on nearly all ranks.

    No rank differs from the others then, so nobody can be accused: a power cap, heat, or others that use the same
    devices. Only steps with the same kernels, on a CPU operators (of the same grids and shapes, where recorded), are
    compared, and the first step of a recording is start-up; nor are steps of a CPU whose threads waited for processors,
    which is other work on the host. Most steps must be as fast as the fastest, and clearly faster than the slow ones.
    What it costs is found by replaying the job with this work as fast as in usual steps, after mending slow ranks.

    Raises:
        Unavailable: If too few steps can be compared.
    """
    first = outer_steps.select("rank", step="first_step")
    of_steps = work.filter(pl.col("step").is_not_null()).join(first, on=["rank", "step"], how="anti")
    on_device, on_host = pl.col("kernel").is_not_null(), pl.col("lane") == HOST
    own = of_steps.filter(pl.col("kind").is_in(["computing", "memory"]) & (on_device | on_host))
    cpu = own["kernel"].null_count() == own.height
    if cpu and processor_waits is not None:
        waiting = processor_waits.filter(pl.col("run_delay_ns") >= limits.host_wait_ratio * pl.col("window_ns"))
        own = own.join(waiting, on="step", how="anti")
    pieces = own.select(*CELL, "kernel", length=pl.col("end_ns") - pl.col("start_ns"))
    if pieces["step"].n_unique() < limits.least_steps:
        raise Unavailable(f"steps are compared with one another from {limits.least_steps} on")
    sums = pieces.group_by(CELL).agg(own_ns=pl.col("length").sum())
    kinds = ("computing", "memory")
    found = [one for kind in kinds if (one := _slow(sums.filter(kind=kind), limits, cpu=cpu)) is not None]
    if not found:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    hosts = pieces.filter(~on_device)
    done = pl.concat([by_kernel(pieces.filter(on_device), kernels), by_operator(hosts, operators)])
    rows: list[dict[str, Any]] = []
    for slow in found:
        of_kind = pl.col("kind") == slow["kind"][0]
        classes = in_same_work(done.filter(of_kind), limits.alike_ratio)
        again = _slow(sums.filter(of_kind).join(classes, on=["rank", "step"], how="semi"), limits, cpu=cpu)
        if again is not None:
            rows.append({**_described(again, classes, limits), "slow": again.filter("is_slow")})
    if not rows:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = work_graph()
    lengths = graph.recorded_step_times()
    mended, durations = without_slow_ranks(graph, excess, slow_ranks, extra_pieces)
    lag, steps = graph.simulation.lag_ns, graph.steps
    now, replayed_ns = mended.step_times(durations, lag), sum(graph.step_times())
    for row in rows:
        cells = row.pop("slow").select("rank", "step", "kind", "ratio")
        nodes = mended.nodes.select("rank", "step", "kind", length=durations)
        changed = nodes.join(cells, on=["rank", "step", "kind"], how="left", maintain_order="left").select(
            length=(pl.col("length") / pl.col("ratio").fill_null(1.0)).round().cast(pl.Int64)
        )["length"]
        saved = [float(one) for one in now - mended.step_times(changed, lag)]
        low, high = quartiles(saved, [step in row["slow_steps"] for step in steps])
        row |= {
            "cost_ns": max(0, round(sum(saved) / len(saved))),
            "cost_ratio": max(0.0, sum(saved) / replayed_ns) if replayed_ns else 0.0,
            "saving_low_ns": max(0, round(low)),
            "saving_high_ns": max(0, round(high)),
            "error_ratio": replayed_ns / sum(lengths) - 1 if sum(lengths) else 0.0,
        }
    return pl.DataFrame(rows, schema=schema_of(COLUMNS)).select(names(COLUMNS))


def _slow(sums: pl.DataFrame, limits: Limits, *, cpu: bool) -> pl.DataFrame | None:
    """The rows with `ratio` (own time over that of the rank in usual steps) and `is_slow`; None if no step is slow."""
    middle = sums.with_columns(ratio=pl.col("own_ns") / pl.col("own_ns").median().over("rank").clip(lower_bound=1))
    common = middle.group_by("step").agg(pl.col("ratio").median()).sort("ratio", "step")
    values = common["ratio"].to_list()
    if len(values) < limits.least_steps:
        return None
    many = len(values) >= limits.few_steps
    gap_ratio = max(limits.gap_ratio if many else limits.few_gap_ratio, limits.host_gap_ratio if cpu else 0)
    spread_ratio = limits.spread_ratio if many else limits.few_spread_ratio
    for place, (before, after) in enumerate(pairwise(values), start=1):
        wide = max(gap_ratio * before, spread_ratio * (before - values[0]))
        if place >= limits.usual_ratio * len(values) and after - before > wide:
            break
    else:
        return None
    usual = common["step"].head(place)
    is_usual = pl.col("step").is_in(usual.implode())
    based = sums.with_columns(
        ratio=pl.col("own_ns") / pl.col("own_ns").filter(is_usual).median().over("rank").clip(lower_bound=1)
    )
    slower = (pl.col("ratio") > 1 + limits.gap_ratio / 2).mean().over("step") >= limits.ranks_ratio
    found = based.with_columns(is_slow=~is_usual & slower)
    count = found.filter("is_slow")["step"].n_unique()
    return found if count >= (limits.host_slow_steps if cpu else 1) else None


def _described(slow: pl.DataFrame, times: pl.DataFrame, limits: Limits) -> dict[str, Any]:
    """Which steps are slow, by how much, and with which kernels."""
    rows = slow.filter("is_slow")
    chosen = rows["step"].unique().sort()
    extra = rows.group_by("rank").agg(extra=(pl.col("own_ns") * (1 - 1 / pl.col("ratio"))).mean())["extra"].median()
    is_slow = pl.col("step").is_in(chosen.implode())
    by_step = times.group_by("rank", "name", "step").agg(pl.col("length").sum())
    by_name = by_step.group_by("rank", "name").agg(
        more=pl.col("length").filter(is_slow).mean() - pl.col("length").filter(~is_slow).median()
    )
    summed = by_name.group_by("name").agg(pl.col("more").sum()).sort(-pl.col("more"), "name")
    share = summed.filter(pl.col("more") > 0).with_columns(before=pl.col("more").cum_sum() - pl.col("more"))
    needed = share.filter(pl.col("before") < limits.named_ratio * pl.col("more").sum())
    many = needed.height > limits.named or needed.height == by_name["name"].n_unique()
    return {
        "kind": slow["kind"][0],
        "slow_steps": chosen.to_list(),
        "steps": slow["step"].n_unique(),
        "compared_ranks": slow["rank"].n_unique(),
        "factor": rows["ratio"].median(),
        "excess_ns": round(extra) if isinstance(extra, float) else 0,
        "names": [] if many else needed["name"].to_list(),
    }
