"""What a figure is: the answers that it shows, the rows behind it, and how they are drawn.

A figure is drawn from its rows and from nothing else, and the same rows are its table, so that both always agree. No
number is computed here beyond what drawing needs: units of an axis, the order of bars, and what stands together when
there is too much to show. Plotly is needed only for `Drawn.figure`; everything else is plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.advice.finding import Per
from stepscope.advice.messages import Text, fill
from stepscope.analysis.columns import SHARED
from stepscope.compare import Pair
from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.style import Theme, template
from stepscope.figures.words import title_of, word
from stepscope.pages.answering import Subject, per_of
from stepscope.pages.coded_values import in_words
from stepscope.pages.reasons import explain, explain_pair
from stepscope.pages.shown_table import ShownTable
from stepscope.present import Language
from stepscope.tables.base import Column

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as PlotlyFigure

    from stepscope.run import Run

Spec = dict[str, Any]
"""A figure as plain data, as Plotly reads it: `data` (its traces) and `layout`."""

INSTALL = "figures need Plotly: pip install 'stepscope[report]'"


@dataclass(frozen=True)
class Rows:
    """Rows that a figure draws, and that its table shows.

    Args:
        heading: What they are, if the figure has several such tables.
        columns: Declarations of the columns that the table shows, in order; other columns are for drawing only.
    """

    frame: pl.DataFrame
    columns: Sequence[Column]
    heading: Text | None = None


@dataclass(frozen=True)
class Note:
    """A note with names of the recording, which are no part of its text: they may have braces and brackets in them.

    Args:
        text: The text with `{name}` where a name stands.
        names: The names.
    """

    text: Text
    names: Mapping[str, str]


@dataclass(frozen=True)
class Data:
    """All that a figure is drawn of.

    Args:
        rows: Its rows, the main ones first.
        notes: What they rest on, and what is left out.
        facts: What else decides how it is drawn, e.g. the options that were given.
    """

    rows: Sequence[Rows]
    notes: Sequence[Text | Note] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> pl.DataFrame:
        """Its main rows."""
        return self.rows[0].frame


@dataclass(frozen=True)
class Figure:
    """A figure that can be drawn of a run, or of a pair of runs that are compared.

    Args:
        name: Its name, e.g. `time-by-rank`.
        title: Its title.
        shows: What it shows and how to read it, in one to three sentences.
        needs: The analyses whose answers it draws; of several names in one text, the first with an answer.
        data: Asks a run for its rows; options are its keyword arguments.
        draw: Draws the rows, in a language and with the word for a step.
        of_rank: It is about one rank, chosen by its option `rank`: for pages about a rank, not for reports about a job.
        of_pair: It is drawn of a pair of runs, and its answers are comparisons.
        for_pages: It is for pages on which people choose ranks, steps or values; reports have others in its place.
    """

    name: str
    title: Text
    shows: Text
    needs: tuple[str, ...]
    data: Callable[..., Data]
    draw: Callable[[Data, Language], Spec]
    of_rank: bool = False
    of_pair: bool = False
    for_pages: bool = False

    def fits(self, run: Subject) -> bool:
        """Whether it is drawn of what is given: of runs, or of pairs."""
        return isinstance(run, Pair) == self.of_pair

    @property
    def options(self) -> Sequence[Parameter]:
        """What may be chosen of it: the keyword arguments with which it asks for its rows."""
        return list(signature(self.data).parameters.values())[1:]

    def drawn(self, run: Subject, *, language: Language = "en", **options: Any) -> Drawn:
        """The figure of a run or pair, with its table.

        Raises:
            Unavailable: If there are no answers for it, with the reason.
            StepscopeError: If an option chooses nothing, or a run is given where it is drawn of a pair, or the reverse.
        """
        if not self.fits(run):
            what = "two sides that are compared" if self.of_pair else "one run"
            raise StepscopeError(f"figure {self.name} is drawn of {what}")
        try:
            data = self.data(run, **options)
        except Unavailable as reason:
            question = reason.question or self.needs[0]
            why = explain_pair(run, reason) if isinstance(run, Pair) else explain(run, question, reason)
            raise Unavailable(why, question=reason.question) from None
        if data.main.is_empty():
            raise Unavailable(f"there is nothing to draw: {self.needs[0]} has no rows")
        per = per_of(run)
        tables = [_table(rows, self.title, language, per) for rows in data.rows if not rows.frame.is_empty()]
        said = [note if isinstance(note, Note) else Note(note, {}) for note in data.notes]
        notes = [fill(note.text, note.names, language, per) for note in said]
        return Drawn(self, language, self.draw(data, language), tables, notes, per)

    def figure(
        self, run: Subject, *, language: Language = "en", theme: Theme = "light", **options: Any
    ) -> PlotlyFigure:
        """The Plotly figure of a run, e.g. for a notebook.

        Raises:
            Unavailable: If the run has no answers for it, with the reason.
            StepscopeError: If Plotly is not installed.
        """
        return self.drawn(run, language=language, **options).figure(theme)

    def table(self, run: Subject, *, language: Language = "en", **options: Any) -> ShownTable:
        """The rows behind the figure, with titles and units."""
        return self.drawn(run, language=language, **options).table


@dataclass(frozen=True)
class Drawn:
    """A figure of one run: what is drawn, and the same as tables.

    Args:
        spec: The figure as plain data, without colours of a theme.
        tables: Its rows, with titles and units; the main ones first.
        notes: What they rest on, and what is left out.
    """

    of: Figure
    language: Language
    spec: Spec
    tables: Sequence[ShownTable]
    notes: Sequence[str]
    per: Per = "step"

    @property
    def name(self) -> str:
        """Name of the figure."""
        return self.of.name

    @property
    def title(self) -> str:
        """Its title."""
        return fill(self.of.title, {}, self.language, self.per)

    @property
    def shows(self) -> str:
        """What it shows."""
        return fill(self.of.shows, {}, self.language, self.per)

    @property
    def table(self) -> ShownTable:
        """Its main rows."""
        return self.tables[0]

    def figure(self, theme: Theme = "light") -> PlotlyFigure:
        """The Plotly figure.

        Raises:
            StepscopeError: If Plotly is not installed.
        """
        try:
            from plotly.graph_objects import Figure as PlotlyFigure  # noqa: PLC0415
        except ImportError:
            raise StepscopeError(INSTALL) from None
        return PlotlyFigure(self.themed(theme))

    def themed(self, theme: Theme = "light") -> Spec:
        """The figure as plain data with its title and the colours of a theme."""
        layout = {**self.spec["layout"], "title": {"text": self.title}, "template": template(theme)}
        room = 70 if layout.get("showlegend", True) else 0  # the legend stands between title and figure
        layout["margin"] = {**layout.get("margin", {}), "t": 52 + room}
        layout["height"] = layout["height"] + room
        return {"data": self.spec["data"], "layout": layout}


def named(figures: Iterable[Figure], name: str) -> Figure:
    """The figure of a name.

    Raises:
        StepscopeError: If there is none.
    """
    known = {figure.name: figure for figure in figures}
    if name not in known:
        raise StepscopeError(f"there is no figure {name!r}. {close_matches(name, known)}")
    return known[name]


def one_rank(run: Run, question: str, rank: int | None, **options: Any) -> tuple[Run, pl.DataFrame, list[Text | Note]]:
    """A run with one rank, its answer, and a note which rank that is.

    Args:
        rank: The rank. Default: the first one that has an answer.

    Raises:
        Unavailable: If it has no answer.
        StepscopeError: If there is no such rank.
    """
    numbers = [one.rank for one in run.ranks]
    if rank is None and len(numbers) > 1:
        found = run.analyse(question, **options)
        rank = int(found["rank"][0]) if found.height else numbers[0]
    one = run if rank is None else run.select(ranks=[rank])
    shown = rank if rank is not None else (numbers or [0])[0]
    return one, one.analyse(question, **options), [Text(f"Rank {shown}.", f"rank {shown}。")]


def _table(rows: Rows, title: Text, language: Language, per: Per) -> ShownTable:
    columns = [replace(column, title=title_of(column, language, per)) for column in rows.columns]
    frame = rows.frame.select(column.name for column in rows.columns)
    texts = [column.name for column in columns if column.values and frame[column.name].dtype == pl.String]
    frame = frame.with_columns(
        pl.col(name).replace(
            {value: word(value, language, name) for value in frame[name].unique() if value is not None}
        )
        for name in texts
    )
    heading = fill(rows.heading or title, {}, language, per)
    return ShownTable(heading, columns, in_words(frame, columns, language))


def column(name: str, title: str = "", doc: str = "", dtype: Any = "string", values: Sequence[str] = ()) -> Column:
    """A column of a figure's table: the shared one of that name, unless it is described."""
    if name in SHARED and not doc:
        return replace(SHARED[name], title=title or SHARED[name].title)
    return Column(name, dtype, doc, title=title, values=tuple(values))
