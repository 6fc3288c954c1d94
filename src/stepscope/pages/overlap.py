"""How much of the communication computing hides, by parallelism."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import MARKED_STEPS, recorded_by
from stepscope.pages.kernels import BY_RANK
from stepscope.pages.layout import LAYOUT
from stepscope.pages.links import BY_STEP
from stepscope.pages.sources import differing

_DIFFERING = differing("computing", "exposed communication", "waiting")

PAGE = Page(
    "overlap",
    "Show how much of the communication computing hides, by kind of parallelism, and the times of each rank's steps.",
    [
        Section(
            "overlap", "Communication by parallelism, from the timeline, mean of the ranks", only_without=("by_rank",)
        ),
        Section("rank_overlap", "Communication by parallelism, from the timeline, each rank", only_with=("by_rank",)),
        Section(
            "mean_times",
            "Mean {step} of each rank, from the timeline, most exposed communication first",
            notes=_DIFFERING,
            only_without=("by_step",),
        ),
        Section("step_times", "{Steps} of each rank, from the timeline", notes=_DIFFERING, only_with=("by_step",)),
    ],
    options=[BY_RANK, BY_STEP, LAYOUT],
    more="Groups are told apart by their names, or by their members if parallel sizes were recorded or given.",
    scope="job",
    instead=recorded_by(
        "Record a trace of a job with several ranks",
        MARKED_STEPS,
    ),
)
