"""`stepscope steps`: what each step of a rank spends its time on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.asking import Table, View, asks

if TYPE_CHECKING:
    import polars as pl

_PARTS = ("interval_ns", "forward_backward_ns", "tail_ns")
"""What the two points cut a step into: another decomposition than phases, so a table of its own."""

PHASES = (
    *("data_wait_ns", "compile_ns", "forward_ns", "backward_ns", "exposed_communication_ns", "optimizer_ns"),
    *("validation_ns", "warm_up_ns", "checkpoint_ns", "other_ns"),
)
"""The columns of `stepscope.analysis.step.step_trace.PHASES`; the command's help loads no analysis."""

_STEP_KEEPS = (
    *("step", "step_ns", "exposed_communication_ns", "data_wait_ns", "backward_ns", "forward_ns", "optimizer_ns"),
    *("forward_backward_ns", "interval_ns", "tail_ns"),
)

_HIDDEN = (
    *("start_ns", "by_phases"),
    *("forward_start_ns", "forward_start_by", "forward_start_operator"),
    *("backward_end_ns", "backward_end_by", "backward_end_operator"),
)
"""Told in sentences below the table."""

_FOUND_BY = {
    "argument": "as asked for",
    "environment": "as the environment variable says",
    "stated": "as the profile states",
    "phases": "by what ran in which phase",
}

LONGEST_NAME = 90
"""Characters of an operator in a sentence; names of kernels can be longer than a page."""


@asks
def steps(
    forward_start: Annotated[
        str | None, typer.Option(help="Operator or kernel at which forward starts.", metavar="NAME")
    ] = None,
    backward_end: Annotated[
        str | None, typer.Option(help="Operator or kernel at which backward ends.", metavar="NAME")
    ] = None,
) -> Sequence[Table]:
    """Show what each step of a rank spends its time on: phases, statistics, outliers, communication by stream."""
    points = {"forward_start": forward_start, "backward_end": backward_end}
    options = {name: operator for name, operator in points.items() if operator is not None}
    return [
        Table(
            "step_trace",
            "Steps",
            options,
            hidden=_HIDDEN,
            says=_points,
            keeps=_STEP_KEEPS,
            bar="step_ns",
            views=[
                View("Steps by phase", without=_PARTS, needs=PHASES),
                View(
                    "Steps cut at the start of forward and the end of backward",
                    shows=("graph", "step", "step_ns", *_PARTS),
                    needs=_PARTS,
                ),
            ],
        ),
        Table(
            "step_statistics",
            "Statistics of the steps",
            options,
            every_step=True,
            keeps=("phase", "mean_ns", "share_ratio", "median_ns", "max_ns", "outlier_steps", "mean_without_first_ns"),
            views=[
                View("Statistics by phase", split="phases"),
                View("Statistics of the parts between these points", split="points"),
            ],
        ),
        Table(
            "step_reduces",
            "Communication of the device by stream",
            options,
            keeps=("step", "name", "duration_ns", "start_ns", "stream", "segment"),
        ),
        Table(
            "step_reduce_statistics",
            "Communication of the device, mean of the steps",
            options,
            every_step=True,
            keeps=("name", "mean_ns", "stream", "place", "steps", "mean_start_ns"),
        ),
    ]


def _points(trace: pl.DataFrame) -> Iterator[str]:
    """Where forward starts and backward ends, and how that was found."""
    if all(trace[name].null_count() == trace.height for name in PHASES):
        yield "Phases are not known: what ran in the steps was not recorded."
    if marked := trace["by_phases"].sum():
        yield f"No operators were recorded in {marked} of these {trace.height} steps: their phases are as marked."
    for what, side in (("Forward starts", "forward_start"), ("Backward ends", "backward_end")):
        known = trace.drop_nulls(f"{side}_by")
        if known.is_empty():
            yield f"{what}: not known."
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
