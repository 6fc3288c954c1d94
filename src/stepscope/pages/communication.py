"""What communication costs each rank, group and operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import PLACES, Derived, Option, Page, Section
from stepscope.pages.instead import recorded_by
from stepscope.pages.job import calls
from stepscope.pages.layout import LAYOUT
from stepscope.pages.links import BY_STEP, FILTERS, LINK_OPTIONS, of_mean
from stepscope.pages.sources import differing, left_out, overlapping, source_of, together, unknown_waits

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

WITH_FIRST = Option(
    "with_first", "flag", "Count start-up steps in means too, as MindSpore Insight does.", "", default=False
)
_MEAN = {"by_step": "by_step", "with_first": "with_first"}


def _of_ranks(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """The rows; where they come from, and whether they are of the mean step."""
    is_mean = rows.height and not rows["step"].count() and (rows["steps"] > 1).any()
    return Derived(rows, source_of(rows, "parts_by") + (", mean of its steps" if is_mean else ""))


PAGE = Page(
    "communication",
    "Show what communication costs each rank, group and operator, how much of it is waiting, and over which links.",
    [
        Section(
            "rank_communication",
            "Communication of each rank",
            derived=_of_ranks,
            takes={"stage": "stage", **_MEAN},
            hidden=("parts_by", "left_out"),
            notes=together(overlapping, left_out, differing("communication", "waiting")),
        ),
        Section(
            "communication",
            "Communication of all ranks together by group, operation and size",
            derived=calls,
            notes=unknown_waits,
        ),
        Section("rank_calls", "Operators of each rank", derived=_of_ranks, takes=_MEAN, hidden=("group", "parts_by")),
        Section(
            "call_links",
            "Links of each operator",
            derived=of_mean,
            takes={"by_step": "by_step", **FILTERS},
            # as many rows as calls and links: not unless they are asked for
            only_with=("by_step", *FILTERS),
        ),
    ],
    options=[*PLACES, BY_STEP, WITH_FIRST, *LINK_OPTIONS, LAYOUT],
    more="The rank that waits least is the one that the others wait for. Search operators by name with "
    "«--table rank_calls --search». «--table call_links» shows the links of each operator, «`stepscope links`» "
    "their sums.",
    scope="job",
    instead=recorded_by("Record a trace of a job with several ranks"),
)
