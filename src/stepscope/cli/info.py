"""`stepscope info`: what is there, what is missing and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.cli.options import Debug, NoStore, Paths
from stepscope.cli.progress import ProgressBar

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def info(paths: Paths, no_store: NoStore = False, debug: Debug = False) -> None:  # noqa: ARG001 - read by main()
    """Show which ranks and data are there, and what is missing."""
    from stepscope.cli.output import console, rich_table
    from stepscope.cli.troubles import show_troubles
    from stepscope.run import open_runs

    with ProgressBar() as progress:
        runs = open_runs(list(paths), use_store=not no_store, progress=progress)
    out = console()
    for run in runs:
        out.print(rich_table(_ranks(run), f"{run.name}: {len(run.ranks)} rank(s)", raw=True))
        out.print(rich_table(_coverage(run), "Rows of each kind of data", raw=True))
        for reason in _missing(run):
            out.print(f"missing {reason}", style="dim", markup=False, highlight=False, soft_wrap=True)
        out.print()
    for run in runs:
        show_troubles(out, run)
        run.unread.clear()  # shared by all runs: told once


def _ranks(run: Run) -> pl.DataFrame:
    """One row a rank: where it comes from and what it covers."""
    import polars as pl

    steps = (
        run.table("steps")
        .group_by("rank")
        .agg(
            steps=pl.when(pl.col("window").first() == "recording")
            .then(pl.lit("no steps"))
            .otherwise(pl.format("{}-{} ({})", pl.col("step").min(), pl.col("step").max(), pl.len()))
        )
    )
    span = ((pl.col("end_ns") - pl.col("start_ns")) / 1e6).round(2)
    paths = pl.DataFrame(
        {"rank": [r.rank for r in run.ranks], "input": [str(r.path) for r in run.ranks]},
        schema={"rank": pl.Int32, "input": pl.String},
    )
    columns = ["rank", "rank_origin", "world_size", "host", "format", "framework", "device_kind", "device_name"]
    return (
        run.table("ranks")
        .select(*columns, span_ms=span)
        .join(steps, on="rank", how="left")
        .join(paths.lazy(), on="rank", how="left")
        .sort("rank")
        .collect()
    )


def _coverage(run: Run) -> pl.DataFrame:
    """Rank by kind of data, kinds that no rank has left out."""
    coverage = run.coverage()
    return coverage.select(c for c in coverage.columns if c == "rank" or coverage[c].sum() > 0)


def _missing(run: Run) -> list[str]:
    """Each kind of data that some rank lacks, and why."""
    coverage = run.coverage()
    kinds = [c for c in coverage.columns if c not in ("rank", "issues") and (coverage[c] == 0).any()]
    return [f"{kind}: {run.missing(kind)}" for kind in kinds]
