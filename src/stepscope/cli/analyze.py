"""`stepscope analyze`: where the time goes, which ranks are slow, what to change."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli import options as shared
from stepscope.cli.formatted import formatted, write_whole
from stepscope.cli.notes import note_warnings
from stepscope.cli.options import Command, Format
from stepscope.errors import StepscopeError
from stepscope.pages.job import PAGE
from stepscope.present import Language

if TYPE_CHECKING:
    import polars as pl

    from stepscope.advice.daily import Prices
    from stepscope.advice.finding import Finding
    from stepscope.cli.output import Output
    from stepscope.report.answers import Answers
    from stepscope.run import Run

FINDINGS = "findings"

TO_FILE = "--json-file"
"""What `--json FILE` of earlier versions became: the answers go to the file as JSON and to the screen as text."""

_TABLES = [FINDINGS, *PAGE.keys]

SHOWN = 3
"""How many findings the terminal shows with cause and action; of the others it shows one line each, and so of findings
that follow from another one, below that one."""

PLACE_WIDTH = 80
"""Width of the line with a finding's place, in a terminal."""


@formatted
def analyze(
    paths: shared.Paths,
    *,
    table: shared.one_table(_TABLES, default="all; findings with --csv") = None,  # type: ignore[valid-type]
    json_file: Annotated[Path | None, typer.Option(TO_FILE, hidden=True)] = None,
    run: shared.OneRun = None,
    ranks: shared.Ranks = None,
    steps: shared.Steps = None,
    limits: shared.LimitsFile = None,
    gpus: shared.Gpus = None,
    gpu_hour_price: shared.HourPrice = None,
    currency: shared.Currency = None,
    layout: shared.Layout = None,
    language: shared.LanguageOption = "en",
    no_store: shared.NoStore = False,
    engine: shared.EngineOption = None,
    quiet: shared.Quiet = False,
    form: Format,
    wide: bool,
) -> None:
    """Show where the time goes, which ranks are slow, and what to change."""
    from stepscope.cli.opening import opened
    from stepscope.cli.output import Output, print_frame
    from stepscope.pages.showing import shown_answer
    from stepscope.report.answers import answers

    if table is not None and table not in _TABLES:
        raise StepscopeError(f"--table {table}: there is no such table. There are: {', '.join(_TABLES)}")
    if table is not None and form == "json":
        raise StepscopeError("--table: JSON has all tables, by name. Choose table or csv, or leave out --table")
    options: dict[str, Any] = {"run": run, "ranks": ranks, "steps": steps, "limits": limits, "layout": layout}
    chosen = opened(paths, **options, use_store=not no_store, engine=engine, quiet=quiet)
    prices = prices_asked(chosen, gpus, gpu_hour_price, currency)
    found = answers(chosen, strict=bool(os.environ.get("STEPSCOPE_DEBUG")))
    if json_file is not None:
        write_whole(json_file, [_json(chosen, found, language, prices)])
    if form == "json":
        sys.stdout.write(_json(chosen, found, language, prices).decode())
    elif form == "table" and table in (None, FINDINGS):
        _show(chosen, found, language, prices, quiet=quiet or table is not None, wide=wide)
    else:
        rows = _rows(chosen, found, table or FINDINGS, language)
        if form == "csv":
            print_frame(rows, form)
        else:
            Output(wide=wide).table(shown_answer(chosen, PAGE.section_named(table), rows))
        note_warnings(chosen.warnings)


def prices_asked(run: Run, gpus: int | None, hour_price: float | None, currency: str | None) -> Prices | None:
    """What an hour of the job is; None if nobody asks.

    Raises:
        StepscopeError: If a currency is given without a price, or a number is out of range.
    """
    from stepscope.advice.daily import CURRENCY, prices_of

    if currency is not None and hour_price is None:
        raise StepscopeError("--currency: give --gpu-hour-price as well")
    if gpus is None and hour_price is None:
        return None
    return prices_of(run.whole.table("ranks"), gpus, hour_price, currency or CURRENCY)


def _rows(run: Run, found: Answers, table: str, language: Language) -> pl.DataFrame:
    """One of the tables.

    Raises:
        StepscopeError: If this run has no such answer; the text is the reason.
    """
    from stepscope.report.findings import finding_rows

    if table == FINDINGS:
        return finding_rows(found.findings, language)
    question = PAGE.section_named(table).question
    if question not in found.tables:
        raise StepscopeError(f"{run.name}: {found.unavailable.get(question, 'not recorded')}")
    return found.tables[question]


def _json(run: Run, found: Answers, language: Language, prices: Prices | None) -> bytes:
    from stepscope.report.json_report import to_json

    return to_json(run, found, language, prices) + b"\n"


def _show(run: Run, found: Answers, language: Language, prices: Prices | None, *, quiet: bool, wide: bool) -> None:
    from stepscope.cli.output import Output
    from stepscope.cli.warning_lines import show_warnings
    from stepscope.pages.reasons import unanswered
    from stepscope.pages.showing import shown_sections
    from stepscope.report.verdict import verdict

    out = Output(wide=wide)
    out.say(verdict(found, language), "bold")
    _show_findings(out, found, language, prices)
    if not quiet and found.page is not None:
        for section in shown_sections(found.page):
            for shown in section.tables:
                out.say("")
                out.table(shown)
            if section.sentences:
                out.say("")
            for sentence in section.sentences:
                out.say(sentence, "dim", indent=2)
        out.say("")
        if found.is_dump:
            out.say("Who waits for whom, with call stacks: stepscope hangs", "dim")
        for sentence in () if found.is_dump else unanswered(found.unavailable):
            out.say(sentence, "dim", indent=2)
    elif run.unread or run.others:
        out.say("")
    show_warnings(out, run, quiet=quiet)


def _show_findings(out: Output, found: Answers, language: Language, prices: Prices | None = None) -> None:
    from stepscope.advice.joined import problems
    from stepscope.report.findings import ALSO, because_line, finding_lines

    last = len(problems(found.findings)[:SHOWN])
    number = 0
    for finding in found.findings:
        if finding.explained_by:
            saving = finding_lines(finding, language, prices)[-1]
            out.say(f"   {because_line(finding, language)} {saving} [{finding.rule}]", indent=6)
            continue
        number += 1
        if number <= last:
            _show_whole(out, number, finding, language, prices, found)
            continue
        if number == SHOWN + 1:
            out.say("")
            out.say(ALSO.of(language), "bold")
        summary, *_, saving = finding_lines(finding, language, prices)
        out.say(f"{number}. {summary} {saving} [{finding.rule}]", indent=3)


def _show_whole(
    out: Output, number: int, finding: Finding, language: Language, prices: Prices | None, found: Answers
) -> None:
    """A finding with its cause, action, place and moment."""
    from stepscope.cli.notes import WIDTH
    from stepscope.present import SEVERITY_COLOURS
    from stepscope.report.findings import finding_lines, place_line, when_line

    summary, cause, action, saving = finding_lines(finding, language, prices)
    out.say("")
    out.say(f"{number}. {summary}", "bold", indent=3)
    for line in (cause, action):
        out.say(f"   {line}", indent=8)
    room = None if out.room is None else min(out.room, WIDTH, PLACE_WIDTH) - 3
    if place := place_line(finding, language, room):
        out.say(f"   {place}", "dim", indent=8)
    place_in_file = found.timelines.at(finding)
    when = place_in_file.line(language) if place_in_file else when_line(finding, found.start_ns, language)
    if when:
        out.say(f"   {when}", "dim", indent=9)
    out.say(f"   {saving} [{finding.rule}]", SEVERITY_COLOURS[finding.severity], indent=3)


class TakesJsonFile(Command):
    """A command whose `--json` once took a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See the base class."""
        return super().parse_args(ctx, with_json_file(args))


def with_json_file(words: Sequence[str]) -> list[str]:
    """The words of a call, with `--json FILE` by the name that it has now, and `--json -` without the dash.

    A word behind `--json` is that file unless it is a recording or a directory, which are inputs.

    Examples:
        >>> with_json_file(["run", "--json", "-"]), with_json_file(["run", "--json", "new.json"])
        (['run', '--json'], ['run', '--json-file', 'new.json'])
    """
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--json="):
            word, value = word.split("=", 1)
            rest.insert(0, value)
        elif word != "--json" or not rest or (rest[0].startswith("-") and rest[0] != "-") or _is_input(Path(rest[0])):
            found.append(word)
            continue
        file = rest.pop(0)
        found += ["--json"] if file == "-" else [TO_FILE, file]
    return found


def _is_input(path: Path) -> bool:
    """Whether this is to be read rather than written."""
    from stepscope.sources.discover import discover

    return path.is_dir() or (path.is_file() and bool(discover([path]).inputs))
