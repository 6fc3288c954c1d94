"""What the commands about one rank share: their options, how a rank and step are chosen, and how answers are printed.

Such a command is a function that names the tables it shows; `asks` makes the command of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.cli import options as shared
from stepscope.cli.formatted import described, formatted, signed
from stepscope.errors import StepscopeError, UnknownColumn

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from stepscope.analysis.listing import Listing
    from stepscope.run import Run


@dataclass(frozen=True)
class View:
    """A part of a table that people see as a table of its own.

    Args:
        heading: The line above it.
        shows: Its columns; all by default.
        without: Columns that it leaves to others.
        needs: It is left out unless one of these columns is known.
        split: Only rows of this `split`, and those of none.
    """

    heading: str
    shows: Sequence[str] = ()
    without: Sequence[str] = ()
    needs: Sequence[str] = ()
    split: str | None = None


@dataclass(frozen=True)
class Table:
    """One table of a command.

    Args:
        question: The analysis that answers it, and its name in `--table` and JSON.
        heading: The line above it.
        options: Options of the analysis.
        every_step: Ask over all steps, also where one was chosen: for what is known of several steps only.
        hidden: Columns that people see with `--wide` only.
        says: Sentences for people about the answer.
        keeps: Columns that a narrow terminal keeps longest, the most important first.
        titles: Titles of columns that are not the usual ones.
        bar: Column that a terminal shows as bars, too.
        views: The tables that people see of it; one with everything by default.
    """

    question: str
    heading: str
    options: Mapping[str, Any] = field(default_factory=dict)
    every_step: bool = False
    hidden: Sequence[str] = ()
    says: Callable[[pl.DataFrame], Iterable[str]] | None = None
    keeps: Sequence[str] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    bar: str = ""
    views: Sequence[View] = ()


@dataclass(frozen=True)
class Request:
    """What was asked for by the shared options."""

    path: Path
    run: str | None
    rank: int | None
    step: int | None
    table: str | None
    listing: Listing
    form: shared.Format
    wide: bool
    use_store: bool
    limits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asks:
    """Makes a command of a function that says which tables it shows, the main one first.

    Args:
        tables: Its docstring is the help text, its parameters are the options that no other command has.
    """

    tables: Callable[..., Sequence[Table]]

    @property
    def command(self) -> Callable[..., None]:
        """The command; made when all of the function's module is there, since the help names the tables."""
        own = described(self.tables)

        @functools.wraps(self.tables)
        def command(**words: Any) -> None:
            answer(_request(words), self.tables(**{name: words[name] for name in own}))

        parameters = {**described(_shared_options), **own}
        names = [table.question for table in self.tables(**{name: each.default for name, each in own.items()})]
        parameters["table"] = parameters["table"].replace(annotation=shared.one_table(names))
        return formatted(signed(command, {**parameters, **described(_form)}))


asks = Asks


def _shared_options(
    path: shared.OnePath,
    table: str | None = None,
    run: shared.OneRun = None,
    rank: shared.OneRank = None,
    step: shared.OneStep = None,
    search: shared.Search = None,
    where: shared.Where = None,
    sort: shared.Sort = None,
    top: shared.Top = None,
    page: shared.PageNumber = 1,
    limits: shared.LimitsFile = None,
    no_store: shared.NoStore = False,
) -> None:
    """The options of every such command."""


def _form(form: shared.Format, wide: bool) -> None:
    """What `formatted` gives."""


def _request(words: Mapping[str, Any]) -> Request:
    from stepscope.analysis.listing import Listing
    from stepscope.cli.limits import given_limits

    return Request(
        path=words["path"],
        run=words["run"],
        rank=words["rank"],
        step=words["step"],
        table=words["table"],
        listing=Listing(words["search"], words["where"], words["sort"], words["top"], words["page"]),
        form=words["form"],
        wide=words["wide"],
        use_store=not words["no_store"],
        limits=given_limits(words["limits"]),
    )


def answer(request: Request, tables: Sequence[Table]) -> None:
    """Open the run, ask for the tables and print them."""
    from stepscope.cli.limits import limited
    from stepscope.cli.opening import opened
    from stepscope.cli.telling import print_csv, print_json, print_tables

    chosen = _chosen(request, tables)
    whole = limited(opened([request.path], run=request.run, use_store=request.use_store), dict(request.limits))
    run = one_rank(whole, request.rank)
    narrowed = run if request.step is None else run.select(steps=request.step)
    asked = [(table, _answered(run if table.every_step else narrowed, table)) for table in chosen]
    if all(isinstance(answer, str) for _, answer in asked):
        others = [table.question for table in tables if table not in chosen]
        more = f". Other tables: --table {', '.join(others)}" if others else ""
        raise StepscopeError("; ".join(dict.fromkeys(str(answer) for _, answer in asked)) + more)
    printing = {shared.Format.JSON: print_json, shared.Format.CSV: print_csv, shared.Format.TABLE: print_tables}
    try:
        printing[request.form](run, request, asked)
    except UnknownColumn as error:
        raise (error if request.table else _told_others(error, tables, chosen)) from None


def _chosen(request: Request, tables: Sequence[Table]) -> Sequence[Table]:
    """The tables to show: the named one, the main one where its columns are asked for, else all."""
    if request.table is not None:
        named = [table for table in tables if table.question == request.table]
        if not named:
            raise StepscopeError(
                f"--table {request.table}: there is no such table. There are: {', '.join(t.question for t in tables)}"
            )
        return named
    return tables[:1] if request.listing.is_choosing or request.form is shared.Format.CSV else tables


def _told_others(error: UnknownColumn, tables: Sequence[Table], shown: Sequence[Table]) -> UnknownColumn:
    """An error about the columns of the main table, with the others that may have been meant."""
    others = [table.question for table in tables if table not in shown]
    return UnknownColumn(f"{error}. Columns of others: --table {' or '.join(others)}") if others else error


def one_rank(run: Run, number: int | None) -> Run:
    """The run narrowed to one rank: the given one, the only one, else the lowest, which is told on standard error.

    Raises:
        StepscopeError: If there is no such rank; the text says which there are.
    """
    from stepscope.cli.notes import note
    from stepscope.selection import describe_numbers

    ranks = [rank.rank for rank in run.ranks]
    if number is None and len(ranks) > 1:
        note(f"this is rank {ranks[0]} of ranks {describe_numbers(ranks)} in {run.name}; choose another with --rank")
    return run.select(ranks=ranks[0] if number is None else number)


def _answered(run: Run, table: Table) -> pl.DataFrame | str:
    """The answer, or the reason why there is none."""
    from stepscope.errors import Unavailable
    from stepscope.report.reasons import explain

    try:
        answer: pl.DataFrame = run.analyse(table.question, **table.options)
    except Unavailable as reason:
        return explain(run, table.question, reason)
    return answer
