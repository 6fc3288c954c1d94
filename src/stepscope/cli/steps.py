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
        Table("step_statistics", "Statistics by phase", options, every_step=True, says=_outliers),
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
        names = known[f"{side}_operator"].drop_nulls()
        at = f" at {names[0]}" if len(names) else ""
        yield f"{what}{at} (by {known[f'{side}_by'][0]})."


def _outliers(statistics: pl.DataFrame) -> Iterator[str]:
    """The steps that are out of the rule."""
    from stepscope.selection import describe_numbers

    for phase, numbers in statistics.select("phase", "outlier_steps").iter_rows():
        if numbers:
            yield f"{phase.replace('_', ' ')}: step {describe_numbers(numbers)} out of the rule."
