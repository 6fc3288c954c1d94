"""`stepscope report`: everything about a job in one HTML file, with a workbook, Markdown and JSON beside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli import options as shared
from stepscope.cli.notes import note
from stepscope.errors import StepscopeError
from stepscope.present import LANGUAGES, Language, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.advice.daily import Prices
    from stepscope.report.answers import Answers
    from stepscope.report.contents import Contents
    from stepscope.run import Run

DEFAULT = Path("report.html")
STANDARD_OUTPUT = Path("-")

Target = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=f"HTML file to write. Default: {DEFAULT}.", metavar="FILE", show_default=False),
]
Workbook = Annotated[
    Path | None, typer.Option("--xlsx", help="Write a workbook with all rows as well.", metavar="FILE")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Write a summary for a pull request; - prints it.", metavar="FILE")
]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the answers as JSON for programs; - prints them.", metavar="FILE")
]
ReportLanguage = Annotated[
    Language, shared.worded(LANGUAGES, "--lang", "--language", help="Language: en or zh (Chinese).")
]
Bench = Annotated[
    Path | None,
    typer.Option(
        "--bench",
        help="Compare with this run. Default: the slowest rank with a typical one.",
        metavar="PATH",
        readable=False,
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open the report in a browser.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that stepscope did not write.")]


def report(
    paths: shared.Paths,
    *,
    output: Target = None,
    xlsx: Workbook = None,
    markdown: Markdown = None,
    json: Json = None,
    lang: ReportLanguage = "en",
    bench: Bench = None,
    open_it: Open = False,
    force: Force = False,
    gpus: shared.Gpus = None,
    gpu_hour_price: shared.HourPrice = None,
    currency: shared.Currency = None,
    run: shared.OneRun = None,
    ranks: shared.Ranks = None,
    steps: shared.Steps = None,
    limits: shared.LimitsFile = None,
    layout: shared.Layout = None,
    no_store: shared.NoStore = False,
    engine: shared.EngineOption = None,
    quiet: shared.Quiet = False,
    debug: shared.Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Write a report: what costs the time, why, and what to change, as one HTML file that opens anywhere.

    It has the verdict, all findings by priority with cause, action, saving and evidence, and tables of computation,
    dispatch, communication, memory and data loading. A workbook (--xlsx) has all rows. Without -o, only the other files
    are written if any is asked for.
    """
    from stepscope.cli.analyze import prices_asked
    from stepscope.cli.opening import opened
    from stepscope.report.answers import answers
    from stepscope.report.contents import contents
    from stepscope.report.targets import check_apart, check_target, write_file

    if output is None and not any((xlsx, markdown, json)):
        output = DEFAULT
    if STANDARD_OUTPUT in (output, xlsx) or markdown == json == STANDARD_OUTPUT:
        raise StepscopeError("only one of --markdown and --json can be printed (-); give the others names of files")
    files = [target for target in (output, xlsx, markdown, json) if target is not None and target != STANDARD_OUTPUT]
    check_apart(files)
    for target in files:
        check_target(target, [*paths, *([bench] if bench else [])], force=force)
    _load(html=output is not None, workbook=xlsx is not None)
    chosen: dict[str, Any] = {"run": run, "ranks": ranks, "steps": steps, "limits": limits, "layout": layout}
    found_run = opened(paths, **chosen, use_store=not no_store, engine=engine, quiet=quiet)
    found = answers(found_run, strict=bool(os.environ.get("STEPSCOPE_DEBUG")))
    against = (
        None if bench is None else opened([bench], limits=limits, use_store=not no_store, engine=engine, quiet=quiet)
    )
    collected = contents(
        found_run,
        found,
        lang,
        bench=against,
        figures=output is not None,
        prices=(prices := prices_asked(found_run, gpus, gpu_hour_price, currency)),
    )
    written = [
        (target, write)
        for target, write in _writers(found_run, found, collected, prices, output, xlsx, markdown, json)
        if target is not None
    ]
    for target, write in written:
        if target == STANDARD_OUTPUT:
            write(target)
            continue
        write_file(target, write)
        if not quiet:
            note(f"wrote {target} ({size(target.stat().st_size)})")
    if collected.alert:
        note(f"warning: {collected.alert}")
    if open_it and output is not None:
        import webbrowser

        webbrowser.open(output.resolve().as_uri())


def _load(*, html: bool, workbook: bool) -> None:
    """Load the libraries, so that a missing one is reported before anything is read."""
    if html:
        import stepscope.report.html
    if workbook:
        import stepscope.report.xlsx  # noqa: F401


def _writers(
    run: Run,
    found: Answers,
    collected: Contents,
    prices: Prices | None,
    output: Path | None,
    xlsx: Path | None,
    markdown: Path | None,
    json: Path | None,
) -> list[tuple[Path | None, Callable[[Path], None]]]:
    """Each file that may be written, and what writes it."""

    def write_html(target: Path) -> None:
        from stepscope.report.html import to_html

        _put(target, to_html(collected))

    def write_workbook(target: Path) -> None:
        from stepscope.report.xlsx import write_workbook

        write_workbook(collected, target)

    def write_markdown(target: Path) -> None:
        from stepscope.report.markdown_report import to_markdown

        _put(target, to_markdown(collected).encode("utf-8", "backslashreplace"))

    def write_json(target: Path) -> None:
        from stepscope.report.json_report import to_json

        _put(target, to_json(run, found, collected.language, prices) + b"\n")

    return [(output, write_html), (xlsx, write_workbook), (markdown, write_markdown), (json, write_json)]


def _put(target: Path, text: bytes) -> None:
    if target == STANDARD_OUTPUT:
        sys.stdout.write(text.decode())
    else:
        target.write_bytes(text)
