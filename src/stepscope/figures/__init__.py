"""Figures: one file each, drawn from declared answers, for reports, web pages and notebooks alike.

from stepscope.figures import FIGURES, figure_named

figure_named("time-by-rank").figure(run)  # a Plotly figure
figure_named("time-by-rank").table(run)  # the rows behind it
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from stepscope.errors import Unavailable
from stepscope.figures.base import Drawn, Figure, named
from stepscope.figures.html import bundle, fragment, to_json
from stepscope.present import Language

if TYPE_CHECKING:
    from stepscope.pages.answering import Subject

__all__ = ["FIGURES", "Drawn", "Figure", "bundle", "drawn_all", "figure_named", "fragment", "to_json"]

NAMES = (
    "job_time",
    "time_by_rank",
    "rank_steps",
    "savings",
    "what_if",
    "step_times",
    "step_trace",
    "step_parts",
    "step_map",
    "heat_map",
    "operator_tree",
    "operator_bars",
    "operator_types",
    "roofline",
    "rank_communication",
    "rank_flops",
    "layout",
    "link_matrix",
    "bandwidth",
    "rank_memory",
    "memory",
    "memory_lifetimes",
    "queues",
    "input_pipeline",
    "input_curves",
    "cpu_usage",
    "host_time",
    "shape_curves",
    "pipeline",
    "marey",
    "strategy",
    "compared_parts",
    "compared_operators",
)
"""Modules here that declare a `FIGURE`, in the order in which surfaces show them."""

FIGURES: tuple[Figure, ...] = tuple(import_module(f"{__name__}.{name}").FIGURE for name in NAMES)


def figure_named(name: str) -> Figure:
    """The figure of a name, e.g. `time-by-rank`.

    Raises:
        StepscopeError: If there is none.
    """
    return named(FIGURES, name)


def drawn_all(run: Subject, *, language: Language = "en") -> Iterator[tuple[Figure, Drawn | str]]:
    """Every figure of a run (or of a pair), or the reason why there is none.

    A figure that fails is reported as well and costs none of the others, unless errors are to be seen (`--debug`).
    """
    for figure in FIGURES:
        if not figure.fits(run):
            continue
        try:
            yield figure, figure.drawn(run, language=language)
        except Unavailable as reason:
            yield figure, str(reason)
        except Exception as error:
            if os.environ.get("STEPSCOPE_DEBUG"):
                raise
            yield figure, f"this figure could not be drawn: {type(error).__name__}: {error}"
