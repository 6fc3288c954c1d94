"""`stepscope analyze`: where the time goes, who is slow, what to change."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.options import Debug, LimitsFile, NoStore, Paths, Quiet, Ranks, Steps

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.cli.output import Output
    from stepscope.report.answers import Answers
    from stepscope.run import Run

FINDINGS = 3
"""How many findings the terminal shows with cause and action; of the others it shows one line each."""


def analyze(
    paths: Paths,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the answers as JSON; - for standard output.")
    ] = None,
    ranks: Ranks = None,
    steps: Steps = None,
    limits: LimitsFile = None,
    no_store: NoStore = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - read from the command line by main()
) -> None:
    """Say where the time goes, who is slow, and what to change."""
    from stepscope.cli.limits import given_limits, limited
    from stepscope.cli.opening import opened
    from stepscope.report.answers import answers

    sets = given_limits(limits)  # a mistake in it is told before the inputs are read
    run = limited(opened(paths, ranks=ranks, steps=steps, use_store=not no_store, quiet=quiet), sets)
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
    # beside it first, so that a full disk neither costs an older report nor leaves half of this one
    file = Path(target)
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp") if not file.exists() or file.is_file() else file
    try:
        draft.write_bytes(text)
        if draft != file:
            draft.replace(file)
    except OSError as error:
        if draft != file:
            draft.unlink(missing_ok=True)
        raise StepscopeError(
            f"{target}: cannot write the JSON: {error.strerror}. Name a file in a directory that you may write to."
        ) from error


def _show(run: Run, found: Answers, *, quiet: bool) -> None:
    from stepscope.cli.output import Output
    from stepscope.cli.tables import tables_of
    from stepscope.cli.troubles import show_troubles
    from stepscope.report.reasons import unanswered
    from stepscope.report.verdict import verdict

    out = Output()
    out.say(verdict(found), "bold")
    _show_findings(out, found)
    if not quiet:
        for heading, frame in tables_of(found):
            if not frame.is_empty():
                out.say("")
                out.table(frame, heading)
        out.say("")
        for sentence in unanswered(found.unavailable):
            out.say(sentence, "dim", indent=2)
    elif run.unread or run.others:
        out.say("")
    show_troubles(out, run, quiet=quiet)


def _show_findings(out: Output, found: Answers) -> None:
    for number, finding in enumerate(found.findings, 1):
        saving = _saving(finding)
        if number <= FINDINGS:
            out.say("")
            out.say(f"{number}. {finding.summary}", "bold", indent=3)
            out.say(f"   Why: {finding.cause}", indent=8)
            out.say(f"   Do:  {finding.action}", indent=8)
            out.say(f"   {saving}; {finding.severity} [{finding.rule}]", "green", indent=3)
            continue
        if number == FINDINGS + 1:
            out.say("")
            out.say("Also (causes and actions are in --json):", "bold")
        out.say(f"{number}. {finding.summary} {saving.capitalize()}.", indent=3)


def _saving(finding: Finding) -> str:
    """What mending it would save, or why that is not told."""
    from stepscope.present import duration, listed

    if finding.saving_ns > 0:
        return f"saves about {duration(finding.saving_ns)} a step ({finding.saving_ratio:.0%})"
    claimants = finding.evidence.get("claimed_by")
    if claimants:
        return f"its time is counted in the saving of {listed(claimants)}"
    return "how much it would save is not known"
