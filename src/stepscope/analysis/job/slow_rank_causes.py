"""The recorded reason why a rank is slow: which kernels or host calls take longer, and which counters moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.host.host_calls import COLUMNS as CALL_COLUMNS
from stepscope.analysis.host.host_calls import WHAT
from stepscope.analysis.job.kernel_classes import SIZES
from stepscope.analysis.job.kernel_patterns import patterns_of
from stepscope.analysis.job.rank_counters import compared_counters
from stepscope.analysis.job.rank_host_calls import compared_calls, host_patterns_of
from stepscope.analysis.job.rank_kernels import compared, least_known
from stepscope.analysis.job.slow_experts import TOKENS, slower_for_load
from stepscope.analysis.rank_lists import listed_ranks
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.marks import DATA_LOADING
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of

OF_KERNELS = ("alike", "matrix", "vector", "some", "calls", "shapes", "only", "ai_cpu")
"""All kernels take longer by one factor; those of the matrix unit, or all others, do; some do; there are more calls;
the calls have other shapes; only this rank runs them; only this rank runs them, and on the device's CPU."""

OF_HOST = (
    "every_call",
    *(what for what in WHAT if what not in ("communication", "launch", "operator", "runtime")),
    "call",
)
"""Every call of framework and driver takes longer; or what the calls are for that take the time; `call`: any other."""

EXPLAINS_RATIO = 0.3
"""Share of a rank's extra time that a reason must have to be reported, chosen by us: less is not the main reason."""

_OF_KERNELS = ("computing", "memory")
"""Kinds of work for which kernels show the reason; for all others, host calls do."""

_OF_KIND: dict[str, tuple[str, ...]] = {
    kind: (kind,) for kind in ("garbage_collection", "compile", "checkpoint", "data_loading")
}
"""Purposes of the calls that belong to a kind of work; to dispatch belong all others."""

COLUMNS = columns(
    "rank",
    Column("kind", "string", "What it is slow at, as in `slow_ranks`."),
    Column("reason", "string", "Why.", values=(*OF_KERNELS, *OF_HOST)),
    Column("names", "list[string]", "Kernels or calls that take most of the time, largest first; none if all do."),
    Column("factor", "float64", "How many times as long as on the peers they take; null if there is no such factor."),
    Column(
        "sized_by",
        "string",
        "What tells that calls of these kernels are of one size; null if nothing does, and for host calls.",
        values=(*SIZES, TOKENS),
    ),
    Column("calls", "float64", "Their calls in a step; null if not known."),
    Column("typical_calls", "float64", "The same on the median peer."),
    Column("named_ns", "int64", "Their time in a step beyond the median peer's."),
    Column("place", "string", "Python function that made the longest call; null if not recorded."),
    Column("longest_ns", "int64", "The longest call, if it takes most of the time of all steps; else null."),
    Column("longest_step", "int32", "Step of that call."),
    Column("counter", "string", "Clock that is lower than on the peers, if sampled."),
    Column("level", "float64", "Its level, in its unit; after a lasting fall, from then on."),
    Column("typical_level", "float64", "The level of the median peer."),
    Column("since_step", "int32", "First step at this level; null if it never moved."),
    nulls="factor sized_by calls typical_calls place longest_ns longest_step counter level typical_level since_step",
)


@analysis(
    "job",
    columns(
        "rank",
        Column("together", "list[int32]", "All ranks that are slow together with it, and itself."),
        Column("kind", "string", "What it is slow at."),
        Column("excess_ns", "int64", "Extra time in a step in which it is slow."),
        Column("slow_ratio", "float64", "Share of the steps in which it is slow."),
    ),
    whole_job=True,
)
def slow_kinds(slow_ranks: pl.DataFrame) -> pl.DataFrame:
    """Which ranks are slow at what, asked first, since to look for reasons takes time.

    Raises:
        Unavailable: If no rank is slow.
    """
    if slow_ranks.is_empty():
        raise Unavailable("no rank is slow")
    several, some = ("ranks" in slow_ranks.columns, "slow_steps" in slow_ranks.columns)
    members = listed_ranks() if several else pl.concat_list("rank")
    ratio = pl.col("slow_steps").list.len() / pl.col("steps") if some else pl.lit(1.0)
    return slow_ranks.select(
        "rank", members.alias("together"), "kind", "excess_ns", slow_ratio=pl.when(ratio > 0).then(ratio).otherwise(1.0)
    )


@analysis("job", columns("rank", Column("kind", "string", "What its host is slow at."), nulls=""), whole_job=True)
def slow_hosts(slow_kinds: pl.DataFrame) -> pl.DataFrame:
    """Which ranks are slow at what their host does, asked first, since to sum up all host calls takes time.

    Raises:
        Unavailable: If there are none.
    """
    found = slow_kinds.filter(~pl.col("kind").is_in(_OF_KERNELS)).select("rank", "kind")
    if found.is_empty():
        raise Unavailable("no rank is slow at what its host does")
    return found


@analysis("job", CALL_COLUMNS, whole_job=True)
def calls_if_slow(slow_hosts: pl.DataFrame, host_calls: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG001 - asked first
    """Give `host_calls` of all ranks if a rank is slow at what its host does.

    Raises:
        Unavailable: If no rank is.
    """
    return host_calls


@analysis("job", COLUMNS, whole_job=True)
def slow_rank_causes(
    slow_kinds: pl.DataFrame,
    kernel_classes: pl.DataFrame | None,
    calls_if_slow: pl.DataFrame | None,
    counter_steps: pl.DataFrame | None,
    extra_pieces: pl.DataFrame | None = None,
    expert_load: pl.DataFrame | None = None,
    stage_shapes: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Find what the recording shows as the reason of each row of `slow_ranks`, compared with the ranks that are not.

    Work that only some ranks do by design (`extra_pieces`) is no reason. Of a rank that is slow in some steps only,
    factor and time are those of these steps, as the others count as normal.

    Returns:
        One row per slow rank and kind of work for which a reason was recorded, in the order of `slow_ranks`.

    Raises:
        Unavailable: If no rank is slow.
    """
    found: list[tuple[Any, ...]] = []
    if kernel_classes is not None and extra_pieces is not None:
        kernel_classes = _without_extra(kernel_classes, extra_pieces)
    by_kind = {
        kind: _reasons(
            kind,
            sorted(rows["together"].explode().unique()),
            _of_shapes(kernel_classes, stage_shapes),
            calls_if_slow,
            counter_steps,
        )
        for (kind,), rows in slow_kinds.partition_by("kind", as_dict=True, maintain_order=True).items()
    }
    for rank, kind, excess, ratio in slow_kinds.select("rank", "kind", "excess_ns", "slow_ratio").iter_rows():
        reason = by_kind[kind].get(rank)
        if reason is None:
            continue
        if reason["reason"] == "shapes" and expert_load is not None:
            peers = expert_load.filter(~pl.col("rank").is_in(slow_kinds["together"].explode().implode()))
            reason = slower_for_load(reason, expert_load.filter(rank=rank), peers)
        reason = _in_slow_steps(reason, ratio)
        if reason["reason"] != "synchronisation":  # a mean of steps or of several streams, where the excess is a median
            reason["named_ns"] = min(reason["named_ns"], excess)
        if reason["named_ns"] >= EXPLAINS_RATIO * excess or reason["reason"] == "synchronisation":
            found.append((rank, kind, *(reason.get(column.name) for column in COLUMNS[2:])))
    return pl.DataFrame(found, schema=schema_of(COLUMNS), orient="row")


def _of_shapes(classes: pl.DataFrame | None, stage_shapes: pl.DataFrame | None) -> list[pl.DataFrame]:
    """The classes of ranks that are compared: those of pipeline stages with other shapes (`stage_shapes`) apart."""
    if classes is None:
        return []
    if stage_shapes is None:
        return [classes]
    marked = classes.join(stage_shapes.select("rank", "shaped"), on="rank", how="left", maintain_order="left")
    return [part.drop("shaped") for part in marked.partition_by("shaped", maintain_order=True)]


def _without_extra(classes: pl.DataFrame, extra: pl.DataFrame) -> pl.DataFrame:
    """`kernel_classes` without work that only some ranks do."""
    key = ["rank", "name"]
    rows = extra.filter("compared").with_columns(name=pl.coalesce("type", "name"))
    if rows.is_empty():
        return classes
    less = rows.group_by(key).agg(less_calls=pl.len(), less_ns=pl.col("duration_ns").sum())
    less = less.join(rows.group_by("rank").agg(of=pl.col("step").n_unique()), on="rank")
    whole = (
        classes.filter(kind="compute")
        .group_by(key)
        .agg(all_calls=pl.col("calls").sum(), all_ns=pl.col("total_ns").sum())
    )
    shares = less.join(whole, on=key).with_columns(kind=pl.lit("compute"))
    marked = classes.join(shares, on=[*key, "kind"], how="left", maintain_order="left")

    def left(value: str, gone: str, of: str) -> pl.Expr:
        share = (pl.col(gone) * pl.col("steps") / pl.col("of") / pl.col(of)).clip(upper_bound=1.0).fill_null(0.0)
        return (pl.col(value) * (1 - share)).round().cast(pl.Int64).alias(value)

    found = marked.with_columns(left("calls", "less_calls", "all_calls"), left("total_ns", "less_ns", "all_ns"))
    return found.filter(pl.col("calls") > 0).select(classes.columns)


def _in_slow_steps(reason: dict[str, Any], ratio: float) -> dict[str, Any]:
    """The reason with factor and time in the slow steps instead of in the mean of all."""
    factor = reason["factor"]
    scaled = {"named_ns": round(reason["named_ns"] / ratio), "factor": factor and 1 + (factor - 1) / ratio}
    calls, typical = reason["calls"], reason["typical_calls"]
    if calls is not None and typical is not None:
        scaled["calls"] = typical + (calls - typical) / ratio
    return {**reason, **scaled}


Reasons = dict[int, dict[str, Any]]


def _reasons(
    kind: str,
    slow: list[int],
    kernels: list[pl.DataFrame],
    calls: pl.DataFrame | None,
    counters: pl.DataFrame | None,
) -> Reasons:
    """The reason of each rank that is slow at a kind of work, as columns of the answer."""
    if kind in _OF_KERNELS:
        clocks = {of_memory: _clocks(counters, slow, of_memory=of_memory) for of_memory in (False, True)}
        of = "compute" if kind == "computing" else kind
        return {rank: row for part in kernels for rank, row in _of_kernels(part, of, slow, clocks).items()}
    if calls is None:
        return {}
    others = [what for what in WHAT if what not in ("communication", "data_loading")]
    on_host = _on_host(kernels)
    found = host_patterns_of(
        compared_calls(calls, _known(slow, calls)).filter(
            (pl.col("what") != "operator") | ~pl.col("rank").is_in(on_host)
        ),
        what=_OF_KIND.get(kind, others),
    ).filter(~_only_says_loading())
    return {row["rank"]: _of_host(row) for row in found.iter_rows(named=True) if row["pattern"] != "none"}


def _only_says_loading() -> pl.Expr:
    """Whether the loader itself is all that is named."""
    first = pl.col("names").list.first().fill_null("")
    return (pl.col("what") == "data_loading").fill_null(False) & first.str.contains(DATA_LOADING)


def _known(slow: list[int], rows: pl.DataFrame) -> list[int]:
    """The slow ranks, unless all are: then each is compared with the median rank."""
    return slow if set(rows["rank"].unique()) - set(slow) else []


def _on_host(kernels: list[pl.DataFrame]) -> list[int]:
    """Ranks that compute on the host, whose operators are computing and no calls."""
    return [rank for part in kernels for rank in part.filter(pl.col("on_host"))["rank"].unique().to_list()]


def _of_kernels(classes: pl.DataFrame, kind: str, slow: Sequence[int], clocks: dict[bool, Reasons]) -> Reasons:
    rows = compared(classes, _known(list(slow), classes)).filter((pl.col("kind") == kind) & pl.col("rank").is_in(slow))
    found: Reasons = {}
    for row in patterns_of(rows).filter(pl.col("pattern") != "none").iter_rows(named=True):
        own = rows.filter((pl.col("rank") == row["rank"]) & (pl.col("calls") > 0))
        of = own.filter(pl.col("name").is_in(row["names"])) if row["names"] else own
        lower = clocks[row["pattern"] == "vector"] if row["pattern"] in ("alike", "matrix", "vector") else {}
        found[row["rank"]] = {
            **{name: row[name] for name in ("names", "factor", "named_ns")},
            "reason": "ai_cpu" if row["pattern"] == "only" and row["cores"] == ["AI_CPU"] else row["pattern"],
            "sized_by": of.select(least_known()).item(),
            **{name: of[name].sum() for name in ("total_ns", "typical_ns")},
            "calls": of["calls"].sum() if row["names"] else None,
            "typical_calls": of["typical_calls"].sum() if row["names"] else None,
            **lower.get(row["rank"], {}),
        }
    return found


def _of_host(row: dict[str, Any]) -> dict[str, Any]:
    reason = "every_call" if row["pattern"] == "every_call" else row["what"]
    stall = row if row["pattern"] == "stall" else {}
    return {
        **{name: row[name] for name in ("names", "factor", "calls", "typical_calls", "named_ns", "place")},
        "reason": reason if reason in OF_HOST else "call",
        "longest_ns": stall.get("longest_ns"),
        "longest_step": stall.get("longest_step"),
    }


def _clocks(levels: pl.DataFrame | None, slow: list[int], *, of_memory: bool) -> Reasons:
    """The lowest clock of each slow rank's cores (or memory), compared with its peers, if it is lower."""
    if levels is None:
        return {}
    rows = compared_counters(levels, _known(slow, levels)).filter(
        (pl.col("role") == "clock") & pl.col("differs") & (pl.col("ratio") < 1) & pl.col("rank").is_in(slow),
        pl.col("name").str.contains("memory") == of_memory,
    )
    lower = pl.col("after").is_not_null() & (pl.col("after") < pl.col("before"))
    lowest = rows.with_columns(
        level=pl.when(lower).then("after").otherwise("busy_mean"),
        since_step=pl.when(lower).then("since_step"),
    ).sort("rank", "ratio", "name")
    picked = lowest.unique("rank", keep="first", maintain_order=True).select(
        "rank", "level", "since_step", counter="name", typical_level="typical"
    )
    return {row.pop("rank"): row for row in picked.to_dicts()}
