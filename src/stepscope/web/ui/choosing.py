"""Which rank, or which ranks of a job, a page is about: by number, stage, host and group, as the state says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.errors import StepscopeError
from stepscope.pages.base import PLACES
from stepscope.pages.layout import with_layout
from stepscope.web.ui.controls import Choice, Control
from stepscope.web.ui.labels import ALL, LABELS

if TYPE_CHECKING:
    from stepscope.pages.choosing import Places
    from stepscope.run import Run
    from stepscope.web.ui.context import Context
    from stepscope.web.ui.state import State

PLACED = tuple(option.name for option in PLACES)
"""Parameters that choose ranks by where they stand."""

OF_RANK, OF_JOB = ("rank",), ("ranks", *PLACED, "layout")
"""Parameters that choose the rank of a page about one, and the ranks of a page about a job, with what places them."""

MOST_CHOICES = 400
"""Hosts, stages or groups that a field lists; of more, one is typed."""


async def rank_of(context: Context, state: State) -> int:
    """The rank that a page about one rank is about: the lowest unless one is given.

    Raises:
        StepscopeError: If what is given is no number.
    """
    if text := state.get("rank"):
        given = state.number("rank")
        if given is None:
            raise StepscopeError(f"rank {text}: give a whole number")
        return given
    return await context.asking.about(context.run, "lowest rank", lambda run: run.ranks[0].rank)


async def ranks_of(context: Context, state: State) -> str | None:
    """The ranks of a job that a page is about, as a selection; None for all.

    Raises:
        StepscopeError: If there is no such stage, host or group.
    """
    ranks, layout = state.get("ranks") or None, state.get("layout") or None
    given = {name: state.get(name) or None for name in PLACED}
    if not any(given.values()):
        return ranks

    def choose(opened: Run) -> str:
        from stepscope.pages import choosing

        run = with_layout(opened, layout)
        chosen = run.select(ranks=choosing.ranks_of(run, ranks, **given))
        return ",".join(str(rank.rank) for rank in chosen.ranks)

    return await context.asking.about(context.run, ("ranks", ranks, layout, *given.values()), choose)


async def places_of(context: Context, state: State) -> Places:
    """Where the ranks of the job stand, by the parallel sizes that the state gives, if it gives some."""
    from stepscope.pages import choosing

    layout = state.get("layout") or None
    return await context.asking.about(
        context.run, ("places", layout), lambda run: choosing.places_of(with_layout(run, layout))
    )


async def values_of(context: Context, question: str, column: str, rank: int | None = None) -> list[str]:
    """The values of a column of an answer, each once in its order; none if there is no answer.

    Args:
        rank: Of this rank only; of all by default.
    """

    def distinct(run: Run) -> list[str]:
        from stepscope.errors import Unavailable

        try:
            answer = (run if rank is None else run.select(ranks=rank)).analyse(question)
        except Unavailable:
            return []
        return [str(value) for value in answer[column].drop_nulls().unique(maintain_order=True).head(MOST_CHOICES)]

    return await context.asking.about(context.run, ("values", question, column, rank), distinct)


def place_controls(context: Context, places: Places) -> list[Control]:
    """Fields that choose stage, host and group, as far as there are several."""
    of_each = (
        ("stage", [str(stage) for stage in places.stages]),
        ("host", list(places.hosts)),
        ("group", list(places.groups)),
    )
    return [_field(context, name, names) for name, names in of_each if len(names) > 1]


def _field(context: Context, name: str, names: Sequence[str]) -> Control:
    label = LABELS[name].of(context.language)
    if len(names) > MOST_CHOICES:
        return Control(name, label, "text", placeholder=names[0])
    return Control(
        name, label, "select", [Choice("", ALL.of(context.language)), *(Choice(each, each) for each in names)]
    )
