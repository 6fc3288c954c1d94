"""Commands made of pages: the options that a page declares, with those of every command, and how it is printed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from stepscope.cli import options as shared
from stepscope.cli.formatted import described, formatted, signed
from stepscope.errors import NoRows, StepscopeError, UnknownColumn
from stepscope.pages.base import CHOOSING, KINDS, LISTING, Option, Page
from stepscope.pages.layout import LAYOUT

if TYPE_CHECKING:
    from stepscope.pages.answering import Answered, Request
    from stepscope.run import Run


def command_of(page: Page) -> Callable[..., int | None]:
    """The command that shows a page about a run."""

    def command(**words: Any) -> None:
        from stepscope.cli.opening import opened
        from stepscope.pages.answering import answer

        request = request_of(page, words)
        chosen = {name: words[name] for name in ("run", "limits", "engine")}
        if page.name != LAYOUT.name:  # which shows what contradicts it
            chosen["layout"] = words.get(LAYOUT.name)
        whole = opened([words["path"]], **chosen, use_store=not words["no_store"], table=page.table)
        _note_rank(page, request, whole)
        print_answered(answer(whole, page, request), words["form"], wide=words["wide"])

    return made_of(page, command, _shared_options)


def made_of(
    page: Page, command: Callable[..., int | None], *own_options: Callable[..., None]
) -> Callable[..., int | None]:
    """A command of a page, with the parameters of some functions, then those of the page and of every page."""
    command.__name__ = page.name
    listed = {option.name: _parameter(option) for option in (*CHOOSING[page.scope], *LISTING)}
    own = {option.name: _parameter(option) for option in page.options}
    before = {name: each for options in own_options for name, each in described(options).items()}
    parameters = {**before, **own, **listed, **described(_further_options)}
    parameters["table"] = parameters["table"].replace(annotation=shared.one_table(page.keys))
    return formatted(signed(command, parameters))


@functools.cache  # most options are those of every page
def _parameter(option: Option) -> inspect.Parameter:
    """An option of a page as the command-line library takes it."""
    kind: Any = bool if option.kind == "flag" else list[str] if option.joined else KINDS[option.kind][0]
    if option.default is None:
        kind |= None
    annotation = Annotated[kind, shared.declared(option)]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=annotation)


def _shared_options(path: shared.OnePath, table: str | None = None, run: shared.OneRun = None) -> None:
    """Options of every such command."""


def _further_options(
    limits: shared.LimitsFile = None, no_store: shared.NoStore = False, engine: shared.EngineOption = None
) -> None:
    """Options of every such command, behind those that choose rows."""


def request_of(page: Page, words: Mapping[str, Any]) -> Request:
    """What the words of a call choose.

    Raises:
        StepscopeError: If there is no such table.
    """
    from stepscope.pages.answering import Request
    from stepscope.pages.listing import Listing

    if words["table"] is not None:
        page.section_named(words["table"])
    ranks, steps = (words[option.name] for option in CHOOSING[page.scope])
    return Request(
        ranks,
        steps,
        words["table"],
        Listing(*(words[option.name] for option in LISTING)),
        {option.name: _given(option, words[option.name]) for option in page.options},
        main_only=words["form"] == "csv",
    )


def _given(option: Option, value: Any) -> Any:
    """The value of an option; of one that may be given several times, all of them as one text."""
    return value if not option.joined else option.joined.join(value) if value else None


def _note_rank(page: Page, request: Request, run: Run) -> None:
    """Report which rank is shown if none was chosen and there are several."""
    from stepscope.cli.notes import note
    from stepscope.selection import describe_numbers

    ranks = [rank.rank for rank in run.ranks]
    if page.scope == "rank" and request.ranks is None and len(ranks) > 1:
        note(f"this is rank {ranks[0]} of ranks {describe_numbers(ranks)} in {run.name}; choose another with --rank")


def print_answered(answered: Answered, form: shared.Format, *, wide: bool) -> None:
    """Print the answers.

    Raises:
        StepscopeError: If there is none, or a column or page is asked for that is not there.
    """
    from stepscope.cli.notes import note_warnings
    from stepscope.cli.output import print_document, print_frame
    from stepscope.pages.answering import document, one_table
    from stepscope.run import Run

    if not answered.says_anything:
        more = f". Other tables: --table {', '.join(answered.not_asked)}" if answered.not_asked else ""
        run = answered.run
        instead = answered.page.instead(run) if answered.page.instead and isinstance(run, Run) else ""
        why = "; ".join(dict.fromkeys(answered.unavailable.values()))
        raise StepscopeError(("" if isinstance(run, Run) else "nothing can be compared: ") + why + more + instead)
    try:
        if form == "table":
            _print_tables(answered, wide=wide)
            return
        if form == "json":
            print_document(document(answered))
        else:
            print_frame(one_table(answered), form)
        note_warnings(answered.run.warnings)
    except (UnknownColumn, NoRows) as error:
        if answered.request.table is not None or not answered.not_asked:
            raise
        what = "Columns of others" if isinstance(error, UnknownColumn) else "Other tables"
        raise type(error)(f"{error}. {what}: --table {' or '.join(answered.not_asked)}") from None


def _print_tables(answered: Answered, *, wide: bool) -> None:
    """Every table with its heading and units, then why others are missing and what could not be read."""
    from stepscope.cli.output import Output
    from stepscope.cli.warning_lines import show_warnings
    from stepscope.pages.answering import opening_of
    from stepscope.pages.reasons import unanswered
    from stepscope.pages.showing import shown_sections
    from stepscope.report.sentences import counted, spoken
    from stepscope.run import Run

    out = Output(wide=wide)
    if isinstance(answered.run, Run):
        first = [spoken(marked_as)] if (marked_as := counted(answered.run)) else []
    else:
        first = opening_of(answered)
    for place, sentence in enumerate(first):
        out.say(sentence, "bold" if place == 0 and answered.page.opening else None)
    if first:
        out.say("")
    for section in shown_sections(answered, every_column=wide, whole_names=wide or out.room is None):
        for table in section.tables:
            out.table(table)
            out.say("")
        for sentence in section.sentences:
            out.say(sentence)
        if section.sentences:
            out.say("")
    for sentence in answered.notes:
        out.say(sentence, "dim")
    for sentence in unanswered(answered.unavailable):
        out.say(sentence, "dim", indent=2)
    show_warnings(out, answered.run)
