"""What a page is: the questions it answers, in order, and all that is declared about showing their answers.

A surface (terminal, report, web) reads these declarations and adds only its own layout. Nothing here loads Polars: a
command line reads the declarations before it reads any data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    import polars as pl

    from stepscope.compare import Pair
    from stepscope.run import Run
    from stepscope.tables.base import Column

Scope = Literal["rank", "job", "pair"]
"""What a page is about: one rank, all ranks of a job, or two sides that are compared."""

Kind = Literal["integer", "number", "text", "flag"]
KINDS: Mapping[Kind, tuple[Any, str]] = {
    "integer": (int, "a whole number"),
    "number": (float, "a number"),
    "text": (str, "a text"),
    "flag": (lambda text: {"true": True, "false": False}[str(text).lower()], "true or false"),
}
"""How values of options are made of texts, and what they are, in words."""


@dataclass(frozen=True)
class Option:
    """Something that a user may choose on a page.

    Args:
        name: Its name, in Python and in a form.
        help: What it does, in one sentence.
        metavar: Stands for the value in a list of options, e.g. `N`.
        flag: Its name on a command line; by default `--` and the name.
        scale: A given value is multiplied by this before an analysis gets it.
        joined: A text that may be given several times: what stands between the texts when they become one.
        columns: Of an option that chooses rows: columns by which it does so, in every table that has one of them.
    """

    name: str
    kind: Kind
    help: str
    metavar: str
    default: Any = None
    minimum: float | None = None
    flag: str = ""
    scale: float | None = None
    joined: str = ""
    columns: Sequence[str] = ()

    @property
    def on_command_line(self) -> str:
        """Its name on a command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def marked(self) -> str:
        """The reference to it in a sentence, see `stepscope.references`."""
        return f"«{self.on_command_line}»"

    def checked(self, value: Any) -> Any:
        """The value as an analysis gets it.

        Raises:
            StepscopeError: If it is below the minimum.
        """
        if value is None:
            return None
        if self.minimum is not None and value < self.minimum:
            raise StepscopeError(f"{self.marked} {value}: give at least {self.minimum:g}")
        return value if self.scale is None else value * self.scale

    def parsed(self, text: Any) -> Any:
        """The value that a text, or its default, stands for.

        Raises:
            StepscopeError: If it is not of its kind, or below the minimum.
        """
        kind, name = KINDS[self.kind]
        try:
            value = kind(text)
        except (ValueError, KeyError):
            raise StepscopeError(f"{self.marked} {text}: give {name}") from None
        self.checked(value)
        return value


RANK = Option("rank", "integer", "Rank to show. Default: the lowest.", "R")
STEP = Option("step", "integer", "Show only this step (numbered as in the recording).", "N")
RANKS = Option("ranks", "text", "Show only these ranks, e.g. 0,3-5.", "LIST")
STAGE = Option("stage", "text", "Show only ranks of these pipeline stages, from 0, e.g. 0,2-3.", "LIST")
HOST = Option("host", "text", "Show only ranks of these hosts, parted by commas.", "NAMES")
GROUP = Option("group", "text", "Show only ranks of this process group, by its name.", "NAME")
PLACES = (STAGE, HOST, GROUP)
"""Which ranks of a job a page is about, besides their numbers: by where they stand."""

STEPS = Option("steps", "text", "Show only these steps, e.g. 10-12.", "LIST")
BASE_RANKS = Option(
    "base_ranks", "text", "Ranks of the base. Default: those of «--ranks»; in one run, a typical rank.", "LIST"
)
BASE_STEPS = Option("base_steps", "text", "Steps of the base. Default: those of «--steps».", "LIST")
SEARCH = Option("search", "text", "Show rows that contain TEXT (case-insensitive).", "TEXT")
FILTER = Option(
    "where", "text", 'Show rows that meet this SQL condition, e.g. "total_ms > 5".', "EXPR", flag="--filter"
)
SORT = Option(
    "sort", "text", "Sort by this column, by its name or heading, e.g. total; use -total for the largest first.", "COL"
)
TOP = Option("top", "integer", "Rows per table. Default: 20 on a screen, all in JSON and CSV.", "N", minimum=1)
PAGE_NUMBER = Option("page", "integer", "Page number (with «--top» rows per page).", "N", default=1, minimum=1)

CHOOSING = {"rank": (RANK, STEP), "job": (RANKS, STEPS), "pair": (RANKS, STEPS)}
"""Which ranks and steps a page is about, by its scope; a page about a pair has `BASE_CHOOSING` as well."""

BASE_CHOOSING = (BASE_RANKS, BASE_STEPS)
"""Which ranks and steps of the base a page about a pair is about."""

LISTING = (SEARCH, FILTER, SORT, TOP, PAGE_NUMBER)
"""Which rows of a table are shown, and in which order."""


@dataclass(frozen=True)
class View:
    """A part of an answer that is shown as a table of its own.

    Args:
        heading: Its heading; see `shown_table` for words in braces.
        shows: Its columns; all by default.
        without: Columns that it leaves to other views.
        needs: It is left out unless one of these columns has values.
        split: It shows only rows with this `split`, and those with none.
        by: Column that says where its figures come from, which the heading adds (`pages/sources.py`).
    """

    heading: str
    shows: Sequence[str] = ()
    without: Sequence[str] = ()
    needs: Sequence[str] = ()
    split: str | None = None
    by: str = ""

    def rows_of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of an answer's rows that it shows."""
        if self.split is None:
            return rows
        return rows.filter((rows["split"] == self.split).fill_null(True)).drop("split")


@dataclass(frozen=True)
class Derived:
    """A table that a page makes of an answer, and what its heading adds, e.g. `, mean of 6 steps`.

    Args:
        columns: Declarations of columns that are the page's own.
    """

    rows: pl.DataFrame
    more: str = ""
    columns: Sequence[Column] = ()


@dataclass(frozen=True)
class Section:
    """One question of a page, and how its answer is shown.

    Args:
        question: The analysis that answers it.
        heading: Heading of the answer; see `shown_table` for words in braces. Without one, the answer is data only: in
            JSON and CSV, but on no screen.
        name: Its name in `--table` and JSON; the question's by default.
        takes: Options of the page that the analysis takes, and the names that the analysis gives them. Of several
            options for one name, the first that was given counts.
        chosen_heading: The heading if one of those options was given.
        every_step: Ask about all steps even if one was chosen: for answers that compare steps.
        hidden: Columns that are shown only on demand.
        sentences: Sentences about the answer; with words in braces, as headings.
        bar: Column whose values are shown as bars as well.
        drawn: Column of texts made of blocks (`· ░ ▒ ▓ █`), which are never cut, and coloured where there is colour.
        named_by: Column whose texts name the fractions of their row, with the unit, e.g. `aic_mac_ratio`.
        views: Tables that show its parts; one with everything by default.
        derived: Makes the table that is shown of the answer; the answer itself by default.
        unless: It is left out if this question of the same page has rows.
        rows: Rows that a screen shows unless more are asked for.
        notes: Sentences about what the answer rests on and cannot know, for people and programs; with words in braces.
        only_with: It is asked only if one of these options of the page was given.
        only_without: It is asked only if none of these options of the page was given.
    """

    question: str
    heading: str = ""
    name: str = ""
    takes: Mapping[str, str] = field(default_factory=dict)
    chosen_heading: str = ""
    every_step: bool = False
    hidden: Sequence[str] = ()
    sentences: Callable[[pl.DataFrame], Iterable[str]] | None = None
    bar: str = ""
    drawn: str = ""
    named_by: str = ""
    views: Sequence[View] = ()
    derived: Callable[[Any, pl.DataFrame], Derived] | None = None
    unless: str = ""
    rows: int = 20
    notes: Callable[[Any, pl.DataFrame], Iterable[str]] | None = None
    only_with: Sequence[str] = ()
    only_without: Sequence[str] = ()

    def is_asked(self, options: Mapping[str, Any]) -> bool:
        """Whether it is a part of the page if these values of options were given."""
        given = {name for name, value in options.items() if value not in (None, False)}
        return (not self.only_with or not given.isdisjoint(self.only_with)) and given.isdisjoint(self.only_without)

    @property
    def key(self) -> str:
        """Its name in `--table` and JSON."""
        return self.name or self.question


@dataclass(frozen=True)
class Page:
    """What one page, or command, shows.

    Args:
        name: Its name, that of the command too.
        help: What it shows, in one sentence that begins with a verb.
        sections: Its questions, the main one first.
        more: Further help, as paragraphs.
        options: Options that other pages do not have.
        scope: Whether it is about one rank, about all ranks of a job, or about a pair of runs or selections of runs.
        instead: What else to ask about a run of which it shows nothing: sentences, after a full stop.
        table: A table without which it shows nothing: of several runs under one path, the first that has it is shown.
        opening: Of a page about a pair: sentences that come first, the most important one at the top.
    """

    name: str
    help: str
    sections: Sequence[Section]
    more: str = ""
    options: Sequence[Option] = ()
    scope: Scope = "rank"
    instead: Callable[[Run], str] | None = None
    table: str = ""
    opening: Callable[[Pair], Iterable[str]] | None = None

    @property
    def keys(self) -> list[str]:
        """Names of its sections."""
        return [section.key for section in self.sections]

    def section_named(self, name: str) -> Section:
        """The section with a name.

        Raises:
            StepscopeError: If there is none; the text lists those there are.
        """
        if name not in self.keys:
            raise StepscopeError(f"table {name}: there is no such table. There are: {', '.join(self.keys)}")
        return self.sections[self.keys.index(name)]
