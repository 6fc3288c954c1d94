"""What decides how long a step takes, over all ranks, hosts and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.present import plural

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _ranks(run: Run, slack: pl.DataFrame) -> Derived:
    """Each rank's mean over the steps, those on the path first."""
    import polars as pl

    means = slack.group_by("rank").agg(
        pl.col("path_ns").mean().round(), pl.col("path_ratio").mean(), slack_ns=pl.col("slack_ns").min()
    )
    return Derived(means.sort(-pl.col("path_ns"), "rank"), f", mean of {_counted(run, slack)}, least slack")


def _counted(run: Run, rows: pl.DataFrame) -> str:
    """How many steps, or what else they are, the rows are about."""
    from stepscope.advice.finding import per_of

    return plural(rows["step"].n_unique(), per_of(run.table("steps")))


_NUMBERED = r"__\d+_\d+_\d+$"
"""End of names of HCCL calls, which number them."""


def _totals(run: Run, path: pl.DataFrame) -> Derived:
    """What lies on the path, most expensive first."""
    import polars as pl

    keys = ["rank", "kind", "name"]
    path = path.with_columns(pl.col("name").str.replace(_NUMBERED, ""))
    summed = path.group_by(keys).agg(pl.col("pieces", "duration_ns", "gap_ns").sum())
    total = pl.col("duration_ns").sum() + pl.col("gap_ns").sum()
    shared = summed.with_columns(share_ratio=(pl.col("duration_ns") + pl.col("gap_ns")) / total)
    dearest = shared.sort("share_ratio", *keys, descending=[True, False, False, False], nulls_last=True)
    return Derived(dearest.select(*keys, "pieces", "duration_ns", "gap_ns", "share_ratio"), f", {_counted(run, path)}")


PAGE = Page(
    "critical-path",
    "Show what decides how long a step takes, over all ranks, hosts and devices, and who has time to spare.",
    [
        Section("slack", "Ranks on the critical path", derived=_ranks),
        Section("critical_path", "What is on the critical path", derived=_totals),
    ],
    more="The critical path is the chain of work, each piece waiting for the one before it, that ends with the last "
    "work of a step. Only what lies on it can make the step shorter. --json has all its pieces in order.",
    scope="job",
)
