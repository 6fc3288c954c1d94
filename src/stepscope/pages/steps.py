"""What each step of a rank spends its time on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Option, Page, Section, View
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by

if TYPE_CHECKING:
    import polars as pl

_PARTS = ("interval_ns", "forward_backward_ns", "tail_ns")
"""What the two points cut a step into: another decomposition than phases, so a table of its own."""

PHASES = (
    *("data_wait_ns", "compile_ns", "forward_ns", "backward_ns", "exposed_communication_ns", "optimizer_ns"),
    *("validation_ns", "warm_up_ns", "checkpoint_ns", "other_ns"),
)
"""The columns of `stepscope.analysis.step.step_trace.PHASES`; a page loads no analysis."""

_POINTS = {"forward_start": "forward_start", "backward_end": "backward_end"}

_FOUND_BY = {
    "argument": "as requested",
    "environment": "as the environment variable says",
    "stated": "as stated in the profile",
    "phases": "derived from what ran in which phase",
}

LONGEST_NAME = 76
"""Characters of an operator in a sentence; names can be longer than a page, and a line of 80 must hold it."""


def _sentences(trace: pl.DataFrame) -> Iterator[str]:
    """Where forward starts and backward ends, and how that was found."""
    if all(trace[name].null_count() == trace.height for name in PHASES):
        yield "Phases are unknown: what ran in {the_steps} was not recorded."
    if marked := trace["by_phases"].sum():
        yield (
            f"No operators were recorded in {marked} of these {trace.height} {{steps}}: "
            "their phases are those that the framework marked."
        )
    for what, side in (("Forward starts", "forward_start"), ("Backward ends", "backward_end")):
        known = trace.drop_nulls(f"{side}_by")
        if known.is_empty():
            yield f"{what}: unknown."
            continue
        name, by = known.select(f"{side}_operator", f"{side}_by").row(0)
        at = "" if name is None else f" at {_short(name)},"
        yield f"{what}{at} {_FOUND_BY[by]}."


def _short(name: str) -> str:
    """A name that fits a line: of kernels the beginning, of operators in scopes the end tells one from the next."""
    if len(name) <= LONGEST_NAME:
        return name
    in_scopes = "/" in name and "(" not in name
    return "…" + name[-LONGEST_NAME:] if in_scopes else name[:LONGEST_NAME] + "…"


PAGE = Page(
    "steps",
    "Show what each step of a rank spends its time on: phases, statistics, outliers, communication by stream.",
    [
        Section(
            "step_trace",
            "{Steps}",
            takes=_POINTS,
            hidden=(
                *("start_ns", "by_phases"),
                *("forward_start_ns", "forward_start_by", "forward_start_operator"),
                *("backward_end_ns", "backward_end_by", "backward_end_operator"),
            ),
            sentences=_sentences,
            bar="step_ns",
            views=[
                View("{Steps} by phase", without=_PARTS, needs=PHASES),
                View(
                    "{Steps} cut at the start of forward and the end of backward",
                    shows=("graph", "step", "step_ns", *_PARTS),
                    needs=_PARTS,
                ),
            ],
        ),
        Section(
            "step_statistics",
            "Statistics of {the_steps}",
            takes=_POINTS,
            every_step=True,
            views=[
                View("Statistics by phase", split="phases"),
                View("Statistics of the parts between these points", split="points"),
            ],
        ),
        Section("step_reduces", "Communication of the device by stream", takes=_POINTS, hidden=("call", "collective")),
        Section(
            "step_reduce_statistics",
            "Communication of the device, mean of {the_steps}",
            takes=_POINTS,
            every_step=True,
        ),
    ],
    options=[
        Option("forward_start", "text", "Operator or kernel at which the forward pass starts.", "NAME"),
        Option("backward_end", "text", "Operator or kernel at which the backward pass ends.", "NAME"),
    ],
    instead=recorded_by(
        "Record steps: call the profiler's step() after each one",
        OPERATORS,
        TOTALS,
    ),
)
