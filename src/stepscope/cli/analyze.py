"""`stepscope analyze`: where the time goes, who is slow, what to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.options import Debug, NoStore, Paths, Quiet, Ranks, Steps

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from stepscope.report.answers import Answers
    from stepscope.run import Run

FINDINGS, ROWS, RANK_ROWS = 3, 8, 16
"""How many findings, rows of a table and rows of the table of ranks the terminal shows."""

STEP_COLUMNS = (
    "window_ns",
    "computing_ns",
    "communication_ns",
    "overlapped_ns",
    "communication_not_overlapped_ns",
    "memory_not_overlapped_ns",
    "free_ns",
    "data_loading_ns",
)


def analyze(
    paths: Paths,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the answers as JSON; - for standard output.")
    ] = None,
    ranks: Ranks = None,
    steps: Steps = None,
    no_store: NoStore = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - read from the command line by main()
) -> None:
    """Say where the time goes, who is slow, and what to change."""
    from stepscope.cli.opening import opened
    from stepscope.report.answers import answers

    run = opened(paths, ranks=ranks, steps=steps, use_store=not no_store, quiet=quiet)
    found = answers(run)
    if json is not None:
        _write_json(run, found, json)
    if json != "-":
        _show(run, found, quiet=quiet)


def _write_json(run: Run, found: Answers, target: str) -> None:
    from stepscope.errors import StepscopeError
    from stepscope.report.json_report import to_json

    text = to_json(run, found) + b"\n"
    if target == "-":
        sys.stdout.buffer.write(text)
        return
    try:
        Path(target).write_bytes(text)
    except OSError as error:
        raise StepscopeError(
            f"{target}: cannot write the JSON: {error.strerror}. Name a file in a directory that you may write to."
        ) from error


def _show(run: Run, found: Answers, *, quiet: bool) -> None:
    from rich.markup import escape

    from stepscope.cli.output import console
    from stepscope.cli.troubles import show_troubles
    from stepscope.report.verdict import verdict

    out = console()
    out.print(f"[bold]{escape(verdict(found))}[/bold]", highlight=False)
    _show_findings(out, found)
    if not quiet:
        _show_tables(out, found)
        for name, reason in found.unavailable.items():
            out.print(f"No {name.replace('_', ' ')}: {reason}", style="dim", markup=False, highlight=False)
    show_troubles(out, run, quiet=quiet)


def _show_findings(out: Console, found: Answers) -> None:
    from stepscope.present import duration

    for number, finding in enumerate(found.findings[:FINDINGS], 1):
        saving = f"saves about {duration(finding.saving_ns)} a step ({finding.saving_ratio:.0%})"
        out.print(f"\n{number}. {finding.summary}", style="bold", markup=False, highlight=False)
        out.print(f"   Why: {finding.cause}", markup=False, highlight=False)
        out.print(f"   Do:  {finding.action}", markup=False, highlight=False)
        out.print(f"   {saving}; {finding.severity} [{finding.rule}]", markup=False, highlight=False, style="green")
    if len(found.findings) > FINDINGS:
        out.print(f"\n{len(found.findings) - FINDINGS} more findings in --json.", style="dim")


def _show_tables(out: Console, found: Answers) -> None:
    from stepscope.cli.output import rich_table

    for heading, frame in _tables(found):
        if not frame.is_empty():
            out.print()
            out.print(rich_table(frame, heading))


def _tables(found: Answers) -> list[tuple[str, pl.DataFrame]]:
    """Headings and shortened tables, in the order of the questions that people ask."""
    import polars as pl

    tables: list[tuple[str, pl.DataFrame]] = []
    get = found.tables.get
    if (breakdown := get("breakdown")) is not None:
        steps = breakdown["step"].n_unique()
        by_rank = breakdown.group_by("rank").agg(pl.col(STEP_COLUMNS).median().round().cast(pl.Int64)).sort("rank")
        more = "" if by_rank.height <= RANK_ROWS else f"; {by_rank.height - RANK_ROWS} more ranks in --json"
        tables.append((f"Time by rank, median of {steps} step(s){more}", by_rank.head(RANK_ROWS)))
    if (slow := get("slow_ranks")) is not None:
        tables.append(("Slow ranks", slow))
    if (links := get("slow_links")) is not None:
        tables.append(("Slow links", links.head(ROWS)))
    if (groups := get("slow_groups")) is not None and (links is None or links.is_empty()):
        tables.append(("Slow groups", groups.drop("group").head(ROWS)))
    if (idle := get("idle")) is not None:
        causes = idle.group_by("cause").agg(pl.col("idle_ns", "gaps").sum()).sort("idle_ns", descending=True)
        share = pl.col("idle_ns") / pl.col("idle_ns").sum()
        tables.append(("Idle time by cause, all ranks and steps", causes.with_columns(share_ratio=share)))
    if (calls := get("communication")) is not None:
        columns = ["group_name", "operation", "size_bytes", "ranks", "count", "total_ns", "median_ns"]
        more_columns = ["wait_ns", "transmit_ns", "wait_ratio", "bandwidth_bytes_per_s"]
        named = calls.with_columns(group_name=pl.coalesce("group_name", "group"))
        tables.append(("Communication", named.select(*columns, *more_columns).head(ROWS)))
    if (kernels := get("kernel_totals")) is not None:
        computing = kernels.filter(pl.col("kind") != "communication")  # that has a table of its own
        tables.append(("Kernels, all ranks", _over_ranks(computing, ["kind", "name", "type", "core"])))
    if (operators := get("operator_summary")) is not None:
        tables.append(("Operators by own host time, all ranks", _over_ranks(operators, ["name"], "self_ns")))
    return tables


def _over_ranks(table: pl.DataFrame, keys: list[str], by: str = "total_ns") -> pl.DataFrame:
    """Sum of a per-rank table over ranks, the dearest rows; columns that say nothing are left out."""
    import polars as pl

    total = pl.col(by).sum()
    columns = ["count", "total_ns"] if by == "total_ns" else ["count", by, "total_ns"]
    summed = table.group_by(keys).agg(
        pl.col(columns).sum(), pl.col("min_ns").min(), pl.col("max_ns").max(), mean_ns=total / pl.col("count").sum()
    )
    summed = summed.with_columns(share_ratio=pl.col(by) / pl.col(by).sum())
    top = summed.sort(by, *keys, descending=[True] + [False] * len(keys), nulls_last=True).head(ROWS)
    return top.select(c for c in [*keys, *columns, "mean_ns", "min_ns", "max_ns", "share_ratio"] if top[c].count())
