"""Choosing rows of a whole page: options that apply to every table with their columns, and what to say of a choice that
nothing meets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.methods.memberships import stages_of
from stepscope.errors import NoRows, StepscopeError, there_are
from stepscope.pages.base import Option, Page, Section
from stepscope.present import listed
from stepscope.run import Run
from stepscope.selection import Choice, describe_numbers, parse_selection
from stepscope.tables import GROUPS, RANKS

NOWHERE = -1
"""The stage of a rank of which none is known."""

Found = pl.DataFrame | str
"""An answer, or why there is none."""


def ranks_of(run: Run, ranks: Choice, stage: Choice) -> Choice:
    """The ranks that are chosen by their number and by their pipeline stage.

    Raises:
        StepscopeError: If there is no rank of these stages.
    """
    wanted = parse_selection(stage, "stages")
    if wanted is None:
        return ranks
    stages = run.whole.analyse(_stages)
    here = run.select(ranks=ranks).ranks if ranks is not None else run.ranks
    # a job without a pipeline has one stage
    chosen = [rank.rank for rank in here if stages.get(rank.rank, NOWHERE if stages else 0) in wanted]
    if not chosen:
        raise StepscopeError(f"no {wanted.named('stage')} in {run.name}. {_stages_there(stages)}")
    return chosen


def _stages(
    ranks: pl.LazyFrame | None = None, groups: pl.LazyFrame | None = None, parallel_layout: pl.DataFrame | None = None
) -> dict[int, int]:
    """The pipeline stage of each rank; nothing if there is one, or it is unknown."""
    listed_groups = None if groups is None else GROUPS.or_empty(groups).select("name", "members").collect()
    return stages_of(RANKS.or_empty(ranks).collect(), listed_groups, parallel_layout)


def _stages_there(stages: Mapping[int, int]) -> str:
    if not stages:
        return "No pipeline stages are known: give the parallel sizes, e.g. --layout pp=4, or choose --ranks"
    of_each = (
        f"{stage} (ranks {describe_numbers(r for r in stages if stages[r] == stage)})" for stage in _values(stages)
    )
    return f"Its stages are {listed(list(of_each))}"


def _values(stages: Mapping[int, int]) -> list[int]:
    return sorted(set(stages.values()))


class Choosing:
    """The options of a page that choose rows, as far as they were given."""

    def __init__(self, page: Page, values: Mapping[str, Any]) -> None:
        self._options = [option for option in page.options if option.columns and values.get(option.name) is not None]
        self._values = values

    def rows(self, section: Section, found: Found) -> Found:
        """The rows of an answer that are chosen, also if its analysis does not take the options."""
        if isinstance(found, str):
            return found
        for option in self._options:
            if option.name not in section.takes:
                found = self._chosen(option, found)
        return found

    def without(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of options without those that choose rows."""
        mine = {option.name for option in self._options}
        return {name: value for name, value in values.items() if name not in mine}

    def check(self, found: Sequence[tuple[Section, Found]], ask: Callable[[Section], Found]) -> None:
        """Make sure that each option chooses something.

        Args:
            found: The rows that are chosen.
            ask: Asks the question of a section without these options.

        Raises:
            NoRows: If an option chooses nothing of tables that do have rows; the text says what there is.
        """
        missed = []
        for option in self._options:
            of = [(section, rows) for section, rows in found if _applies(option, section, rows)]
            if any(isinstance(rows, str) or rows.height for _, rows in of):
                continue
            every = [rows for section, _ in of if isinstance(rows := ask(section), pl.DataFrame)]
            if any(rows.height for rows in every):
                self._refuse_unless_there(option, [rows for rows in every if _columns(option, rows)])
                missed.append(option)
        if missed:
            given = " ".join(f"{option.on_command_line} {self._values[option.name]}" for option in self._options)
            raise NoRows(f"no row meets {given} at the same time. Leave one of these options out")

    def _refuse_unless_there(self, option: Option, every: Sequence[pl.DataFrame]) -> None:
        """Make sure that an option by itself chooses something."""
        if any(self._chosen(option, rows).height for rows in every):
            return
        value = str(self._values[option.name])
        there = _there([rows[name] for rows in every for name in _columns(option, rows)], value)
        raise NoRows(f"{option.on_command_line} {value}: there is no such {option.name}. {there}")

    def notes(self, found: Iterable[tuple[Section, Found]]) -> Iterator[str]:
        """Of which tables these options choose no rows."""
        frames = [(section, rows) for section, rows in found if isinstance(rows, pl.DataFrame) and rows.height]
        options: dict[str, list[str]] = {}
        for option in self._options:
            if others := [section.key for section, rows in frames if not _applies(option, section, rows)]:
                options.setdefault(listed(others), []).append(option.on_command_line)
        for tables, flags in options.items():
            yield f"{listed(flags)} {'does' if len(flags) == 1 else 'do'} not choose among the rows of {tables}."

    def _chosen(self, option: Option, rows: pl.DataFrame) -> pl.DataFrame:
        names = _columns(option, rows)
        if not names:
            return rows
        value = self._values[option.name]
        return rows.filter(pl.any_horizontal(_meets(name, rows.schema[name], value) for name in names).fill_null(False))


def _applies(option: Option, section: Section, rows: Found) -> bool:
    return option.name in section.takes or (not isinstance(rows, str) and bool(_columns(option, rows)))


def _columns(option: Option, rows: pl.DataFrame) -> list[str]:
    return [name for name in option.columns if name in rows.columns]


def _meets(name: str, dtype: pl.DataType, value: Any) -> pl.Expr:
    """A number that is chosen, or a text (one of several, parted by commas) in any case of letters."""
    if dtype.is_numeric():
        wanted = parse_selection(value, f"{name}s")
        return pl.lit(True) if wanted is None else wanted.expression(name)
    return pl.col(name).str.to_lowercase().str.split(", ").list.contains(str(value).strip().lower())


def _there(columns: Sequence[pl.Series], value: str) -> str:
    """What there is instead, near matches first."""
    known = pl.concat([column.drop_nulls() for column in columns]).unique().sort()
    if known.is_empty():
        return "It was not recorded"
    return f"There are {describe_numbers(known)}" if known.dtype.is_numeric() else there_are(value, known.to_list())
