"""A report as a workbook: the problems first, then a sheet an item with all its rows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from errno import ENOSPC
from io import BytesIO
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope import present
from stepscope.advice.messages import fill
from stepscope.errors import StepscopeError
from stepscope.pages.coded_values import in_words
from stepscope.report.cells import LONGEST_TEXT, Figure, figure_of, plain_texts
from stepscope.report.report_words import CONFIDENCE_SHORT, WORDS
from stepscope.report.targets import MARK

try:
    import xlsxwriter
    from xlsxwriter.exceptions import XlsxWriterException
except ImportError as error:
    raise StepscopeError(f"a workbook needs XlsxWriter ({error}). Run `pip install 'stepscope[report]'`") from error

if TYPE_CHECKING:
    from stepscope.report.contents import Contents
    from stepscope.report.items import Item
    from stepscope.report.problems import Problem

MOST_ROWS = 1_048_576
"""Rows of a sheet, with its header."""

LONGEST_NAME = 31
"""Characters of a sheet's name."""

_FORBIDDEN = str.maketrans(dict.fromkeys("[]:*?/\\", " "))
_WIDEST, _NARROWEST = 70, 8
_LINE, _MOST_LINES = 15.0, 12
"""Height of a line in points, and lines of a row: what is longer can be read in the cell."""
_PRINTED = 11
"""Columns of the first sheet that are printed: with all of them, nobody could read a page."""
_READ = _PRINTED + 1
"""Those by which rows are high enough: what is printed, and the cause."""
_SEVERITY = {"high": ("#B5495B", "#FFFFFF"), "medium": ("#FCAF17", "#3A2A00"), "low": ("#65C294", "#06351D")}
"""Colours of priorities: background and text."""


def write_workbook(found: Contents, target: Path) -> None:
    """Write the workbook.

    Raises:
        OSError: If it cannot be written, or the directory for temporary files is full.
    """
    packed = BytesIO()  # of a file, the library would complain by itself when it is closed on a full disk
    with TemporaryDirectory(prefix="stepscope-") as scratch:
        try:
            _pack(found, packed, scratch)
        except XlsxWriterException as error:
            raise OSError(
                ENOSPC, "no room for the temporary files of the workbook; set TMPDIR to a disk with more room"
            ) from error
    target.write_bytes(packed.getbuffer())


def _pack(found: Contents, packed: BytesIO, scratch: str) -> None:
    options = {
        "constant_memory": True,
        "tmpdir": scratch,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    with xlsxwriter.Workbook(packed, options) as book:
        book.set_properties({"title": _cleaned(found.title), "comments": MARK})
        _Workbook(book, found).write()


class _Workbook:
    """A workbook while it is written."""

    def __init__(self, book: Any, found: Contents) -> None:
        self._book, self._found = book, found
        head = {"bold": True, "bg_color": "#EEF1F5", "border_color": "#C8CED6", "bottom": 1, "text_wrap": True}
        self._head = book.add_format({**head, "indent": 1})
        self._head_of_numbers = book.add_format({**head, "align": "right"})
        self._text = book.add_format({"indent": 1})  # else it touches a number to its left
        self._wrapped = book.add_format({"text_wrap": True, "valign": "top", "indent": 1})
        self._link = book.add_format({"valign": "top", "font_color": "#1F5FBF", "underline": 1})
        self._top = book.add_format({"valign": "top"})
        self._formats: dict[str, Any] = {}
        self._names: list[str] = []

    def write(self) -> None:
        """Write all sheets: problems, list of sheets, items, what is known of the data, columns."""
        problems = self._sheet(self._word("overview"))
        index = self._sheet(self._word("index"))
        names = {item.key: self._new_name(item.heading) for item in self._found.items}
        self._problems(problems, names)
        self._index(index, names)
        for item in self._found.items:
            self._item(self._book.add_worksheet(names[item.key]), item)
        self._data(self._sheet(self._word("data")))
        self._columns(self._sheet(self._word("columns")), names)

    def _word(self, name: str) -> str:
        return WORDS[name].of(self._found.language)

    def _new_name(self, heading: str) -> str:
        """A name for a sheet that a spreadsheet takes, which no other has."""
        plain = " ".join(_cleaned(heading).translate(_FORBIDDEN).strip("' ").split()) or "Sheet"
        name, number = (_shortened(plain) or plain)[:LONGEST_NAME].strip("' "), 1
        while name.lower() in self._names or name.lower() == "history":
            number += 1
            ending = f" {number}"
            name = plain[: LONGEST_NAME - len(ending)].strip("' ") + ending
        self._names.append(name.lower())
        return name

    def _sheet(self, heading: str) -> Any:
        return self._book.add_worksheet(self._new_name(heading))

    def _format(self, number_format: str) -> Any:
        if number_format not in self._formats:
            wanted = {"num_format": number_format} if number_format else {}
            self._formats[number_format] = self._book.add_format(wanted)
        return self._formats[number_format]

    def _header(
        self, sheet: Any, titles: Sequence[str], widths: Sequence[float], rows: int, numbers: Collection[int] = ()
    ) -> None:
        """The head of a sheet; `numbers` are the places of columns with numbers."""
        sheet.set_landscape()
        sheet.set_paper(9)  # A4
        sheet.fit_to_pages(1, 0)
        sheet.repeat_rows(0)
        for place, (title, width) in enumerate(zip(titles, widths, strict=True)):
            sheet.set_column(place, place, min(max(width, _NARROWEST), _WIDEST))
            sheet.write_string(0, place, _cleaned(title), self._head_of_numbers if place in numbers else self._head)
        sheet.freeze_panes(1, 0)
        sheet.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})  # lists of ranks, some of which name one
        if titles:
            sheet.autofilter(0, 0, max(rows, 1), len(titles) - 1)

    def _problems(self, sheet: Any, names: dict[str, str]) -> None:
        columns = self._problem_columns(names)
        rows = self._found.problems
        numeric = [place for place, (_, _, form, _) in enumerate(columns) if form or not place]
        self._header(sheet, [title for title, *_ in columns], [width for _, width, *_ in columns], len(rows), numeric)
        sheet.print_area(0, 0, max(len(rows), 1), _PRINTED - 1)
        colours = {
            severity: self._book.add_format(
                {"bg_color": back, "font_color": front, "bold": True, "valign": "top", "indent": 1}
            )
            for severity, (back, front) in _SEVERITY.items()
        }
        numbers = {form: self._book.add_format({"num_format": form, "valign": "top"}) for form in ("0.000", "0.0%")}
        widths = [width for _, width, *_ in columns]
        for place, problem in enumerate(rows, 1):
            values = [value_of(problem) for *_, value_of in columns]
            sheet.set_row(place, _height(values[:_READ], widths[:_READ]))
            for column, ((_, _, form, _), value) in enumerate(zip(columns, values, strict=True)):
                if isinstance(value, str):
                    chosen = colours[problem.finding.severity] if column == 1 else self._wrapped
                    sheet.write_string(place, column, _cleaned(value), chosen)
                elif value is not None:
                    sheet.write_number(place, column, value, numbers[form] if form else self._top)

    def _problem_columns(self, names: dict[str, str]) -> list[tuple[str, int, str, Callable[[Problem], Any]]]:
        """Title, width, format and value of each column of the first sheet."""
        word = self._word

        def saved(name: str) -> Callable[[Problem], Any]:
            return lambda one: getattr(one.finding, name) / 1e6 if one.saving_known else None

        def place(name: str) -> Callable[[Problem], Any]:
            return lambda one: next((fact.text for fact in one.places if fact.name == word(name)), "")

        return [
            ("#", 5, "", lambda one: one.number),
            (word("priority"), 16, "", lambda one: one.priority),
            (word("category"), 16, "", lambda one: one.category),
            (word("description"), 60, "", lambda one: one.words.summary),
            (word("suggestion"), 60, "", lambda one: one.words.action),
            (word("ranks"), 12, "", lambda one: place("ranks")(one) or word("all_ranks")),
            (f"{word('saving')} (ms)", 12, "0.000", saved("saving_ns")),
            (word("share"), 10, "0.0%", lambda one: one.finding.saving_ratio if one.saving_known else None),
            (f"{word('cost')} (ms)", 12, "0.000", lambda one: one.finding.saving_ns / 1e6 if one.costs else None),
            (word("cost_share"), 10, "0.0%", lambda one: one.finding.saving_ratio if one.costs else None),
            (word("confidence"), 12, "", lambda one: CONFIDENCE_SHORT[one.finding.confidence].of(self._found.language)),
            (word("cause"), 60, "", lambda one: one.words.cause),
            (f"{word('low')} (ms)", 12, "0.000", saved("saving_low_ns")),
            (f"{word('high')} (ms)", 12, "0.000", saved("saving_high_ns")),
            (word("saving"), 40, "", lambda one: "\n".join(filter(None, (one.words.saving, one.daily)))),
            (word("effects"), 10, "", lambda one: ", ".join(map(str, one.effects))),
            (word("roots"), 10, "", lambda one: ", ".join(map(str, one.roots))),
            (word("parts"), 10, "", lambda one: ", ".join(map(str, one.parts))),
            (word("wholes"), 10, "", lambda one: ", ".join(map(str, one.wholes))),
            (word("steps"), 10, "", place("steps")),
            (word("timeline"), 40, "", place("timeline")),
            *((word(name), 20, "", place(name)) for name in ("time_range", "operators", "links")),
            (word("code"), 30, "", lambda one: "\n".join(one.finding.code)),
            (word("computed"), 50, "", lambda one: one.computed),
            (word("sheets"), 30, "", lambda one: ", ".join(names.get(item.key, "") for item in one.evidence)),
            (word("rule"), 20, "", lambda one: one.finding.rule),
        ]

    def _index(self, sheet: Any, names: dict[str, str]) -> None:
        titles = [self._word("sheet"), self._word("about"), self._word("row_count"), self._word("note")]
        self._header(sheet, titles, [34, 50, 12, 70], len(self._found.items))
        for place, item in enumerate(self._found.items, 1):
            name, rows = names[item.key], item.rows.height
            sheet.set_row(place, _height([item.heading, " ".join(item.notes)], [50, 70]))
            sheet.write_url(place, 0, f"internal:'{name.replace(chr(39), chr(39) * 2)}'!A1", self._link, name)
            sheet.write_string(place, 1, _cleaned(item.heading), self._wrapped)
            sheet.write_number(place, 2, rows, self._top)
            cut = fill(WORDS["cut"], {"shown": MOST_ROWS - 1, "found": rows}, self._found.language)
            notes = " ".join([*([cut] if rows >= MOST_ROWS else []), *item.notes])
            sheet.write_string(place, 3, _cleaned(notes), self._wrapped)

    def _item(self, sheet: Any, item: Item) -> None:
        figures = _figures(item, self._found.facts.start_ns)
        rows = in_words(item.rows.head(MOST_ROWS - 1), item.columns, self._found.language)
        columns = [(figure, self._format(figure.number_format)) for figure in figures]
        values = [_values(rows[figure.name], figure) for figure in figures]
        widths = [_width(figure, found) for figure, found in zip(figures, values, strict=True)]
        numeric = [place for place, figure in enumerate(figures) if figure.is_number]
        self._header(sheet, [figure.title for figure in figures], widths, rows.height, numeric)
        number, text = sheet.write_number, sheet.write_string
        for place, row in enumerate(zip(*values, strict=True), 1):
            for column, value in enumerate(row):
                if value is None:
                    continue
                if columns[column][0].is_number:
                    number(place, column, value, columns[column][1])
                else:
                    text(place, column, value, self._text)

    def _data(self, sheet: Any) -> None:
        """What could not be read, what is doubtful, and what was not recorded."""
        found, word = self._found.unread, self._word
        rows = [
            (word(kind), one.severity, "\n".join(one.files), one.problem, one.remedy)
            for kind, troubles in (("unread", found.unread), ("issues", found.issues))
            for one in troubles
        ]
        for kind, texts in (("warnings", found.warnings), ("not_recorded", self._found.missing_data)):
            rows += [(word(kind), "", "", text, "") for text in texts]
        titles = [word(name) for name in ("about", "severity", "file", "issue", "remedy")]
        widths = [26, 12, 50, 70, 60]
        self._header(sheet, titles, widths, len(rows))
        for place, row in enumerate(rows, 1):
            sheet.set_row(place, _height(row, widths))
            for column, value in enumerate(row):
                sheet.write_string(place, column, _cleaned(value), self._wrapped)

    def _columns(self, sheet: Any, names: dict[str, str]) -> None:
        """What the columns of all sheets mean."""
        rows = list(self._meanings(names))
        titles = [self._word(name) for name in ("sheet", "column", "meaning")]
        self._header(sheet, titles, [34, 28, 70], len(rows))
        for place, row in enumerate(rows, 1):
            sheet.set_row(place, _height(row, [34, 28, 70]))
            for column, value in enumerate(row):
                sheet.write_string(place, column, _cleaned(value), self._wrapped)

    def _meanings(self, names: dict[str, str]) -> Iterator[tuple[str, str, str]]:
        for name in (f"{self._word('cost')} (ms)", self._word("cost_share")):
            yield self._word("overview"), name, self._word("cost_meaning")
        for item in self._found.items:
            for column, figure in zip(item.columns, _figures(item, self._found.facts.start_ns), strict=True):
                yield names[item.key], figure.title, column.doc


def _cleaned(text: str) -> str:
    return present.printable(text[:LONGEST_TEXT], keep="\n")


def _values(values: pl.Series, figure: Figure) -> list[Any]:
    """Values as a sheet takes them: numbers in the unit of the title, texts without characters that are obeyed."""
    if not figure.is_number:
        return plain_texts(values)
    scaled = (values.cast(pl.Float64) - figure.origin) * figure.factor if figure.scales else values
    if scaled.dtype.is_float():
        scaled = scaled.set(~scaled.is_finite(), None)
    return scaled.to_list()


def _figures(item: Item, start_ns: int | None) -> list[Figure]:
    """The columns of an item; those of one title are told apart by their names in JSON."""
    seen, found = set[str](), []
    for column in item.columns:
        figure = figure_of(column, item, start_ns)
        if figure.title in seen:
            figure = replace(figure, title=f"{figure.title} [{column.name}]")
        seen.add(figure.title)
        found.append(figure)
    return found


def _width(figure: Figure, values: Sequence[Any]) -> float:
    if figure.is_number:
        longest = max((abs(value) for value in values if value is not None), default=0)
        return max(len(f"{longest:,.3f}") - 2 * (not figure.scales), _room(figure.title), 8) + 2
    longest = max((_room(value) for value in values[:50] if isinstance(value, str)), default=0)
    return max(longest, _room(figure.title), 8) + 3


def _shortened(heading: str) -> str:
    """A heading that is a sheet's name: if it is too long, it ends before a comma, else with a word of meaning."""
    if len(heading) <= LONGEST_NAME:
        return heading
    short = heading[: LONGEST_NAME + 1].rpartition(" ")[0]
    return _DANGLING.sub("", short.partition(",")[0])


_DANGLING = re.compile(r"(\s+(?:and|by|each|for|from|in|of|on|per|the|to|with))+$|\W+$")


def _room(text: str) -> int:
    """Width of a text: Chinese characters take the room of two others."""
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def _height(values: Sequence[Any], widths: Sequence[float]) -> float:
    """Height of a row in which texts are wrapped: spreadsheets do not all find it by themselves."""
    lines = [
        sum(max(ceil(_room(line) / max(width - 1, 1)), 1) for line in value[:LONGEST_TEXT].split("\n"))
        for value, width in zip(values, widths, strict=True)
        if isinstance(value, str)
    ]
    return min(max(lines, default=1), _MOST_LINES) * _LINE
