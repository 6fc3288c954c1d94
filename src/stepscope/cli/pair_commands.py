"""Commands made of pages about a pair: two runs, or one run compared with a part of itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from stepscope.cli import options as shared
from stepscope.cli.notes import note
from stepscope.cli.page_commands import made_of, print_answered, request_of
from stepscope.errors import StepscopeError
from stepscope.pages.base import Page

if TYPE_CHECKING:
    from stepscope.compare import Pair, Verdict

EXIT_SLOWER = 3
"""Exit code if the new side is slower than allowed."""


def compare_command(page: Page) -> Callable[..., int | None]:
    """The command that shows a page about a pair."""

    def command(**words: Any) -> int | None:
        from stepscope.pages.answering import answer

        allowed = words["fail_if_slower"]
        if allowed is not None and not 0 <= allowed < float("inf"):
            raise StepscopeError(f"--fail-if-slower {allowed:g}: give a percentage, 0 or above")
        if words["markdown"] and words["form"] != "table":
            raise StepscopeError(f"conflicting formats markdown and {words['form']}: choose one")
        request = request_of(page, words)
        answered = answer(_opened(words), page, request)
        if words["flame"] is not None:
            from stepscope.cli.flame import draw_difference

            draw_difference(cast("Pair", answered.run), words["flame"])
        if words["markdown"]:
            from stepscope.report.markdown import page_as_markdown

            sys.stdout.write(page_as_markdown(answered))
        else:
            print_answered(answered, words["form"], wide=words["wide"])
        return None if allowed is None else _judged(answered.run, allowed)

    return made_of(page, command, _pair_options)


def _pair_options(
    base: Annotated[Path, shared.argument("BASE", "Trace file or directory to compare with.", readable=False)],
    new: Annotated[
        Path | None, shared.argument("[NEW]", "Trace file or directory to judge. Default: BASE.", readable=False)
    ] = None,
    table: str | None = None,
    base_run: Annotated[
        str | None,
        typer.Option(
            "--base-run",
            help="Run of the base: its number or name in `info`. Default: the first.",
            metavar="RUN",
            show_default=False,
        ),
    ] = None,
    run: shared.OneRun = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print GitHub's Markdown, e.g. as a comment on a pull request.")
    ] = False,
    flame: Annotated[
        Path | None,
        typer.Option(
            "--flame",
            help="Draw a differential flame graph into FILE: .html or .svg.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    fail_if_slower: Annotated[
        float | None,
        typer.Option(
            "--fail-if-slower",
            help="Exit with 3 if the step is slower by more than PCT percent and that is not within noise.",
            metavar="PCT",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Options of every such command."""


def _opened(words: dict[str, Any]) -> Pair:
    """Both sides, opened once if they are the same run."""
    from stepscope.cli.opening import opened
    from stepscope.compare import Pair

    more = {name: words[name] for name in ("limits", "engine")}
    base_run = words["base_run"] if words["new"] is not None or words["base_run"] is not None else words["run"]
    base = opened([words["base"]], run=base_run, use_store=not words["no_store"], **more)
    if words["new"] is None and words["run"] in (None, base_run):
        return Pair(base, base)
    new = opened([words["new"] or words["base"]], run=words["run"], use_store=not words["no_store"], **more)
    return Pair(base, new)


def _judged(pair: Any, allowed: float) -> int:
    """Say whether the new side is slower than allowed: 3 if it is, else 0."""
    from stepscope.compare import judged

    verdict = judged(pair, allowed / 100)
    note(_words(verdict))
    return EXIT_SLOWER if verdict.fails else 0


def _words(verdict: Verdict) -> str:
    ratio, limit = verdict.slower_ratio, f"allowed are {verdict.limit_ratio:.1%}"
    if ratio <= 0:
        return f"not slower ({ratio:+.1%}; {limit})"
    how = {
        "noise": "within noise, so this does not fail",
        "untested": "all steps are, but too few to be sure that this is no noise, which counts as slower",
        "certain": "beyond noise",
    }[verdict.how]
    if ratio <= verdict.limit_ratio:
        return f"slower by {ratio:.1%}; {limit}"
    return f"slower by {ratio:.1%}; {limit}; {how}"
