"""`stepscope steps`: what each step of a rank spends its time on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.asking import Table, asks

if TYPE_CHECKING:
    import polars as pl

_HIDDEN = (
    "start_ns",
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

LONGEST_NAME = 200
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
        Table("step_trace", "Steps", options, hidden=_HIDDEN, says=_points),
        Table("step_statistics", "Statistics by phase", options, every_step=True),
        Table("step_reduces", "Communication of the device by stream", options),
        Table("step_reduce_statistics", "Communication of the device, mean of the steps", options, every_step=True),
    ]


def _points(trace: pl.DataFrame) -> Iterator[str]:
    """Where forward starts and backward ends, and how that was found."""
    for what, side in (("Forward starts", "forward_start"), ("Backward ends", "backward_end")):
        known = trace.drop_nulls(f"{side}_by")
        if known.is_empty():
            yield f"{what}: not known."
            continue
        name, by = known.select(f"{side}_operator", f"{side}_by").row(0)
        at = "" if name is None else f" at {name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + '…'},"
        yield f"{what}{at} {_FOUND_BY[by]}."
