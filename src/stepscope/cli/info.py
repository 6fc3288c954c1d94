"""`stepscope info`: what is there, what is missing and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.cli.options import Debug, NoStore, Paths
from stepscope.cli.progress import ProgressBar

if TYPE_CHECKING:
    import polars as pl

    from stepscope.cli.output import Output
    from stepscope.run import Run

FACTS = ("format", "framework", "device_kind", "device_name", "host", "world_size", "rank_origin")
"""Facts that are told once where they are the same on all ranks."""


def info(paths: Paths, no_store: NoStore = False, debug: Debug = False) -> None:  # noqa: ARG001 - read by main()
    """Show which ranks and data are there, and what is missing."""
    from stepscope.cli.output import Output
    from stepscope.cli.troubles import show_troubles
    from stepscope.run import open_runs

    with ProgressBar() as progress:
        runs = open_runs(list(paths), use_store=not no_store, progress=progress)
    out = Output()
    for run in runs:
        _show(out, run)
    for run in runs:
        show_troubles(out, run)
        run.unread.clear()  # shared by all runs: told once


def _show(out: Output, run: Run) -> None:
    from stepscope.present import plural
    from stepscope.report.reasons import missing_data

    ranks = _ranks(run)
    alike = [name for name in FACTS if ranks[name].n_unique() == 1]
    facts = [f"{name} {ranks[name][0]}" for name in alike if ranks[name][0] is not None]
    out.say(f"{run.name}: {plural(len(run.ranks), 'rank')}", "bold")
    out.say(", ".join(facts), indent=2)
    out.say("")
    out.table(ranks.drop(alike), raw=True)
    out.say("")
    out.table(_coverage(run), raw=True)
    missing = missing_data(run)
    if missing:
        out.say("")
        out.say("Missing:")
    for line in missing:
        out.say(f"  {line}", "dim", indent=4)
    out.say("")


def _ranks(run: Run) -> pl.DataFrame:
    """One row a rank: where it comes from and what it covers."""
    import polars as pl

    from stepscope.tables import STEPS

    empty = pl.LazyFrame(schema=STEPS.schema)
    steps = (
        (run.table("steps") if run.has("steps") else empty)
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
    return (
        run.table("ranks")
        .select("rank", *FACTS, span_ms=span)
        .join(steps, on="rank", how="left")
        .join(paths.lazy(), on="rank", how="left")
        .sort("rank")
        .collect()
    )


def _coverage(run: Run) -> pl.DataFrame:
    """One row for each kind of data: its rows in all, on which ranks, and the least and most of a rank."""
    import polars as pl

    from stepscope.selection import describe_numbers

    coverage = run.coverage()
    rows = [
        (name, counts.sum(), describe_numbers(coverage["rank"].filter(counts > 0)), counts.min(), counts.max())
        for name, counts in ((name, coverage[name]) for name in coverage.columns[1:])
        if counts.sum() > 0
    ]
    schema = {"table": pl.String, "rows": pl.Int64, "ranks": pl.String, "least": pl.Int64, "most": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
