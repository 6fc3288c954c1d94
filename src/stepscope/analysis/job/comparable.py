"""Which ranks of a job can be compared, and how often each came last in a call."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.errors import Unavailable

TOO_FEW = "ranks can only be compared if the recordings of at least two ranks of one job are opened together"


def comparable(
    excess: pl.DataFrame, steps: pl.LazyFrame, arrival: pl.DataFrame | None, ranks: pl.LazyFrame
) -> pl.DataFrame:
    """The rows of ranks that can be compared.

    Left out are incomplete recordings, e.g. from truncated files: ranks without marked steps if other ranks have them,
    and ranks with less than half of the calls in their steps that others of their program have.

    Raises:
        Unavailable: If fewer than two ranks are left, or nothing shows that they belong together.
    """
    if excess["rank"].n_unique() < 2:
        raise Unavailable(TOO_FEW)
    marked = steps.select("rank", "step", "window").collect()
    unmarked = marked.filter(is_whole_recording())["rank"]
    if not marked["rank"].is_in(unmarked.implode()).all():
        excess = excess.filter(~pl.col("rank").is_in(unmarked.implode()))
    calls = pl.DataFrame() if arrival is None else arrival.filter(~pl.col("point_to_point") & (pl.col("members") > 1))
    if not calls.is_empty():
        excess = excess.join(_incomplete(excess, calls), on="rank", how="anti", maintain_order="left")
    if excess["rank"].n_unique() < 2:
        raise Unavailable(
            "only one rank has a complete recording with marked steps, so there is none to compare it with"
        )
    if (
        calls.is_empty()
        and (arrival is None or arrival.filter(pl.col("members") > 1).is_empty())
        and not _is_one_job(ranks)
    ):
        raise Unavailable("the ranks share no communication, so none of them can hold another up")
    return excess


def _incomplete(excess: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Ranks with less than half of the calls that the ranks of their program have in their steps."""
    programs = excess.group_by("rank", "step").agg(pl.col("program").min())  # that of hosts, if shapes differ
    counts = calls.group_by("rank", "step").len("calls")
    per_step = programs.join(counts, on=["rank", "step"], how="left").with_columns(pl.col("calls").fill_null(0))
    expected = per_step.with_columns(expected=pl.col("calls").median().over("program", "step"))
    sums = expected.group_by("rank").agg(pl.col("calls", "expected").sum())
    return sums.filter(2 * pl.col("calls") < pl.col("expected")).select("rank")


def _is_one_job(ranks: pl.LazyFrame) -> bool:
    """Whether the recordings state that they belong to a job of several ranks."""
    return bool(ranks.select((pl.col("world_size") > 1).any()).collect().item())


def last_arrivals(arrival: pl.DataFrame | None) -> pl.DataFrame:
    """How often each rank arrived last, and in how many collectives: `rank`, `times_last`, `calls`."""
    if arrival is None:
        return pl.DataFrame(schema={"rank": pl.Int32, "times_last": pl.Int32, "calls": pl.Int32})
    return (
        arrival.filter((pl.col("members") > 1) & ~pl.col("point_to_point"))
        .group_by("rank")
        .agg(
            times_last=pl.col("is_last").sum().cast(pl.Int32),
            calls=pl.len().cast(pl.Int32),
        )
        .sort("rank")
    )


def unrecorded(ranks: pl.LazyFrame, arrival: pl.DataFrame | None) -> int:
    """At least how many ranks of the job were not recorded, by its number of ranks and the sizes of its groups."""
    lacking: list[int | None] = [ranks.select(pl.col("world_size").max() - pl.col("rank").n_unique()).collect().item()]
    if arrival is not None:
        by_group = arrival.filter(~pl.col("point_to_point")).group_by("group")
        lacking.extend(by_group.agg(n=pl.col("group_size").max() - pl.col("rank").n_unique())["n"])
    return max([0, *(n for n in lacking if n is not None)])
