"""`stepscope info`: what was found, what is missing and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stepscope.cli.formatted import formatted
from stepscope.cli.notes import note_warnings
from stepscope.cli.options import EngineOption, Format, NoStore, OneRun, Paths, one_table
from stepscope.cli.progress import ProgressBar
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    import polars as pl

    from stepscope.cli.output import Output
    from stepscope.run import Run

    Runs = Sequence[tuple[int, Run]]
    Tables = Mapping[str, Callable[[Run], pl.DataFrame]]

FACTS = ("format", "framework", "device_kind", "device_name", "host", "world_size", "rank_origin")
"""Facts that are shown once if they are the same on all ranks."""


@formatted
def info(
    paths: Paths,
    *,
    table: one_table(["ranks", "data"], default="both; ranks with --csv") = None,  # type: ignore[valid-type]
    run: OneRun = None,
    no_store: NoStore = False,
    engine: EngineOption = None,
    form: Format,
    wide: bool,
) -> None:
    """Show which runs, ranks and data were found, and what is missing and why."""
    from stepscope.run import engine_of, named, open_runs

    if table not in (None, *TABLES):
        raise StepscopeError(f"--table {table}: there is no such table. There are: {', '.join(TABLES)}")
    with ProgressBar() as progress:
        runs = open_runs(
            list(paths), use_store=not no_store, progress=progress.watch, engine=engine_of(engine, "--engine")
        )
    shown = runs if run is None else [named(runs, run)]
    numbered = [(runs.index(each) + 1, each) for each in shown]
    wanted = TABLES if table is None else {table: TABLES[table]}
    if form == "table":
        _print_tables(numbered, wanted, wide=wide)
        return
    (_print_json if form == "json" else _print_csv)(numbered, wanted)
    note_warnings(runs[0].warnings)


def _print_tables(runs: Runs, tables: Tables, *, wide: bool) -> None:
    from stepscope.cli.output import Output
    from stepscope.cli.warning_lines import show_warnings

    out = Output(wide=wide)
    for number, run in runs:
        _show(out, run, "" if len(runs) == 1 else f"{number}. ", tables)
    for _, run in runs:
        show_warnings(out, run)
        run.unread.clear()  # shared by all runs: reported once


def _show(out: Output, run: Run, number: str, tables: Tables) -> None:
    from stepscope.pages.reasons import missing_data, supplied_data
    from stepscope.present import plural

    ranks = _ranks(run)
    alike = [name for name in FACTS if ranks[name].n_unique() == 1]
    facts = [f"{name.replace('_', ' ')} {ranks[name][0]}" for name in alike if ranks[name][0] is not None]
    out.say(f"{number}{run.name}: {plural(len(run.ranks), 'rank')}", "bold")
    out.say(", ".join(facts), indent=2)
    for name, make in tables.items():
        out.say("")
        out.raw_table(ranks.drop(alike) if name == "ranks" else make(run))
    for heading, lines in (("From another recording:", supplied_data(run)), ("Missing:", missing_data(run))):
        if lines:
            out.say("")
            out.say(heading)
        for line in lines:
            out.say(f"  {line}", "dim", indent=4)
    out.say("")


def _print_json(runs: Runs, tables: Tables) -> None:
    """One object: `runs`, each with its tables, why data is missing, and the issues; and `unread` inputs."""
    from stepscope.cli.output import print_document
    from stepscope.pages.reasons import missing_data, supplied_data
    from stepscope.paths import shown

    documents = [
        {
            "run": number,
            "name": run.name,
            "path": shown(run.path),
            **{name: make(run).to_dicts() for name, make in tables.items()},
            "supplied": supplied_data(run),
            "missing": missing_data(run),
            "issues": run.issues.to_dicts(),
        }
        for number, run in runs
    ]
    unread = [{"file": shown(u.file), "problem": u.problem, "remedy": u.remedy} for u in runs[0][1].unread]
    print_document({"runs": documents, "unread": unread})


def _print_csv(runs: Runs, tables: Tables) -> None:
    """The first of the tables, of all runs."""
    import polars as pl

    from stepscope.cli.output import print_frame

    make = next(iter(tables.values()))
    frames = [make(run).select(pl.lit(number).alias("run"), pl.all()) for number, run in runs]
    print_frame(pl.concat(frames), "csv")


def _ranks(run: Run) -> pl.DataFrame:
    """One row a rank: where it comes from and what it covers."""
    import polars as pl

    from stepscope.tables import STEPS
    from stepscope.tables.steps import WHOLE_RECORDING
    from stepscope.text_columns import filled_in

    rows = run.table("steps") if run.has("steps") else pl.LazyFrame(schema=STEPS.schema)
    marked = filled_in("{}-{} ({})", pl.col("step").min(), pl.col("step").max(), pl.len())
    is_one = pl.col("window").first() == WHOLE_RECORDING
    steps = rows.group_by("rank").agg(steps=pl.when(is_one).then(pl.lit(_unmarked(run))).otherwise(marked))
    span = ((pl.col("end_ns") - pl.col("start_ns")) / 1e6).round(2)
    facts = run.table("ranks").select("rank", *FACTS, span_ms=span).join(steps, on="rank", how="left").sort("rank")
    return facts.collect().with_columns(input=pl.Series([str(rank.path) for rank in run.ranks]))


def _unmarked(run: Run) -> str:
    """What stands for the steps of a recording that marks none; the other commands count the same."""
    return "no steps" if run.iterations is None else f"no steps; {run.iterations.count} iterations"


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


TABLES: Tables = {"ranks": _ranks, "data": _coverage}
"""Tables by name, each of one run."""
