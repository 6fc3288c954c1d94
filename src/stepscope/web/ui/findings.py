"""Findings beside what a page shows: those that are about it, the greatest saving first, each with what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stepscope.web.ui.choosing import rank_of
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import raw, rendered
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.report.contents import Contents
    from stepscope.report.problems import Problem

SHOWN = 6
"""Findings beside a page; the overview has all."""


def advice_panel(context: Context, parts: Sequence[str], *, of_rank: bool = False) -> None:
    """A panel with the findings about some parts of a report.

    Args:
        parts: The parts, see `stepscope.report.outline`; all if there is none.
        of_rank: Leave out findings about other ranks than that of the page.
    """

    async def load(state: State) -> tuple[Contents, int | None]:
        rank = await rank_of(context, state) if of_rank else None
        return await context.asking.overview(context.run, context.language), rank

    def show(loaded: tuple[Contents, int | None], state: State) -> None:  # noqa: ARG001 - one signature for all
        found, rank = loaded
        problems = about(found.problems, parts, rank)
        raw(
            rendered(
                context,
                "findings.html.j2",
                "beside",
                problems=problems[:SHOWN],
                every=len(found.problems),
                overview=context.link(),
            )
        )

    context.panels.add("advice", load, show, reads=("rank",))


def about(problems: Sequence[Problem], parts: Sequence[str], rank: int | None) -> list[Problem]:
    """The problems that belong to some parts, and to a rank if one is given."""
    return [
        problem
        for problem in problems
        if (not parts or parts_of(problem.finding).intersection(parts))
        and (rank is None or not problem.finding.ranks or rank in problem.finding.ranks)
    ]


CAUSES: Mapping[str, str] = {
    "data_loading": "dataloader",
    "computing": "computation",
    "dispatch": "schedule",
    "communication": "communication",
    "memory": "memory",
}
"""Parts of a report about the work at which a rank loses time, by the kind of the work."""


def parts_of(finding: Finding) -> set[str]:
    """The parts of a report that a finding is about: the one that shows it, and the one about its cause."""
    from stepscope.report.contents import part_of

    kind = finding.evidence.get("kind")
    return {part_of(finding)} | ({CAUSES[kind]} if isinstance(kind, str) and kind in CAUSES else set())
