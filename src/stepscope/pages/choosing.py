"""Choosing rows of a whole page: options that apply to every table with their columns, and what to say of a choice that
nothing meets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Places:
    """Where the ranks of a job stand, each place with its ranks in order.

    Args:
        hosts: By name of the host; empty if no rank has one.
        stages: By pipeline stage, from 0; empty if there is one stage, or it is unknown.
        groups: By name of the process group, those of all ranks left out.
    """

    hosts: Mapping[str, Sequence[int]]
    stages: Mapping[int, Sequence[int]]
    groups: Mapping[str, Sequence[int]]


def places_of(run: Run) -> Places:
    """Where all ranks of a job stand."""
    return run.whole.analyse(_places)


def ranks_of(
    run: Run, ranks: Choice, stage: Choice = None, host: str | None = None, group: str | None = None
) -> Choice:
    """The ranks that are chosen by their number, pipeline stage, host (one or several names) and process group.

    Raises:
        StepscopeError: If there is no rank of these; the text says what there is.
    """
    wanted = parse_selection(stage, "stages")
    if wanted is None and not host and not group:
        return ranks
    places = places_of(run)
    here = [rank.rank for rank in (run.select(ranks=ranks).ranks if ranks is not None else run.ranks)]
    if host:
        names = [name.strip() for name in host.split(",")]
        here = _at("host", names, places.hosts, here, run)
    if group:
        here = _at("group", [group.strip()], places.groups, here, run)
    if wanted is None:
        return here
    stages = {rank: number for number, members in places.stages.items() for rank in members}
    # a job without a pipeline has one stage
    chosen = [rank for rank in here if stages.get(rank, NOWHERE if stages else 0) in wanted]
    if not chosen:
        raise StepscopeError(f"no {wanted.named('stage')} in {run.name}. {_stages_there(places.stages)}")
    return chosen


def _at(
    kind: str, names: Sequence[str], places: Mapping[str, Sequence[int]], here: Sequence[int], run: Run
) -> list[int]:
    """Those of some ranks that are on hosts, or in groups, of these names."""
    for name in names:
        if name not in places:
            known = there_are(name, list(places)) if places else f"No {kind} was recorded; choose «--ranks»"
            raise StepscopeError(f"«--{kind}» {name}: there is no such {kind} in {run.name}. {known}")
    members = {rank for name in names for rank in places[name]}
    if not (found := [rank for rank in here if rank in members]):
        raise StepscopeError(f"«--{kind}» {', '.join(names)}: it has none of the chosen ranks")
    return found


def _places(
    ranks: pl.LazyFrame | None = None, groups: pl.LazyFrame | None = None, parallel_layout: pl.DataFrame | None = None
) -> Places:
    rows = RANKS.or_empty(ranks).collect()
    listed_groups = None if groups is None else GROUPS.or_empty(groups).select("group", "name", "members").collect()
    stages = stages_of(
        rows, None if listed_groups is None else listed_groups.select("name", "members"), parallel_layout
    )
    by_stage: dict[int, list[int]] = {}
    for rank, stage in stages.items():
        by_stage.setdefault(stage, []).append(rank)
    hosts: dict[str, list[int]] = {}
    for rank, host in rows.select("rank", "host").drop_nulls().sort("rank").iter_rows():
        hosts.setdefault(host, []).append(rank)
    return Places(hosts, dict(sorted(by_stage.items())), _named_groups(listed_groups, set(rows["rank"])))


def _named_groups(groups: pl.DataFrame | None, ranks: set[int]) -> dict[str, list[int]]:
    """The members of each group, but for those that every rank is in."""
    if groups is None:
        return {}
    rows = groups.select(pl.coalesce("name", "group").alias("name"), "members").drop_nulls()
    members: dict[str, set[int]] = {}
    for name, listed_members in rows.iter_rows():
        members.setdefault(name, set()).update(listed_members)
    return {name: sorted(members[name]) for name in sorted(members) if not ranks <= members[name]}


def _stages_there(stages: Mapping[int, Sequence[int]]) -> str:
    if not stages:
        return "No pipeline stages are known: give the parallel sizes, e.g. «--layout» pp=4, or choose «--ranks»"
    of_each = (f"{stage} (ranks {describe_numbers(members)})" for stage, members in stages.items())
    return f"Its stages are {listed(list(of_each))}"


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
            given = " ".join(f"{option.marked} {self._values[option.name]}" for option in self._options)
            raise NoRows(f"no row meets {given} at the same time. Leave one of these options out")

    def _refuse_unless_there(self, option: Option, every: Sequence[pl.DataFrame]) -> None:
        """Make sure that an option by itself chooses something."""
        if any(self._chosen(option, rows).height for rows in every):
            return
        value = str(self._values[option.name])
        there = _there([rows[name] for rows in every for name in _columns(option, rows)], value)
        raise NoRows(f"{option.marked} {value}: there is no such {option.name}. {there}")

    def notes(self, found: Iterable[tuple[Section, Found]]) -> Iterator[str]:
        """Of which tables these options choose no rows."""
        frames = [(section, rows) for section, rows in found if isinstance(rows, pl.DataFrame) and rows.height]
        options: dict[str, list[str]] = {}
        for option in self._options:
            if others := [section.key for section, rows in frames if not _applies(option, section, rows)]:
                options.setdefault(listed(others), []).append(option.marked)
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
    if not any(column.count() for column in columns):
        return "It was not recorded"
    known = pl.concat([column.drop_nulls() for column in columns]).unique().sort()
    return f"There are {describe_numbers(known)}" if known.dtype.is_numeric() else there_are(value, known.to_list())
