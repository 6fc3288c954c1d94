"""The figures of a running job: its last steps as lines and as a map, as Plotly takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.figures.axes import whole_ticks
from stepscope.web.live_jobs import MEASURES, Measure, StepTime
from stepscope.web.ui.context import Context
from stepscope.web.ui.figures import on_page
from stepscope.web.ui.pages.live_words import said
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from stepscope.live.show.status import Status

LINES = 12
"""Ranks with a line of their own, unless others are chosen: those that are worth a look first."""

MAP_STEPS = 64
"""Steps of the map, the last ones."""


def measure_of(state: State) -> Measure:
    """What the figures show."""
    return next((measure for measure in MEASURES if measure == state.get("measure")), MEASURES[0])


def drawn_ranks(status: Status, steps: Mapping[int, Sequence[StepTime]], chosen: str) -> list[int]:
    """Ranks that figures show: those that are chosen, else those worth a look, the worst first."""
    from stepscope.live.show.view import worst_first

    worst = [one.rank for one in worst_first(status.ranks, status.blamed) if steps.get(one.rank)]
    return chosen_ranks(chosen, worst) if chosen else worst


def chosen_ranks(text: str, there: Sequence[int]) -> list[int]:
    """Those of some ranks that a text names; none if it cannot be understood."""
    from stepscope.selection import parse_selection

    if not text:
        return []
    try:
        selection = parse_selection(text, "ranks")
    except StepscopeError:
        return []
    return list(there) if selection is None else [rank for rank in there if rank in selection]


def lines(steps: Mapping[int, Sequence[StepTime]], measure: Measure, context: Context) -> dict[str, Any]:
    """Times of the last steps, a line for each rank."""
    data = []
    for rank in sorted(steps):
        points = [(each.step, each.of(measure)) for each in steps[rank]]
        values = [None if ns is None else ns / 1e6 for _, ns in points]
        data.append(
            {"type": "scatter", "mode": "lines", "name": f"rank {rank}", "x": [step for step, _ in points], "y": values}
        )
    layout = {"height": 300, "yaxis": {"rangemode": "tozero", "title": {"text": f"{said(context, measure)} (ms)"}}}
    return _spec(data, layout, context, [each.step for points in steps.values() for each in points])


def heat_map(steps: Mapping[int, Sequence[StepTime]], measure: Measure, context: Context) -> dict[str, Any]:
    """Times of the last steps as colours, a row for each rank."""
    every = sorted({each.step for points in steps.values() for each in points})[-MAP_STEPS:]
    known = {rank: {each.step: each.of(measure) for each in points} for rank, points in steps.items()}
    cells = [[None if (ns := known[rank].get(step)) is None else ns / 1e6 for step in every] for rank in steps]
    data = [
        {
            "type": "heatmap",
            "x": every,
            "y": [f"rank {rank}" for rank in steps],
            "z": cells,
            "xgap": 1,
            "ygap": 1,
            "colorbar": {"title": {"text": "ms"}},
            "hovertemplate": f"%{{y}}, {said(context, 'last')} %{{x}}: %{{z:.4~g}} ms<extra></extra>",
        }
    ]
    height = min(max(22 * len(steps) + 90, 300), 700)
    return _spec(data, {"height": height, "yaxis": {"autorange": "reversed", "type": "category"}}, context, every)


def _spec(data: list[dict[str, Any]], layout: dict[str, Any], context: Context, steps: Sequence[int]) -> dict[str, Any]:
    whole = {
        "margin": {"t": 10, "b": 44},
        "xaxis": {"title": {"text": said(context, "last")}, **whole_ticks(pl.Series(steps, dtype=pl.Int64))},
        "uirevision": "live",
        **layout,
    }
    return on_page(context, data, whole)
